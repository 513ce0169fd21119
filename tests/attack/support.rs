//! What the attacks share.
