//! A structured web site, and everything that can read a page of it: files in several ways, object databases in several
//! kinds.
//!
//! A contestant is measured in a process of its own ([`reader`]): a database's cache, its map and its heap are then
//! nobody else's, as Frontier's were, and closing it leaves nothing behind that could warm the next.

pub mod access;
pub mod making;
pub mod reader;
pub mod served;
pub mod tree;

pub use access::{Access, Contestant};
pub use tree::{Page, Plan};
