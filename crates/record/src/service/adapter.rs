//! What can be known of a service.

use crate::under_way::Session;

/// What is known of one service. A descriptor says what there is, and leaves the rest to [`UNKNOWN`].
pub struct Adapter {
    /// Its name in settings, in small letters: `postgresql`.
    pub name: &'static str,
    /// What its users call it: `PostgreSQL`.
    pub product: &'static str,
    /// The scheme of its addresses for `load`, where that can load it.
    pub loaded_as: Option<&'static str>,
    /// Ports that it usually listens at.
    pub ports: &'static [u16],
    /// Schemes of addresses that hold a user's name, which is worth keeping, and a password, which may hold anything.
    pub logins: &'static [&'static str],
    /// Programs that are given its password.
    pub clients: &'static [Client],
    /// What the title of one of its processes says of a session.
    pub session: fn(&str) -> Option<Session>,
    /// Beginnings of titles of processes whose connections ask for no answer.
    pub unasked: &'static [&'static str],
    /// Beginnings of functions that any wait of it passes through, which say nothing of what is waited for.
    pub waits: &'static [&'static str],
}

/// A program that is given a password on its command line.
pub struct Client {
    /// What its name begins with.
    pub program: &'static str,
    /// How it takes the password.
    pub password: Password,
}

/// How a program takes a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Password {
    /// Behind `-p`, in the same word.
    WithinP,
    /// The word behind one of these flags, which are named without their dashes.
    Behind(&'static [&'static str]),
}

/// A service of which nothing is known.
pub const UNKNOWN: Adapter = Adapter {
    name: "",
    product: "",
    loaded_as: None,
    ports: &[],
    logins: &[],
    clients: &[],
    session: |_| None,
    unasked: &[],
    waits: &[],
};
