//! Page-ins since boot, as the source read them from `top` right after a boot and after days of uptime.
//!
//! Its system counted requests for pages from a pager: a fault that had to wait for a file or for swap. The kernel's
//! counter of those here is `pgmajfault`; what the read-ahead around such a fault brings is not counted by either.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fingerpost_measure::estimate;
use fingerpost_record::descriptor::table;
use fingerpost_record::{
    Better, Estimate, Measurement, Observation, Outcome, Params, Process, Series, Unit,
};
use fingerpost_sys::procfs::Paths;

use super::paging;
use super::plan::{Plan, State};
use crate::Sink;
use crate::rows::Definition;

pub const OF_PAGEINS: Definition = Definition {
    table: &table::LAUNCH,
    probe: "launch.pageins",
    unit: Unit::Count,
    ..Definition::LATENCY
};
/// What may still be called right after the boot. Services that start with the machine have started by then, and what
/// somebody began to do with it is in the counter as well.
const AFTER_BOOT: Duration = Duration::from_secs(30 * 60);
const DAY: u64 = 24 * 60 * 60;

/// Tells the row and the counters since boot, where the machine is taken as it is.
pub fn tell(plan: &Plan, sink: &mut dyn Sink) {
    let Some(placement) = plan.placements.first().filter(|_| plan.state.as_is()) else {
        return;
    };
    let reading = Reading::of(&Paths::system());
    let params = params(&placement.name, plan.state, &reading);
    if let Some(observation) = reading.observation(&params) {
        sink.observation(observation);
    }
    sink.measurement(reading.row(plan.state, params));
}

/// Readings of a watch at most, and the shortest time between two.
const MOST_READINGS: u32 = 500;
const LEAST_GAP: Duration = Duration::from_secs(1);
/// How often it is looked whether the user has had enough.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Goes on reading the counter for so long: each day of uptime that it sees is a row, as the source has them, and the
/// course is kept at the end. The kernel counts meanwhile as ever; nothing of ours is in its way.
pub fn watch(plan: &Plan, length: Duration, sink: &mut dyn Sink) {
    let Some(placement) = plan.placements.first().filter(|_| plan.state.as_is()) else {
        return;
    };
    let gap = (length / MOST_READINGS).max(LEAST_GAP);
    let begun = Instant::now();
    let mut watched = Watched {
        placement: &placement.name,
        state: plan.state,
        points: Vec::new(),
        last: None,
    };
    while begun.elapsed() < length && !sink.interrupted() {
        let due = Instant::now() + gap.min(length.saturating_sub(begun.elapsed()));
        while Instant::now() < due && !sink.interrupted() {
            std::thread::sleep(LOOK_EVERY.min(due.saturating_duration_since(Instant::now())));
        }
        watched.read(&Paths::system(), sink);
        sink.progress(
            "watching the page-ins since boot",
            begun.elapsed().as_secs_f64() / length.as_secs_f64(),
        );
    }
    watched.end(sink);
}

/// What a watch has read.
struct Watched<'a> {
    placement: &'a str,
    state: State,
    /// Page-ins over the time that the machine is up.
    points: Vec<(f64, f64)>,
    last: Option<Observation>,
}

impl Watched<'_> {
    /// One reading: the row of its day, which replaces that of an earlier reading of the day.
    fn read(&mut self, paths: &Paths, sink: &mut dyn Sink) {
        let reading = Reading::of(paths);
        let params = params(self.placement, self.state, &reading);
        sink.measurement(reading.row(self.state, params.clone()));
        self.points.extend(reading.point());
        self.last = reading.observation(&params);
    }

    fn end(self, sink: &mut dyn Sink) {
        if let Some(observation) = self.last {
            let series = vec![Series {
                name: "pageins".into(),
                unit: "count".into(),
                points: self.points,
            }];
            sink.observation(Observation {
                series,
                observer: "since-boot-course".into(),
                ..observation
            });
        }
    }
}

