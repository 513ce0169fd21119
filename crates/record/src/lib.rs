//! A run as data: what was measured on one host in one go, and the host it was measured on.
//!
//! One [`Run`] is one JSON file. Everything that Fingerpost prints after measuring (tables, comparisons, findings,
//! reports) is computed from such a file and from nothing else, so a run can be carried to another machine and judged
//! there.
//!
//! Run files come from elsewhere too. [`load::from_reader`] treats them as hostile: bounded in size, validated field by
//! field, refused with one sentence that says what is wrong and where.

pub mod archive;
pub mod bounds;
pub mod cause;
pub mod client;
pub mod component;
pub mod descriptor;
pub mod evidence;
pub mod experiment;
pub mod findings;
#[cfg(any(test, feature = "fixture"))]
#[allow(missing_docs)]
#[path = "../tests/fixture/mod.rs"]
pub mod fixture;
pub mod guard;
pub mod host;
pub mod layer;
pub mod lean;
pub mod load;
pub mod measurement;
pub mod name;
mod older;
pub mod open;
pub mod params;
pub mod paths;
pub mod place;
pub mod progress;
mod range;
pub mod reading;
pub mod run;
mod said;
pub mod secret;
pub mod service;
pub mod stacks;
pub mod suggest;
pub mod text;
pub mod under_way;
pub mod unit;
pub mod unstated;
mod valid;

pub use component::{Blocker, Component, Link, Side, Task, WaitClass};
pub use descriptor::{Descriptor, Exercises, Table};
pub use evidence::{Evidence, Metric, Quantity};
pub use experiment::{Answer, Asked, Change, Experiment, Measure, Pair};
pub use findings::{Budget, Finding, Layer, Observation, Part, Relation, Series, Status, StepName};
pub use host::Host;
pub use measurement::{
    Better, Estimate, Measurement, Outcome, Percentiles, Process, few_processes, kept_values,
    too_few_processes,
};
pub use params::{Param, Params, Who};
pub use paths::{Latency, Paths, WholeLook};
pub use reading::Readings;
pub use run::{Instrument, Profile, Run, SCHEMA, Tool};
pub use secret::Secret;
pub use unit::Unit;
