//! The archive: a directory of run files, one per run, named by its id.
