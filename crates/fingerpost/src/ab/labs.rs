//! Labs, in turns.
//!
//! A lab holds servers, settings and a course of its own, so each side is a run of this very program: a fresh process
//! with the side's environment, CPUs and settings. Where the lab can, both runs are under way at the same time and take
//! turns stretch by stretch ([`crate::turns`]): a round of a step on one side and the same on the other are a pair,
//! seconds apart. Else whole runs take turns, and the figure of a row in one of them is one value of the pair.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use fingerpost_diagnose::Steps;
use fingerpost_labs::Lab;
use fingerpost_measure::course::{Extent, Interleaved, Turn};
use fingerpost_measure::estimate;
use fingerpost_record::{Measurement, Outcome, Params, Process, Run, load, secret};
use fingerpost_sys::{child, task};
use fingerpost_undo::scratch::Scratch;

use super::pair::differing;
use super::setting::{Setting, Thp};
use super::thp::Switch;
use super::{NAMES, Options};
use crate::plan;
use crate::progress::Progress;
use crate::turns;

/// Turns that an interval needs at the least.
pub const LEAST_TURNS: usize = 3;
/// Turns that a pair takes at most.
const MOST_TURNS: usize = 50;
/// Turns that the budget is divided into, where no more are asked for.
const USUAL_TURNS: usize = 5;
/// What a turn may take beyond its time before it counts as hung: starting and filling a server.
const GRACE: Duration = Duration::from_secs(300);

/// What is measured on both sides.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The lab.
    pub lab: &'static Lab,
    /// Settings of both sides.
    pub common: &'a Params,
    /// What differs.
    pub settings: &'a [Setting; 2],
    /// How it is to be made.
    pub options: &'a Options,
    /// Set when it is to end.
    pub stop: &'a AtomicBool,
    /// What a person is shown.
    pub progress: &'a Progress,
}

/// Runs a lab on both sides in turns, and hands over one run a side.
pub fn measure(subject: &Subject, scratch: &mut Scratch) -> anyhow::Result<[Run; 2]> {
    let Subject {
        options: Options { seed, budget, .. },
        stop,
        progress,
        ..
    } = *subject;
    let mut switch = Switch::new(
        subject.settings,
        subject.options.allow_system_changes,
        scratch,
    )?;
    let dir = scratch.subdir("turns")?;
    // A server that both sides load can have one of them at a time, and so can a setting of the whole system.
    let url = |setting: &Setting| {
        setting
            .params
            .get("url")
            .or(subject.common.get("url"))
            .is_some()
    };
    if subject.lab.takes_turns && !switch.is_needed() && !subject.settings.iter().all(url) {
        return stretch_by_stretch(subject, &dir);
    }
    let begun = Instant::now();
    let mut turns: [Vec<Run>; 2] = [Vec::new(), Vec::new()];
    let mut course = Interleaved::shuffled(2, *seed, extent(subject.options));
    while let Some(turn) = course.next_within(begun.elapsed(), stop.load(Ordering::Relaxed)) {
        if turn.first && is_in_vain(turn.round, &turns) {
            break;
        }
        let Turn {
            step: side, round, ..
        } = turn;
        let share = begun.elapsed().as_secs_f64() / budget.as_secs_f64();
        progress.show(
            &format!(
                "turn {} of {}, side {}",
                round + 1,
                subject.lab.name,
                NAMES[side]
            ),
            share,
        );
        switch.set(side).map_err(anyhow::Error::msg)?;
        let file = dir.join(format!("{round}-{side}.json"));
        turns[side].push(one_run(
            subject,
            side,
            time_of_turn(subject.options),
            &file,
            None,
        )?);
    }
    // The half of a pair that was stopped.
    let pairs = turns[0].len().min(turns[1].len());
    turns.iter_mut().for_each(|side| side.truncate(pairs));
    switch.restore(scratch).map_err(anyhow::Error::msg)?;
    Ok([merge(&turns[0]), merge(&turns[1])])
}

/// Whether a side has no figure after as many turns as an interval needs. Then there is nothing to compare, and more
/// turns would only repeat that.
fn is_in_vain(turns: usize, runs: &[Vec<Run>; 2]) -> bool {
    turns == LEAST_TURNS && runs.iter().any(|side| without_figures(side))
}

