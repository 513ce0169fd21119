//! compare
pub mod zerofill;
