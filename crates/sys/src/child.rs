//! Child processes that die with their parent.