/// Whether no row of these runs has a figure.
pub fn without_figures(runs: &[Run]) -> bool {
    runs.iter()
        .all(|run| run.measurements.iter().all(|m| m.estimate.is_none()))
}

/// How many turns there are: all that there are to be at the least, and what fits into the time.
fn extent(options: &Options) -> Extent {
    Extent {
        least: options.least_turns,
        most: MOST_TURNS,
        budget: options.budget,
    }
}

/// What one side is given in one turn.
fn time_of_turn(options: &Options) -> Duration {
    options.budget / options.least_turns.max(USUAL_TURNS) as u32 / 2
}

/// One run a side, both at the same time, of which one at a time loads the machine.
fn stretch_by_stretch(subject: &Subject, dir: &Path) -> anyhow::Result<[Run; 2]> {
    let Subject {
        options,
        stop,
        progress,
        ..
    } = *subject;
    let Options { seed, budget, .. } = *options;
    let ((a, to_a), (b, to_b)) = (turns::ends()?, turns::ends()?);
    let begun = Instant::now();
    // Where one breaks off or comes to no figure, the other has nothing to be beside.
    let broken = AtomicBool::new(false);
    let results = std::thread::scope(|scope| {
        let started = [(0, to_a), (1, to_b)].map(|(side, input)| {
            let file = dir.join(format!("{side}.json"));
            let broken = &broken;
            scope.spawn(move || {
                let run = one_run(subject, side, budget / 2, &file, Some(input));
                let nothing = run
                    .as_ref()
                    .map_or(true, |run| without_figures(std::slice::from_ref(run)));
                broken.fetch_or(nothing, Ordering::Relaxed);
                run
            })
        });
        let stop = || stop.load(Ordering::Relaxed) || broken.load(Ordering::Relaxed);
        turns::give(
            &[a, b],
            &mut fastrand::Rng::with_seed(seed),
            stop,
            |n, side| {
                let share = begun.elapsed().as_secs_f64() / budget.as_secs_f64();
                progress.show(
                    &format!(
                        "stretch {} of {}, side {}",
                        n.div_ceil(2),
                        subject.lab.name,
                        NAMES[side]
                    ),
                    share.min(0.99),
                );
            },
        );
        started.map(|thread| {
            thread.join().unwrap_or_else(|_| {
                Err(anyhow::anyhow!("a run of {} ended early", subject.lab.name))
            })
        })
    });
    let [a, b] = results;
    let mut runs = [a?, b?];
    cut_to_pairs(&mut runs, &differing(subject.settings));
    Ok(runs)
}

/// Leaves of each row as many rounds as both sides have, so that the n-th of one side is beside the n-th of the other.
fn cut_to_pairs(runs: &mut [Run; 2], differing: &[String]) {
    let [a, b] = runs;
    let keys: Vec<&str> = differing.iter().map(String::as_str).collect();
    for row in &mut a.measurements {
        let same = |other: &&mut Measurement| {
            other.probe == row.probe && other.params.without(&keys) == row.params.without(&keys)
        };
        let Some(other) = b.measurements.iter_mut().find(same) else {
            continue;
        };
        let pairs = row.processes.len().min(other.processes.len());
        // What one side never had is told of that side.
        if pairs == 0 {
            continue;
        }
        for row in [row, other] {
            if row.processes.len() > pairs {
                row.processes.truncate(pairs);
                let values: Vec<f64> = row.processes.iter().filter_map(|p| p.value).collect();
                row.estimate = estimate::across_processes(&values);
            }
        }
    }
}

