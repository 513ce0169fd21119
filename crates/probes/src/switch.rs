//! Context switches: a token through a ring of processes, each with data of its own to touch.

use std::fs::File;
use std::hint::black_box;
use std::io;

use fingerpost_record::Params;

use crate::peer::Peer;
use crate::probe::{Exercises, Nature, Probe, latency, table};
use crate::session::{Session, Stop, now_ns};
use crate::share::{give_byte, pipe, take_byte};

/// The most processes in a ring: lmbench's largest is 96; each is a fork of the setup.
const MAX_TASKS: i64 = 48;

/// The largest footprint, so that a mistyped one cannot fill the memory.
const MAX_FOOTPRINT: i64 = 16 << 20;

/// Batches that the overhead is measured with.
const OVERHEAD_BATCHES: usize = 9;

/// Adds up a process's data: what lmbench's processes do with the token in their hands.
#[inline(always)]
fn work_on(data: &[u64]) {
    black_box(data.iter().fold(0u64, |sum, x| sum.wrapping_add(*x)));
}

/// Passes the token on as soon as it comes.
fn pass_on(data: &[u64], from: &File, to: &File) -> io::Result<()> {
    let token = take_byte(from)?;
    work_on(data);
    give_byte(to, token)
}

fn ring(s: &mut Session) -> Result<(), Stop> {
    let (tasks, footprint) = (s.int("tasks", 2)?, s.int("footprint", 0)?);
    if tasks > MAX_TASKS || footprint > MAX_FOOTPRINT {
        return Err(Stop::Fail(format!(
            "a ring has at most {MAX_TASKS} tasks with a footprint of at most {MAX_FOOTPRINT} bytes"
        )));
    }
    let other = s.partner_cpu()?;
    let ours = s.cpus().first().copied().unwrap_or(other);
    // Written, not zeroed: untouched pages would all be the one zero page, and would fit into any cache.
    let words = footprint as usize / size_of::<u64>();
    let pipes = (0..tasks).map(|_| pipe()).collect::<Result<Vec<_>, _>>()?;
    let data: Vec<u64> = (0..words as u64).collect();
    let overhead = overhead(s, &data, &pipes[0])?;
    let mut partners = Vec::new();
    for task in 1..tasks as usize {
        let (from, to) = (&pipes[task].0, &pipes[(task + 1) % pipes.len()].1);
        partners.push(Peer::fork(
            if task % 2 == 1 { other } else { ours },
            || {
                let data: Vec<u64> = (0..words as u64).collect();
                loop {
                    pass_on(&data, from, to)?;
                }
            },
        )?);
    }
    s.work_per_op(tasks as u64);
    s.batches(|ops| {
        for _ in 0..ops {
            give_byte(&pipes[1].1, 1)?;
            pass_only(&data, &pipes[0].0)?;
        }
        Ok(())
    })?;
    s.counter("overhead_ns", overhead);
    Ok(())
}

/// The first process's turn: it takes the token and works; sending is the start of the next round.
fn pass_only(data: &[u64], from: &File) -> io::Result<()> {
    take_byte(from)?;
    work_on(data);
    Ok(())
}

/// What lmbench takes off each hop: the same pipe, work and calls in one process that never switches. The median of
/// some batches.
fn overhead(s: &Session, data: &[u64], pipe: &(File, File)) -> Result<f64, Stop> {
    let ops = 32u64;
    let mut batches = [0u64; OVERHEAD_BATCHES];
    let limit = now_ns() + s.slice_ns();
    let mut taken = 0;
    for ns in &mut batches {
        let begin = now_ns();
        for _ in 0..ops {
            give_byte(&pipe.1, 1)?;
            pass_only(data, &pipe.0)?;
        }
        *ns = now_ns() - begin;
        taken += 1;
        if now_ns() > limit {
            break;
        }
    }
    let batches = &mut batches[..taken];
    batches.sort_unstable();
    Ok(batches[batches.len() / 2] as f64 / ops as f64)
}

/// lmbench's seven rings on one CPU, and the lightest and the heaviest across two.
fn rings() -> Vec<Params> {
    let rows = [
        (2, 0, "same"),
        (2, 16, "same"),
        (2, 64, "same"),
        (8, 16, "same"),
        (8, 64, "same"),
        (16, 16, "same"),
        (16, 64, "same"),
        (2, 0, "cross"),
        (16, 64, "cross"),
    ];
    rows.iter()
        .map(|&(tasks, kib, placement)| {
            Params::new()
                .with("tasks", tasks)
                .with("footprint", kib << 10)
                .with("placement", placement)
        })
        .collect()
}

/// The probes of this file.
pub static PROBES: &[Probe] = &[Probe {
    name: "switch.ring",
    bounds: [100.0, 1e7],
    lmbench: Some("{tasks}p/{footprint}K ctxsw"),
    summary: "one hop of a token through a ring of processes",
    timed: "one hop: read of a byte from a pipe, adding up the process's footprint, write of the byte into the next \
        process's pipe, and the switch to it. The whole hop.",
    pitfalls: "lmbench takes off what pipe and adding up cost in one process that never switches; here that is the \
        counter overhead_ns, since the difference of two figures repeats worse than either. Across CPUs neighbours of \
        the ring are on different CPUs: a hop is then a wake-up of an idle CPU, not a switch.",
    nature: Nature::Blocks,
    variants: rings,
    run: ring,
    ..latency(&table::SWITCHING, Exercises::Switch)
}];
