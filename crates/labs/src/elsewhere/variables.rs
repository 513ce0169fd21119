//! Variables of a private MariaDB or PostgreSQL that a record may set, with the type of each.
//!
//! Names stand here as the server's manual writes them: in small letters, with underscores. Servers take others for the
//! same (capitals, `-`, `loose_`, an abbreviation); here those are other names, which are not on the list.

use crate::numbers::is_digits;

use super::refused::{LONGEST, Refused};

/// What a variable takes.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// On or off.
    Switch,
    /// A whole number up to this one.
    Whole(u64),
    /// A number up to this one.
    Real(f64),
    /// Bytes, with or without a unit, up to 64 GiB.
    Bytes,
    /// A time, with or without a unit.
    Time,
    /// One of these words.
    One(&'static [&'static str]),
}

use Kind::{Bytes, One, Real, Switch, Time, Whole};

/// The most bytes of a variable.
const MOST_BYTES: u64 = 64 << 30;
/// The greatest number of a time, whatever its unit.
const LONGEST_TIME: u64 = 1_000_000_000;
const SWITCH: [&str; 8] = ["on", "off", "ON", "OFF", "1", "0", "true", "false"];

/// All of them.
pub(super) const VARIABLES: &[(&str, Kind)] = &[
    // Both.
    ("max_connections", Whole(10_000)),
    // MariaDB.
    ("innodb_flush_log_at_trx_commit", Whole(3)),
    ("sync_binlog", Whole(10_000)),
    ("log_bin", Switch),
    (
        "binlog_format",
        One(&["row", "statement", "mixed", "ROW", "STATEMENT", "MIXED"]),
    ),
    ("query_cache_size", Bytes),
    ("query_cache_limit", Bytes),
    (
        "query_cache_type",
        One(&["0", "1", "2", "on", "off", "demand", "ON", "OFF", "DEMAND"]),
    ),
    ("innodb_buffer_pool_size", Bytes),
    ("innodb_log_file_size", Bytes),
    ("innodb_log_buffer_size", Bytes),
    ("innodb_doublewrite", Switch),
    (
        "innodb_flush_method",
        One(&[
            "fsync",
            "O_DSYNC",
            "littlesync",
            "nosync",
            "O_DIRECT",
            "O_DIRECT_NO_FSYNC",
        ]),
    ),
    ("innodb_flush_neighbors", Whole(2)),
    ("innodb_adaptive_hash_index", Switch),
    ("innodb_adaptive_flushing", Switch),
    ("innodb_use_native_aio", Switch),
    ("innodb_io_capacity", Whole(1_000_000)),
    ("innodb_io_capacity_max", Whole(1_000_000)),
    ("innodb_read_io_threads", Whole(64)),
    ("innodb_write_io_threads", Whole(64)),
    ("innodb_purge_threads", Whole(32)),
    ("innodb_spin_wait_delay", Whole(6_000)),
    ("innodb_sync_spin_loops", Whole(1_000_000)),
    ("innodb_lru_scan_depth", Whole(1_000_000)),
    ("innodb_stats_persistent", Switch),
    ("key_buffer_size", Bytes),
    ("aria_pagecache_buffer_size", Bytes),
    ("sort_buffer_size", Bytes),
    ("join_buffer_size", Bytes),
    ("read_buffer_size", Bytes),
    ("read_rnd_buffer_size", Bytes),
    ("tmp_table_size", Bytes),
    ("max_heap_table_size", Bytes),
    ("max_allowed_packet", Bytes),
    ("table_open_cache", Whole(1_000_000)),
    ("table_definition_cache", Whole(1_000_000)),
    ("thread_cache_size", Whole(16_384)),
    (
        "thread_handling",
        One(&["one-thread-per-connection", "pool-of-threads", "no-threads"]),
    ),
    ("thread_pool_size", Whole(1_024)),
    ("performance_schema", Switch),
    ("userstat", Switch),
    (
        "transaction_isolation",
        One(&[
            "READ-UNCOMMITTED",
            "READ-COMMITTED",
            "REPEATABLE-READ",
            "SERIALIZABLE",
        ]),
    ),
    // PostgreSQL.
    ("shared_buffers", Bytes),
    ("work_mem", Bytes),
    ("maintenance_work_mem", Bytes),
    ("effective_cache_size", Bytes),
    ("temp_buffers", Bytes),
    ("wal_buffers", Bytes),
    ("min_wal_size", Bytes),
    ("max_wal_size", Bytes),
    ("fsync", Switch),
    ("full_page_writes", Switch),
    (
        "synchronous_commit",
        One(&["on", "off", "local", "remote_write", "remote_apply"]),
    ),
    (
        "wal_sync_method",
        One(&["fsync", "fdatasync", "open_sync", "open_datasync"]),
    ),
    (
        "wal_compression",
        One(&["on", "off", "pglz", "lz4", "zstd"]),
    ),
    ("wal_level", One(&["minimal", "replica", "logical"])),
    ("max_wal_senders", Whole(100)),
    ("wal_writer_delay", Time),
    ("commit_delay", Whole(100_000)),
    ("commit_siblings", Whole(1_000)),
    ("checkpoint_timeout", Time),
    ("checkpoint_completion_target", Real(1.0)),
    ("bgwriter_delay", Time),
    ("bgwriter_lru_maxpages", Whole(1_000_000)),
    ("random_page_cost", Real(1e6)),
    ("seq_page_cost", Real(1e6)),
    ("cpu_tuple_cost", Real(1e6)),
    ("effective_io_concurrency", Whole(1_000)),
    ("maintenance_io_concurrency", Whole(1_000)),
    ("max_worker_processes", Whole(1_024)),
    ("max_parallel_workers", Whole(1_024)),
    ("max_parallel_workers_per_gather", Whole(1_024)),
    ("jit", Switch),
    ("autovacuum", Switch),
    ("huge_pages", One(&["on", "off", "try"])),
    ("track_io_timing", Switch),
    ("track_activities", Switch),
    ("track_counts", Switch),
    ("deadlock_timeout", Time),
    ("default_statistics_target", Whole(10_000)),
    ("enable_seqscan", Switch),
    ("enable_indexscan", Switch),
    ("enable_indexonlyscan", Switch),
    ("enable_bitmapscan", Switch),
    ("enable_hashjoin", Switch),
    ("enable_mergejoin", Switch),
    ("enable_nestloop", Switch),
    ("enable_sort", Switch),
    ("enable_hashagg", Switch),
];

