//! What the person who waits is shown, on standard error; or the program that waits.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fingerpost_record::progress::Event;
use fingerpost_record::text::clean;
use fingerpost_record::{Measurement, secret};
use indicatif::{ProgressBar, ProgressStyle};

use crate::exit::say;

/// To whom progress is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Progressing {
    /// A bar on a terminal, a line at the beginning elsewhere
    #[default]
    Person,
    /// One JSON object a line, for a program
    Json,
    /// Nothing but warnings
    None,
}

impl Progressing {
    /// For a person, unless `--quiet`.
    pub fn unless(quiet: bool) -> Progressing {
        if quiet {
            Progressing::None
        } else {
            Progressing::Person
        }
    }
}

/// Progress as it is told.
pub struct Progress {
    way: Way,
    advance: Advance,
}

/// The way in which progress is told.
enum Way {
    /// On a terminal.
    Bar(ProgressBar),
    /// To a program.
    Lines,
    /// Sentences only.
    Plain,
}

/// The bar counts thousandths of the work.
const STEPS: u64 = 1000;

/// Work that goes on is not told to be further than this: a bar that stands at its end says that all is done.
const ALMOST: u64 = 990;

/// How far the work was told to be: never back, and not at its end before it has ended. Estimates of what is left may
/// grow.
#[derive(Debug, Default)]
struct Advance(AtomicU64);

impl Advance {
    /// The thousandths to tell for a share of the work, 0 to 1.
    fn to(&self, done: f64) -> u64 {
        let wanted = ((done.clamp(0.0, 1.0) * STEPS as f64) as u64).min(ALMOST);
        self.0.fetch_max(wanted, Ordering::Relaxed).max(wanted)
    }
}

/// The bar with the time that is left.
const RUNNING: &str = "{bar:30} {percent:>3} %  {eta:>4} left  {wide_msg}";
/// The bar of work that takes longer than was expected, or ends: there is nothing to estimate any more.
const ENDING: &str = "{bar:30} {percent:>3} %  {elapsed:>4} so far  {wide_msg}";

fn bar_style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// Writes an event's line. That nobody reads it is no reason to stop measuring.
pub fn tell(event: &Event) {
    let _ = writeln!(std::io::stderr(), "{}", event.line());
}

impl Progress {
    /// Progress for work of about this length.
    pub fn start(what: &str, expected: Duration, to: Progressing) -> Progress {
        let what = secret::cut(what);
        let way = match to {
            Progressing::None => Way::Plain,
            Progressing::Json => {
                tell(&Event::Started {
                    what: what.into_owned(),
                    seconds: expected.as_secs_f64(),
                });
                Way::Lines
            }
            Progressing::Person if !std::io::stderr().is_terminal() => {
                say(&format!("{what}, about {:.0} s", expected.as_secs_f64()));
                Way::Plain
            }
            Progressing::Person => {
                let bar = ProgressBar::new(STEPS);
                bar.set_style(bar_style(RUNNING));
                bar.set_message(clean(&what).into_owned());
                bar.enable_steady_tick(Duration::from_millis(500));
                Way::Bar(bar)
            }
        };
        Progress {
            way,
            advance: Advance::default(),
        }
    }

    /// Shows what is being done and the share done, 0 to 1.
    pub fn show(&self, doing: &str, done: f64) {
        let doing = secret::cut(doing);
        let steps = self.advance.to(done);
        match &self.way {
            Way::Bar(bar) => {
                if steps == ALMOST {
                    bar.set_style(bar_style(ENDING));
                }
                bar.set_position(steps);
                bar.set_message(clean(&doing).into_owned());
            }
            Way::Lines => tell(&Event::Progress {
                doing: doing.into_owned(),
                done: steps as f64 / STEPS as f64,
            }),
            Way::Plain => {}
        }
    }

    /// Tells a program what a row is so far. A person sees all rows at the end.
    pub fn row(&self, row: &Measurement) {
        if let Way::Lines = self.way {
            tell(&Event::Row(Box::new(row.without_samples())));
        }
    }

    /// Prints a sentence without tearing the bar. Warnings are printed when quiet too.
    pub fn say(&self, sentence: &str) {
        let sentence = secret::cut(sentence);
        match &self.way {
            Way::Bar(bar) => bar.suspend(|| say(&sentence)),
            Way::Lines => tell(&Event::Note {
                sentence: sentence.into_owned(),
            }),
            Way::Plain => say(&sentence),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Way::Bar(bar) = &self.way {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_as_done_stays_so_and_the_end_comes_last() {
        let advance = Advance::default();
        let told: Vec<u64> = [0.0, 0.3, 0.1, f64::NAN, 0.5, -1.0, 0.9999, 1.0, 7.0, 0.2]
            .map(|share| advance.to(share))
            .to_vec();
        assert_eq!(
            told,
            [0, 300, 300, 300, 500, 500, ALMOST, ALMOST, ALMOST, ALMOST]
        );
    }
}
