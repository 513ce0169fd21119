//! The tables that rows are shown in, as lmbench's summary has one for each group of its figures.

use std::borrow::Cow;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A table of rows.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Table {
    /// A word of lower-case letters, digits and hyphens, for anchors and queries.
    pub key: Cow<'static, str>,
    /// The title.
    pub title: Cow<'static, str>,
}

impl Table {
    /// A table of this key and title.
    pub const fn new(key: &'static str, title: &'static str) -> Table {
        Table {
            key: Cow::Borrowed(key),
            title: Cow::Borrowed(title),
        }
    }

    /// Its place among the tables: those of the primitives and of our own labs in the order of [`ORDER`], others after
    /// them.
    pub fn place(&self) -> usize {
        ORDER
            .iter()
            .position(|table| table.key == self.key)
            .unwrap_or(ORDER.len())
    }

    /// What tables are ordered by: their place, and by their keys those that have none of their own.
    pub fn order(&self) -> (usize, &str) {
        (self.place(), &self.key)
    }
}

/// A static per table, and [`ORDER`].
macro_rules! tables {
    ($($name:ident $key:literal $title:literal,)*) => {
        $(#[doc = concat!("“", $title, "”.")] pub static $name: Table = Table::new($key, $title);)*

        /// The tables in the order shown. A table that is not among them is shown after them.
        pub static ORDER: &[&Table] = &[$(&$name),*];
    };
}

tables! {
    PROCESSOR "processor" "Processor & clock",
    SYSCALLS "syscalls" "System calls",
    SIGNALS "signals" "Signals",
    PROCESSES "processes" "Processes & threads",
    SWITCHING "switching" "Context switching",
    LATENCIES "latencies" "Local communication latencies",
    BANDWIDTHS "bandwidths" "Local communication bandwidths",
    SYNCHRONISATION "synchronisation" "Synchronisation",
    PARALLEL "parallel" "Parallel kernel",
    VM "vm" "Virtual memory",
    FS "fs" "File system",
    MEMORY "memory" "Memory",
    ARITHMETIC "arithmetic" "CPU arithmetic",
    FLOPS "flops" "Floating point by compiler",
    ZEROFILL "zerofill" "Zero-filling",
    SITE "site" "Site: files against an object database",
    LAUNCH "launch" "Launching applications",
    DATABASE "database" "Database",
    WEB "web" "Web server",
    SERVICE "service" "Running service",
    LOAD "load" "Load from a client machine",
}

/// That of rows of before that no table knows.
pub static OTHER: Table = Table::new("other", "Other");
