//! Numbers for sockets that the kernel puts at the same address one after the other.

use foldhash::HashMap;

use super::{ADDRESS, SYN_RECEIVED, SYN_SENT};
use crate::follow::event::{Event, What};

/// Tells sockets apart that the kernel puts at the same address one after the other, as it does at once with
/// connections that last for one request: the address keeps its lower 48 bits (the upper ones are the same for all),
/// and a count of its sockets takes the others. A socket is another one where its making is seen, and where its ports
/// are others than before: what is made between windows nobody sees.
#[derive(Clone, Debug, Default)]
pub struct Generations(HashMap<u64, Generation>);

#[derive(Clone, Copy, Debug, Default)]
struct Generation {
    count: u16,
    ports: Option<(u16, u16)>,
}

impl Generations {
    /// Gives every socket in a window a number of its own, in place. Windows must come in the order of time.
    pub fn number(&mut self, events: &mut [Event]) {
        self.begin(events);
        for e in events {
            match &mut e.what {
                What::State { socket, state, .. } => {
                    if matches!(*state, SYN_SENT | SYN_RECEIVED) {
                        self.next(*socket);
                    }
                    *socket = self.of(*socket);
                }
                What::Ports {
                    socket,
                    local,
                    remote,
                    ..
                } => {
                    self.with_ports(*socket, (*local, *remote));
                    *socket = self.of(*socket);
                }
                What::Sent { socket, .. }
                | What::Received { socket, .. }
                | What::Arrived { socket } => *socket = self.of(*socket),
                _ => {}
            }
        }
    }

    /// A socket that was there when the window began is the same until another one is made at its address: its ports,
    /// of which the window tells when something arrives, hold from the beginning.
    fn begin(&mut self, events: &[Event]) {
        let mut first: HashMap<u64, Option<(u16, u16)>> = HashMap::default();
        for e in events {
            match e.what {
                What::State {
                    socket,
                    state: SYN_SENT | SYN_RECEIVED,
                    ..
                } => _ = first.entry(socket).or_insert(None),
                What::Ports {
                    socket,
                    local,
                    remote,
                    ..
                } => _ = first.entry(socket).or_insert(Some((local, remote))),
                _ => {}
            }
        }
        first.into_iter().for_each(|(socket, ports)| {
            ports
                .into_iter()
                .for_each(|ports| self.with_ports(socket, ports))
        });
    }

    fn next(&mut self, address: u64) {
        let known = self.0.entry(address & ADDRESS).or_default();
        *known = Generation {
            count: known.count.wrapping_add(1),
            ports: None,
        };
    }

    fn with_ports(&mut self, address: u64, ports: (u16, u16)) {
        if self
            .0
            .get(&(address & ADDRESS))
            .is_some_and(|known| known.ports.is_some_and(|before| before != ports))
        {
            self.next(address);
        }
        self.0.entry(address & ADDRESS).or_default().ports = Some(ports);
    }

    fn of(&self, address: u64) -> u64 {
        let address = address & ADDRESS;
        address | u64::from(self.0.get(&address).map_or(0, |known| known.count)) << 48
    }
}
