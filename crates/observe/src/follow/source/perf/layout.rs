//! Where the fields of the kernel's tracepoints lie, and raw samples turned into events.
//!
//! Places are resolved by name once, at opening; a sample is then decoded by its tracepoint's number through one small
//! table.

use std::collections::HashMap;

use fingerpost_sys::trace::Raw;
use fingerpost_sys::tracefs::Tracepoint;

use crate::follow::event::{Event, InterruptKind, Io, Left, What};
use crate::follow::source::flow::{int, long};
use crate::follow::source::wanted::{Kind, Wanted};

/// `common_flags` of a sample that was taken in a hard or a soft interrupt.
const IN_INTERRUPT: u8 = 0x08 | 0x10;
/// Bytes that were looked at and left in the socket.
const MSG_PEEK: i32 = 2;
/// Bytes of a thread's name.
const NAME_BYTES: usize = 16;

/// A field and its size in bytes: exact for numbers, the least for arrays.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Field {
    Number(&'static str, usize),
    Array(&'static str, usize),
}

use Field::{Array, Number};

/// The fields of a tracepoint that are read.
fn fields(kind: Kind) -> &'static [Field] {
    match kind {
        Kind::Enter => &[Number("id", 8), Array("args", 32)],
        Kind::Exit => &[Number("id", 8), Number("ret", 8)],
        Kind::Switch => &[
            Number("prev_state", 8),
            Number("next_pid", 4),
            Array("prev_comm", NAME_BYTES),
            Array("next_comm", NAME_BYTES),
        ],
        Kind::Waking => &[Number("pid", 4), Number("target_cpu", 4)],
        Kind::Fault => &[Number("address", 8)],
        Kind::Fork => &[Number("child_pid", 4)],
        Kind::Sent | Kind::Received => &[Number("sk", 8), Number("ret", 4), Number("flags", 4)],
        Kind::Arrived => &[Number("skaddr", 8)],
        Kind::State => &[
            Number("skaddr", 8),
            Number("newstate", 4),
            Number("sport", 2),
            Number("dport", 2),
        ],
        Kind::Ports => &[
            Number("skaddr", 8),
            Number("sport", 2),
            Number("dport", 2),
            Number("data_len", 2),
        ],
        Kind::Disk(_) => &[
            Number("dev", 4),
            Number("sector", 8),
            Number("nr_sector", 4),
            Array("rwbs", 8),
        ],
        Kind::Memory(..) | Kind::Interrupt(..) => &[],
    }
}

/// Which of a tracepoint's events are wanted, in the kernel's filter language.
pub fn filter(kind: Kind) -> Option<&'static str> {
    match kind {
        // Segments without bytes only acknowledge.
        Kind::Ports => Some("data_len > 0"),
        // The network's soft interrupts are seen by what they do, and come with every packet.
        Kind::Interrupt(InterruptKind::Soft, _) => Some("vec != 3 && vec != 2"),
        _ => None,
    }
}

/// A tracepoint with the places of its fields, in the order of its [`fields`].
#[derive(Clone, Copy, Debug)]
struct Resolved {
    kind: Kind,
    at: [usize; 4],
}

/// Turns raw samples into events.
#[derive(Debug, Default)]
pub struct Decoder {
    /// By the tracepoint's number.
    table: Vec<Option<Resolved>>,
    /// The whole device of each partition: the block layer's first step names the partition, the others the device.
    partitions: HashMap<u32, u32>,
}

impl Decoder {
    /// A decoder that also knows these partitions' devices.
    pub fn new(partitions: HashMap<u32, u32>) -> Decoder {
        Decoder {
            table: Vec::new(),
            partitions,
        }
    }

    /// Learns where a tracepoint's fields lie. False when it lacks one, or has one of another size.
    pub fn learn(&mut self, wanted: &Wanted, point: &Tracepoint) -> bool {
        // A sample names its tracepoint by 16 bits.
        let Ok(id) = u16::try_from(point.id) else {
            return false;
        };
        let mut at = [0; 4];
        for (place, field) in at.iter_mut().zip(fields(wanted.kind)) {
            let found = match *field {
                Number(name, bytes) => point.sized(name, bytes),
                Array(name, bytes) => point.at_least(name, bytes),
            };
            let Some(found) = found else { return false };
            *place = found;
        }
        let id = usize::from(id);
        if self.table.len() <= id {
            self.table.resize(id + 1, None);
        }
        self.table[id] = Some(Resolved {
            kind: wanted.kind,
            at,
        });
        true
    }

