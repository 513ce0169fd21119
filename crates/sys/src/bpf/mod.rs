//! Programs in the kernel (eBPF) that record tracepoints into one ring per CPU. They are made of instructions here,
//! without a compiler.

pub mod attached;
pub mod btf;
pub mod closed;
pub mod code;
pub mod names;
mod ring;

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use self::btf::Btf;
use self::code::{Code, Recorded, STOPPED, Shared};
use self::ring::Ring;
use crate::system::done;

const MAP_CREATE: libc::c_long = 0;
const MAP_LOOKUP: libc::c_long = 1;
const MAP_UPDATE: libc::c_long = 2;
const PROG_LOAD: libc::c_long = 5;
const RAW_TRACEPOINT_OPEN: libc::c_long = 17;
const MAP_ARRAY: u32 = 2;
const MAP_ARRAY_OF_MAPS: u32 = 12;
const MAP_RINGBUF: u32 = 27;
const PROGRAM_TRACING: u32 = 26;
const ATTACH_TRACEPOINT: u32 = 23;
/// Bytes of what a CPU keeps of itself: a cache line, which it then shares with no other.
const CPU_BYTES: usize = 64;

/// Programs for tracepoints, and what they write into. They record nothing until [`Programs::enable`], and go with
/// this.
pub struct Programs {
    /// The tracepoint of each, for what is said of it.
    loaded: Vec<(String, OwnedFd)>,
    // Attached as long as they are there.
    links: Vec<OwnedFd>,
    shared: Shared,
    rings: Vec<Ring>,
    lost_before: u64,
    cpus: Vec<usize>,
}

impl Programs {
    /// Loads programs for these tracepoints; [`Programs::enable`] attaches them. `bytes` is the size of one CPU's ring,
    /// rounded up to a power of two.
    ///
    /// # Errors
    /// One sentence: what the kernel lacks, or did not allow.
    pub fn load(
        btf: &Btf,
        wanted: &[(&str, Recorded)],
        cpus: &[usize],
        bytes: usize,
    ) -> Result<Programs, String> {
        let failed = |e: io::Error| format!("programs cannot be loaded into the kernel: {e}");
        let lost = map(MAP_ARRAY, [4, 8, 1], 0, None).map_err(failed)?;
        let bytes = bytes
            .next_power_of_two()
            .max(crate::system::page_bytes() as usize);
        let ring = |_| map(MAP_RINGBUF, [0, 0, bytes as u32], 0, None);
        let rings = cpus
            .iter()
            .map(ring)
            .collect::<io::Result<Vec<_>>>()
            .map_err(failed)?;
        let (Some(first), Some(&last)) = (rings.first(), cpus.iter().max()) else {
            return Err("no CPU is online".into());
        };
        let array =
            map(MAP_ARRAY_OF_MAPS, [4, 4, last as u32 + 1], 0, Some(first)).map_err(failed)?;
        for (&cpu, ring) in cpus.iter().zip(&rings) {
            update(&array, cpu as u32, &ring.as_raw_fd().to_ne_bytes()).map_err(failed)?;
        }
        let of_cpus =
            map(MAP_ARRAY, [4, CPU_BYTES as u32, last as u32 + 1], 0, None).map_err(failed)?;
        let switch = map(MAP_ARRAY, [4, 4, 1], 0, None).map_err(failed)?;
        let shared = Shared {
            switch,
            rings: array,
            lost,
            cpus: of_cpus,
        };
        let program = |(name, recorded): &(&str, Recorded)| {
            let target = btf
                .tracepoint(name)
                .ok_or_else(|| format!("this kernel's types have no tracepoint {name}"))?;
            Ok((
                (*name).to_owned(),
                load(name, &Code::recorder(recorded, &shared).0, target)?,
            ))
        };
        let loaded = wanted
            .iter()
            .map(program)
            .collect::<Result<Vec<_>, String>>()?;
        let rings = rings
            .into_iter()
            .map(|r| Ring::open(r, bytes))
            .collect::<io::Result<_>>()
            .map_err(failed)?;
        Ok(Programs {
            loaded,
            links: Vec::new(),
            shared,
            rings,
            lost_before: 0,
            cpus: cpus.to_vec(),
        })
    }

    /// Attaches the programs where they are not, and lets events flow, until a ring is full: then all programs stop.
    ///
    /// # Errors
    /// Which program could not be attached, and what the kernel said.
    pub fn enable(&mut self) -> io::Result<()> {
        for (name, program) in self.loaded.iter().skip(self.links.len()) {
            let link = command(RAW_TRACEPOINT_OPEN, &mut [0, program.as_raw_fd() as u64, 0]);
            let refused = |e: io::Error| {
                io::Error::new(
                    e.kind(),
                    format!("a program cannot be attached to the tracepoint {name}: {e}"),
                )
            };
            self.links.push(link.map(descriptor).map_err(refused)?);
        }
        // An interrupt that the last window's end cut is over.
        for &cpu in &self.cpus {
            update(&self.shared.cpus, cpu as u32, &[0; CPU_BYTES])?;
        }
        update(&self.shared.switch, 0, &1u32.to_ne_bytes())
    }

