//! What was changed to decide between causes, as a table: the change, the requests without and with it, and their
//! answer.

use fingerpost_diagnose::deciding::verdict;
use fingerpost_record::unit::significant;
use fingerpost_record::{Answer, Asked, Experiment, Measure, Pair, Unit};

use super::explanation::Explanation;
use crate::grid::{Align, Grid, Line};
use crate::style::Tone;
use crate::words::clean;

impl Explanation {
    /// With the experiments that were made on it, and what their answers say of the suspects.
    pub fn with_experiments(mut self, experiments: Vec<Experiment>) -> Explanation {
        self.findings = verdict(&self.findings, &experiments);
        self.experiments = experiments;
        self
    }
}

/// The columns of [`cells`].
pub(super) const COLUMNS: [(&str, Align, u8); 5] = [
    ("changed for short stretches", Align::Left, 0),
    ("without", Align::Right, 1),
    ("with it", Align::Right, 1),
    ("times faster", Align::Right, 0),
    ("requests", Align::Left, 0),
];

/// One experiment in words: what was changed, the requests without and with it, how many times faster, the answer.
pub(crate) fn cells(e: &Experiment) -> [String; 5] {
    let times = e
        .effect
        .as_ref()
        .map(|x| format!("{:.2} ({:.2}–{:.2})", x.value, x.low, x.high));
    let answer = match (e.answer, &e.reason) {
        (Answer::Faster, _) => "faster".to_owned(),
        (Answer::Slower, _) => "slower".to_owned(),
        (Answer::Same, _) => "as before".to_owned(),
        (Answer::Unresolved, _) => "not resolved".to_owned(),
        (Answer::NotDone, Some(why)) => format!("not done, {why}"),
        (Answer::NotDone, None) => "not done".to_owned(),
    };
    [
        e.what.clone(),
        figure(e, |p| p.base),
        figure(e, |p| p.changed),
        times.unwrap_or_default(),
        answer,
    ]
}

/// Requests a second of all stretches of one side; their mean latency where that is what was asked.
fn figure(e: &Experiment, side: fn(&Pair) -> Asked) -> String {
    let asked = || e.pairs.iter().map(side);
    let (requests, seconds) = asked().fold((0.0, 0.0), |(n, s), a| {
        (n + a.requests as f64, s + a.seconds)
    });
    if seconds <= 0.0 {
        return String::new();
    }
    match e.by {
        Measure::Rate => format!("{}/s", significant(requests / seconds)),
        Measure::Latency if requests == 0.0 => String::new(),
        Measure::Latency => {
            let sum: f64 = asked()
                .map(|a| a.latency_ns.unwrap_or(0.0) * a.requests as f64)
                .sum();
            Unit::Nanoseconds.format(sum / requests)
        }
    }
}

/// The table; without lines where nothing was changed.
pub(super) fn grid(experiments: &[Experiment]) -> Grid {
    if experiments.is_empty() {
        return Grid::default();
    }
    let mut grid = Grid::titled(COLUMNS);
    for e in experiments {
        let tone = match e.answer {
            Answer::Faster | Answer::Slower => Tone::Plain,
            _ => Tone::Faint,
        };
        grid.lines.push(Line::Cells(
            cells(e).map(|cell| clean(&cell)).to_vec(),
            tone,
        ));
    }
    grid
}

#[cfg(test)]
mod tests {
    use fingerpost_record::fixture;

    use super::*;

    #[test]
    fn a_table_has_the_figures_and_the_reason_of_what_was_not_done() {
        let made = fixture::experiment();
        let mut latency = Experiment {
            by: Measure::Latency,
            ..made.clone()
        };
        latency.what = "a \u{1b}[31mname".into();
        let undone = Experiment {
            pairs: Vec::new(),
            effect: None,
            answer: Answer::NotDone,
            reason: Some("which needs root".into()),
            ..made.clone()
        };
        assert_eq!(
            cells(&made)[1..],
            ["517.5/s", "995.0/s", "1.92 (1.85–1.99)", "faster"].map(String::from)
        );
        assert!(cells(&latency)[1].contains("ms"), "{:?}", cells(&latency));
        assert_eq!(
            cells(&undone)[1..],
            ["", "", "", "not done, which needs root"].map(String::from)
        );
        let grid = grid(&[made, latency, undone]);
        assert_eq!(grid.lines.len(), 4, "the titles, and a line each");
        assert!(!format!("{grid:?}").contains('\u{1b}'));
    }

    #[test]
    fn a_runs_own_experiments_change_its_verdict() {
        let mut run = fixture::followed::slow_locks();
        let before = super::super::of_run(&run);
        let made = Experiment {
            workload: before[0].workload.clone(),
            params: before[0].params.clone(),
            ..fixture::experiment()
        };
        let other = Experiment {
            workload: "another".into(),
            ..made.clone()
        };
        run.experiments = vec![other, made];
        let e = super::super::of_run(&run).swap_remove(0);
        assert_eq!(
            e.experiments.len(),
            1,
            "the other was made on something else"
        );
        assert!(
            before[0]
                .findings
                .iter()
                .all(|f| f.cause != "cpu.quota" || !f.status.accuses())
        );
        let e = Explanation {
            findings: e
                .findings
                .into_iter()
                .filter(|f| f.cause == "cpu.quota")
                .collect(),
            ..e
        };
        assert_eq!(
            (e.findings[0].cause.as_str(), e.findings[0].status),
            ("cpu.quota", fingerpost_record::Status::Confirmed)
        );
    }
}
