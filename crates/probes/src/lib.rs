//! One file per probe or family of probes, each ending in its descriptors; one registry lists them all.

pub mod child;
