//! What is said of one host of a sweep, and of a group of peers.

use serde::Serialize;

use crate::told::Told;

/// What a host is called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Beyond its peers, and again when measured again.
    Slow,
    /// Beyond its peers, and not measured again.
    Suspected,
    /// There is no record.
    Failed,
    /// Not begun, or interrupted.
    Left,
    /// Too few peers to say.
    #[default]
    Unresolved,
    /// Beyond its peers, and not when measured again.
    NotConfirmed,
    /// Among its peers.
    Ok,
}

/// How many times slower a host is in something.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Slower {
    /// In what: a row, a family, or all rows.
    pub what: String,
    /// How many times slower than the middle of the peers.
    pub ratio: f64,
    /// The lower end of its 95 % interval.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Slower {
    /// From logarithms: the effect, and the ends of its interval.
    pub(crate) fn by(what: String, logs: [f64; 3]) -> Slower {
        let [ratio, low, high] = logs.map(f64::exp);
        Slower {
            what,
            ratio,
            low,
            high,
        }
    }
}

/// A host of the sweep.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Host {
    /// The node.
    pub node: String,
    /// What it is called.
    pub standing: Standing,
    /// Why, in a sentence, where that needs one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The layer that makes it slow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<&'static str>,
    /// The cause, where one was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// What says so.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Told>,
    /// In what it is slower, strongest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub slower: Vec<Slower>,
    /// What measuring again said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub again: Option<Slower>,
}

/// A group of peers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PeerGroup {
    /// What they have in common.
    pub kind: String,
    /// How many they are.
    pub hosts: usize,
    /// Whether they are enough to accuse one of them.
    pub resolved: bool,
    /// Where they are two populations, a sentence each.
    pub populations: Vec<String>,
}

/// A host of which nothing but this is said.
pub(crate) fn plain(node: &str, standing: Standing) -> Host {
    Host {
        node: node.to_owned(),
        standing,
        ..Host::default()
    }
}