/// Rows of days of uptime name the days, as the source does.
fn params(placement: &str, state: State, reading: &Reading) -> Params {
    let params = Params::new()
        .with("state", state.name())
        .with("placement", placement);
    match (state, reading.uptime) {
        (State::Uptime, Some(uptime)) => params.with("days", (uptime.as_secs() / DAY) as i64),
        _ => params,
    }
}

/// What the kernel has counted since boot.
struct Reading {
    totals: BTreeMap<String, f64>,
    uptime: Option<Duration>,
}

impl Reading {
    fn of(paths: &Paths) -> Reading {
        let uptime = paths.read("/proc/uptime").ok();
        let uptime = uptime.and_then(|text| text.split(' ').next()?.trim().parse().ok());
        Reading {
            totals: paging::since_boot(paths),
            uptime: uptime.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
        }
    }

    /// When it was read, and the page-ins until then.
    fn point(&self) -> Option<(f64, f64)> {
        Some((
            self.uptime?.as_secs_f64(),
            *self.totals.get("major_faults")?,
        ))
    }

    fn row(&self, state: State, params: Params) -> Measurement {
        let count = self.totals.get("major_faults").copied();
        let none = || {
            let why = match count {
                None => "the kernel does not count page-ins here (no pgmajfault in /proc/vmstat)",
                Some(_) => "it cannot be told how long the machine has been up (/proc/uptime)",
            };
            (Outcome::Failed, why.to_owned())
        };
        let counted: Vec<f64> = self.uptime.and(count).into_iter().collect();
        let late = self
            .uptime
            .filter(|uptime| state == State::AfterBoot && *uptime > AFTER_BOOT);
        let doubt = late.map(|uptime| {
            let (up, most) = (uptime.as_secs() / 60, AFTER_BOOT.as_secs() / 60);
            format!(
                "the machine has been up for {up} minutes; right after the boot, within {most}, is meant; \
                state=uptime is for later"
            )
        });
        let processes = counted
            .iter()
            .map(|value| Process::of_one(*value, 1))
            .collect();
        let row = OF_PAGEINS.row(
            params,
            processes,
            estimate::percentiles(&counted, Better::Lower),
            doubt,
            none,
        );
        // The counter itself, exact to its last digit as a printed one is; what another boot would count is not known.
        let exact = |value: &f64| Estimate {
            value: *value,
            low: (value - 0.5).max(0.0),
            high: value + 0.5,
            confidence: estimate::CONFIDENCE,
        };
        Measurement {
            estimate: counted.first().map(exact),
            ..row
        }
    }

