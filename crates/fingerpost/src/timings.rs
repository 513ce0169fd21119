//! The four timings of the zero-fill calculator, taken here: in rounds until they are certain enough, or until stopped.

use std::collections::BTreeSet;
use std::io::{IsTerminal, Write};
use std::time::Duration;

use fingerpost_labs::zerofill::analysis::MAIN_API;
use fingerpost_labs::zerofill::analysis::solve::{self, Timings};
use fingerpost_measure::course::{Extent, Interleaved};
use fingerpost_measure::rounds::Executor;
use fingerpost_measure::{Slice, estimate};
use fingerpost_record::progress::Event;
use fingerpost_record::unit::significant;
use fingerpost_record::{Estimate, Params, suggest};
use fingerpost_undo::scratch::Scratch;

use crate::executor::ProcessExecutor;
use crate::exit::{say, usage};
use crate::plan::Row;
use crate::progress::{self, Progressing};
use crate::{conduct, cpus};

/// Rounds without `--loop`: three seconds.
const ROUNDS: usize = 16;

/// The ways to get memory whose four timings can be taken here, the articles' successor first.
pub fn apis() -> Vec<String> {
    let variants = fingerpost_probes::find("zerofill.touch")
        .map(|probe| (probe.variants)())
        .unwrap_or_default();
    let mut known = BTreeSet::from([MAIN_API]);
    let others = variants
        .iter()
        .filter_map(|p| p.text("api"))
        .filter(|api| known.insert(*api) && four(api).is_some());
    std::iter::once(MAIN_API)
        .chain(others)
        .map(str::to_owned)
        .collect()
}

/// The rows in the order of the fields, where all four can be taken.
fn four(api: &str) -> Option<Vec<Row>> {
    // Some ways are for much memory only: malloc takes little from elsewhere than much.
    let known = |probe: &fingerpost_probes::Probe, pages: i64| {
        (probe.variants)()
            .iter()
            .any(|p| p.text("api") == Some(api) && p.int("pages") == Some(pages))
    };
    let row = |(name, pages): (&str, i64)| {
        let probe = fingerpost_probes::find(name).filter(|p| known(p, pages))?;
        Some(Row::new(
            probe,
            Params::new().with("api", api).with("pages", pages),
        ))
    };
    [
        ("zerofill.alloc", 1),
        ("zerofill.touch", 1),
        ("zerofill.alloc", 2),
        ("zerofill.touch", 2),
    ]
    .into_iter()
    .map(row)
    .collect()
}

fn rows(api: &str) -> anyhow::Result<Vec<Row>> {
    let unknown = || {
        let ways = apis().join(", ");
        format!(
            "one and two pages cannot be had by a way called “{api}” here; there are {ways}{}",
            suggest::of_listed(api, &ways)
        )
    };
    four(api).map_or_else(|| usage(unknown()), Ok)
}

/// Takes the timings, in nanoseconds, or tells why there are none: for [`ROUNDS`] rounds, or with `repeat` until a
/// signal, and then shows each round's state on standard error.
pub fn take(
    api: &str,
    repeat: bool,
    progress: Progressing,
) -> anyhow::Result<Result<Timings, String>> {
    let rows = rows(api)?;
    let stop = conduct::stopped_by_signals()?;
    let scratch = Scratch::create()?;
    let dir = scratch.subdir("work")?;
    let cpus = cpus::choose(None)?;
    let mut executor =
        ProcessExecutor::new(&rows, &cpus, |_| Duration::from_millis(40), &dir, &stop);
    let mut show = Show::new(repeat, progress);
    let mut values = vec![Vec::new(); rows.len()];
    let mut figures = Vec::new();
    let rounds = if repeat { usize::MAX } else { ROUNDS };
    let mut course = Interleaved::shuffled(rows.len(), fastrand::u64(..), Extent::rounds(rounds));
    while let Some(turn) = course.next(executor.interrupted()) {
        match executor.slice(turn.step) {
            Slice::Samples(samples) => values[turn.step].extend(
                samples
                    .into_process(estimate::Center::good_tenth(
                        fingerpost_record::Better::Lower,
                    ))
                    .value,
            ),
            Slice::Skipped(_) | Slice::Failed(_) | Slice::Hung(_) if executor.interrupted() => {
                break;
            }
            Slice::Skipped(why) | Slice::Failed(why) | Slice::Hung(why) => return Ok(Err(why)),
        }
        if turn.last {
            figures = values
                .iter()
                .filter_map(|v| estimate::across_processes(v))
                .collect();
            show.round(turn.round + 1, &figures);
        }
    }
    show.end();
    Ok(four_of(&figures).ok_or_else(|| "stopped before the first round was over".into()))
}

