//! MongoDB.

use super::adapter::{Adapter, Client, Password, UNKNOWN};

/// Where its programs take the password.
const PASSWORD: Password = Password::Behind(&["p", "password"]);

/// MongoDB.
pub const MONGODB: Adapter = Adapter {
    name: "mongodb",
    product: "MongoDB",
    ports: &[27017],
    logins: &["mongodb", "mongodb+srv"],
    // `mongosh`, `mongodump` and their like.
    clients: &[Client {
        program: "mongo",
        password: PASSWORD,
    }],
    waits: &["mongo::Mutex", "mongo::latch_detail", "mongo::stdx"],
    ..UNKNOWN
};

#[cfg(test)]
mod tests {
    use crate::{secret, service};

    #[test]
    fn its_passwords_are_hidden_and_its_own_waits_say_nothing() {
        for (said, kept) in [
            (
                "mongosh -u bob -p hunter2 shop",
                "mongosh -u bob -p *** shop",
            ),
            (
                "mongodb+srv://bob:hun@ter2@h/shop",
                "mongodb+srv://bob:***@h/shop",
            ),
        ] {
            assert_eq!(secret::cut(said), kept);
        }
        assert!(service::is_of_any_wait("mongo::Mutex::lock()"));
        assert!(!service::is_of_any_wait("mongo::LockManager::lock"));
        assert_eq!(service::product("mongodb"), Some("MongoDB"));
        assert_eq!(service::scheme_at(27017), None, "load cannot load it");
    }
}
