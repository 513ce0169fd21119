//! Mutated libraries and lists of functions, as the process without rights reads them: tables for unwinding
//! (`.eh_frame`) with their programs and expressions, sections, symbols, perf maps.
//!
//! What such a file does to that process is no fault where the process notices and ends by itself: a look goes on without
//! the names of that file. A fault is an end by a signal, an end that is not its own, or no end.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fastrand::Rng;
use fingerpost_sys::child;
use fingerpost_sys::packets::{LONGEST, Packets};

use super::oracle::Fault;
use super::{Plan, keep};

/// Functions with frames of many kinds: saved registers, a frame pointer, a frame of variable length.
const SOURCE: &str = r"
    extern int printf(const char *, ...);
    __attribute__((noinline)) int leaf(int n) { return printf(0, n) + n; }
    __attribute__((noinline)) int saved(int a, int b, int c) { int d = leaf(a); return leaf(b) * d + leaf(c) * b; }
    int varying(int n) { char room[n + 1]; room[n] = 1; return saved(n, leaf(room[n]), n) + room[n / 2]; }
    int large(int n) { volatile char room[5000]; room[n] = 2; return varying(room[n]) + room[0]; }
";
/// Where the library is mapped in the process whose frames are unwound.
const BASE: u64 = 0x7f00_0000_0000;
const STACK: u64 = 0x7ffc_0000_0000;
/// The process has 3 CPU seconds; a busy machine gives it fewer of them.
const PATIENCE: Duration = Duration::from_secs(60);

/// A library, and where the mutations are of most interest.
struct Library {
    bytes: Vec<u8>,
    /// The tables for unwinding.
    tables: Vec<std::ops::Range<usize>>,
    /// Code: where in the file, and how long.
    code: (u64, u64),
}

fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    let mut wide = [0; 8];
    wide[..size].copy_from_slice(&bytes[at..at + size]);
    u64::from_le_bytes(wide)
}

impl Library {
    fn new() -> Library {
        let dir = tempfile::tempdir().unwrap();
        let (source, made) = (dir.path().join("library.c"), dir.path().join("library.so"));
        std::fs::write(&source, SOURCE).unwrap();
        let mut compiler = Command::new("cc");
        compiler.args(["-O1", "-fPIC", "-shared", "-Wl,--hash-style=gnu", "-o"]);
        assert!(compiler.arg(&made).arg(&source).status().unwrap().success());
        let bytes = std::fs::read(made).unwrap();
        let (headers, count) = (
            number(&bytes, 40, 8) as usize,
            number(&bytes, 60, 2) as usize,
        );
        let sections: Vec<usize> = (0..count).map(|n| headers + 64 * n).collect();
        let names = number(&bytes, sections[number(&bytes, 62, 2) as usize] + 24, 8) as usize;
        let of = |wanted: &[u8]| {
            let is =
                |at: &&usize| bytes[names + number(&bytes, **at, 4) as usize..].starts_with(wanted);
            let at = *sections.iter().find(is).expect("a section");
            let begin = number(&bytes, at + 24, 8) as usize;
            begin..begin + number(&bytes, at + 32, 8) as usize
        };
        let tables = vec![of(b".eh_frame\0"), of(b".eh_frame_hdr\0")];
        let code = of(b".text\0");
        Library {
            tables,
            code: (code.start as u64, code.len() as u64),
            bytes,
        }
    }

