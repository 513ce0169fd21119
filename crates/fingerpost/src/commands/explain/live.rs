//! What a service's requests do lately, told while it is still watched.

use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use fingerpost_observe::Limits;
use fingerpost_observe::follow::Recorded;
use fingerpost_record::progress::{Event, Live, LivePart};
use fingerpost_record::{Paths, unit::significant};
use fingerpost_report::explain::service::lately;
use fingerpost_report::words::time;

use crate::progress::{self, Progress, Progressing};

/// How long following what came may take.
const FOLLOWING: Duration = Duration::from_secs(1);
/// Parts that a line names, and that a program is told.
const NAMED: usize = 3;
const TOLD: usize = 8;

/// Follows what comes, and tells it, until no more can come.
pub fn tell(latest: &Receiver<Recorded>, to: Progressing, progress: &Progress) {
    while let Ok(recorded) = latest.recv() {
        // What came while the one before was followed is older than the last.
        let recorded = latest.try_iter().last().unwrap_or(recorded);
        let now = Instant::now();
        let limits = |time| Limits {
            cpu: time,
            until: now + time,
        };
        let followed = recorded.follow_service(limits(FOLLOWING), limits(Duration::ZERO));
        let Some(live) = live(&followed.paths) else {
            continue;
        };
        match to {
            Progressing::Json => progress::tell(&Event::Live(live)),
            Progressing::Person => progress.say(&line(&live)),
            Progressing::None => {}
        }
    }
}

fn live(paths: &Paths) -> Option<Live> {
    let (sentence, parts) = lately(paths)?;
    let parts = parts
        .into_iter()
        .take(TOLD)
        .map(|p| LivePart {
            name: p.name,
            all: p.all,
            slow: p.slow,
        })
        .collect();
    let rate = paths.requests() / paths.seconds.max(1e-9);
    Some(Live {
        sentence,
        rate,
        p50: paths.latency.p50,
        p99: paths.latency.p99,
        requests: paths.followed,
        parts,
    })
}

fn line(live: &Live) -> String {
    let parts: Vec<String> = live
        .parts
        .iter()
        .take(NAMED)
        .map(|p| format!("{} {:.0} %", p.name, p.all * 100.0))
        .collect();
    format!(
        "{} requests/s, median {}, 99 % within {}: {}",
        significant(live.rate),
        time(live.p50),
        time(live.p99),
        parts.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use fingerpost_record::fixture::followed;

    use super::*;

    #[test]
    fn a_line_has_the_rate_the_latency_and_the_largest_parts() {
        let live = live(&followed::slow_locks().paths[0]).unwrap();
        let line = line(&live);
        assert!(
            line.contains("requests/s, median") && line.matches(" %").count() == 1 + NAMED,
            "{line}"
        );
        assert!(live.parts.len() <= TOLD && live.parts[0].all >= live.parts[1].all);
    }
}
