//! The two sides as runs: kept, and put side by side.

use std::collections::BTreeSet;

use fingerpost_compare::{Comparison, Options as Comparing, Side, compare_sides};
use fingerpost_record::archive::{Archive, ArchiveError, Writer};
use fingerpost_record::unstated::{DIR_FS, SERVER_PREFIX};
use fingerpost_record::{Params, Run};

use super::NAMES;
use super::setting::Setting;

/// Two ids that differ in their last digit, `a` and `b`: whoever sees one knows the other.
pub fn ids(id: &str) -> [String; 2] {
    let stem = &id[..id.len().saturating_sub(1)];
    [format!("{stem}a"), format!("{stem}b")]
}

/// Compares the sides pair by pair. The parameters in which they differ by design do not keep their rows apart.
pub fn compare(runs: &[Run; 2], settings: &[Setting; 2], threshold: f64) -> Comparison {
    let differing = differing(settings);
    let side = |i: usize| {
        let mut run = runs[i].clone();
        let take_out = |params: &mut Params| params.0.retain(|key, _| !differing.contains(key));
        run.measurements
            .iter_mut()
            .for_each(|m| take_out(&mut m.params));
        run.budgets.iter_mut().for_each(|b| take_out(&mut b.params));
        run.paths.iter_mut().for_each(|p| take_out(&mut p.params));
        run.observations
            .iter_mut()
            .for_each(|o| take_out(&mut o.params));
        let mut side = Side::of(&[run]);
        side.info.name = format!("{} ({})", NAMES[i], settings[i].title());
        side
    };
    compare_sides(
        &side(0),
        &side(1),
        &Comparing {
            threshold,
            paired: true,
            ..Comparing::default()
        },
    )
}

/// Settings whose rows have a parameter of another name.
pub const OF_ROWS: [(&str, &str); 2] = [("cc", "compiler"), ("placements", "placement")];

/// Parameters of rows that come and go with the value of another one: without a limit nothing makes it.
const WITH_ANOTHER: [(&str, &str); 1] = [("pressure", "pressure_by")];

/// Parameters of rows that a side sets and the other does not, or otherwise.
pub fn differing(settings: &[Setting; 2]) -> Vec<String> {
    let keys = settings
        .iter()
        .flat_map(|s| s.params.iter().map(|(k, _)| k.to_owned()));
    let set: Vec<String> = keys
        .filter(|key| settings[0].params.get(key) != settings[1].params.get(key))
        .collect();
    let of_rows = |key: &String| {
        OF_ROWS
            .iter()
            .chain(&WITH_ANOTHER)
            .find(|(setting, _)| setting == key)
            .map(|(_, of_rows)| (*of_rows).to_owned())
    };
    let others: Vec<String> = set.iter().filter_map(of_rows).collect();
    let [a, b] = settings;
    let own = [
        (a.server_prefix != b.server_prefix, SERVER_PREFIX),
        (a.dir != b.dir, DIR_FS),
    ];
    let own = own
        .into_iter()
        .filter(|(differs, _)| *differs)
        .map(|(_, key)| key.to_owned());
    set.into_iter()
        .chain(others)
        .chain(own)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

/// Keeps both runs in the archive and tells their ids, or why not.
pub fn keep(runs: &[Run; 2]) -> Result<(), ArchiveError> {
    let archive = Archive::open(None)?;
    for run in runs {
        let (writer, _) = Writer::in_archive(&archive, run);
        writer.finish(run)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fingerpost_compare::Verdict;
    use fingerpost_record::{Better, Estimate, Process, Unit};

    fn run(fds: i64, values: &[f64]) -> Run {
        let mut row = fingerpost_record::fixture::row(
            "syscall.poll",
            Params::new().with("fds", fds),
            Unit::Nanoseconds,
            Better::Lower,
        );
        let middle = values[values.len() / 2];
        row.estimate = Some(Estimate {
            value: middle,
            low: middle * 0.8,
            high: middle * 1.2,
            confidence: 0.95,
        });
        row.processes = values
            .iter()
            .map(|v| Process {
                value: Some(*v),
                ..Process::default()
            })
            .collect();
        Run {
            measurements: vec![row],
            ..Run::default()
        }
    }

    #[test]
    fn sides_with_other_parameters_are_compared_pair_by_pair() {
        let drift: Vec<f64> = (0..30).map(|i| 100.0 + f64::from(i)).collect();
        let slower: Vec<f64> = drift.iter().map(|v| v * 1.01).collect();
        let settings = ["fds=100", "fds=101"].map(|w| Setting::parse(&[w.to_owned()]).unwrap());
        let comparison = compare(&[run(100, &drift), run(101, &slower)], &settings, 0.005);
        assert_eq!(comparison.rows.len(), 1, "{:?}", comparison.not_compared);
        assert_eq!(comparison.rows[0].verdict, Verdict::Slower);
        assert!(comparison.new.name.contains("fds=101"));
    }

    #[test]
    fn a_setting_takes_the_parameter_out_that_rows_have_for_it() {
        let of =
            |a: &str, b: &str| differing(&[a, b].map(|w| Setting::parse(&[w.to_owned()]).unwrap()));
        assert!(of("cc=gcc", "cc=clang").contains(&"compiler".to_owned()));
        assert!(of("placements=file", "placements=loop").contains(&"placement".to_owned()));
        assert!(!of("fds=1", "fds=2").contains(&"compiler".to_owned()));
        assert_eq!(
            of("server-prefix=taskset -c 0", "server-prefix=taskset -c 1"),
            [SERVER_PREFIX]
        );
        assert_eq!(of("dir=/tmp", "dir=/"), [DIR_FS]);
        assert_eq!(
            of("dir=/tmp", "dir=/tmp"),
            Vec::<String>::new(),
            "both have it, and their rows state it"
        );
        assert_eq!(
            of("pressure=none", "pressure=0.6"),
            ["pressure", "pressure_by"]
        );
    }

    #[test]
    fn the_ids_of_a_pair_tell_each_other() {
        assert_eq!(
            ids("20260101T000000Z-0123456f"),
            ["20260101T000000Z-0123456a", "20260101T000000Z-0123456b"]
        );
    }
}