    fn damaged(&self, rng: &mut Rng) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        for _ in 0..rng.usize(1..8) {
            let within = match rng.u8(..10) {
                0..6 => self.tables[usize::from(rng.u8(..4) == 0)].clone(),
                6..8 => number(&self.bytes, 40, 8) as usize..bytes.len(),
                8 => 0..0x300,
                _ => 0..bytes.len(),
            };
            let at = rng.usize(within).min(bytes.len() - 1);
            let end = bytes.len().min(at + 8);
            match rng.u8(..8) {
                0 => {
                    let program = program(rng);
                    let end = bytes.len().min(at + program.len());
                    bytes[at..end].copy_from_slice(&program[..end - at]);
                }
                1 => {
                    let wide = [0, 1, u64::MAX, 1 << 63, 0x7fff_ffff, 1 << 40][rng.usize(..6)];
                    bytes[at..end].copy_from_slice(&u64::to_le_bytes(wide)[..end - at]);
                }
                2 => {
                    let from = rng.usize(..bytes.len() - 64);
                    let part = bytes[from..from + 64].to_vec();
                    let end = bytes.len().min(at + 64);
                    bytes[at..end].copy_from_slice(&part[..end - at]);
                }
                _ => bytes[at] = [0, 1, 0x7f, 0x80, 0xff, rng.u8(..)][rng.usize(..6)],
            }
        }
        if rng.u8(..40) == 0 {
            bytes.truncate(rng.usize(64..bytes.len()));
        }
        bytes
    }
}

/// A rule of a frame with an expression: `DW_CFA_def_cfa_expression`, its length, and operations that read, repeat, jump
/// and compute.
fn program(rng: &mut Rng) -> Vec<u8> {
    let operations = [
        0x06, 0x08, 0x0d, 0x10, 0x12, 0x13, 0x14, 0x15, 0x16, 0x1b, 0x1c, 0x1d, 0x1e, 0x22, 0x23,
        0x24, 0x28, 0x2f, 0x30, 0x70, 0x77, 0x94, 0x96, 0x97, 0x9c, 0xf1, 0xff,
    ];
    let mut found = vec![0x0f, 0];
    for _ in 0..rng.usize(1..12) {
        found.push(operations[rng.usize(..operations.len())]);
        if matches!(found.last(), Some(0x28 | 0x2f)) {
            found.extend(rng.i16(-20..20).to_le_bytes());
        }
    }
    found[1] = (found.len() - 2) as u8;
    found
}

fn list(rng: &mut Rng) -> Vec<u8> {
    let lines = "1000 20 one\n1020 5 LazyCompile:*f /srv/app.js:3\n0x2000 ff three\n";
    let whole = lines.repeat(rng.usize(1..50));
    super::bytes::damage(rng, whole.as_bytes())
}

/// The process that is asked.
struct Reader {
    child: std::process::Child,
    packets: Packets,
}

/// What became of a question.
enum Said {
    /// So many addresses or names.
    Answer(usize),
    /// The process ended.
    Ended,
}

impl Reader {
    fn start() -> Reader {
        let (packets, theirs) = Packets::pair().unwrap();
        let mut command = Command::new(crate::support::binary());
        command
            .arg("__reader")
            .env_clear()
            .stdin(Stdio::from(theirs.into_fd()))
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = command.spawn().unwrap();
        Reader { child, packets }
    }

    /// Sends a packet; whether somebody is there to take it.
    fn tell(&self, packet: &[u8], file: Option<&File>) -> bool {
        let sent = self
            .packets
            .send(packet, file.map(AsFd::as_fd), Some(PATIENCE));
        sent.is_ok()
    }

    /// Asks, and takes packets until the answer's last.
    fn ask(&self, packet: &[u8], file: Option<&File>) -> Result<Said, Fault> {
        if !self.tell(packet, file) {
            return Ok(Said::Ended);
        }
        let mut room = vec![0; LONGEST];
        let until = Instant::now() + PATIENCE;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.packets.receive(&mut room, Some(left)) {
                Ok(came) => match room[0] {
                    b'u' => return Ok(Said::Answer((came.bytes - 1) / 8)),
                    b'e' => return Ok(Said::Answer(1)),
                    b'N' | b'r' => {}
                    0xff => return Ok(Said::Ended),
                    other => return Err(Fault::new("abort", format!("an answer of kind {other}"))),
                },
                Err(e) if e.kind() == ErrorKind::TimedOut => {
                    return Err(Fault::new("hang", format!("no answer within {PATIENCE:?}")));
                }
                Err(_) => return Ok(Said::Ended),
            }
        }
    }

    /// Ends the conversation: the process must have ended by itself, or do so now.
    fn end(mut self) -> Result<(), Fault> {
        drop(self.packets);
        match child::wait_deadline(&mut self.child, Instant::now() + PATIENCE) {
            Ok(Some(status)) if matches!(status.code(), Some(0 | 101)) => Ok(()),
            Ok(Some(status)) => Err(Fault::new("abort", format!("the reader ended: {status}"))),
            _ => {
                let _ = self.child.kill();
                let _ = self.child.wait();
                Err(Fault::new("hang", "the reader goes on when nobody asks"))
            }
        }
    }
}