    /// Stops them; what the rings hold stays.
    pub fn disable(&mut self) -> io::Result<()> {
        update(&self.shared.switch, 0, &0u32.to_ne_bytes())
    }

    /// Takes all but the first few programs off their tracepoints, so that nothing is slowed by their being there: a
    /// program at the system calls, even one that ends at once, sends each call the kernel's slow way. What was
    /// recorded stays.
    pub fn detach_but(&mut self, first: usize) {
        self.links.truncate(first);
    }

    /// When the first record did not fit since [`Programs::enable`], in nanoseconds on the monotonic clock: nothing is
    /// missing before.
    pub fn stopped(&self) -> io::Result<Option<u64>> {
        let mut all = Vec::new();
        for &cpu in &self.cpus {
            let mut element = [0u64; CPU_BYTES / 8];
            look_up(&self.shared.cpus, cpu as u32, &mut element)?;
            all.push(element[STOPPED / 8]);
        }
        Ok(all.into_iter().filter(|at| *at > 0).min())
    }

    /// CPUs that have a ring.
    pub fn cpus(&self) -> usize {
        self.rings.len()
    }

    /// The share, 0 to 1, of the fullest ring that waits to be drained.
    pub fn fullness(&self) -> f64 {
        self.rings.iter().map(Ring::fullness).fold(0.0, f64::max)
    }

    /// Bytes that wait to be drained, in all rings.
    pub fn waiting(&self) -> usize {
        self.rings.iter().map(Ring::waiting).sum()
    }

    /// Takes every record out of the rings, in order per CPU but not between CPUs. Returns the number of records that
    /// were lost since the last time.
    ///
    /// # Errors
    /// What the kernel said when it was asked how many were lost.
    pub fn drain(&mut self, mut take: impl FnMut(&[u8])) -> io::Result<u64> {
        self.rings.iter_mut().for_each(|r| r.drain(&mut take));
        let mut lost = [0u64];
        look_up(&self.shared.lost, 0, &mut lost)?;
        let new = lost[0].wrapping_sub(self.lost_before);
        self.lost_before = lost[0];
        Ok(new)
    }
}

fn command(number: libc::c_long, attributes: &mut [u64]) -> io::Result<libc::c_long> {
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
fn update(map: &OwnedFd, key: u32, value: &[u8]) -> io::Result<()> {
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

fn descriptor(rc: libc::c_long) -> OwnedFd {
    // SAFETY: the kernel just gave us this descriptor; nothing else owns it.
    unsafe { OwnedFd::from_raw_fd(rc as libc::c_int) }
}

/// A map with these sizes of key and value in bytes, and this many elements.
fn map(
    kind: u32,
    [key, value, entries]: [u32; 3],
    flags: u32,
    inner: Option<&OwnedFd>,
) -> io::Result<OwnedFd> {
    let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    let inner = inner.map_or(0, |fd| fd.as_raw_fd() as u32);
    command(
        MAP_CREATE,
        &mut [pair(kind, key), pair(value, entries), pair(flags, inner)],
    )
    .map(descriptor)
}

/// Reads an element of a map into `value`, which is as long as the map's values are.
fn look_up<T>(map: &OwnedFd, key: u32, value: &mut [T]) -> io::Result<()> {
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
fn to_load(kind: u32, code: &[u64]) -> [u64; 16] {
    let mut attributes = [0u64; 16];
    attributes[0] = u64::from(kind) | (code.len() as u64) << 32;
    attributes[1] = code.as_ptr() as u64;
    attributes[2] = c"Dual MIT/GPL".as_ptr() as u64;
    attributes
}

fn load(name: &str, code: &[u64], target: u32) -> Result<OwnedFd, String> {
    let mut log = vec![0u8; 1 << 16];
    let mut attributes = to_load(PROGRAM_TRACING, code);
    attributes[8] = u64::from(ATTACH_TRACEPOINT) << 32;
    attributes[13] = u64::from(target) << 32;
    let error = match command(PROG_LOAD, &mut attributes) {
        Ok(rc) => return Ok(descriptor(rc)),
        Err(e) => e,
    };
    // Only now, as checking takes longer with a log.
    attributes[3] = 1 | (log.len() as u64) << 32;
    attributes[4] = log.as_mut_ptr() as u64;
    _ = command(PROG_LOAD, &mut attributes).map(descriptor);
    let text =
        String::from_utf8_lossy(log.split(|&b| b == 0).next().unwrap_or_default()).into_owned();
    let reason = text
        .lines()
        .rev()
        .find(|l| !l.is_empty() && !l.starts_with("processed "))
        .unwrap_or_default();
    Err(format!(
        "the kernel refused the program for {name}: {error} ({reason})"
    ))
}
