//! Why programs cannot be had in the kernel.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why programs cannot be loaded into the kernel, or attached.
#[derive(Debug, Error)]
pub enum BpfError {
    /// The kernel's types cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the kernel said.
        error: io::Error,
    },
    /// What the kernel gives as its types is none that is known.
    #[error("{} is not the description of types", .0.display())]
    NoTypes(PathBuf),
    /// The kernel does not have what a program is for: `tracepoint sched_switch`.
    #[error("this kernel's types have no {0}")]
    Unknown(String),
    /// The programs, which are part of this binary, are not what they should be: which part.
    #[error("the programs for the kernel are not as they should be: {0}")]
    Broken(String),
    /// Maps or rings cannot be made or used.
    #[error("programs cannot be loaded into the kernel: {0}")]
    Refused(io::Error),
    /// The kernel's verifier does not take a program.
    #[error("the kernel refused the program for {name}: {error} ({reason})")]
    Unverified {
        /// What it is for.
        name: String,
        /// What the kernel said.
        error: io::Error,
        /// The last line of its account.
        reason: String,
    },
    /// A program cannot be attached.
    #[error("a program cannot be attached to the {to}: {error}")]
    Detached {
        /// `tracepoint sched_switch`, `function tcp_sendmsg`.
        to: String,
        /// What the kernel said.
        error: io::Error,
    },
    /// None of several ways was possible: why each.
    #[error("{}", listed(.0))]
    NoWay(Vec<BpfError>),
    /// No CPU is online.
    #[error("no CPU is online")]
    NoCpu,
    /// The count of closed connections cannot be made.
    #[error("closed connections cannot be counted: {0}")]
    Uncounted(io::Error),
    /// Closed connections are counted at some ports only.
    #[error("closed connections are counted at 1 to {most} ports, and not at {asked}")]
    Ports {
        /// How many were asked for.
        asked: usize,
        /// How many there may be.
        most: usize,
    },
}

impl BpfError {
    /// What the kernel said, where it is the kernel that refused a program or what belongs to it.
    pub fn error(&self) -> Option<&io::Error> {
        match self {
            BpfError::Unreadable { error, .. }
            | BpfError::Unverified { error, .. }
            | BpfError::Detached { error, .. }
            | BpfError::Refused(error)
            | BpfError::Uncounted(error) => Some(error),
            BpfError::NoWay(all) => all.iter().find_map(BpfError::error),
            _ => None,
        }
    }
}

fn listed(all: &[BpfError]) -> String {
    all.iter()
        .map(BpfError::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}
