//! What the person who waits is shown, on standard error.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A progress bar on a terminal; in a pipe a line at the beginning and nothing else; nothing at all when quiet.
pub struct Progress {
    bar: Option<ProgressBar>,
}

/// The bar counts thousandths of the work.
const STEPS: u64 = 1000;

impl Progress {
    /// Progress for work of about this length.
    pub fn start(what: &str, expected: Duration, quiet: bool) -> Progress {
        if quiet {
            return Progress { bar: None };
        }
        if !std::io::stderr().is_terminal() {
            eprintln!("fingerpost: {what}, about {:.0} s", expected.as_secs_f64());
            return Progress { bar: None };
        }
        let bar = ProgressBar::new(STEPS);
        let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {eta:>4} left  {wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(500));
        Progress { bar: Some(bar) }
    }

    /// Shows what is being done and the share done, 0 to 1.
    pub fn show(&self, doing: &str, done: f64) {
        if let Some(bar) = &self.bar {
            bar.set_position((done.clamp(0.0, 1.0) * STEPS as f64) as u64);
            bar.set_message(doing.to_owned());
        }
    }

    /// Prints a sentence without tearing the bar. Warnings are printed when quiet too.
    pub fn say(&self, sentence: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("fingerpost: {sentence}")),
            None => eprintln!("fingerpost: {sentence}"),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
