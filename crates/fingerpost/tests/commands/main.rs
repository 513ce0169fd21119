//! The commands as a user runs them: what they print, write, refuse and leave behind. One program, so that its tests
//! that wait and those that compute run beside each other.

#[path = "../common/mod.rs"]
mod common;

mod ab;
mod compare;
mod doctor;
mod explain;
mod fleet;
mod killed;
mod labs;
mod launch;
mod load;
mod plausible;
mod probes_a;
mod probes_b;
mod prove;
mod run;
mod show;
mod shown;
mod site;
mod terminal;
mod web;
mod zerofill;
