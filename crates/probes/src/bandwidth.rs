//! How many bytes a second move between processes, and out of the page cache.

use std::fs::File;
use std::hint::black_box;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use fingerpost_record::{Better, Unit};

use crate::call::{new_mapping, set_option};
use crate::ipc::tcp_pair;
use crate::peer::Peer;
use crate::probe::{Exercises, Nature, Probe, latency, placements, rows, table};
use crate::session::{Session, Stop};
use crate::share::{as_file, pipe, socket_pair};

/// lmbench's size of one write or read.
const CHUNK: i64 = 64 << 10;

/// Size of the file that is read again: above every second-level cache of one core, small enough to write in a few
/// milliseconds.
const FILE_BYTES: usize = 4 << 20;

/// The largest chunk or mapping that is taken.
const MAX_BYTES: i64 = 64 << 20;

/// A batch must hold many fillings of a socket's buffer: writer and reader take turns by the buffer, not by the chunk.
const STREAM_BATCH_NS: u64 = 1_000_000;

/// Both socket buffers of a TCP stream: fixed, because a buffer that tunes itself would still be growing in a short
/// slice.
const TCP_BUFFER: i32 = 128 << 10;

fn chunk_size(s: &Session) -> Result<usize, Stop> {
    match s.int("size", 1)? {
        size if size <= MAX_BYTES => Ok(size as usize),
        _ => Err(Stop::Fail(format!(
            "a size of more than {MAX_BYTES} bytes is not taken"
        ))),
    }
}

/// A partner that writes chunks as fast as they are taken; this process reads them.
fn stream(s: &mut Session, mut ours: &File, mut theirs: &File) -> Result<(), Stop> {
    let size = chunk_size(s)?;
    let mut buffer = vec![1u8; size];
    let _partner = Peer::fork(s.partner_cpu()?, || {
        let chunk = vec![1u8; size];
        loop {
            theirs.write_all(&chunk)?;
        }
    })?;
    s.work_per_op(size as u64);
    s.batch_target_ns(STREAM_BATCH_NS);
    s.repeat(|| ours.read_exact(&mut buffer))
}

fn through_pipe(s: &mut Session) -> Result<(), Stop> {
    let (from, to) = pipe()?;
    stream(s, &from, &to)
}

fn through_unix(s: &mut Session) -> Result<(), Stop> {
    let (ours, theirs) = socket_pair()?;
    stream(s, &ours, &theirs)
}

fn through_tcp(s: &mut Session) -> Result<(), Stop> {
    let (ours, theirs) = tcp_pair()?;
    let (ours, theirs) = (as_file(ours), as_file(theirs));
    for (socket, which) in [(&ours, libc::SO_RCVBUF), (&theirs, libc::SO_SNDBUF)] {
        set_option(socket, which, &TCP_BUFFER).map_err(|_| Stop::call("setsockopt"))?;
    }
    stream(s, &ours, &theirs)
}

/// A file of this size in the probe's directory, just written and therefore in the page cache.
fn cached_file(s: &Session, bytes: usize) -> Result<File, Stop> {
    let path = s.dir().join("reread");
    let fail = |e: io::Error| Stop::Fail(format!("cannot write {}: {e}", path.display()));
    let file = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)
        .map_err(fail)?;
    let block = [1u8; 32 << 10];
    let mut at = 0;
    while at < bytes {
        at += file
            .write_at(&block[..block.len().min(bytes - at)], at as u64)
            .map_err(fail)?;
    }
    Ok(file)
}

fn file_reread(s: &mut Session) -> Result<(), Stop> {
    let size = chunk_size(s)?;
    let bytes = FILE_BYTES.max(size) / size * size;
    let file = cached_file(s, bytes)?;
    let mut buffer = vec![1u8; size];
    let mut at = 0;
    s.work_per_op(size as u64);
    s.repeat(|| {
        file.read_exact_at(&mut buffer, at as u64)?;
        at = if at + size >= bytes { 0 } else { at + size };
        Ok(())
    })
}

/// The words of a whole file, mapped for reading until the process ends, their pages in place.
fn mapped_words(file: &File, bytes: usize) -> Result<&'static [u64], Stop> {
    let at = new_mapping(
        bytes,
        libc::PROT_READ,
        libc::MAP_SHARED | libc::MAP_POPULATE,
        file.as_raw_fd(),
    )?;
    // SAFETY: mapped for reading, page-aligned, never unmapped; nobody changes or shortens the file, the probe's own.
    Ok(unsafe { std::slice::from_raw_parts(at as *const u64, bytes / size_of::<u64>()) })
}

