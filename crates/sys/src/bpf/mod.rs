//! Programs in the kernel (eBPF). Those that record events into one ring per CPU, and count requests, are made by a
//! compiler (`bpf/`); small ones are made of instructions here.

pub mod attached;
pub mod btf;
mod calls;
pub mod closed;
pub mod code;
mod error;
mod link;
pub mod names;
pub mod object;
mod ring;
pub mod table;

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use self::btf::Btf;
use self::calls::*;
pub use self::error::BpfError;
pub use self::link::Point;
use self::link::Program;
use self::object::{Object, Settings};
use self::ring::Ring;
use self::table::Table;

/// Bytes of what a CPU keeps of itself: a cache line, which it then shares with no other.
const CPU_BYTES: usize = 64;
/// Where a CPU's element has the time of the first record that did not fit, 0 before that.
const STOPPED: usize = 8;

/// Programs in the kernel that record, and what they write into. They record nothing until [`Programs::enable`], and go
/// with this.
pub struct Programs {
    /// Attached from the beginning.
    _always: Vec<(Program, OwnedFd)>,
    loaded: Vec<Program>,
    // Attached as long as they are there.
    links: Vec<OwnedFd>,
    switch: OwnedFd,
    lost: OwnedFd,
    of_cpus: OwnedFd,
    rings: Vec<Ring>,
    lost_before: u64,
    cpus: Vec<usize>,
    way: Option<usize>,
    left_out: Vec<&'static str>,
}

