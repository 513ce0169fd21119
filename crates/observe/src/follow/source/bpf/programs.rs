//! What the programs record at each tracepoint, and records turned into events.

use std::collections::HashMap;

use fingerpost_sys::bpf::btf::Btf;
use fingerpost_sys::bpf::code::{HEADER, Place, Recorded};

use crate::follow::event::{DiskStep, Event, InterruptKind, Io, Left, What};
use crate::follow::source::flow::{Names, int, long};
use crate::follow::source::wanted::{Kind, WANTED};

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
/// Soft interrupts that are seen by what they do, and come with every packet: sending and receiving.
const NETWORK: &[i32] = &[2, 3];

/// A tracepoint and what is recorded there.
pub type Named = (&'static str, Recorded);

/// The programs for this kernel, without the calls of some threads, and the names of the tracepoints that it lacks.
pub fn resolve(btf: &Btf, but_calls_of: &[i32]) -> Result<(Vec<Named>, Vec<&'static str>), String> {
    let (mut programs, mut missing) = (Vec::new(), Vec::new());
    // An arrival tells the socket's ports: programs at tcp_probe would record every acknowledgement too.
    for (i, w) in WANTED
        .iter()
        .enumerate()
        .filter(|(_, w)| w.kind != Kind::Ports)
    {
        let recorded = btf
            .tracepoint(w.point())
            .and_then(|_| recorded(btf, i as u8, w.kind));
        match recorded {
            Some(mut r) => {
                if matches!(w.kind, Kind::Enter | Kind::Exit) {
                    r.but_threads = but_calls_of.to_vec();
                }
                programs.push((w.point(), r));
            }
            None if w.optional => missing.push(w.point()),
            None => {
                return Err(format!(
                    "requests cannot be followed: this kernel's types lack what {} tells",
                    w.point()
                ));
            }
        }
    }
    Ok((programs, missing))
}

fn recorded(btf: &Btf, number: u8, kind: Kind) -> Option<Recorded> {
    let (small, values) = places(btf, kind)?;
    let interrupt = match kind {
        Kind::Interrupt(which, begin) => Some((which as u8, begin)),
        _ => None,
    };
    let network = matches!(kind, Kind::Interrupt(InterruptKind::Soft, _));
    let but_first = if network {
        NETWORK.to_vec()
    } else {
        Vec::new()
    };
    let instead = if kind == Kind::Enter {
        mapping_arguments(btf)
    } else {
        None
    };
    Some(Recorded {
        kind: number,
        but_threads: Vec::new(),
        but_first,
        interrupt,
        small,
        values,
        instead,
    })
}

/// What is recorded of `mmap` in place of its first two arguments: its flags and its protection, and its length.
fn mapping_arguments(btf: &Btf) -> Option<(i32, Vec<Place>)> {
    let registers = if cfg!(target_arch = "x86_64") {
        ["si", "dx", "r10"].map(|name| btf.offset("pt_regs", name))
    } else {
        let first = btf.offset("pt_regs", "regs");
        [8, 16, 24].map(|at| first.map(|first| first + at))
    };
    let [length, protection, flags] =
        registers.map(|at| at.map(|at| Place::Behind(0, vec![at], 8)));
    Some((
        libc::SYS_mmap as i32,
        vec![
            Place::Halves(Box::new(flags?), Box::new(protection?)),
            length?,
        ],
    ))
}

/// The value in a record's header and those that follow it.
fn places(btf: &Btf, kind: Kind) -> Option<(Option<Place>, Vec<Place>)> {
    use Place::{Argument, Behind};
    let field = |n: i16, structure: &str, name: &str, bytes: u8| {
        Some(Behind(n, vec![btf.offset(structure, name)?], bytes))
    };
    let through = |n: i16, path: &[(&str, &str)], bytes: u8| {
        let path = path
            .iter()
            .map(|(structure, name)| btf.offset(structure, name))
            .collect::<Option<Vec<_>>>()?;
        Some(Behind(n, path, bytes))
    };
    Some(match kind {
        Kind::Enter => {
            let (first, second) = call_arguments(btf)?;
            (
                Some(Argument(1)),
                vec![Behind(0, vec![first], 8), Behind(0, vec![second], 8)],
            )
        }
        Kind::Exit if cfg!(target_arch = "x86_64") => {
            (Some(field(0, "pt_regs", "orig_ax", 8)?), vec![Argument(1)])
        }
        Kind::Exit => (
            Some(field(0, "pt_regs", "syscallno", 4)?),
            vec![Argument(1)],
        ),
        Kind::Switch => {
            let name = btf.offset("task_struct", "comm")?;
            let name = [Behind(2, vec![name], 8), Behind(2, vec![name + 8], 8)];
            (
                Some(field(2, "task_struct", "pid", 4)?),
                [vec![Argument(0), Argument(3)], name.to_vec()].concat(),
            )
        }
        Kind::Waking => (
            Some(field(0, "task_struct", "pid", 4)?),
            vec![field(0, "task_struct", "thread_info.cpu", 4)?],
        ),
        Kind::Fork => (Some(field(1, "task_struct", "pid", 4)?), Vec::new()),
        Kind::Sent => (Some(Argument(1)), vec![Argument(0)]),
        Kind::Received => (Some(Argument(1)), vec![Argument(0), Argument(2)]),
        Kind::State | Kind::Arrived => {
            let ports = [
                field(0, "sock_common", "skc_num", 2)?,
                field(0, "sock_common", "skc_dport", 2)?,
            ];
            let state = (kind == Kind::State).then_some(Argument(2));
            (state, [vec![Argument(0)], ports.to_vec()].concat())
        }
        Kind::Disk(DiskStep::Submitted) => (
            Some(through(
                0,
                &[("bio", "bi_bdev"), ("block_device", "bd_dev")],
                4,
            )?),
            vec![
                field(0, "bio", "bi_iter.bi_sector", 8)?,
                field(0, "bio", "bi_iter.bi_size", 4)?,
                field(0, "bio", "bi_opf", 4)?,
            ],
        ),
        Kind::Disk(step) => {
            let device = [
                ("request", "q"),
                ("request_queue", "disk"),
                ("gendisk", "part0"),
                ("block_device", "bd_dev"),
            ];
            let bytes = if step == DiskStep::Completed {
                Argument(2)
            } else {
                field(0, "request", "__data_len", 4)?
            };
            let values = vec![
                field(0, "request", "__sector", 8)?,
                bytes,
                field(0, "request", "cmd_flags", 4)?,
            ];
            (Some(through(0, &device, 4)?), values)
        }
        Kind::Fault => (None, vec![Argument(0)]),
        Kind::Memory(..) | Kind::Interrupt(..) => (None, Vec::new()),
        Kind::Ports => return None,
    })
}

/// Where the registers lie that hold a call's first two arguments.
fn call_arguments(btf: &Btf) -> Option<(i16, i16)> {
    if cfg!(target_arch = "x86_64") {
        Some((btf.offset("pt_regs", "di")?, btf.offset("pt_regs", "si")?))
    } else {
        btf.offset("pt_regs", "regs").map(|at| (at, at + 8))
    }
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
