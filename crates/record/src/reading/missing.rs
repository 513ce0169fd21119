//! Readings that are not known, and why.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why an observer has no such reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Absence {
    /// The observer was not there.
    NoObserver,
    /// It was, and could not see it.
    CouldNotSee,
    /// It needs tracepoints, which it did not have.
    NeedsTracepoints,
    /// The kernel, or that version, does not tell it.
    NotTold,
}

/// One observer without a reading.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Absent {
    /// The side that it observed, where there are two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<String>,
    /// The observer that would have it.
    pub observer: String,
    /// Why it has not.
    pub why: Absence,
    /// How it saw, or what hindered it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// A reading that is not known, or that cannot be compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Missing {
    /// Its name.
    pub reading: String,
    /// Who has it not. Nobody where two sides have it in different ways.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub of: Vec<Absent>,
    /// Whether two sides would have to have it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub compared: bool,
}

impl Missing {
    /// Strings of it that a hostile record chose.
    pub(crate) fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        std::iter::once(&mut self.reading).chain(self.of.iter_mut().flat_map(|absent| {
            [
                Some(&mut absent.observer),
                absent.side.as_mut(),
                absent.source.as_mut(),
            ]
            .into_iter()
            .flatten()
        }))
    }
}
