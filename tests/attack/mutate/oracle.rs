//! What must hold of every command, whatever it was given.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::usage::{Usage, wait_usage};
use fingerpost_sys::child;

/// The kinds of fault, in the order of the table.
pub const KINDS: &[&str] = &["abort", "hang", "memory", "control", "sentence"];

/// The most processor time that one small input may cost. Processor time, because the machine may be busy with other
/// things.
const CPU: Duration = Duration::from_secs(5);
/// When a command that does not end is killed.
const WALL: Duration = Duration::from_secs(240);
/// What a command may need beside four times its input and what it needs without any.
const ALLOWANCE: u64 = 64 << 20;

/// What was wrong with a case.
#[derive(Debug)]
pub struct Fault {
    /// One of [`KINDS`].
    pub kind: &'static str,
    /// What was seen.
    pub text: String,
}

impl Fault {
    pub fn new(kind: &'static str, text: impl Into<String>) -> Fault {
        Fault {
            kind,
            text: text.into(),
        }
    }
}

/// How a command ended.
pub struct Ended {
    pub status: ExitStatus,
    pub usage: Usage,
    pub out: Vec<u8>,
    pub err: Vec<u8>,
}

/// The binary under attack.
pub fn binary() -> Command {
    let mut command = Command::new(crate::support::binary());
    command.env_remove("NO_COLOR").stdin(Stdio::null());
    command
}

/// Runs a command to its end, or kills it.
pub fn run(command: &mut Command) -> Result<Ended, Fault> {
    let (mut out, mut err) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
    command
        .process_group(0)
        .stdout(out.try_clone().unwrap())
        .stderr(err.try_clone().unwrap());
    let mut child = command.spawn().unwrap();
    let Some((status, usage)) = wait_usage(&child, Instant::now() + WALL).unwrap() else {
        let _ = child::signal_group(child.id() as i32, libc::SIGKILL);
        let _ = child.wait();
        return Err(Fault::new(
            "hang",
            format!("{command:?} did not end within {WALL:?}"),
        ));
    };
    Ok(Ended {
        status,
        usage,
        out: read(&mut out),
        err: read(&mut err),
    })
}

fn read(file: &mut File) -> Vec<u8> {
    let mut bytes = Vec::new();
    file.rewind().unwrap();
    file.take(64 << 20).read_to_end(&mut bytes).unwrap();
    bytes
}

/// Runs a command that was given `input` bytes and judges how it ended.
pub fn judge(command: &mut Command, input: u64) -> Result<Ended, Fault> {
    let ended = run(command)?;
    let shown = || format!("{:?}", command.get_args().collect::<Vec<_>>());
    let err = String::from_utf8_lossy(&ended.err);
    if ended.status.signal().is_some()
        || !matches!(ended.status.code(), Some(0..=3))
        || panicked(&err)
    {
        return Err(Fault::new(
            "abort",
            format!("{} ended with {}: {}", shown(), ended.status, excerpt(&err)),
        ));
    }
    if ended.usage.cpu > CPU {
        return Err(Fault::new(
            "hang",
            format!(
                "{} took {:?} of processor time for {input} bytes",
                shown(),
                ended.usage.cpu
            ),
        ));
    }
    let most = base().max(own_peak()) + ALLOWANCE + 4 * input;
    if ended.usage.peak_bytes > most {
        let peak = ended.usage.peak_bytes >> 20;
        return Err(Fault::new(
            "memory",
            format!(
                "{} took {peak} MiB for {} KiB of input, over {} MiB",
                shown(),
                input >> 10,
                most >> 20
            ),
        ));
    }
    for (name, bytes) in [
        ("standard output", &ended.out),
        ("standard error", &ended.err),
    ] {
        if let Some(what) = misleading(bytes) {
            return Err(Fault::new(
                "control",
                format!("{}: {name} has {what}", shown()),
            ));
        }
    }
    if matches!(ended.status.code(), Some(2 | 3)) && !is_sentence(&err) {
        return Err(Fault::new(
            "sentence",
            format!(
                "{} ended with {} and said {:?}",
                shown(),
                ended.status,
                excerpt(&err)
            ),
        ));
    }
    Ok(ended)
}

/// Whether it tells a person in one sentence why nothing came of it; a command over several files adds how many of them
/// failed.
fn is_sentence(err: &str) -> bool {
    let lines: Vec<&str> = err.lines().collect();
    let short = lines
        .iter()
        .all(|line| line.starts_with("fingerpost: ") && line.len() < 2000);
    short && (lines.len() == 1 || lines.len() == 2 && lines[1].contains(" of "))
}

fn panicked(err: &str) -> bool {
    [
        "panicked at",
        "RUST_BACKTRACE",
        "internal error",
        "overflowed its stack",
        "memory allocation of",
        "is a defect",
    ]
    .iter()
    .any(|sign| err.contains(sign))
}

fn excerpt(text: &str) -> String {
    text.chars().take(400).collect()
}

/// The most that this process ever held: the kernel carries it over to what it starts.
fn own_peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .expect("a peak");
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// What the binary needs for nothing.
fn base() -> u64 {
    static BASE: OnceLock<u64> = OnceLock::new();
    *BASE.get_or_init(|| {
        run(binary().arg("--version"))
            .unwrap_or_else(|f| panic!("{}", f.text))
            .usage
            .peak_bytes
    })
}

/// The first character that could mislead a terminal or a reader, with what stands before it. The list is not the
/// binary's own: a gap there must not be a gap here.
pub fn misleading(bytes: &[u8]) -> Option<String> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(e) => return Some(format!("bytes that are no UTF-8 at {}", e.valid_up_to())),
    };
    let (at, c) = text.char_indices().find(|(at, c)| {
        // A line of CSV ends with both.
        (c.is_control() && !matches!(c, '\n' | '\t') && !text[*at..].starts_with("\r\n"))
            || matches!(c, '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(c, '\u{2060}'..='\u{206f}')
            || matches!(c, '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
    })?;
    let before: String = text[..at]
        .chars()
        .rev()
        .take(60)
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .collect();
    Some(format!("{:?} behind {before:?}", c))
}