fn packet(kind: u8, numbers: &[u64]) -> Vec<u8> {
    let mut packet = vec![kind];
    numbers.iter().for_each(|n| packet.extend(n.to_le_bytes()));
    packet
}

fn in_file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file
}

/// Has stacks unwound by a library's tables, and the functions named; true where a frame was found.
fn unwound(library: &Library, bytes: &[u8]) -> Result<bool, Fault> {
    let reader = Reader::start();
    let (begin, length) = library.code;
    // Behind a number of four bytes come those of eight.
    let with = |kind: u8, number: u32, rest: &[u64]| {
        let mut packet = [&[kind][..], &number.to_le_bytes()].concat();
        rest.iter().for_each(|n| packet.extend(n.to_le_bytes()));
        packet
    };
    let mut mapping = with(b'm', 0, &[BASE, BASE + length, begin]);
    mapping.extend(0_u32.to_le_bytes());
    let mut said = [
        reader.tell(&with(b'f', 0, &[bytes.len() as u64]), Some(&in_file(bytes))),
        reader.tell(&packet(b'p', &[]), None),
        reader.tell(&mapping, None),
    ]
    .into_iter()
    .all(|told| told);
    let mut frames = 0;
    let stack: Vec<u8> = (0..1_000_u64)
        .flat_map(|n| (BASE + n * 7 % length).to_le_bytes())
        .collect();
    for at in (0..length).step_by(length as usize / 8) {
        let mut question = with(b'u', 0, &[BASE + at, STACK, STACK + 64, 0]);
        question.extend((stack.len() as u16).to_le_bytes());
        question.extend(&stack);
        said = said
            && match reader.ask(&question, None)? {
                Said::Answer(found) => {
                    frames = frames.max(found);
                    true
                }
                Said::Ended => false,
            };
    }
    let places: Vec<u64> = (0..length)
        .step_by(16)
        .flat_map(|at| [BASE, begin, BASE + at])
        .collect();
    let names = with(b'n', 0, &[&[0], places.as_slice()].concat());
    if said {
        reader.ask(&names, None)?;
    }
    reader.end()?;
    Ok(frames > 1)
}

fn named(list: &[u8]) -> Result<bool, Fault> {
    let reader = Reader::start();
    let question = packet(b'j', &[list.len() as u64, 0x1001, 0x1022, 0x2001, u64::MAX]);
    let said = reader.ask(&question, Some(&in_file(list)))?;
    reader.end()?;
    Ok(matches!(said, Said::Answer(_)))
}

#[test]
fn mutated_code() {
    let library = Library::new();
    let whole = unwound(&library, &library.bytes).unwrap();
    assert!(whole, "what is not damaged is unwound");
    Plan::from_environment().run("code", |_, seed| {
        let mut rng = Rng::with_seed(seed);
        if seed % 5 == 0 {
            let list = list(&mut rng);
            return named(&list).inspect_err(|_| drop(keep("functions", seed, "map", &list)));
        }
        let bytes = library.damaged(&mut rng);
        unwound(&library, &bytes).inspect_err(|_| drop(keep("code", seed, "so", &bytes)))
    });
}
