//! The system call by which programs and maps are made and asked, and its numbers (linux/bpf.h).

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::error::BpfError;
use crate::system::done;

pub(super) const MAP_CREATE: libc::c_long = 0;
pub(super) const MAP_LOOKUP: libc::c_long = 1;
pub(super) const MAP_UPDATE: libc::c_long = 2;
pub(super) const PROG_LOAD: libc::c_long = 5;
pub(super) const RAW_TRACEPOINT_OPEN: libc::c_long = 17;
pub(super) const FREEZE: libc::c_long = 22;
pub(super) const MAP_ARRAY: u32 = 2;
pub(super) const MAP_ARRAY_OF_MAPS: u32 = 12;
pub(super) const MAP_RINGBUF: u32 = 27;
pub(super) const PROGRAM_TRACING: u32 = 26;
pub(super) const ATTACH_TRACEPOINT: u32 = 23;
/// The map cannot be written by programs.
pub(super) const READ_ONLY: u32 = 1 << 7;

pub(super) fn command(number: libc::c_long, attributes: &mut [u64]) -> io::Result<libc::c_long> {
    // SAFETY: the kernel reads and writes no more of the attributes than is said; the addresses in them are of buffers
    // that outlive the call, and as long as the map's or the program's sizes, or the attribute before them, say.
    done(unsafe {
        libc::syscall(
            libc::SYS_bpf,
            number,
            attributes.as_mut_ptr(),
            size_of_val(attributes),
        )
    })
}

/// Sets an element of a map; `value` is as long as the map's values are.
pub(super) fn update(map: &OwnedFd, key: u32, value: &[u8]) -> io::Result<()> {
    command(
        MAP_UPDATE,
        &mut [
            map.as_raw_fd() as u64,
            &raw const key as u64,
            value.as_ptr() as u64,
            0,
        ],
    )
    .map(drop)
}

pub(super) fn descriptor(rc: libc::c_long) -> OwnedFd {
    // SAFETY: the kernel just gave us this descriptor; nothing else owns it.
    unsafe { OwnedFd::from_raw_fd(rc as libc::c_int) }
}

/// A map with these sizes of key and value in bytes, and this many elements.
pub(super) fn map(
    kind: u32,
    [key, value, entries]: [u32; 3],
    flags: u32,
    inner: Option<&OwnedFd>,
) -> io::Result<OwnedFd> {
    let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    let inner = inner.map_or(0, |fd| fd.as_raw_fd() as u32);
    let mut attributes = [pair(kind, key), pair(value, entries), pair(flags, inner)];
    with_memory(|| command(MAP_CREATE, &mut attributes)).map(descriptor)
}

/// Makes something of the kernel's memory. Before Linux 5.11 that counts as locked memory, of which a process has little,
/// and the kernel says that it is not permitted: then it is made without that limit, which holds again after it. It is
/// asked for as it is made, and never again.
pub(super) fn with_memory(
    mut make: impl FnMut() -> io::Result<libc::c_long>,
) -> io::Result<libc::c_long> {
    let refused = match make() {
        Err(e) if e.raw_os_error() == Some(libc::EPERM) => e,
        made => return made,
    };
    let limit = getrlimit(Resource::Memlock);
    let none = Rlimit {
        current: None,
        maximum: None,
    };
    if limit == none || setrlimit(Resource::Memlock, none).is_err() {
        return Err(refused);
    }
    let made = make();
    setrlimit(Resource::Memlock, limit)?;
    made
}

/// Reads an element of a map into `value`, which is as long as the map's values are.
pub(super) fn look_up<T>(map: &OwnedFd, key: u32, value: &mut [T]) -> io::Result<()> {
    command(
        MAP_LOOKUP,
        &mut [
            map.as_raw_fd() as u64,
            &raw const key as u64,
            value.as_mut_ptr() as u64,
            0,
        ],
    )
    .map(drop)
}

/// What loads a program of this kind; the code must outlive the call.
pub(super) fn to_load(kind: u32, code: &[u64]) -> [u64; 16] {
    let mut attributes = [0u64; 16];
    attributes[0] = u64::from(kind) | (code.len() as u64) << 32;
    attributes[1] = code.as_ptr() as u64;
    attributes[2] = c"Dual MIT/GPL".as_ptr() as u64;
    attributes
}

/// No program may be written to by others, and this one's values stay as they are.
pub(super) fn freeze(map: &OwnedFd) -> io::Result<()> {
    command(FREEZE, &mut [map.as_raw_fd() as u64]).map(drop)
}

/// Loads a program for a tracepoint, by the number of its type.
pub(super) fn load(name: &str, code: &[u64], target: u32) -> Result<OwnedFd, BpfError> {
    load_as(name, code, PROGRAM_TRACING, ATTACH_TRACEPOINT, target)
}

/// Loads a program of a kind, to be attached in a way to a type of this number.
pub(super) fn load_as(
    name: &str,
    code: &[u64],
    kind: u32,
    attached: u32,
    target: u32,
) -> Result<OwnedFd, BpfError> {
    let mut attributes = to_load(kind, code);
    attributes[8] = u64::from(attached) << 32;
    attributes[13] = u64::from(target) << 32;
    let error = match with_memory(|| command(PROG_LOAD, &mut attributes)) {
        Ok(rc) => return Ok(descriptor(rc)),
        Err(e) => e,
    };
    // Only now, as checking takes longer with a log.
    let mut log = vec![0u8; 1 << 22];
    attributes[3] = 1 | (log.len() as u64) << 32;
    attributes[4] = log.as_mut_ptr() as u64;
    _ = command(PROG_LOAD, &mut attributes).map(descriptor);
    let text =
        String::from_utf8_lossy(log.split(|&b| b == 0).next().unwrap_or_default()).into_owned();
    let reason = text
        .lines()
        .rev()
        .find(|l| {
            // What it counted comes last.
            let counts = ["processed ", "verification time ", "stack depth "];
            !l.trim().is_empty() && !counts.iter().any(|count| l.starts_with(count))
        })
        .unwrap_or_default();
    Err(BpfError::Unverified {
        name: name.to_owned(),
        error,
        reason: reason.to_owned(),
    })
}
