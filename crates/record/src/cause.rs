//! The names of causes that findings have. What each is, `fingerpost-diagnose` says: a record holds names.

pub mod id;
