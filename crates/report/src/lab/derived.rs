//! A figure that an analysis derives from a run's rows.

use std::borrow::Cow;

use fingerpost_record::descriptor::table::{self, Table};
use fingerpost_record::{Estimate, Params, Run, Unit};

/// Nanoseconds, as CSV calls them.
pub const NS: &str = Unit::Nanoseconds.as_str();
/// Bytes.
pub const BYTES: &str = Unit::Bytes.as_str();
/// A number of things.
pub const COUNT: &str = Unit::Count.as_str();
/// One figure by another.
pub const RATIO: &str = "ratio";

/// A parameter of a derived figure.
pub type Told = (Cow<'static, str>, String);

/// A derived figure.
#[derive(Clone, Debug)]
pub struct Derived {
    /// The title of the table that it stands in.
    pub table: String,
    /// What it is called: `flops.average`.
    pub name: Cow<'static, str>,
    /// What tells it from others of its name.
    pub params: Vec<Told>,
    /// Its unit.
    pub unit: &'static str,
    /// Its value.
    pub value: f64,
    /// Its interval, where there is one: low and high.
    pub interval: Option<[f64; 2]>,
    /// The interval's confidence, where that is known.
    pub confidence: Option<f64>,
}

/// Makes the figures of one table.
pub struct Of<'a>(pub &'a Table);

/// The table that a run's rows of this probe stand in.
pub fn table_of(run: &Run, probe: &str) -> Table {
    run.measurements
        .iter()
        .find(|m| m.probe == probe)
        .map_or_else(|| table::OTHER.clone(), |m| m.descriptor().table.clone())
}

impl Of<'_> {
    /// A figure without an interval.
    pub fn exact<K: Into<Cow<'static, str>>>(
        &self,
        name: impl Into<Cow<'static, str>>,
        params: impl IntoIterator<Item = (K, String)>,
        unit: &'static str,
        value: f64,
    ) -> Derived {
        let params = params
            .into_iter()
            .map(|(key, value)| (key.into(), value))
            .collect();
        let table = self.0.title.to_string();
        Derived {
            table,
            name: name.into(),
            params,
            unit,
            value,
            interval: None,
            confidence: None,
        }
    }

    /// A figure with its interval.
    pub fn estimated<K: Into<Cow<'static, str>>>(
        &self,
        name: impl Into<Cow<'static, str>>,
        params: impl IntoIterator<Item = (K, String)>,
        unit: &'static str,
        e: Estimate,
    ) -> Derived {
        let (interval, confidence) = (Some([e.low, e.high]), Some(e.confidence));
        Derived {
            interval,
            confidence,
            ..self.exact(name, params, unit, e.value)
        }
    }
}

/// Parameters of rows as those of a figure, with further ones behind them.
pub fn told<const N: usize>(params: &Params, more: [(&str, &dyn ToString); N]) -> Vec<Told> {
    let of_rows = params
        .iter()
        .map(|(key, value)| (key.to_owned().into(), value.to_string()));
    of_rows
        .chain(more.map(|(key, value)| (key.to_owned().into(), value.to_string())))
        .collect()
}