/// What programs are to be attached.
#[derive(Debug, Default)]
pub struct Wanted {
    /// Those that are attached by [`Programs::enable`].
    pub switched: Vec<Point>,
    /// Tracepoints of these that are left out where the kernel refuses their programs.
    pub optional: Vec<&'static str>,
    /// Those that are attached from the beginning.
    pub always: Vec<Point>,
    /// Ways to have what is left, the best first; of the first that the kernel takes, all are attached from the
    /// beginning.
    pub ways: Vec<Vec<Point>>,
    /// Values of constants, by name.
    pub constants: Vec<(&'static str, Vec<u8>)>,
    /// How many entries maps have of which the programs do not say it.
    pub entries: Vec<(&'static str, u32)>,
    /// Maps that are looked into, of programs that count.
    pub tables: Vec<&'static str>,
}

impl Programs {
    /// Loads these programs of an object. `bytes` is the size of one CPU's ring, rounded up to a power of two.
    ///
    /// # Errors
    /// What the kernel lacks, or did not allow.
    pub fn load(
        btf: &Btf,
        object: &[u8],
        wanted: &Wanted,
        cpus: &[usize],
        bytes: usize,
    ) -> Result<Programs, BpfError> {
        let failed = BpfError::Refused;
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
            return Err(BpfError::NoCpu);
        };
        let settings = Settings {
            constants: wanted.constants.clone(),
            entries: [
                &[("rings", last as u32 + 1), ("cpus", last as u32 + 1)],
                &wanted.entries[..],
            ]
            .concat(),
            inner: Some(first),
        };
        let object = Object::new(object, btf, &settings)?;
        for (&cpu, ring) in cpus.iter().zip(&rings) {
            let array = object.map("rings")?;
            update(array, cpu as u32, &ring.as_raw_fd().to_ne_bytes()).map_err(failed)?;
        }
        let (always, way) = attach(&object, btf, wanted)?;
        let (mut loaded, mut left_out) = (Vec::new(), Vec::new());
        for point in &wanted.switched {
            match (Program::load(&object, btf, point), point) {
                (Ok(program), _) => loaded.push(program),
                (Err(_), Point::Tracepoint(name)) if wanted.optional.contains(name) => {
                    left_out.push(*name);
                }
                (Err(refused), _) => return Err(refused),
            }
        }
        let own = |name: &str| object.map(name)?.try_clone().map_err(failed);
        let rings = rings
            .into_iter()
            .map(|r| Ring::open(r, bytes))
            .collect::<io::Result<_>>()
            .map_err(failed)?;
        Ok(Programs {
            _always: always,
            loaded,
            links: Vec::new(),
            switch: own("on")?,
            lost: own("lost")?,
            of_cpus: own("cpus")?,
            rings,
            lost_before: 0,
            cpus: cpus.to_vec(),
            way,
            left_out,
        })
    }

    /// Which of the ways was taken.
    pub fn way(&self) -> Option<usize> {
        self.way
    }

    /// Optional tracepoints whose programs the kernel refused.
    pub fn left_out(&self) -> &[&'static str] {
        &self.left_out
    }

    /// Attaches the programs where they are not, and lets events flow, until a ring is full: then all programs stop.
    ///
    /// # Errors
    /// Which program could not be attached, and what the kernel said.
    pub fn enable(&mut self) -> io::Result<()> {
        for program in self.loaded.iter().skip(self.links.len()) {
            self.links.push(program.attach().map_err(io::Error::other)?);
        }
        // An interrupt that the last window's end cut is over.
        for &cpu in &self.cpus {
            update(&self.of_cpus, cpu as u32, &[0; CPU_BYTES])?;
        }
        update(&self.switch, 0, &1u32.to_ne_bytes())
    }

    /// Stops them; what the rings hold stays.
    pub fn disable(&mut self) -> io::Result<()> {
        update(&self.switch, 0, &0u32.to_ne_bytes())
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
            look_up(&self.of_cpus, cpu as u32, &mut element)?;
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
        look_up(&self.lost, 0, &mut lost)?;
        let new = lost[0].wrapping_sub(self.lost_before);
        self.lost_before = lost[0];
        Ok(new)
    }
}

/// Programs that are attached for as long as this is there, and what they count.
pub struct Attached {
    _always: Vec<(Program, OwnedFd)>,
    way: Option<usize>,
    tables: Vec<(String, Table)>,
}

impl Attached {
    /// Loads these programs of an object, and attaches them.
    ///
    /// # Errors
    /// What the kernel lacks, or did not allow.
    pub fn new(btf: &Btf, object: &[u8], wanted: &Wanted) -> Result<Attached, BpfError> {
        let failed = BpfError::Refused;
        let settings = Settings {
            constants: wanted.constants.clone(),
            entries: wanted.entries.clone(),
            inner: None,
        };
        let object = Object::new(object, btf, &settings)?;
        let (always, way) = attach(&object, btf, wanted)?;
        let table = |&name: &&str| {
            let map = object.map(name)?.try_clone().map_err(failed)?;
            Ok((name.to_owned(), Table::of(map).map_err(failed)?))
        };
        Ok(Attached {
            _always: always,
            way,
            tables: wanted
                .tables
                .iter()
                .map(table)
                .collect::<Result<_, BpfError>>()?,
        })
    }

    /// Which of the ways was taken.
    pub fn way(&self) -> Option<usize> {
        self.way
    }

    /// A map that was asked for.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables
            .iter()
            .find_map(|(of, table)| (of == name).then_some(table))
    }
}

type Links = Vec<(Program, OwnedFd)>;

/// Loads and attaches what is to be attached from the beginning, with the first of the ways that the kernel takes.
fn attach(object: &Object, btf: &Btf, wanted: &Wanted) -> Result<(Links, Option<usize>), BpfError> {
    let attached = |points: &[Point]| -> Result<Links, BpfError> {
        let one = |point: &Point| {
            let made = Program::load(object, btf, point)
                .and_then(|program| program.attach().map(|link| (program, link)));
            (!point.is_optional() || made.is_ok()).then_some(made)
        };
        points.iter().filter_map(one).collect()
    };
    let mut always = attached(&wanted.always)?;
    let mut refused = Vec::new();
    for (number, points) in wanted.ways.iter().enumerate() {
        match attached(points) {
            Ok(more) => {
                always.extend(more);
                return Ok((always, Some(number)));
            }
            Err(why) => refused.push(why),
        }
    }
    if refused.is_empty() {
        Ok((always, None))
    } else {
        Err(BpfError::NoWay(refused))
    }
}
