//! MariaDB and MySQL.

use super::adapter::{Adapter, Client, Password, UNKNOWN};

/// MariaDB.
pub const MARIADB: Adapter = Adapter {
    name: "mariadb",
    product: "MariaDB",
    // Those of the server's code that wrap the C library's, for its instrumentation.
    waits: &["inline_mysql", "mysql_cond", "safe_cond", "psi_", "tpool::"],
    clients: &[Client {
        program: "mariadb",
        password: Password::WithinP,
    }],
    logins: &["mariadb"],
    ..UNKNOWN
};

/// MySQL, whose protocol and port are MariaDB's, too.
pub const MYSQL: Adapter = Adapter {
    name: "mysql",
    product: "MySQL",
    loaded_as: Some("mysql"),
    ports: &[3306],
    clients: &[
        Client {
            program: "mysql",
            password: Password::WithinP,
        },
        Client {
            program: "mycli",
            password: Password::WithinP,
        },
    ],
    logins: &["mysql"],
    ..UNKNOWN
};
