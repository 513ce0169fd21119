//! The web page as a person and as an attacker use it: in a real browser, and by hand.

#[path = "../common/mod.rs"]
mod common;

mod browser;
mod journeys;
mod looks;
mod safety;
mod server;
mod services;
