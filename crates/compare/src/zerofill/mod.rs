//! The zero-fill laboratory's arithmetic, apart from any measuring.

pub mod solve;
