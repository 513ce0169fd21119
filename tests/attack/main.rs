//! Attacks on the binary, as another user of the machine or the author of a hostile file would make them.
//!
//! Each finding of an attack is a test here that failed on the code of its day. Tests that need a second user run as
//! root only; with `CI` set, a missing piece is a failure. SECURITY.md says what is promised against whom. Tests start
//! in the order of their names: `accounts`, which take longest, first, so that none is left alone at the end.

mod accounts;
mod completion;
mod databases;
mod environment;
mod files;
mod limits;
mod looks;
mod memory;
mod mutate;
mod others;
mod page;
mod records;
mod secrets;
mod settings;
mod spoofed;
mod support;
mod text;
mod undoing;
mod usage;
