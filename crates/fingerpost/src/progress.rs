//! What the person who waits is shown, on standard error; or the program that waits.

use std::io::{IsTerminal, Write};
use std::time::Duration;

use fingerpost_page::Event;
use fingerpost_record::secret;
use fingerpost_record::text::clean;
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
        if quiet { Progressing::None } else { Progressing::Person }
    }
}

/// The way in which progress is told.
pub enum Progress {
    /// On a terminal.
    Bar(ProgressBar),
    /// To a program.
    Lines,
    /// Sentences only.
    Plain,
}

/// The bar counts thousandths of the work.
const STEPS: u64 = 1000;

/// Writes an event's line. That nobody reads it is no reason to stop measuring.
pub fn tell(event: &Event) {
    let _ = writeln!(std::io::stderr(), "{}", event.line());
}

impl Progress {
    /// Progress for work of about this length.
    pub fn start(what: &str, expected: Duration, to: Progressing) -> Progress {
        let what = secret::cut(what);
        match to {
            Progressing::None => Progress::Plain,
            Progressing::Json => {
                tell(&Event::Started { what: what.into_owned(), seconds: expected.as_secs_f64() });
                Progress::Lines
            }
            Progressing::Person if !std::io::stderr().is_terminal() => {
                say(&format!("{what}, about {:.0} s", expected.as_secs_f64()));
                Progress::Plain
            }
            Progressing::Person => {
                let bar = ProgressBar::new(STEPS);
                let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {eta:>4} left  {wide_msg}");
                bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
                bar.set_message(clean(&what).into_owned());
                bar.enable_steady_tick(Duration::from_millis(500));
                Progress::Bar(bar)
            }
        }
    }

    /// Shows what is being done and the share done, 0 to 1.
    pub fn show(&self, doing: &str, done: f64) {
        let doing = secret::cut(doing);
        match self {
            Progress::Bar(bar) => {
                bar.set_position((done.clamp(0.0, 1.0) * STEPS as f64) as u64);
                bar.set_message(clean(&doing).into_owned());
            }
            Progress::Lines => tell(&Event::Progress { doing: doing.into_owned(), done: done.clamp(0.0, 1.0) }),
            Progress::Plain => {}
        }
    }

    /// Prints a sentence without tearing the bar. Warnings are printed when quiet too.
    pub fn say(&self, sentence: &str) {
        let sentence = secret::cut(sentence);
        match self {
            Progress::Bar(bar) => bar.suspend(|| say(&sentence)),
            Progress::Lines => tell(&Event::Note { sentence: sentence.into_owned() }),
            Progress::Plain => say(&sentence),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Progress::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}
