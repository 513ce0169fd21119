//! The memory hierarchy: cache sizes from the latency curve, the reach of the translation buffers, bandwidth by number
//! of CPUs.

pub mod staircase;

use std::collections::BTreeMap;

use fingerpost_record::{Estimate, Measurement, Outcome, Run};

use staircase::{LATENCIES, Level, Reading, levels};

/// Bytes of a base page, and so the stride of the rows that ask for translations.
const PAGE: u64 = 4096;

/// Bytes of a line, the stride of the rows that ask for caches.
const LINE: u64 = 64;

/// What translation adds is a small difference of two latencies, so its levels are read more coarsely.
const TRANSLATIONS: Reading = Reading {
    flat: 1.5,
    distinct: 2.0,
};

/// Nanoseconds that are added to a difference of two latencies before levels are sought: below that, it is noise.
const FLOOR_NS: f64 = 1.0;

/// What a system says of a cache may lie this far outside of what the curve shows: other lines live there too.
const SLACK: f64 = 0.1;

/// Everything that a run says of its memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Memory {
    /// Latency by size in strides of a line, one curve per kind of page.
    pub curves: Vec<Curve>,
    /// The levels of the curve, from the nearest cache to the memory.
    pub levels: Vec<Cache>,
    /// How far translation reaches, by kind of page.
    pub reaches: Vec<Reach>,
    /// Bandwidth rows, by what is done, size and number of CPUs.
    pub bandwidths: Vec<Bandwidth>,
    /// Why there are no rows in huge pages.
    pub no_huge_pages: Option<String>,
    /// Whether so many rows of the curves are untrusted that the levels read off them are a guess.
    pub untrusted: bool,
}

/// Latency by size.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// `huge` or `small`.
    pub pages: String,
    /// Sizes in bytes, ascending, with the nanoseconds of a load.
    pub points: Vec<(u64, Estimate)>,
}

/// A level of the hierarchy.
#[derive(Clone, Debug, PartialEq)]
pub struct Cache {
    /// What the curve shows.
    pub level: Level,
    /// The cache that the system reports for this place, with its size.
    pub reported: Option<(String, u64)>,
}

impl Cache {
    /// Whether the size that the system reports lies where the curve leaves the level; nothing where one of the two is
    /// missing.
    pub fn agrees(&self) -> Option<bool> {
        let (_, bytes) = self.reported.as_ref()?;
        let bytes = *bytes as f64;
        let passed = self.level.passed.map_or(f64::INFINITY, |p| p as f64);
        Some(bytes >= self.level.fits as f64 * (1.0 - SLACK) && bytes <= passed * (1.0 + SLACK))
    }
}

/// What one kind of page's translations cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Reach {
    /// `huge` or `small`.
    pub pages: String,
    /// Levels over the bytes spanned, heights in nanoseconds that a load in another page costs beyond one in the next
    /// line.
    pub levels: Vec<Level>,
}

/// One bandwidth.
#[derive(Clone, Debug, PartialEq)]
pub struct Bandwidth {
    /// `read`, `write` or `copy`; with a method that was asked for, `copy, string`.
    pub op: String,
    /// Bytes that each CPU walks through.
    pub size: u64,
    /// CPUs at once.
    pub threads: u64,
    /// Bytes a second of all together.
    pub rate: Estimate,
}

impl Memory {
    /// What a run says; nothing where it has no row of the memory laboratory.
    pub fn of(run: &Run) -> Option<Memory> {
        let curves: Vec<Curve> = ["huge", "small"]
            .into_iter()
            .filter_map(|pages| curve(&run.measurements, LINE, pages))
            .collect();
        let memory = Memory {
            levels: caches(&curves, &run.host.cpu.caches),
            reaches: ["small", "huge"]
                .into_iter()
                .filter_map(|pages| reach(&run.measurements, pages, &curves))
                .collect(),
            bandwidths: bandwidths(&run.measurements),
            no_huge_pages: no_huge_pages(&run.measurements),
            untrusted: untrusted(&run.measurements),
            curves,
        };
        // The primitives alone, three sizes, are no curve.
        let enough =
            memory.curves.iter().any(|c| c.points.len() > 4) || !memory.bandwidths.is_empty();
        enough.then_some(memory)
    }
}

fn bytes(row: &Measurement, name: &str) -> Option<u64> {
    row.params.int(name).and_then(|n| u64::try_from(n).ok())
}

