//! What a measuring process says on standard error with `--progress json`: one JSON object a line.

use serde::{Deserialize, Serialize};

use crate::{Estimate, Measurement};

/// A line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Event {
    /// Measuring begins.
    Started {
        /// What is measured.
        what: String,
        /// How long it will take, in seconds, about.
        seconds: f64,
    },
    /// What is done now.
    Progress {
        /// What.
        doing: String,
        /// The share done, 0 to 1.
        done: f64,
    },
    /// A sentence for the person who waits.
    Note {
        /// The sentence.
        sentence: String,
    },
    /// The four timings of the zero-fill calculator after a round, in nanoseconds: 1p alloc, 1p touch, 2p alloc, 2p
    /// touch.
    Timings {
        /// How many rounds there were.
        round: usize,
        /// The timings.
        figures: Vec<Estimate>,
    },
    /// A row as far as it is measured, without its samples; the next one of the same row takes its place.
    Row(Box<Measurement>),
    /// What a service's requests did in the latest second.
    Live(Live),
    /// The run is kept.
    Kept {
        /// Its id.
        id: String,
    },
}

/// The budget of a service's requests lately.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Live {
    /// What they waited for most, in a sentence.
    pub sentence: String,
    /// Requests a second.
    pub rate: f64,
    /// Median of their latency in seconds.
    pub p50: f64,
    /// The latency that 99 in 100 do not exceed.
    pub p99: f64,
    /// Requests that this is made of.
    pub requests: u64,
    /// Parts of their time, the largest first.
    pub parts: Vec<LivePart>,
}

/// A part of the requests' time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LivePart {
    /// Its name.
    pub name: String,
    /// Its share of the time of all, 0 to 1.
    pub all: f64,
    /// Its share of the time of the slowest 1 %.
    pub slow: f64,
}

impl Event {
    /// The event as its line, without the line's end.
    pub fn line(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The event of a line; a line that is none is a note.
    pub fn of_line(line: &str) -> Event {
        serde_json::from_str(line).unwrap_or_else(|_| Event::Note {
            sentence: line.trim().trim_start_matches("fingerpost: ").to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::fixture;

    use super::*;

    #[test]
    fn a_line_is_read_back_and_a_stranger_is_a_note() {
        let event = Event::Progress {
            doing: "round 1: syscall.null".into(),
            done: 0.25,
        };
        assert_eq!(Event::of_line(&event.line()), event);
        assert_eq!(
            event.line(),
            r#"{"event":"progress","doing":"round 1: syscall.null","done":0.25}"#
        );
        let parts = vec![LivePart {
            name: "waiting for a CPU".into(),
            all: 0.5,
            slow: 0.9,
        }];
        let live = Event::Live(Live {
            sentence: "Requests wait.".into(),
            rate: 10.0,
            p50: 1e-3,
            p99: 1e-2,
            requests: 10,
            parts,
        });
        assert_eq!(Event::of_line(&live.line()), live);
        let row = Event::Row(Box::new(fixture::run().measurements[0].without_samples()));
        assert_eq!(Event::of_line(&row.line()), row);
        assert_eq!(
            Event::of_line("fingerpost: no such probe"),
            Event::Note {
                sentence: "no such probe".into()
            }
        );
    }
}
