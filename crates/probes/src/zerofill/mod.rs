//! The zero-fill laboratory's probes: what memory costs to get, to touch for the first time, and to give back.
//!
//! | file | question |
//! | --- | --- |
//! | [`api`] | every way to get memory that this system has, behind one small interface |
//! | [`pages`] | what the others share: a row's pages, touching them, counting their faults |
//! | [`alloc`] | the article's benchmark: allocate and free, with and without touching, per way and number of pages |
//! | [`phase`] | the same taken apart with the clock: which part is allocating, faulting, freeing |
//! | [`prefault`] | what the article asked for: several pages per fault, and mapping at once |
//! | [`clear`] | zeroing alone, from user space |
//! | [`zeroing`] | zeroing alone, inside the kernel's faults, by the clock |
//! | [`profile`] | zeroing and faulting as the kernel's own samples show them |
//!
//! Base pages are measured as base pages: [`pages::base_pages_only`] switches transparent huge pages off for the
//! probe's process, and costs nothing in the loop, which advice per mapping would.

mod alloc;
mod api;
mod clear;
mod pages;
mod phase;
mod prefault;
mod profile;
mod zeroing;

use crate::probe::Probe;

/// Every probe of the laboratory.
pub static PROBES: &[&[Probe]] = &[
    alloc::PROBES,
    phase::PROBES,
    prefault::PROBES,
    clear::PROBES,
    zeroing::PROBES,
    profile::PROBES,
];
