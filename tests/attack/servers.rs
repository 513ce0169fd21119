//! The accounts of private servers, and the host's own servers beside ours.
