//! The host's description and the preflight check.
