//! What the descriptor of a probe, or a lab, says of a row: where tables show it, what its time comes from, what
//! lmbench calls it.
//!
//! It stands in the record with each row, so that who reads a record needs no list of names. Rows of before do not
//! state it: for these [`of_before`] knows it by their names.

pub mod lmbench;
mod of_before;
pub mod table;

use std::borrow::Cow;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use of_before::of_before;
pub use table::Table;

/// The part of the system that a row's time comes from: one cause moves its rows together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Exercises {
    /// Arithmetic in user mode, within the caches.
    Cpu,
    /// Reading the clock.
    Clock,
    /// System calls that do little besides entering the kernel.
    Syscall,
    /// Installing and handling signals.
    Signal,
    /// Creating processes.
    Process,
    /// Creating threads.
    Thread,
    /// Switching between tasks.
    Switch,
    /// Pipes and local sockets.
    LocalIpc,
    /// UDP and TCP.
    Network,
    /// Mappings and faults.
    Fault,
    /// Latency and bandwidth of memory.
    Memory,
    /// Files and flushes.
    Storage,
}

/// What a virtual machine's host decides of a row's time, for minutes at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HostDependence {
    /// Memory beyond a core's own caches: who else uses it, and how the host backs it.
    Memory,
    /// Pages that are taken anew: which part of the memory they are from.
    Pages,
    /// The disk: who else writes to the one that the host made it from.
    Disk,
    /// A server under load: how fast the host runs the CPUs in these minutes.
    Server,
}

/// What is said of a row besides its figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Descriptor {
    /// The table that it is shown in.
    pub table: Table,
    /// Its probe's place among those of the table, from 0; without one it comes after those that have one, as it was
    /// measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<u32>,
    /// The part of the system that its time comes from; none for a server or program under load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exercises: Option<Exercises>,
    /// How many times one operation enters the kernel, where its definition says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entries: Option<f64>,
    /// Whether it waits for a device, so that its time does not follow the CPU's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub waits_for_device: bool,
    /// What of it a virtual machine's host decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depends_on_host: Option<HostDependence>,
    /// What lmbench calls such a row, where it has one like it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lmbench: Option<Cow<'static, str>>,
    /// System calls, by their names in the kernel, that an operation of it stands for where a program's calls are
    /// counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Cow<'static, str>>,
}

impl Descriptor {
    /// Of a row in this table, of which nothing else is known: that of a server or program under load.
    pub fn of(table: &Table) -> Descriptor {
        let table = table.clone();
        Descriptor {
            table,
            place: None,
            exercises: None,
            entries: None,
            waits_for_device: false,
            depends_on_host: None,
            lmbench: None,
            calls: Vec::new(),
        }
    }

    /// Why no record may hold it.
    ///
    /// # Errors
    /// A sentence that names the field.
    pub(crate) fn validate(&self) -> Result<(), String> {
        let Table { key, title } = &self.table;
        if key.is_empty()
            || key.len() > 40
            || !key
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        {
            return Err("the key of its table is no word of at most 40 lower-case letters, digits and hyphens".into());
        }
        if title.is_empty()
            || title.len() > 200
            || self.lmbench.as_ref().is_some_and(|name| name.len() > 200)
        {
            return Err(
                "the title of its table is empty, or a name in its descriptor is too long".into(),
            );
        }
        let is_call = |name: &str| {
            (1..=40).contains(&name.len())
                && name
                    .bytes()
                    .all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'_'))
        };
        if self.calls.len() > 32 || !self.calls.iter().all(|name| is_call(name)) {
            return Err(
                "it stands for more than 32 system calls, or for one whose name is not of lower-case letters, \
                digits and _"
                    .into(),
            );
        }
        match self.entries {
            Some(n) if !(0.0..=1e9).contains(&n) => {
                Err(format!("an operation cannot enter the kernel {n} times"))
            }
            _ => Ok(()),
        }
    }
}

/// The null call. Rules ask for it by its name: what an entry into the kernel costs alone is what this one operation
/// does, and no property that a new probe could have as well.
pub const NULL_CALL: &str = "syscall.null";

/// The floating-point kernels that the host's compilers build. Rules ask for them by their name: published tables have
/// their rows without the parameter that says by which compiler.
pub const FLOPS: &str = "cpu.flops";

/// Bytes that no core's own caches hold: what is beyond them is shared with other cores, and on a virtual machine with
/// other guests.
pub const OWN_CACHES: i64 = 8 << 20;

/// Whether a row with these parameters is about more memory than that.
pub fn is_beyond_caches(int: impl Fn(&str) -> Option<i64>) -> bool {
    ["size", "resident"]
        .into_iter()
        .filter_map(int)
        .any(|bytes| bytes > OWN_CACHES)
}
