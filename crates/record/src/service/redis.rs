//! Redis.

use super::adapter::{Adapter, Client, Password, UNKNOWN};

/// Redis.
pub const REDIS: Adapter = Adapter {
    name: "redis",
    product: "Redis",
    loaded_as: Some("redis"),
    ports: &[6379],
    clients: &[Client {
        program: "redis-cli",
        password: Password::Behind(&["a", "pass"]),
    }],
    ..UNKNOWN
};
