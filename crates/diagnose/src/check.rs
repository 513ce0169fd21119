//! The check that can fail: followed requests beside the load generator's own account of the same seconds.

use fingerpost_record::Paths;
use serde::Serialize;

/// How far the number of followed requests may be from the load generator's.
pub const COUNT_AGREES: f64 = 0.01;
/// How far their percentiles may be from it.
pub const LATENCY_AGREES: f64 = 0.05;

/// By how much the followed requests differ from the load generator's account: 0.02 is 2 % more.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// Their number.
    pub count: f64,
    /// Their median.
    pub p50: f64,
    /// Their 99th percentile.
    pub p99: f64,
    /// What is off by more than it may be, a sentence each.
    pub warnings: Vec<String>,
}

/// The check; nothing where the load generator gave no account.
pub fn check(paths: &Paths) -> Option<Check> {
    let told = paths.generator.filter(|g| g.count > 0)?;
    let seen = &paths.latency;
    let off = |seen: f64, told: f64| if told > 0.0 { seen / told - 1.0 } else { 0.0 };
    let (count, p50, p99) = (
        off(seen.count as f64, told.count as f64),
        off(seen.p50, told.p50),
        off(seen.p99, told.p99),
    );
    let warning = |what: &str, off: f64, may: f64| {
        (off.abs() > may).then(|| {
            let way = if off > 0.0 { "above" } else { "below" };
            let (off, may) = (off.abs() * 100.0, may * 100.0);
            format!(
                "{what} of the followed requests is {off:.1} % {way} the load generator's, more than the {may:.0} % \
                 that it may be: doubt this budget"
            )
        })
    };
    let warnings = [
        warning("the number", count, COUNT_AGREES),
        warning("the median latency", p50, LATENCY_AGREES),
        warning("the 99th percentile of the latency", p99, LATENCY_AGREES),
    ];
    Some(Check {
        count,
        p50,
        p99,
        warnings: warnings.into_iter().flatten().collect(),
    })
}

#[cfg(test)]
mod tests {
    use fingerpost_record::fixture::followed;

    use super::*;

    #[test]
    fn what_is_off_is_said_and_what_agrees_is_not() {
        let mut paths = followed::healthy().paths.remove(0);
        let found = check(&paths).unwrap();
        assert_eq!(found.warnings, [] as [String; 0]);
        assert!(found.count < 0.0 && found.count > -COUNT_AGREES);
        paths.latency.count /= 2;
        paths.latency.p99 *= 1.2;
        let found = check(&paths).unwrap();
        assert_eq!(found.warnings.len(), 2, "{found:?}");
        assert!(found.warnings[0].contains("number") && found.warnings[0].contains("below"));
        paths.generator = None;
        assert_eq!(check(&paths), None);
    }
}