    fn observation(&self, params: &Params) -> Option<Observation> {
        if self.totals.is_empty() {
            return None;
        }
        let mut totals = self.totals.clone();
        totals.extend(
            self.uptime
                .map(|uptime| ("uptime.seconds".to_owned(), uptime.as_secs_f64())),
        );
        Some(Observation {
            workload: "launch".into(),
            params: params.clone(),
            observer: "since-boot".into(),
            source: "/proc/vmstat and /proc/uptime, the whole machine since it was booted".into(),
            totals,
            ..Observation::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(vmstat: &str, uptime: &str) -> Reading {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("proc")).unwrap();
        std::fs::write(dir.path().join("proc/vmstat"), vmstat).unwrap();
        std::fs::write(dir.path().join("proc/uptime"), uptime).unwrap();
        Reading::of(&Paths::under(dir.path()))
    }

    #[test]
    fn page_ins_right_after_the_boot_are_a_figure_and_later_ones_are_doubted() {
        let row = |uptime: &str| {
            let reading = reading("pgpgin 400\npgmajfault 9078\n", uptime);
            reading.row(State::AfterBoot, params("file", State::AfterBoot, &reading))
        };
        let early = row("90.25 100.00\n");
        assert_eq!(
            (early.outcome, early.estimate.map(|e| e.value)),
            (Outcome::Measured, Some(9078.0))
        );
        assert_eq!(
            early.params,
            Params::new()
                .with("state", "after-boot")
                .with("placement", "file")
        );
        let late = row("7200.00 1.00\n");
        assert_eq!(late.outcome, Outcome::Untrusted);
        assert!(late.reason.unwrap().contains("up for 120 minutes"));
    }

    /// A sink that keeps what it is told.
    #[derive(Default)]
    struct Kept(Vec<Measurement>, Vec<Observation>);

    impl Sink for Kept {
        fn measurement(&mut self, m: Measurement) {
            self.0
                .retain(|known| (&known.probe, &known.params) != (&m.probe, &m.params));
            self.0.push(m);
        }
        fn observation(&mut self, o: Observation) {
            self.1.push(o);
        }
    }

    #[test]
    fn a_watch_has_a_row_for_each_day_and_the_course() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("proc")).unwrap();
        let day = 86_400.0;
        let mut watched = Watched {
            placement: "dual",
            state: State::Uptime,
            points: Vec::new(),
            last: None,
        };
        let mut kept = Kept::default();
        for (days, pageins) in [(2.9, 12_000), (3.1, 12_900), (3.9, 13_000), (4.0, 13_050)] {
            std::fs::write(
                dir.path().join("proc/vmstat"),
                format!("pswpin 7\npgmajfault {pageins}\n"),
            )
            .unwrap();
            std::fs::write(
                dir.path().join("proc/uptime"),
                format!("{:.2} 1.00\n", days * day),
            )
            .unwrap();
            watched.read(&Paths::under(dir.path()), &mut kept);
        }
        watched.end(&mut kept);
        let rows: Vec<(Option<i64>, f64)> = kept
            .0
            .iter()
            .map(|m| (m.params.int("days"), m.estimate.unwrap().value))
            .collect();
        assert_eq!(
            rows,
            [
                (Some(2), 12_000.0),
                (Some(3), 13_000.0),
                (Some(4), 13_050.0)
            ]
        );
        assert!(
            kept.0
                .iter()
                .all(|m| m.outcome == Outcome::Measured
                    && m.params.text("placement") == Some("dual"))
        );
        let course = &kept.1[0];
        assert_eq!(
            (
                course.observer.as_str(),
                course.series[0].points.len(),
                course.totals["swap_in.pages"]
            ),
            ("since-boot-course", 4, 7.0)
        );
        assert!((course.series[0].points[3].0 / day - 4.0).abs() < 1e-6);
    }

    #[test]
    fn the_course_has_what_could_be_read() {
        let read = [
            ("pgmajfault 10\n", "100.5 1.00\n"),
            ("", "200.0 1.00\n"),
            ("pgmajfault 12\n", "300.0 1.00\n"),
        ];
        let points: Vec<(f64, f64)> = read
            .iter()
            .filter_map(|(vmstat, up)| reading(vmstat, up).point())
            .collect();
        assert_eq!(points, [(100.5, 10.0), (300.0, 12.0)]);
    }

    #[test]
    fn days_of_uptime_are_named_and_what_is_not_counted_is_not_zero() {
        let three = reading("pgmajfault 13000\n", "259300.00 1.00\n");
        let given = params("dual", State::Uptime, &three);
        assert_eq!(given.int("days"), Some(3));
        assert_eq!(
            three.row(State::Uptime, given.clone()).outcome,
            Outcome::Measured
        );
        let totals = three.observation(&given).unwrap().totals;
        assert_eq!(
            (
                totals["major_faults"],
                totals["uptime.seconds"],
                totals.get("swap_in.pages")
            ),
            (13000.0, 259300.0, None)
        );
        let none = reading("", "10.00 1.00\n");
        assert_eq!(
            none.row(State::Uptime, Params::new()).outcome,
            Outcome::Failed
        );
        assert!(none.observation(&Params::new()).is_none());
        assert_eq!(
            reading("pgmajfault 5\n", "soon")
                .row(State::Uptime, Params::new())
                .outcome,
            Outcome::Failed
        );
    }
}