fn four_of(figures: &[Estimate]) -> Option<Timings> {
    let [a, b, c, d] = figures else { return None };
    Some(Timings {
        alloc_1: a.value,
        touch_1: b.value,
        alloc_2: c.value,
        touch_2: d.value,
    })
}

/// Shows the figures settle: one line refreshed on a terminal, one line per round elsewhere, on standard error.
struct Show {
    on: bool,
    json: bool,
    terminal: bool,
}

impl Show {
    fn new(repeat: bool, progress: Progressing) -> Show {
        let json = progress == Progressing::Json;
        let terminal = std::io::stderr().is_terminal() && !json;
        if repeat && !json {
            say("each with its interval's half width, once it is known; Ctrl-C ends");
        }
        Show {
            on: repeat,
            json,
            terminal,
        }
    }

    fn round(&mut self, round: usize, figures: &[Estimate]) {
        if self.json {
            progress::tell(&Event::Timings {
                round,
                figures: figures.to_vec(),
            });
        }
        if !self.on || self.json {
            return;
        }
        let line = line(round, figures);
        // What cannot be shown is no reason to stop measuring.
        let mut err = std::io::stderr().lock();
        let _ = if self.terminal {
            write!(err, "\r\x1b[K{line}")
        } else {
            writeln!(err, "{line}")
        };
        let _ = err.flush();
    }

    fn end(&mut self) {
        if self.on && self.terminal {
            eprintln!();
        }
    }
}

/// A round's line: the four fields and the zero-filling that follows from them.
fn line(round: usize, figures: &[Estimate]) -> String {
    // The interval of very few processes is wider than anything that could be read from it.
    let half_width = |e: &Estimate| match e.relative_half_width() {
        w if w <= 1.0 => format!("±{:.1} %", w * 100.0),
        _ => "±?".to_owned(),
    };
    let field = |(name, e): (&&str, &Estimate)| {
        format!("{name} {} ns {}", significant(e.value), half_width(e))
    };
    let fields: Vec<String> = ["1p", "1p touched", "2p", "2p touched"]
        .iter()
        .zip(figures)
        .map(field)
        .collect();
    let zero = four_of(figures).and_then(|timings| solve::solve(&timings).ok());
    let zero = zero.map_or("–".to_owned(), |costs| {
        format!("{} ns", significant(costs.zerofill))
    });
    format!("round {round}: {}, zero-fill {zero}", fields.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_holds_the_four_fields_and_what_follows() {
        let e = |value: f64| Estimate {
            value,
            low: value * 0.99,
            high: value * 1.01,
            confidence: 0.95,
        };
        let text = line(3, &[e(11.2), e(24.0), e(11.5), e(33.6)]);
        assert_eq!(
            text,
            "round 3: 1p 11.20 ns ±1.0 %, 1p touched 24.00 ns ±1.0 %, 2p 11.50 ns ±1.0 %, 2p touched 33.60 ns ±1.0 %, \
             zero-fill 6.188 ns"
        );
        let wide = Estimate {
            value: 100.0,
            low: -28_000.0,
            high: 28_000.0,
            confidence: 0.95,
        };
        assert!(
            line(1, &[wide]).starts_with("round 1: 1p 100.0 ns ±?"),
            "{}",
            line(1, &[wide])
        );
        assert!(line(1, &[]).contains("zero-fill –"));
    }

    #[test]
    fn ways_with_rows_for_one_and_two_pages_can_be_timed() {
        assert_eq!(rows("mmap").unwrap().len(), 4);
        assert!(rows("nosuch").err().unwrap().to_string().contains("nosuch"));
        // It takes 256 pages at least, so its four timings cannot be.
        assert!(
            rows("malloc_large").is_err()
                && !apis().iter().any(|api| api == "malloc_large")
                && apis().len() > 2
        );
    }
}
