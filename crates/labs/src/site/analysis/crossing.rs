//! The size of pages at which the faster one of files and an object database changes.

use fingerpost_record::{Measurement, Params, Run};
use serde::Serialize;

use super::{is_files, measured, without_store};

/// Pages of one size: how many times faster the object database was.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AtSize {
    /// The size in bytes.
    pub size: i64,
    /// The file system's time divided by the object database's.
    pub ratio: f64,
}

/// Where the faster one of files and an object database changes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Crossing {
    /// Which object database.
    pub odb: String,
    /// What else tells the rows.
    pub params: Params,
    /// The ratios, smallest pages first.
    pub sizes: Vec<AtSize>,
    /// The size in bytes at which the faster one changes for the last time; nothing when the same one is faster at
    /// every size measured.
    pub size: Option<f64>,
    /// Whether files are the faster ones above that size, or at every size when there is none.
    pub files_above: bool,
}

/// A run's sizes at which the faster one changes, one for each object database.
pub fn crossings(run: &Run) -> Vec<Crossing> {
    let rows: Vec<&Measurement> = measured(run, "site.size").collect();
    let mut found: Vec<Crossing> = Vec::new();
    for odb in rows.iter().filter(|m| !is_files(m)) {
        let (Some(size), Some(name)) = (odb.params.int("size"), odb.params.text("store")) else {
            continue;
        };
        let files = rows
            .iter()
            .filter(|m| is_files(m) && without_store(&m.params) == without_store(&odb.params));
        // Against the best way to read files of this size: a crossing that another open would move is none.
        let best = files
            .filter_map(|m| m.estimate)
            .map(|e| e.value)
            .min_by(f64::total_cmp);
        let Some((files, odb_value)) = best
            .zip(odb.estimate.map(|e| e.value))
            .filter(|(f, o)| *f > 0.0 && *o > 0.0)
        else {
            continue;
        };
        let (params, at) = (
            odb.params.without(&["store", "size"]),
            AtSize {
                size,
                ratio: files / odb_value,
            },
        );
        match found
            .iter_mut()
            .find(|c| c.odb == name && c.params == params)
        {
            Some(crossing) => crossing.sizes.push(at),
            None => found.push(Crossing {
                odb: name.to_owned(),
                params,
                sizes: vec![at],
                size: None,
                files_above: false,
            }),
        }
    }
    for crossing in &mut found {
        crossing.sizes.sort_by_key(|s| s.size);
        crossing.size = crossing_size(&crossing.sizes);
        crossing.files_above = crossing.sizes.last().is_some_and(|s| s.ratio < 1.0);
    }
    found
}

/// The size at which the ratio passes one for the last time, between two sizes by interpolation of the logarithms of
/// both.
pub fn crossing_size(sizes: &[AtSize]) -> Option<f64> {
    let (a, b) = sizes
        .windows(2)
        .rev()
        .map(|w| (w[0], w[1]))
        .find(|(a, b)| (a.ratio > 1.0) != (b.ratio > 1.0))?;
    let share = a.ratio.ln() / (a.ratio.ln() - b.ratio.ln());
    let (low, high) = ((a.size as f64).ln(), (b.size as f64).ln());
    Some((low + share * (high - low)).exp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::analysis::fixture::row;

    #[test]
    fn the_crossing_lies_between_the_sizes_around_it() {
        let at = |list: &[(i64, f64)]| {
            crossing_size(
                &list
                    .iter()
                    .map(|&(size, ratio)| AtSize { size, ratio })
                    .collect::<Vec<_>>(),
            )
        };
        let found = at(&[(1024, 4.0), (4096, 2.0), (16_384, 0.5), (65_536, 0.4)]).unwrap();
        assert!(
            (found - 8192.0).abs() < 1.0,
            "halfway in logarithms: {found}"
        );
        assert_eq!(at(&[(1024, 4.0), (4096, 1.5)]), None);
        assert_eq!(at(&[(1024, 0.9), (4096, 0.5)]), None);
        let rising = at(&[(1024, 0.5), (4096, 2.0), (16_384, 3.0)]).unwrap();
        assert!(
            (rising - 2048.0).abs() < 1.0,
            "an engine may be slower with small pages: {rising}"
        );
        assert_eq!(at(&[]), None);
        // A dip that does not last is no crossing.
        assert!(at(&[(1024, 2.0), (4096, 0.9), (16_384, 2.0), (65_536, 0.5)]).unwrap() > 16_384.0);
    }

    #[test]
    fn sizes_are_told_against_the_best_way_to_read_files() {
        let of = |store: &str, size: i64, ns: f64| {
            row(
                "site.size",
                Params::new().with("store", store).with("size", size),
                &[&[ns], &[ns], &[ns]],
            )
        };
        let run = Run {
            measurements: vec![
                of("files-open", 1024, 900.0),
                of("files-mmap", 1024, 1500.0),
                of("sqlite", 1024, 300.0),
                of("files-open", 65_536, 9000.0),
                of("files-mmap", 65_536, 5000.0),
                of("sqlite", 65_536, 10_000.0),
            ],
            ..Run::default()
        };
        let found = crossings(&run);
        assert_eq!(
            (
                found.len(),
                found[0].sizes[0].ratio,
                found[0].sizes[1].ratio
            ),
            (1, 3.0, 0.5)
        );
        assert!((1024.0..65_536.0).contains(&found[0].size.unwrap()) && found[0].files_above);
    }
}