/// Whether a record may set this variable to this value.
pub(super) fn take(name: &str, value: &str) -> Result<(), Refused> {
    let (_, kind) = VARIABLES
        .iter()
        .find(|(known, _)| *known == name)
        .ok_or(Refused::Setting)?;
    if value.len() <= LONGEST && kind.takes(value) {
        Ok(())
    } else {
        Err(Refused::Value(kind.words()))
    }
}

impl Kind {
    fn takes(self, value: &str) -> bool {
        match self {
            Switch => SWITCH.contains(&value),
            Whole(most) => whole(value).is_some_and(|n| n <= most),
            Real(most) => {
                let (whole, part) = value.split_once('.').unwrap_or((value, "0"));
                let plain = is_digits(whole) && is_digits(part);
                plain && value.parse().is_ok_and(|n: f64| n <= most)
            }
            Bytes => {
                let (number, unit) = with_unit(value);
                let factor: Option<u64> = match unit {
                    "" | "B" => Some(1),
                    "k" | "K" | "kB" => Some(1 << 10),
                    "m" | "M" | "MB" => Some(1 << 20),
                    "g" | "G" | "GB" => Some(1 << 30),
                    _ => None,
                };
                factor
                    .zip(number)
                    .and_then(|(factor, n)| n.checked_mul(factor))
                    .is_some_and(|bytes| bytes <= MOST_BYTES)
            }
            Time => {
                let (number, unit) = with_unit(value);
                ["", "us", "ms", "s", "min", "h", "d"].contains(&unit)
                    && number.is_some_and(|n| n <= LONGEST_TIME)
            }
            One(words) => words.contains(&value),
        }
    }

    fn words(self) -> String {
        match self {
            Switch => "on and off".to_owned(),
            Whole(most) => format!("whole numbers up to {most}"),
            Real(most) => format!("numbers up to {most}"),
            Bytes => "bytes up to 64 GiB, such as 16M".to_owned(),
            Time => "times, such as 200ms".to_owned(),
            One(words) => words.join(", "),
        }
    }
}

fn whole(text: &str) -> Option<u64> {
    is_digits(text).then(|| text.parse().ok()).flatten()
}

fn with_unit(text: &str) -> (Option<u64>, &str) {
    let at = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    (whole(&text[..at]), &text[at..])
}
