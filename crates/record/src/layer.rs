//! The layers of a system.

use std::fmt;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The layers that a finding or a part of a budget names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// The server's or program's own code and locks.
    Application,
    /// System-call entry and the kernel's own work.
    Kernel,
    /// Waiting for a CPU, and who decides about it.
    Scheduler,
    /// The CPU itself: speed, mitigations.
    Cpu,
    /// Memory, faults, paging, page size.
    Memory,
    /// Block devices and file systems.
    Storage,
    /// Sockets and what is between them.
    Network,
    /// The load generator.
    Client,
    /// The host under a guest.
    Host,
}

impl Layer {
    /// The layer's name as the record writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Layer::Application => "application",
            Layer::Kernel => "kernel",
            Layer::Scheduler => "scheduler",
            Layer::Cpu => "cpu",
            Layer::Memory => "memory",
            Layer::Storage => "storage",
            Layer::Network => "network",
            Layer::Client => "client",
            Layer::Host => "host",
        }
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
