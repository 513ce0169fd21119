//! Writes the kernel's events to a file, for tests and for `bench/follow`: `record FILE [SECONDS] [WINDOW_MS]`. Needs root.

use std::fs::File;
use std::io::BufWriter;
use std::time::{Duration, Instant};

use fingerpost_observe::follow::source;
use fingerpost_observe::follow::source::recorded::Writer;

/// Events of one window: 24 MB.
const MOST_EVENTS: usize = 500_000;

fn main() {
    if let Err(sentence) = record() {
        eprintln!("{sentence}");
        std::process::exit(2);
    }
}

fn record() -> Result<(), String> {
    let mut args = std::env::args().skip(1);
    let file = args.next().ok_or("usage: record FILE [SECONDS] [WINDOW_MS]")?;
    let mut number = |default: u64| args.next().map_or(Ok(default), |a| a.parse().map_err(|_| format!("{a} is not a whole number")));
    let (seconds, window_ms) = (number(1)?, number(1000)?);
    let mut events = source::open(MOST_EVENTS)?;
    eprintln!("{}; {:.0} ns an event", events.describe(), events.event_cost() * 1e9);
    let out = File::create_new(&file).map_err(|e| format!("{file} cannot be made: {e}"))?;
    let failed = |e: std::io::Error| format!("{file} cannot be written: {e}");
    let mut writer = Writer::new(BufWriter::new(out)).map_err(failed)?;
    let end = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < end {
        let mut wait = |time| {
            std::thread::sleep(time);
            false
        };
        let window = events.window(Duration::from_millis(window_ms), &mut wait).map_err(|e| format!("the events cannot be read: {e}"))?;
        let Some(window) = window else { break };
        eprintln!("{} events, {} lost, {:.3} s", window.events.len(), window.lost, (window.end - window.start) as f64 * 1e-9);
        writer.window(&window).map_err(failed)?;
    }
    writer.finish().and_then(|out| out.into_inner().map_err(std::io::IntoInnerError::into_error)).map_err(failed)?;
    Ok(())
}
