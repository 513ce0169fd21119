//! Run files and imports from elsewhere.
