//! A private directory for one run, and the promise that nothing of the run outlives it.
//!
//! The owner holds a lock on a file in the directory for as long as it lives, so that a directory whose lock is free belongs to
//! a process that is gone, however it went. [`sweep`] undoes what such a directory's journal lists and removes it.

/// A private directory with its lock and journal.
pub struct Scratch {}
