//! Numbers and events as bytes.

use std::io::{self, Read};

use super::bad;
use crate::follow::event::{DiskStep, Event, InterruptKind, Io, Left, MemoryWork, What};

const LEFT: [Left; 4] = [Left::Ready, Left::Blocked, Left::Uninterruptible, Left::Ended];
const STEPS: [DiskStep; 4] = [DiskStep::Submitted, DiskStep::Queued, DiskStep::Issued, DiskStep::Completed];
const WORKS: [MemoryWork; 2] = [MemoryWork::Reclaim, MemoryWork::Compaction];
const KINDS: [InterruptKind; 3] = [InterruptKind::Timer, InterruptKind::Device, InterruptKind::Soft];

/// A number, seven bits a byte.
pub fn put(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// A signed number, folded so that small ones are short.
pub fn put_signed(out: &mut Vec<u8>, n: i64) {
    put(out, (n << 1 ^ n >> 63) as u64);
}

/// One byte.
pub fn byte(input: &mut impl Read) -> io::Result<u8> {
    let mut b = [0];
    input.read_exact(&mut b)?;
    Ok(b[0])
}

/// What [`put`] wrote.
pub fn get(input: &mut impl Read) -> io::Result<u64> {
    let mut n = 0;
    for shift in (0..64).step_by(7) {
        let b = byte(input)?;
        let bits = u64::from(b & 0x7f);
        if shift == 63 && bits > 1 {
            break;
        }
        n |= bits << shift;
        if b & 0x80 == 0 {
            return Ok(n);
        }
    }
    Err(bad("the recording has a number that is too long"))
}

/// What [`put_signed`] wrote.
pub fn signed(input: &mut impl Read) -> io::Result<i64> {
    let n = get(input)?;
    Ok((n >> 1) as i64 ^ -((n & 1) as i64))
}

/// A signed number of 32 bits.
pub fn int(input: &mut impl Read) -> io::Result<i32> {
    i32::try_from(signed(input)?).map_err(|_| out_of_range())
}

fn small<T: TryFrom<u64>>(input: &mut impl Read) -> io::Result<T> {
    T::try_from(get(input)?).map_err(|_| out_of_range())
}

/// One of a table, by its place there.
fn one_of<T: Copy>(input: &mut impl Read, table: &[T]) -> io::Result<T> {
    table.get(usize::from(byte(input)?)).copied().ok_or_else(out_of_range)
}

fn truth(input: &mut impl Read) -> io::Result<bool> {
    one_of(input, &[false, true])
}

fn out_of_range() -> io::Error {
    bad("the recording has a number that is out of its range")
}

fn place<T: PartialEq>(table: &[T], what: &T) -> u8 {
    table.iter().position(|t| t == what).unwrap_or_default() as u8
}

/// An event, after one at the time `before`.
pub fn put_event(out: &mut Vec<u8>, e: &Event, before: u64) {
    put(out, e.time - before);
    put(out, e.cpu.into());
    out.push(e.interrupt.into());
    put_signed(out, e.pid.into());
    put_signed(out, e.tid.into());
    match e.what {
        What::Enter { call, args } => {
            tagged(out, 0, call.into());
            args.into_iter().for_each(|a| put(out, a));
        }
        What::Exit { call, result } => {
            tagged(out, 1, call.into());
            put_signed(out, result);
        }
        What::Switch { left, next } => {
            tagged(out, 2, next.into());
            out.push(place(&LEFT, &left));
        }
        What::Waking { who, target } => {
            tagged(out, 3, who.into());
            put(out, target.into());
        }
        What::Fork { child } => tagged(out, 4, child.into()),
        What::Sent { socket, bytes } => {
            tagged(out, 5, bytes.into());
            put(out, socket);
        }
        What::Received { socket, bytes } => {
            tagged(out, 6, bytes.into());
            put(out, socket);
        }
        What::Arrived { socket } => tagged(out, 7, socket as i64),
        What::State { socket, state, local, remote } => {
            tagged(out, 8, socket as i64);
            [u64::from(state), local.into(), remote.into()].into_iter().for_each(|n| put(out, n));
        }
        What::Disk { step, io } => {
            tagged(out, 9, i64::from(io.device));
            out.extend([place(&STEPS, &step), io.write.into()]);
            put(out, io.sector);
            put(out, io.sectors.into());
        }
        What::Ports { socket, local, remote } => {
            tagged(out, 12, socket as i64);
            [u64::from(local), remote.into()].into_iter().for_each(|n| put(out, n));
        }
        What::Fault { address } => tagged(out, 13, address as i64),
        What::Memory { work, begin } => out.extend([10, place(&WORKS, &work), begin.into()]),
        What::Interrupt { kind, begin } => out.extend([11, place(&KINDS, &kind), begin.into()]),
    }
}

/// What kind of event it is, and its first number.
fn tagged(out: &mut Vec<u8>, tag: u8, n: i64) {
    out.push(tag);
    put_signed(out, n);
}

/// What [`put_event`] wrote.
pub fn event(input: &mut impl Read, before: u64) -> io::Result<Event> {
    let time = before.checked_add(get(input)?).ok_or_else(out_of_range)?;
    let (cpu, interrupt, pid, tid) = (small(input)?, truth(input)?, int(input)?, int(input)?);
    Ok(Event { time, cpu, interrupt, pid, tid, what: what(input)? })
}

fn what(input: &mut impl Read) -> io::Result<What> {
    Ok(match byte(input)? {
        0 => What::Enter { call: int(input)?, args: [get(input)?, get(input)?] },
        1 => What::Exit { call: int(input)?, result: signed(input)? },
        2 => {
            let next = int(input)?;
            What::Switch { left: one_of(input, &LEFT)?, next }
        }
        3 => What::Waking { who: int(input)?, target: small(input)? },
        4 => What::Fork { child: int(input)? },
        5 => {
            let bytes = int(input)?;
            What::Sent { socket: get(input)?, bytes }
        }
        6 => {
            let bytes = int(input)?;
            What::Received { socket: get(input)?, bytes }
        }
        7 => What::Arrived { socket: signed(input)? as u64 },
        8 => What::State { socket: signed(input)? as u64, state: small(input)?, local: small(input)?, remote: small(input)? },
        9 => {
            let device = u32::try_from(signed(input)?).map_err(|_| out_of_range())?;
            let (step, write) = (one_of(input, &STEPS)?, truth(input)?);
            What::Disk { step, io: Io { device, sector: get(input)?, sectors: small(input)?, write } }
        }
        10 => What::Memory { work: one_of(input, &WORKS)?, begin: truth(input)? },
        11 => What::Interrupt { kind: one_of(input, &KINDS)?, begin: truth(input)? },
        12 => What::Ports { socket: signed(input)? as u64, local: small(input)?, remote: small(input)? },
        13 => What::Fault { address: signed(input)? as u64 },
        _ => return Err(bad("the recording has an event of an unknown kind")),
    })
}