fn curve(rows: &[Measurement], stride: u64, pages: &str) -> Option<Curve> {
    let ours = |row: &&Measurement| {
        row.probe == "memory.latency"
            && bytes(row, "stride") == Some(stride)
            && row.params.text("pages") == Some(pages)
    };
    let mut points: Vec<(u64, Estimate)> = rows
        .iter()
        .filter(ours)
        .filter_map(|row| Some((bytes(row, "size")?, row.estimate?)))
        .collect();
    points.sort_by_key(|(size, _)| *size);
    (!points.is_empty()).then(|| Curve {
        pages: pages.to_owned(),
        points,
    })
}

fn values(curve: &Curve) -> Vec<(u64, f64)> {
    curve
        .points
        .iter()
        .map(|(size, estimate)| (*size, estimate.value))
        .collect()
}

/// The levels of the first curve that shows any: in huge pages translation hardly blurs the steps.
fn caches(curves: &[Curve], reported: &BTreeMap<String, u64>) -> Vec<Cache> {
    let found = curves
        .iter()
        .map(|curve| levels(&values(curve), LATENCIES))
        .find(|levels| !levels.is_empty())
        .unwrap_or_default();
    // `L1i` holds no data.
    let mut known: Vec<(String, u64)> = reported
        .iter()
        .filter(|(name, _)| !name.ends_with('i'))
        .map(|(n, b)| (n.clone(), *b))
        .collect();
    known.sort_by_key(|(_, bytes)| *bytes);
    let mut known = known.into_iter();
    found
        .into_iter()
        .map(|level| Cache {
            level,
            reported: known.next(),
        })
        .collect()
}

/// What a load in another page costs beyond a load in another line, when as many lines are in play: that is
/// translation.
fn reach(rows: &[Measurement], pages: &str, curves: &[Curve]) -> Option<Reach> {
    let own = curve(rows, PAGE, pages)?;
    let lines = values(curves.first()?);
    let extra = own.points.iter().filter_map(|(size, estimate)| {
        let same_lines = (size / PAGE * LINE).max(lines[0].0);
        let nearest = lines.iter().find(|(size, _)| *size >= same_lines)?;
        Some((*size, (estimate.value - nearest.1).max(0.0) + FLOOR_NS))
    });
    let extra: Vec<(u64, f64)> = extra.collect();
    let mut levels = levels(&extra, TRANSLATIONS);
    levels.iter_mut().for_each(|level| level.height -= FLOOR_NS);
    Some(Reach {
        pages: pages.to_owned(),
        levels,
    })
}

fn bandwidths(rows: &[Measurement]) -> Vec<Bandwidth> {
    let bandwidth = |row: &Measurement| {
        let op = row
            .probe
            .strip_prefix("memory.")
            .filter(|op| ["read", "write", "copy"].contains(op))?;
        let op = row
            .params
            .text("method")
            .map_or(op.to_owned(), |method| format!("{op}, {method}"));
        Some(Bandwidth {
            op,
            size: bytes(row, "size")?,
            threads: bytes(row, "threads")?,
            rate: row.estimate?,
        })
    };
    let mut all: Vec<Bandwidth> = rows.iter().filter_map(bandwidth).collect();
    let place = |op: &str| {
        ["read", "write", "copy"]
            .iter()
            .position(|o| op.starts_with(o))
    };
    all.sort_by(|a, b| {
        (place(&a.op), &a.op, a.size, a.threads).cmp(&(place(&b.op), &b.op, b.size, b.threads))
    });
    all
}

/// More untrusted rows of a curve than this share make its levels a guess: a level reaches over several of some fifty
/// sizes.
const MOST_UNTRUSTED: f64 = 0.1;

fn untrusted(rows: &[Measurement]) -> bool {
    let latencies = || {
        rows.iter()
            .filter(|row| row.probe == "memory.latency" && row.estimate.is_some())
    };
    let of = latencies()
        .filter(|row| row.outcome == Outcome::Untrusted)
        .count();
    of as f64 > latencies().count() as f64 * MOST_UNTRUSTED
}

fn no_huge_pages(rows: &[Measurement]) -> Option<String> {
    let refused = |row: &&Measurement| {
        row.probe == "memory.latency"
            && row.params.text("pages") == Some("huge")
            && row.outcome == Outcome::Skipped
    };
    rows.iter().find(refused).and_then(|row| row.reason.clone())
}

#[cfg(test)]
mod tests;
