//! Two records of a running service: how many requests came is its load, and no measure of how fast it is.
//!
//! A service that is asked less often did not get slower, and one that answers late may be asked less often for that: the latency is judged,
//! and the load is told beside it.

use fingerpost_record::Unit;

use crate::comparison::Row;
use crate::verdict::Verdict;

/// The workload under which a record has a service, and its load.
pub const WORKLOAD: &str = "service";
/// See [`WORKLOAD`].
pub const RATE: &str = "service.rate";
/// From this difference on the load is another one. Queueing makes latency grow faster than load.
const SAME_LOAD: f64 = 0.05;

/// Takes the rows of the load out of judging: they are the same, or the load differs. Tells that in a sentence where the sides have a service.
pub fn load(rows: &mut [Row]) -> Option<String> {
    let mut told = Vec::new();
    for row in rows.iter_mut().filter(|r| r.probe == RATE) {
        let (base, new) = (row.base.value, row.new.value);
        let change = new / base - 1.0;
        let (from, to) = (Unit::PerSecond.format(base), Unit::PerSecond.format(new));
        if change.abs() <= SAME_LOAD {
            row.verdict = Verdict::Same;
            row.note = Some("the load, which is the same on both sides".into());
            told.push(format!("The load was the same ({from} and {to})."));
        } else {
            row.verdict = Verdict::Unresolved;
            row.note = Some("the load: what clients asked, not how fast the service is".into());
            let way = if change > 0.0 { "higher" } else { "lower" };
            told.push(format!(
                "The load differed, too: {from} and {to}, {:.0} % {way}; what a request takes depends on it, so compare records of the same load where you can.",
                change.abs() * 100.0
            ));
        }
    }
    (!told.is_empty()).then(|| told.join(" "))
}

#[cfg(test)]
mod tests {
    use fingerpost_record::{Better, Estimate, Params};

    use super::*;

    fn row(base: f64, new: f64) -> Row {
        let estimate = |value: f64| Estimate { value, low: value, high: value, confidence: 0.95 };
        Row {
            probe: RATE.into(),
            params: Params::new().with("name", "shop"),
            unit: Unit::PerSecond,
            better: Better::Higher,
            base: estimate(base),
            new: estimate(new),
            ratio: None,
            verdict: Verdict::Slower,
            real: true,
            note: None,
            counters: Vec::new(),
        }
    }

    #[test]
    fn another_load_is_no_slower_service() {
        let mut rows = [row(1000.0, 700.0)];
        assert!(load(&mut rows).unwrap().contains("30 % lower"));
        assert_eq!(rows[0].verdict, Verdict::Unresolved);
        let mut rows = [row(1000.0, 990.0)];
        assert!(load(&mut rows).unwrap().contains("the same"));
        assert_eq!(rows[0].verdict, Verdict::Same);
        assert_eq!(load(&mut [Row { probe: "web.throughput".into(), ..row(1.0, 2.0) }]), None);
    }
}
