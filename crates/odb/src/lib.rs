//! An object database as Frontier had one: tables that hold cells and further tables, addressed by path, in one file.
//!
//! Three embedded engines keep it: LMDB, SQLite and redb, each with keys of two kinds. With *nested* keys a look-up
//! walks from table to table, one key at a time, as Frontier's did. With *flat* keys the whole path is the key, and one
//! look-up finds it.
//!
//! [`Database`] is an open file. [`Reader`]s take one read transaction per request. [`Database::write`] is one
//! transaction: all of it is on disk when it returns, or nothing of it ever was.

mod beside;
mod database;
mod ending;
mod engine;
mod error;
mod flat;
mod lmdb;
mod loaded;
mod making;
mod names;
mod nested;
mod owner;
mod path;
pub mod percent;
mod redb;
mod room;
mod sqlite;
pub mod transfer;
mod value;
mod verify;
mod walk;

pub use database::Database;
pub use ending::{kind_of, media_type};
pub use engine::{Engine, Keys, Reader, Store, Writer};
pub use error::Error;
pub use owner::{Standing, standing};
pub use path::{MAX_DEPTH, MAX_NAME, MAX_PATH};
pub use value::{Cell, Entry, Kind, Listing, Part};
pub use verify::Verified;

/// What this crate's functions give.
pub type Result<T> = std::result::Result<T, Error>;
