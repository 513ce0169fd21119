//! Other users of the machine: journals, locks, links and directories that they prepared.
