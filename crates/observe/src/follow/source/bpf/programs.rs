//! Which programs are attached where, and what they record turned into events.

use std::collections::HashMap;

use fingerpost_sys::bpf::btf::Btf;
use fingerpost_sys::bpf::{Point, Wanted as Programs};

use crate::follow::event::{Event, Io, Left, What};
use crate::follow::source::flow::{Names, int, long};
use crate::follow::source::wanted::{Kind, WANTED, Wanted};

/// The programs, as a compiler made them of `bpf/`.
#[repr(C, align(8))]
struct Aligned<T: ?Sized>(T);
static ALIGNED: &Aligned<[u8]> = &Aligned(*include_bytes!("../../../../../../bpf/record.bpf.o"));

/// The programs for the kernel.
pub fn object() -> &'static [u8] {
    &ALIGNED.0
}

/// Bytes of a record before its values (`struct record`).
pub const HEADER: usize = 24;
/// Bytes that were looked at and left in the socket.
const MSG_PEEK: u64 = 2;
/// The bits of a thread's state that say how it sleeps, or that it has ended.
const UNINTERRUPTIBLE: u64 = 2;
const NO_LOAD: u64 = 0x400;
const WAITS_FOR_LOCK: u64 = 0x1000;
const ENDED: u64 = 0x10 | 0x20 | 0x80;
/// Bits of a block request's flags that say what it does; a write is odd, this is a flush.
const OPERATION: u64 = 0xff;
const FLUSH: u64 = 2;

/// What is attached, and what is said of it.
pub struct Chosen {
    pub programs: Programs,
    /// So many, of those that are switched, stay attached between windows.
    pub stay: usize,
    /// What the kernel lacks, and is not replaced.
    pub missing: Vec<&'static str>,
}

/// The ways to have the events of sockets where a kernel before Linux 6.3 has no tracepoints for them.
pub const WAYS: [&str; 2] = ["the ends of functions", "probes at functions"];

/// The functions that send a message, and that receive one; the first of each is there in every kernel.
const SENDING: [&str; 5] = [
    "inet_sendmsg",
    "inet6_sendmsg",
    "unix_stream_sendmsg",
    "unix_dgram_sendmsg",
    "unix_seqpacket_sendmsg",
];
const RECEIVING: [&str; 5] = [
    "inet_recvmsg",
    "inet6_recvmsg",
    "unix_stream_recvmsg",
    "unix_dgram_recvmsg",
    "unix_seqpacket_recvmsg",
];
/// What sends files until Linux 6.5.
const SENDING_PAGES: &str = "inet_sendpage";
/// What says that bytes have arrived.
const READABLE: &str = "sock_def_readable";

/// The programs at functions in the place of the tracepoints of these kinds.
pub fn at_functions(kinds: &[Kind], probes: bool) -> Vec<Point> {
    let mut points = Vec::new();
    let mut add = |sections: &[&'static str], function, optional| {
        points.extend(sections.iter().map(|section| Point::Function {
            section,
            function,
            optional,
        }));
    };
    for kind in kinds {
        match kind {
            Kind::Sent => {
                let sections: &[&str] = if probes {
                    &["kprobe/message", "kretprobe/send"]
                } else {
                    &["fexit/sendmsg"]
                };
                for (n, function) in SENDING.into_iter().enumerate() {
                    add(sections, function, n > 0);
                }
                let sections: &[&str] = if probes {
                    sections
                } else {
                    &["fexit/sendpage"]
                };
                add(sections, SENDING_PAGES, true);
            }
            Kind::Received => {
                let sections: &[&str] = if probes {
                    &["kprobe/message", "kretprobe/recvmsg"]
                } else {
                    &["fexit/recvmsg"]
                };
                for (n, function) in RECEIVING.into_iter().enumerate() {
                    add(sections, function, n > 0);
                }
            }
            Kind::Arrived if probes => add(&["kprobe/readable"], READABLE, false),
            Kind::Arrived => add(&["fentry/readable"], READABLE, false),
            _ => (),
        }
    }
    points
}

/// The programs for this kernel, without the calls of some threads.
///
/// # Errors
/// One sentence: what the kernel lacks.
pub fn choose(btf: &Btf, but_calls_of: &[i32]) -> Result<Chosen, String> {
    let (mut missing, mut of_functions) = (Vec::new(), Vec::new());
    let mut there: Vec<&'static Wanted> = Vec::new();
    // An arrival tells the socket's ports: programs at tcp_probe would record every acknowledgement too.
    for w in WANTED.iter().filter(|w| w.kind != Kind::Ports) {
        let socket = matches!(w.kind, Kind::Sent | Kind::Received | Kind::Arrived);
        match btf.tracepoint(w.point()) {
            Some(_) => there.push(w),
            None if socket => of_functions.push(w.kind),
            None if w.optional => missing.push(w.point()),
            None => {
                return Err(format!(
                    "requests cannot be followed: this kernel has no tracepoint {}",
                    w.point()
                ));
            }
        }
    }
    let point = |w: &&'static Wanted| Point::Tracepoint(w.point());
    let mut switched = there;
    switched.sort_by_key(|w| !w.kind.is_seldom());
    let stay = switched.iter().filter(|w| w.kind.is_seldom()).count();
    let ways = if of_functions.is_empty() {
        Vec::new()
    } else {
        [false, true]
            .map(|probes| at_functions(&of_functions, probes))
            .to_vec()
    };
    let word = |n: u32| n.to_ne_bytes().to_vec();
    let arguments = |point| word(btf.tracepoint_arguments(point).unwrap_or(1));
    let threads: Vec<u8> = but_calls_of
        .iter()
        .flat_map(|tid| tid.to_ne_bytes())
        .collect();
    let programs = Programs {
        optional: switched
            .iter()
            .filter(|w| w.optional)
            .map(|w| w.point())
            .collect(),
        switched: switched.iter().map(point).collect(),
        ways,
        constants: vec![
            ("own_count", word(but_calls_of.len() as u32)),
            ("own_threads", threads),
            ("switch_arguments", arguments("sched_switch")),
            ("queue_arguments", arguments("block_bio_queue")),
            ("insert_arguments", arguments("block_rq_insert")),
            ("issue_arguments", arguments("block_rq_issue")),
            ("mmap_call", word(libc::SYS_mmap as u32)),
        ],
        ..Programs::default()
    };
    Ok(Chosen {
        programs,
        stay,
        missing,
    })
}