/// Bytes that one operation adds up: a whole file at once would be longer than a batch should be.
const SUMMED: usize = 64 << 10;

fn mmap_reread(s: &mut Session) -> Result<(), Stop> {
    let bytes = chunk_size(s)?.next_multiple_of(SUMMED);
    let file = cached_file(s, bytes)?;
    let mut parts = mapped_words(&file, bytes)?
        .chunks_exact(SUMMED / size_of::<u64>())
        .cycle();
    let sum = crate::memory::reader(32.0);
    s.work_per_op(SUMMED as u64);
    s.batches(|ops| {
        for part in parts.by_ref().take(ops as usize) {
            black_box(sum(black_box(part)));
        }
        Ok(())
    })
}

/// What the probes of this file share, and those of two processes.
const FAMILY: Probe = Probe {
    unit: Unit::BytesPerSecond,
    better: Better::Higher,
    ..latency(&table::BANDWIDTHS, Exercises::LocalIpc)
};
const STREAM: Probe = Probe {
    nature: Nature::Blocks,
    variants: || {
        placements()
            .into_iter()
            .map(|row| row.with("size", CHUNK))
            .collect()
    },
    ..FAMILY
};

/// The probes of this file.
pub static PROBES: &[Probe] = &[
    Probe {
        name: "bandwidth.pipe",
        bounds: [1e7, 1e12],
        lmbench: Some("Pipe (bw)"),
        summary: "bytes from another process through a pipe",
        timed: "reading `size` bytes whole from a pipe of the usual capacity that a partner process keeps filling with \
            writes of `size` bytes.",
        pitfalls: "on one CPU it matters whether the scheduler lets a woken side run at once, page by page, or when \
            the pipe is full: a factor of three. Across CPUs each wake-up of an idle CPU is part of the figure.",
        run: through_pipe,
        ..STREAM
    },
    Probe {
        name: "bandwidth.unix",
        bounds: [1e7, 1e12],
        lmbench: Some("AF UNIX (bw)"),
        summary: "bytes from another process through a Unix socket",
        timed: "reading `size` bytes whole from a Unix stream socket that a partner process keeps filling with writes \
            of `size` bytes.",
        pitfalls: "the socket's buffer is the system's default (net.core.wmem_default).",
        run: through_unix,
        ..STREAM
    },
    Probe {
        name: "bandwidth.tcp",
        bounds: [1e7, 1e12],
        exercises: Some(Exercises::Network),
        lmbench: Some("TCP (bw)"),
        summary: "bytes from another process by TCP over loopback",
        timed: "reading `size` bytes whole from a TCP connection on 127.0.0.1 that a partner process keeps filling \
            with writes of `size` bytes; send and receive buffers are asked to be 128 KiB.",
        pitfalls: "with buffers that tune themselves the figure would be higher and would still be moving at the end \
            of a slice.",
        run: through_tcp,
        ..STREAM
    },
    Probe {
        name: "bandwidth.file_reread",
        bounds: [1e7, 1e12],
        exercises: Some(Exercises::Memory),
        lmbench: Some("File reread"),
        summary: "bytes read from a file in the page cache",
        timed: "pread of `size` bytes from a file of 4 MiB in the work directory that was just written: one system \
            call and one copy out of the page cache.",
        pitfalls: "lmbench adds the data up as well; here only the copy is timed.",
        variants: || rows("size", [CHUNK]),
        run: file_reread,
        ..FAMILY
    },
    Probe {
        name: "bandwidth.mmap_reread",
        bounds: [1e7, 1e12],
        exercises: Some(Exercises::Memory),
        lmbench: Some("Mmap reread"),
        summary: "bytes read through a mapping of a file in the page cache",
        timed: "adding up 64 KiB of a mapped file of `size` bytes with vector loads (of AVX2 where there is it, else \
            SSE2 or NEON), part after part; the mapping's pages are in place before.",
        pitfalls: "no system call and no fault: this is the memory's bandwidth through whatever page size the page \
            cache maps.",
        variants: || rows("size", [FILE_BYTES as i64]),
        run: mmap_reread,
        ..FAMILY
    },
];
