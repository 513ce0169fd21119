//! Many hosts: lists of nodes, a sweep's files, and which of its hosts are slow.
//!
//! What nodes send is foreign text: names, lines and records are bounded and checked. Nothing here starts a process.

pub mod check;
mod description;
pub mod figures;
mod group;
pub mod heat;
pub mod html;
pub mod index;
pub mod judge;
pub mod kubernetes;
pub mod nodes;
mod odd;
#[cfg(feature = "parquet")]
pub mod parquet;
mod png;
pub mod rollout;
pub mod slim;
mod standing;
pub mod sweep;
pub mod table;
mod told;
pub mod wire;
