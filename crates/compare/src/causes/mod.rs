//! From the difference to its cause, which `fingerpost-diagnose` judges: what it is given of the rows.

pub(crate) mod probes;
pub(crate) mod workloads;
