//! Names under which a record has what a load generator on a machine of its own saw (`fingerpost load`), and how a
//! record of the service that it loaded tells whose account it is.

use crate::host::Host;
use crate::text::counted;

/// The workload.
pub const WORKLOAD: &str = "load";
/// The observer: the load generator itself.
pub const CLIENT: &str = "client";
/// Transactions completed a second: queries, HTTP requests, committed transactions.
pub const THROUGHPUT: &str = "load.throughput";
/// Round trips on connections a second: a transaction is one or more of them.
pub const TURNS: &str = "load.turns";
/// How long a round trip took for the client, from before it sent until it had read the whole answer.
pub const TURN: &str = "load.turn";

const WHOSE: &str = "a load generator on ";
const CLOCK: &str = ", by its own clock";
const SERVER: &str = "; the server told it: ";

/// What a record of a service says of the account of a load that came from this machine: `server` is what the server
/// told the load generator of itself, if anything.
pub fn source(machine: &str, server: &str) -> String {
    let told = if server.is_empty() {
        String::new()
    } else {
        format!("{SERVER}{server}")
    };
    format!("{WHOSE}{machine}{CLOCK}{told}")
}

/// The machine that such an account came from, and what the server told; nothing where it is another account.
pub fn told(source: &str) -> Option<(&str, &str)> {
    let (machine, rest) = source.strip_prefix(WHOSE)?.split_once(CLOCK)?;
    Some((machine, rest.strip_prefix(SERVER).unwrap_or_default()))
}

/// A client's machine in words: its name, its processor, and how many CPUs it has for the load. Of a part of a run the
/// name alone counts.
pub fn machine(host: &Host) -> String {
    let name = host.hostname.split('[').next().unwrap_or_default();
    match (host.cpu.model.as_str(), host.cpu.count) {
        ("", _) | (_, 0) => name.to_owned(),
        (model, n) => format!("{name} ({model}, {})", counted(n, "CPU")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_tells_the_machine_and_the_server() {
        let mut host = Host {
            hostname: "client-1[mix=read]".into(),
            ..Host::default()
        };
        assert_eq!(machine(&host), "client-1");
        (host.cpu.model, host.cpu.count) = ("AMD EPYC".into(), 8);
        let machine = machine(&host);
        assert_eq!(machine, "client-1 (AMD EPYC, 8 CPUs)");
        for server in ["", "10.11.6-MariaDB, storage=innodb"] {
            assert_eq!(
                told(&source(&machine, server)),
                Some((machine.as_str(), server))
            );
        }
        assert_eq!(told("the load generator; 10.11.6-MariaDB"), None);
    }
}
