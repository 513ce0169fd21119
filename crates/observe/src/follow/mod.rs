//! Requests followed through the kernel, one by one: events in, paths out. Nothing is judged here, and nothing is scaled or fitted.
//!
//! [`event`] is the vocabulary; a [`source::Source`] has the kernel's events in windows.

pub mod event;
pub mod source;
