//! Names for what can go wrong with a connection: the kinds that a report counts.

use rustix::io::Errno;

/// No local port is left for the server's address.
pub const NO_PORT: &str = "no free local port";
/// The server sent more than the answer that was asked for.
pub const TRAILING: &str = "data after the answer";
/// The window was over and the answer had still not come.
pub const UNANSWERED: &str = "no answer by the end of the step";
/// The window was over and no connection had become free for a request that was due.
pub const UNSENT: &str = "no free connection by the end of the step";

/// The kind of a failed system call on a socket, in the words of a report.
pub fn kind(error: Errno) -> String {
    match error {
        Errno::CONNREFUSED => "connection refused".to_owned(),
        Errno::CONNRESET | Errno::PIPE => "connection reset".to_owned(),
        Errno::TIMEDOUT => "connection timed out".to_owned(),
        Errno::ADDRNOTAVAIL | Errno::ADDRINUSE => NO_PORT.to_owned(),
        Errno::MFILE => "no free descriptor in this process".to_owned(),
        Errno::NFILE => "no free descriptor on this host".to_owned(),
        Errno::NOBUFS | Errno::NOMEM => "no memory for sockets".to_owned(),
        Errno::HOSTUNREACH | Errno::NETUNREACH => "address unreachable".to_owned(),
        other => std::io::Error::from(other).to_string(),
    }
}

/// Whether an error kind is a want of the client's own resources rather than the server's doing.
pub fn is_clients_own(kind: &str) -> bool {
    kind == NO_PORT || kind.starts_with("no free descriptor") || kind.starts_with("no memory")
}