/// One run of this program with one side's setting, which takes turns with another where it has a socket for that.
fn one_run(
    subject: &Subject,
    side: usize,
    time: Duration,
    file: &Path,
    turns: Option<Stdio>,
) -> anyhow::Result<Run> {
    let Subject {
        lab,
        common,
        options,
        ..
    } = *subject;
    let (lab, setting) = (lab.name, &subject.settings[side]);
    let mut command = Command::new("/proc/self/exe");
    command.args([
        "run",
        lab,
        "--quiet",
        "--profile",
        options.profile.as_str(),
        "--budget",
        &time.as_secs_f64().to_string(),
    ]);
    command.arg("-o").arg(file);
    if turns.is_some() {
        // Both have their steps in the same order.
        command
            .args(["--seed", &options.seed.to_string()])
            .env(turns::VARIABLE, "stdin");
    }
    let mut secrets = Vec::new();
    for (key, value) in common.iter().chain(setting.params.iter()) {
        let word = format!("{key}={value}");
        if secret::cut(&word) == word {
            command.args(["--set", &word]);
        } else {
            secrets.push(word);
        }
    }
    if !secrets.is_empty() {
        // The words of a command are seen by all who list processes; its environment by its own user.
        command.env(plan::SECRET_SETTINGS, secrets.join("\n"));
    }
    if let Some(dir) = &setting.dir {
        command.arg("--set").arg(format!("dir={}", dir.display()));
    }
    setting
        .cpus
        .iter()
        .for_each(|list| _ = command.args(["--cpu", list]));
    setting
        .server_prefix
        .iter()
        .for_each(|words| _ = command.args(["--server-prefix", words]));
    if options.allow_system_changes {
        command.arg("--allow-system-changes");
    }
    command.envs(setting.env.iter().map(|(k, v)| (k, v)));
    if setting.thp == Some(Thp::Never) {
        task::no_huge_pages(&mut command);
    }
    // With turns it waits for the other as long as it works itself.
    let longest = Instant::now() + time * 6 + GRACE;
    let output = child::run_bounded_on(
        child::die_with_parent(&mut command),
        turns.unwrap_or_else(Stdio::null),
        longest,
    )
    .context("cannot start a run")?;
    let code = output.status.and_then(|s| s.code());
    if !matches!(code, Some(0 | 3)) {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said
            .lines()
            .last()
            .unwrap_or("it said nothing")
            .trim_start_matches("fingerpost: ")
            .to_owned();
        return if code == Some(2) {
            crate::exit::usage(last)
        } else {
            Err(anyhow::anyhow!("a run of {lab} ended early: {last}"))
        };
    }
    Ok(load::from_path(file)?)
}

/// The turns of a side as one run: each row's figures become its processes; budgets, paths and observations are the
/// turns' means.
fn merge(turns: &[Run]) -> Run {
    let Some(last) = turns.last() else {
        return Run::default();
    };
    let mut merged = last.clone();
    merged.measurements = last
        .measurements
        .iter()
        .map(|row| merge_row(row, turns))
        .collect();
    let Steps {
        budgets,
        paths,
        observations,
        ..
    } = Steps::of(turns);
    (merged.budgets, merged.paths, merged.observations) = (budgets, paths, observations);
    merged
}

