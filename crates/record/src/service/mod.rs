//! What is known of the services that people run: one [`Adapter`] a service, each in a file of its own, listed in
//! `REGISTRY`. What watches, names, hides or tells something of a service asks here, and knows none by itself.
//!
//! Nothing here decides where time goes: a service that nobody describes is followed as well, with fewer names.

mod adapter;
mod mongodb;
mod mysql;
mod postgresql;
mod redis;
mod web;

use crate::under_way::Session;

pub use adapter::{Adapter, Client, Password, UNKNOWN};

/// Every service that is described. To add one: write its file, add a line here.
static REGISTRY: &[&Adapter] = &[
    &mysql::MARIADB,
    &mysql::MYSQL,
    &postgresql::POSTGRESQL,
    &redis::REDIS,
    &mongodb::MONGODB,
    &web::NGINX,
    &web::APACHE,
];

/// All that are described.
pub fn all() -> impl Iterator<Item = &'static Adapter> {
    REGISTRY.iter().copied()
}

/// What users call a service that settings name so.
pub fn product(name: &str) -> Option<&'static str> {
    all().find(|a| a.name == name).map(|a| a.product)
}

/// The scheme of addresses of what usually listens at a port, where `load` can load it.
pub fn scheme_at(port: u16) -> Option<&'static str> {
    all().find(|a| a.ports.contains(&port))?.loaded_as
}

/// The schemes of addresses that `load` can load, each once.
pub fn schemes() -> Vec<&'static str> {
    let mut schemes: Vec<&str> = all().filter_map(|a| a.loaded_as).collect();
    let mut seen = std::collections::BTreeSet::new();
    schemes.retain(|scheme| seen.insert(*scheme));
    schemes
}

/// Whether addresses of this scheme hold a user's name and a password.
pub fn has_login(scheme: &str) -> bool {
    all()
        .flat_map(|a| a.logins)
        .any(|known| scheme.eq_ignore_ascii_case(known))
}

/// How a program of this name takes a password, where it is a service's client.
pub fn password_of(program: &str) -> Option<Password> {
    all()
        .flat_map(|a| a.clients)
        .find(|client| program.starts_with(client.program))
        .map(|client| client.password)
}

/// What the title of a process says of its session.
pub fn session(title: &str) -> Option<Session> {
    all().find_map(|a| (a.session)(title))
}

/// Whether the connections of a process with this title ask for no answer.
pub fn is_unasked(title: &str) -> bool {
    all()
        .flat_map(|a| a.unasked)
        .any(|begin| title.starts_with(begin))
}

/// Whether any wait of some service passes through this function, so that it says nothing of what is waited for.
pub fn is_of_any_wait(function: &str) -> bool {
    all()
        .flat_map(|a| a.waits)
        .any(|begin| function.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_service_is_described_once_and_has_its_ports_alone() {
        let (mut names, mut ports) = (BTreeSet::new(), BTreeSet::new());
        for adapter in all() {
            assert!(names.insert(adapter.name), "{} twice", adapter.name);
            assert!(!adapter.product.is_empty(), "{}", adapter.name);
            let small = |text: &str| text == text.to_lowercase() && !text.is_empty();
            assert!(small(adapter.name));
            for port in adapter.ports {
                assert!(ports.insert(port), "{port} twice");
            }
            let lists = [adapter.logins, adapter.unasked, adapter.waits];
            assert!(lists.concat().iter().all(|text| !text.is_empty()));
        }
    }

    #[test]
    fn a_service_is_known_by_name_port_title_and_function() {
        assert_eq!(product("mariadb"), Some("MariaDB"));
        assert_eq!(product("oracle"), None);
        assert_eq!(scheme_at(5432), Some("postgres"));
        assert_eq!((scheme_at(8080), scheme_at(22)), (Some("http"), None));
        assert_eq!(schemes(), ["mysql", "postgres", "redis", "http"]);
        assert!(has_login("PostgreSQL") && !has_login("http"));
        assert_eq!(password_of("mysqldump"), Some(Password::WithinP));
        assert_eq!(password_of("psql"), None);
        assert!(is_unasked(
            "postgres: walsender repl 10.0.0.2(5000) streaming"
        ));
        assert!(!is_unasked("postgres: bob shop [local] idle"));
        assert!(is_of_any_wait("LWLockAcquire") && !is_of_any_wait("heap_update"));
        assert!(session("nginx: worker process").is_none());
    }
}
