//! temporary
pub mod connection;
pub mod content;
pub mod errors;
pub mod generator;
pub mod http;
pub mod kernel;
pub mod protocol;
pub mod request;
pub mod stall;
pub mod static_server;
pub mod tally;