fn merge_row(row: &Measurement, turns: &[Run]) -> Measurement {
    let same: Vec<&Measurement> = turns
        .iter()
        .filter_map(|run| run.measurements.iter().find(|m| m.same_row(row)))
        .collect();
    let processes: Vec<Process> = same
        .iter()
        .filter_map(|m| {
            let value = m.estimate?.value;
            let samples = m
                .processes
                .iter()
                .flat_map(|p| p.samples.iter().copied())
                .collect();
            Some(Process {
                value: Some(value),
                samples,
                batch: 1,
                ..Process::default()
            })
        })
        .collect();
    let values: Vec<f64> = processes.iter().filter_map(|p| p.value).collect();
    let samples: Vec<f64> = processes
        .iter()
        .flat_map(|p| p.samples.iter().copied())
        .collect();
    let worst = same.iter().find(|m| m.outcome != Outcome::Measured);
    Measurement {
        outcome: worst.map_or(row.outcome, |m| m.outcome),
        reason: worst.map_or(row.reason.clone(), |m| m.reason.clone()),
        estimate: estimate::across_processes(&values),
        percentiles: if samples.is_empty() {
            None
        } else {
            estimate::percentiles(&samples, row.better)
        },
        processes,
        ..row.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fingerpost_record::{Better, Estimate, Profile, Unit};

    #[test]
    fn fewest_turns_are_taken_whatever_the_time_more_where_they_fit() {
        let options = |budget, least_turns| Options {
            budget: Duration::from_secs(budget),
            least_turns,
            profile: Profile::Quick,
            threshold: 0.03,
            seed: 1,
            allow_system_changes: false,
        };
        let (short, long) = (options(60, LEAST_TURNS), options(240, 6));
        assert_eq!(
            [&short, &long].map(|of| time_of_turn(of).as_secs()),
            [6, 20]
        );
        let on = |turns, spent, of| extent(of).goes_on(turns, Duration::from_secs(spent));
        assert!(
            on(0, 0, &short) && on(2, 500, &short) && !on(3, 500, &short),
            "three, however long they take"
        );
        assert!(
            on(5, 500, &long) && !on(6, 240, &long) && on(6, 180, &long),
            "six, and a seventh within the time"
        );
    }

    fn turn(value: f64) -> Run {
        let mut row = fingerpost_record::fixture::row(
            "database.throughput",
            Params::new().with("clients", 5),
            Unit::PerSecond,
            Better::Higher,
        );
        row.estimate = Some(Estimate {
            value,
            low: value - 1.0,
            high: value + 1.0,
            confidence: 0.95,
        });
        row.processes = vec![Process {
            value: Some(value),
            samples: vec![value - 1.0, value + 1.0],
            ..Process::default()
        }];
        Run {
            measurements: vec![row],
            ..Run::default()
        }
    }

    #[test]
    fn a_side_without_a_figure_in_three_turns_makes_more_vain() {
        let none = || Run {
            measurements: vec![Measurement {
                estimate: None,
                ..turn(1.0).measurements.remove(0)
            }],
            ..Run::default()
        };
        let (some, without) = (
            vec![turn(1.0), none(), none()],
            vec![none(), none(), none()],
        );
        let is_vain =
            |a: &Vec<Run>, b: &Vec<Run>, turns| is_in_vain(turns, &[a.clone(), b.clone()]);
        assert!(
            is_vain(&without, &without, 3)
                && is_vain(&some, &without, 3)
                && is_vain(&without, &some, 3)
        );
        assert!(
            !is_vain(&some, &some, 3) && !is_vain(&some, &without, 2),
            "one figure, or too few turns to tell"
        );
    }

    #[test]
    fn each_turn_becomes_one_value_of_the_pair() {
        let merged = merge(&[turn(100.0), turn(104.0), turn(102.0)]);
        let row = &merged.measurements[0];
        assert_eq!(
            row.processes
                .iter()
                .filter_map(|p| p.value)
                .collect::<Vec<_>>(),
            [100.0, 104.0, 102.0]
        );
        assert_eq!(row.estimate.unwrap().value, 102.0);
        assert!(row.processes[0].samples.len() == 2);
        assert_eq!(merge(&[]), Run::default());
        let followed = fingerpost_record::fixture::followed::healthy();
        let twice = merge(&[followed.clone(), followed.clone()]);
        assert_eq!(
            twice.paths[0].followed,
            2 * followed.paths[0].followed,
            "the requests of all turns are kept together"
        );
    }

    #[test]
    fn rounds_of_one_side_are_cut_and_an_empty_side_takes_none() {
        let of = |values: &[f64]| merge(&values.iter().map(|v| turn(*v)).collect::<Vec<_>>());
        let cut = |a: &[f64], b: Run| {
            let mut runs = [of(a), b];
            cut_to_pairs(&mut runs, &[]);
            runs.map(|run| {
                (
                    run.measurements[0].processes.len(),
                    run.measurements[0].estimate.is_some(),
                )
            })
        };
        assert_eq!(
            cut(&[1.0, 2.0, 3.0], of(&[4.0, 5.0])),
            [(2, true), (2, true)]
        );
        let mut failed = turn(1.0);
        failed.measurements[0].processes.clear();
        failed.measurements[0].estimate = None;
        assert_eq!(cut(&[1.0, 2.0, 3.0], failed), [(3, true), (0, false)]);
    }

    #[test]
    fn a_turn_that_is_not_to_be_trusted_taints_the_row() {
        let mut bad = turn(50.0);
        bad.measurements[0].outcome = Outcome::Untrusted;
        bad.measurements[0].reason = Some("the client was the limit".into());
        let merged = merge(&[turn(100.0), bad, turn(102.0)]);
        assert_eq!(merged.measurements[0].outcome, Outcome::Untrusted);
        assert!(
            merged.measurements[0]
                .reason
                .as_deref()
                .unwrap()
                .contains("client")
        );
    }
}