    /// The event of a sample; `None` where it is none of ours, or too short.
    pub fn event(&self, raw: &Raw) -> Option<Event> {
        let r = (*self.table.get(raw.id() as usize)?)?;
        let what = self.what(r, raw.data)?;
        let interrupt = raw.data.get(2)? & IN_INTERRUPT != 0;
        Some(Event {
            time: raw.time,
            cpu: raw.cpu as u16,
            interrupt,
            pid: raw.pid,
            tid: raw.tid,
            what,
        })
    }

    fn what(&self, Resolved { kind, at }: Resolved, data: &[u8]) -> Option<What> {
        Some(match kind {
            Kind::Enter => {
                let (call, arg) = (long(data, at[0])? as i32, |n: usize| {
                    long(data, at[1] + 8 * n)
                });
                let args = match i64::from(call) {
                    libc::SYS_mmap => [(arg(2)? << 32) | (arg(3)? & 0xffff_ffff), arg(1)?],
                    _ => [arg(0)?, arg(1)?],
                };
                What::Enter { call, args }
            }
            Kind::Fault => What::Fault {
                address: long(data, at[0])?,
            },
            Kind::Exit => What::Exit {
                call: long(data, at[0])? as i32,
                result: long(data, at[1])? as i64,
            },
            Kind::Switch => What::Switch {
                left: left(long(data, at[0])?),
                next: int(data, at[1])?,
            },
            Kind::Waking => What::Waking {
                who: int(data, at[0])?,
                target: int(data, at[1])? as u16,
            },
            Kind::Fork => What::Fork {
                child: int(data, at[0])?,
            },
            Kind::Sent => What::Sent {
                socket: long(data, at[0])?,
                bytes: int(data, at[1])?,
            },
            Kind::Received if int(data, at[2])? & MSG_PEEK != 0 => return None,
            Kind::Received => What::Received {
                socket: long(data, at[0])?,
                bytes: int(data, at[1])?,
            },
            Kind::Arrived => What::Arrived {
                socket: long(data, at[0])?,
            },
            Kind::State => What::State {
                socket: long(data, at[0])?,
                state: int(data, at[1])? as u8,
                local: short(data, at[2])?,
                remote: short(data, at[3])?,
                pair: 0,
            },
            Kind::Ports => What::Ports {
                socket: long(data, at[0])?,
                local: short(data, at[1])?,
                remote: short(data, at[2])?,
                pair: 0,
            },
            Kind::Disk(step) => What::Disk {
                step,
                io: self.io(data, at)?,
            },
            Kind::Memory(work, begin) => What::Memory { work, begin },
            Kind::Interrupt(kind, begin) => What::Interrupt { kind, begin },
        })
    }

    fn io(&self, data: &[u8], at: [usize; 4]) -> Option<Io> {
        let device = int(data, at[0])? as u32;
        let sectors = int(data, at[2])? as u32;
        let flags = data.get(at[3]..at[3] + 8)?;
        let flags = flags.split(|&b| b == 0).next().unwrap_or_default();
        let has = |letters: &[u8]| flags.iter().any(|b| letters.contains(b));
        // A flush has no place on the device: the kernel names it by whatever the field held. Its end is told twice, of
        // the flush itself and of the request that asked for it, which no longer has the flag then.
        let sector = if sectors == 0 && has(b"FW") {
            u64::MAX
        } else {
            long(data, at[1])?
        };
        let device = self.partitions.get(&device).copied().unwrap_or(device);
        Some(Io {
            device,
            sector,
            sectors,
            write: has(b"WFD"),
        })
    }

    /// The names that a sample tells: of the thread that left its CPU, and of the one that came.
    pub fn names<'a>(&self, raw: &Raw<'a>) -> Option<[(i32, &'a [u8]); 2]> {
        let r = (*self.table.get(raw.id() as usize)?)?;
        if r.kind != Kind::Switch {
            return None;
        }
        let name = |at: usize| raw.data.get(at..at + NAME_BYTES);
        Some([
            (raw.tid, name(r.at[2])?),
            (int(raw.data, r.at[1])?, name(r.at[3])?),
        ])
    }
}

fn short(data: &[u8], at: usize) -> Option<u16> {
    data.get(at..at + 2)?
        .try_into()
        .ok()
        .map(u16::from_ne_bytes)
}

/// The kernel's state bits: dead or zombie, then anything that is a sleep; bit 8 and above mark a preemption.
fn left(state: u64) -> Left {
    match state & 0xff {
        0 => Left::Ready,
        s if s & 0x30 != 0 => Left::Ended,
        s if s & 2 != 0 => Left::Uninterruptible,
        _ => Left::Blocked,
    }
}

#[cfg(test)]
mod tests;
