//! Times in which nothing completed, found from counts of completions in short slots, and what was seen meanwhile.

use crate::Stall;

/// A stall lasts at least this many median latencies …
const MEDIANS: f64 = 20.0;
/// … and at least this long: what is shorter is the ordinary turn of a scheduler.
const SHORTEST_S: f64 = 0.02;

/// What the watcher saw at one moment at which nothing completed.
#[derive(Clone, Debug, PartialEq)]
pub struct Glimpse {
    /// Seconds after the step's start.
    pub at_s: f64,
    /// How much later than asked for the watcher itself was woken, in seconds: it got no CPU.
    pub late_s: f64,
    /// CPU time that the host took away since the watcher looked before, in seconds.
    pub stolen_s: f64,
    /// The server's threads by state (`R`, `S`, `D` …); empty when they cannot be seen.
    pub server: Vec<(char, usize)>,
}

/// The stalls in counts of completions per slot.
///
/// `slots` covers the step from its start, each `slot_s` seconds; `median_s` is the median latency.
pub fn find(slots: &[u32], slot_s: f64, median_s: f64, clients: usize, glimpses: &[Glimpse]) -> Vec<Stall> {
    let shortest = (MEDIANS * median_s).max(SHORTEST_S);
    let mut stalls = Vec::new();
    let mut from = 0;
    for at in 0..=slots.len() {
        if at < slots.len() && slots[at] == 0 {
            continue;
        }
        let (start, length) = (from as f64 * slot_s, (at - from) as f64 * slot_s);
        if length >= shortest {
            let meanwhile: Vec<&Glimpse> =
                glimpses.iter().filter(|g| g.at_s >= start && g.at_s - g.late_s <= start + length).collect();
            stalls.push(Stall { at_s: start, length_s: length, why: reason(length, clients, &meanwhile) });
        }
        from = at + 1;
    }
    stalls
}

/// The most likely reason of those that can be told from here.
fn reason(length: f64, clients: usize, meanwhile: &[&Glimpse]) -> String {
    let stolen: f64 = meanwhile.iter().map(|g| g.stolen_s).sum();
    let late: f64 = meanwhile.iter().map(|g| g.late_s).sum();
    if stolen > length / 2.0 {
        return format!("the host took {:.0} ms of CPU time away from this machine", stolen * 1e3);
    }
    if late > length / 2.0 {
        return format!("the load generator itself got no CPU for {:.0} ms", late * 1e3);
    }
    let waiting = if clients == 1 {
        "the client was waiting for the server".to_owned()
    } else {
        format!("all {clients} clients were waiting for the server")
    };
    let Some(seen) = meanwhile.iter().rev().find(|g| !g.server.is_empty()) else { return waiting };
    let threads = |state: char| seen.server.iter().find(|(s, _)| *s == state).map_or(0, |(_, n)| *n);
    match (threads('D'), threads('R')) {
        (0, 0) => format!("{waiting}, and all of its threads were asleep: locks, timers or the network"),
        (0, running) => format!("{waiting}, which had {} running or ready to run", threads_in_words(running)),
        (disk, _) => format!("{waiting}, which had {} waiting for a disk", threads_in_words(disk)),
    }
}

fn threads_in_words(n: usize) -> String {
    if n == 1 { "1 thread".to_owned() } else { format!("{n} threads") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn glimpse(at_s: f64) -> Glimpse {
        Glimpse { at_s, late_s: 0.0, stolen_s: 0.0, server: Vec::new() }
    }

    #[test]
    fn a_gap_is_a_stall_when_it_is_long_for_this_server() {
        let mut slots = vec![5; 1000];
        slots[100..150].fill(0);
        slots[300..310].fill(0);
        let stalls = find(&slots, 0.001, 0.0002, 4, &[]);
        assert_eq!(stalls.len(), 1);
        assert!((stalls[0].at_s - 0.1).abs() < 1e-9 && (stalls[0].length_s - 0.05).abs() < 1e-9);
        assert_eq!(stalls[0].why, "all 4 clients were waiting for the server");
        // The same gap is nothing remarkable when the median is 10 ms.
        assert_eq!(find(&slots, 0.001, 0.01, 4, &[]), []);
    }

    #[test]
    fn gaps_at_either_end_count() {
        let mut slots = vec![1; 100];
        slots[..30].fill(0);
        slots[60..].fill(0);
        let at: Vec<(f64, f64)> = find(&slots, 0.001, 0.0, 1, &[]).iter().map(|s| (s.at_s, s.length_s)).collect();
        assert_eq!(at.len(), 2);
        assert_eq!(at[0].0, 0.0);
        assert!((at[1].1 - 0.04).abs() < 1e-9);
        assert_eq!(find(&[], 0.001, 0.0, 1, &[]), []);
    }

    #[test]
    fn the_reason_is_what_was_seen_meanwhile() {
        let slots = vec![0; 100];
        let why = |g: Glimpse| find(&slots, 0.001, 0.0, 2, &[g])[0].why.clone();
        assert!(why(Glimpse { stolen_s: 0.08, ..glimpse(0.05) }).contains("host took 80 ms"));
        assert!(why(Glimpse { late_s: 0.09, ..glimpse(0.1) }).contains("got no CPU for 90 ms"));
        assert!(
            why(Glimpse { server: vec![('D', 1), ('S', 3)], ..glimpse(0.05) }).contains("1 thread waiting for a disk")
        );
        assert!(why(Glimpse { server: vec![('R', 2)], ..glimpse(0.05) }).contains("2 threads running"));
        assert!(why(Glimpse { server: vec![('S', 9)], ..glimpse(0.05) }).contains("asleep"));
        // What was seen at another time says nothing.
        assert_eq!(why(Glimpse { stolen_s: 1.0, ..glimpse(7.0) }), "all 2 clients were waiting for the server");
    }
}
