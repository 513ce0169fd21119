//! What the observers of one step counted and measured, by name.

use std::collections::BTreeMap;

use fingerpost_record::Observation;

/// All totals of one step by name. Observers' names do not clash.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Totals(pub BTreeMap<String, f64>);

impl Totals {
    /// The totals of all observers of one step. Readings that are not numbers are left out.
    pub fn of<'a>(observations: impl IntoIterator<Item = &'a Observation>) -> Totals {
        let all = observations.into_iter().flat_map(|o| &o.totals).filter(|(_, v)| v.is_finite());
        Totals(all.map(|(k, v)| (k.clone(), *v)).collect())
    }

    /// A total; 0 where no observer had it.
    pub fn get(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or(0.0)
    }

    /// A total where an observer had it.
    pub fn find(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// The totals between a prefix and a suffix: what `server.call.` and `.count` hold between them, with the value.
    pub fn between<'a>(&'a self, prefix: &'a str, suffix: &'a str) -> impl Iterator<Item = (&'a str, f64)> {
        self.0.iter().filter_map(move |(k, v)| Some((k.strip_prefix(prefix)?.strip_suffix(suffix)?, *v)))
    }
}