/// The event of a record; `None` where it is none of ours.
pub fn event(record: &[u8], partitions: &HashMap<u32, u32>) -> Option<Event> {
    let (tid, pid) = (int(record, 8)?, int(record, 12)?);
    let head = int(record, 16)? as u32;
    let what = what(kind(head as u8)?, record, partitions)?;
    Some(Event {
        time: long(record, 0)?,
        cpu: (head >> 16) as u16,
        interrupt: head >> 8 & 0xff != 0,
        pid,
        tid,
        what,
    })
}

fn what(kind: Kind, record: &[u8], partitions: &HashMap<u32, u32>) -> Option<What> {
    let small = int(record, 20)?;
    let value = |n: usize| long(record, HEADER + 8 * n);
    let disk = |step| {
        Some(What::Disk {
            step,
            io: io(small as u32, [value(0)?, value(1)?, value(2)?], partitions),
        })
    };
    Some(match kind {
        Kind::Enter => What::Enter {
            call: small,
            args: [value(0)?, value(1)?],
        },
        Kind::Exit => What::Exit {
            call: small,
            result: value(0)? as i64,
        },
        Kind::Switch => What::Switch {
            left: left(value(0)? & 1 == 1, value(1)? & 0xffff_ffff),
            next: small,
        },
        Kind::Waking => What::Waking {
            who: small,
            target: value(0)? as u16,
        },
        Kind::Fork => What::Fork { child: small },
        Kind::Sent => What::Sent {
            socket: value(0)?,
            bytes: small,
        },
        Kind::Received if value(1)? & MSG_PEEK != 0 => return None,
        Kind::Received => What::Received {
            socket: value(0)?,
            bytes: small,
        },
        Kind::Arrived => What::Arrived { socket: value(0)? },
        Kind::State => {
            let (socket, local, remote) = ports(record)?;
            What::State {
                socket,
                state: small as u8,
                local,
                remote,
            }
        }
        Kind::Ports => return None,
        Kind::Disk(step) => disk(step)?,
        Kind::Fault => What::Fault { address: value(0)? },
        Kind::Memory(work, begin) => What::Memory { work, begin },
        Kind::Interrupt(kind, begin) => What::Interrupt { kind, begin },
    })
}

/// A socket with its own port and the other end's, both 0 where it has none (Unix).
fn ports(record: &[u8]) -> Option<(u64, u16, u16)> {
    let value = |n: usize| long(record, HEADER + 8 * n);
    Some((value(0)?, value(1)? as u16, u16::from_be(value(2)? as u16)))
}

/// What an arrival tells of its socket's ports, where that was not known yet.
pub fn new_ports(
    event: &Event,
    record: &[u8],
    known: &mut HashMap<u64, (u16, u16)>,
) -> Option<Event> {
    let (What::Arrived { .. }, Some((socket, local, remote))) = (event.what, ports(record)) else {
        return None;
    };
    let is_new = local != 0 && known.insert(socket, (local, remote)) != Some((local, remote));
    is_new.then_some(Event {
        what: What::Ports {
            socket,
            local,
            remote,
        },
        ..*event
    })
}

fn io(device: u32, [sector, bytes, flags]: [u64; 3], partitions: &HashMap<u32, u32>) -> Io {
    let operation = flags & OPERATION;
    let write = operation & 1 == 1 || operation == FLUSH;
    let sectors = (bytes & 0xffff_ffff) as u32 >> 9;
    // A flush has no place on the device: the kernel names it by whatever the field held.
    let sector = if sectors == 0 && write {
        u64::MAX
    } else {
        sector
    };
    Io {
        device: partitions.get(&device).copied().unwrap_or(device),
        sector,
        sectors,
        write,
    }
}

fn left(preempted: bool, state: u64) -> Left {
    match state {
        _ if preempted => Left::Ready,
        0 => Left::Ready,
        s if s & ENDED != 0 => Left::Ended,
        // The kernel's own idle threads sleep uninterruptibly, but wait for nothing.
        s if s & WAITS_FOR_LOCK != 0 || s & (UNINTERRUPTIBLE | NO_LOAD) == UNINTERRUPTIBLE => {
            Left::Uninterruptible
        }
        _ => Left::Blocked,
    }
}

/// What a record's number in [`WANTED`] tells.
pub fn kind(number: u8) -> Option<Kind> {
    WANTED.get(usize::from(number)).map(|w| w.kind)
}

/// Keeps the name that a switch tells, of the thread that came.
pub fn names(record: &[u8], names: &mut Names) {
    let kind = record.get(16).and_then(|&k| kind(k));
    if let (Some(Kind::Switch), Some(tid), Some(name)) =
        (kind, int(record, 20), record.get(HEADER + 16..HEADER + 32))
    {
        names.learn(tid, name);
    }
}

#[cfg(test)]
mod tests;
