//! Changes to the system, and how they are undone: the journal, who reads it when a run was killed, and the directories
//! and files that are ours alone.
//!
//! What may be in it: how to undo something, when, by whom, and what makes sure that it may be relied on. What makes
//! the changes themselves, and why, is elsewhere: the kernel's calls in `sys`, experiments in `labs`, servers in
//! `workloads`.

pub mod files;
pub mod guardian;
pub mod journal;
pub mod loopdev;
pub mod owned;
pub mod scratch;
