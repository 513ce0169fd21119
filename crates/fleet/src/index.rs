//! The index of a sweep: all its figures in one file, so that ten thousand records need not be unpacked to be shown.
//!
//! It holds nothing that the records do not, and each host's figures only count while its record has the size and time
//! that they were taken at: an index that is lost, damaged, old or of another version is made again from the records.
//!
//! ```text
//! fingerpost/sweep-index/3\n
//! u64              bytes of the head
//! JSON             rows, kinds and descriptions of hosts, hosts with how many figures each has
//! 12 bytes each    figures, host by host: number of the row (u32), logarithm and standard deviation (f32),
//!                  little-endian
//! ```

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fingerpost_diagnose::fleet::by_every_cpu;
use fingerpost_diagnose::probes::groups::Group;
use fingerpost_record::archive::write_whole;
use fingerpost_record::open;
use serde::{Deserialize, Serialize};

use crate::description::Description;
use crate::nodes;
use crate::sweep::{INDEX, Pass, Stamp, Sweep, SweepError};
use crate::table::{Cell, HostRow, Row, Table};

/// The format's name and version; the version changes with what a figure means.
const MAGIC: &[u8] = b"fingerpost/sweep-index/3\n";
/// The longest head that is read: 200,000 hosts take 40 MB.
const MOST_HEAD: u64 = 64 << 20;
/// Rows that all hosts together may have: as many as fifty runs that have nothing in common.
const MOST_ROWS: usize = 1 << 20;
/// Hosts that are read at a time; between them memory is given back.
const BATCH: usize = 256;
/// Bytes of a figure.
const CELL: usize = 12;

#[derive(Serialize, Deserialize)]
struct Head {
    rows: Vec<Row>,
    kinds: Vec<String>,
    descriptions: Vec<Description>,
    hosts: Vec<HeadHost>,
}

#[derive(Serialize, Deserialize)]
struct HeadHost {
    node: String,
    kind: usize,
    started: String,
    without: usize,
    stamp: Stamp,
    cells: usize,
    failed: Vec<(u32, String)>,
    description: usize,
}

impl Table {
    /// The figures of a sweep: from its index those whose records have not changed, the others from their records, on
    /// every CPU. What was read anew is in the index afterwards.
    ///
    /// # Errors
    /// The system's. A record that is none is in `unreadable`.
    pub fn of(sweep: &Sweep) -> Result<Table, SweepError> {
        let path = path(sweep.dir());
        let mut table = load(&path).unwrap_or_default();
        let known = table.hosts.len();
        let stamps: HashMap<String, Stamp> = sweep
            .measured(Pass::First)?
            .into_iter()
            .filter_map(|node| sweep.stamp(&node).map(|stamp| (node, stamp)))
            .collect();
        table
            .hosts
            .retain(|host| stamps.get(&host.node) == Some(&host.stamp));
        let fresh: HashSet<&str> = table.hosts.iter().map(|host| host.node.as_str()).collect();
        let mut stale: Vec<(String, Stamp)> = stamps
            .iter()
            .filter(|(node, _)| !fresh.contains(node.as_str()))
            .map(|(node, stamp)| (node.clone(), *stamp))
            .collect();
        stale.sort();
        let changed = table.hosts.len() != known;
        let read = table.read(sweep, &stale);
        table.hosts.sort_by(|a, b| a.node.cmp(&b.node));
        if changed || read {
            save(&path, &table);
        }
        Ok(table)
    }

    /// Reads these records; says whether there was one.
    fn read(&mut self, sweep: &Sweep, stale: &[(String, Stamp)]) -> bool {
        let before = self.hosts.len();
        for batch in stale.chunks(BATCH) {
            for ((node, stamp), run) in batch.iter().zip(by_every_cpu(batch, |(node, _)| {
                sweep.read(Pass::First, node)
            })) {
                match run {
                    Ok(run) => self.add(node, &run, *stamp),
                    Err(e) => drop(self.unreadable.insert(node.clone(), e.to_string())),
                }
            }
        }
        self.hosts.len() > before
    }
}

/// Where a sweep's index is.
pub fn path(sweep: &Path) -> PathBuf {
    sweep.join(INDEX)
}

/// What the index holds; nothing where it is none of this version, or does not agree with itself.
pub fn load(path: &Path) -> Option<Table> {
    let opened = open::regular(path).ok()?;
    let bytes = opened.file.metadata().ok()?.len();
    let mut file = opened.file;
    let mut magic = [0; MAGIC.len()];
    file.read_exact(&mut magic).ok()?;
    let mut length = [0; 8];
    file.read_exact(&mut length).ok()?;
    let length = u64::from_le_bytes(length);
    if magic != MAGIC || length > MOST_HEAD.min(bytes) {
        return None;
    }
    let mut text = vec![0; length as usize];
    file.read_exact(&mut text).ok()?;
    let head: Head = serde_json::from_slice(&text).ok()?;
    let cells = head
        .hosts
        .iter()
        .try_fold(0_u64, |sum, host| sum.checked_add(host.cells as u64))?;
    let whole = (MAGIC.len() as u64 + 8 + length).checked_add(cells.checked_mul(CELL as u64)?)?;
    if whole != bytes || head.rows.len() > MOST_ROWS || head.hosts.len() > nodes::MOST_NODES {
        return None;
    }
    let mut rows = head.rows;
    rows.iter_mut()
        .for_each(|row| row.group = Group::of(&row.probe, row.exercises));
    let begin = |at: &mut u64, host: &HeadHost| {
        Some((
            std::mem::replace(at, *at + (host.cells * CELL) as u64),
            host.cells,
        ))
    };
    let places: Vec<(u64, usize)> = head
        .hosts
        .iter()
        .scan(MAGIC.len() as u64 + 8 + length, begin)
        .collect();
    let cells = by_every_cpu(&places, |(at, count)| {
        cells_of(&file, *at, *count, rows.len())
    });
    let descriptions: Vec<Arc<Description>> = head.descriptions.into_iter().map(Arc::new).collect();
    let mut hosts = Vec::with_capacity(head.hosts.len());
    for (host, cells) in head.hosts.into_iter().zip(cells) {
        let (group, description) = (
            head.kinds.get(host.kind)?.clone(),
            Arc::clone(descriptions.get(host.description)?),
        );
        let cells = cells?;
        if !nodes::is_name(&host.node)
            || host
                .failed
                .iter()
                .any(|(row, _)| *row as usize >= rows.len())
        {
            return None;
        }
        let HeadHost {
            node,
            started,
            without,
            stamp,
            failed,
            ..
        } = host;
        hosts.push(HostRow {
            node,
            group,
            started,
            without,
            stamp,
            cells,
            failed,
            description,
        });
    }
    Some(Table::made_of(rows, hosts))
}

/// The figures of a host, so many from this place on.
fn cells_of(file: &File, at: u64, count: usize, rows: usize) -> Option<Vec<Cell>> {
    let mut bytes = vec![0; count * CELL];
    file.read_exact_at(&mut bytes, at).ok()?;
    let four = |at: &[u8]| [at[0], at[1], at[2], at[3]];
    let cell = |b: &[u8]| {
        (
            u32::from_le_bytes(four(b)),
            f32::from_le_bytes(four(&b[4..])),
            f32::from_le_bytes(four(&b[8..])),
        )
    };
    let cells: Vec<Cell> = bytes.chunks_exact(CELL).map(cell).collect();
    cells
        .iter()
        .all(|cell| (cell.0 as usize) < rows)
        .then_some(cells)
}

/// Writes the index. That it cannot be written (a sweep of somebody else's, a full disk) costs time when the sweep is
/// read again, and nothing else.
pub fn save(path: &Path, table: &Table) {
    let mut kinds: Vec<&String> = table.hosts.iter().map(|host| &host.group).collect();
    kinds.sort();
    kinds.dedup();
    let (descriptions, numbers) = distinct(table.hosts.iter().map(|host| &*host.description));
    let host = |(host, description): (&HostRow, usize)| HeadHost {
        node: host.node.clone(),
        kind: kinds.binary_search(&&host.group).unwrap_or_default(),
        started: host.started.clone(),
        without: host.without,
        stamp: host.stamp,
        cells: host.cells.len(),
        failed: host.failed.clone(),
        description,
    };
    let head = Head {
        rows: table.rows.clone(),
        descriptions,
        hosts: table.hosts.iter().zip(numbers).map(host).collect(),
        kinds: kinds.iter().map(|kind| (*kind).clone()).collect(),
    };
    let Ok(head) = serde_json::to_vec(&head) else {
        return;
    };
    let cells: usize = table.hosts.iter().map(|host| host.cells.len()).sum();
    let mut bytes = Vec::with_capacity(MAGIC.len() + 8 + head.len() + cells * CELL);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&(head.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&head);
    for (row, log, own) in table.hosts.iter().flat_map(|host| &host.cells) {
        bytes.extend_from_slice(&row.to_le_bytes());
        bytes.extend_from_slice(&log.to_le_bytes());
        bytes.extend_from_slice(&own.to_le_bytes());
    }
    let _ = write_whole(path, &bytes);
}

/// The descriptions, each once, and for each host the number of its own: those of one kind mostly say the same, and at
/// length.
fn distinct<'a>(of_hosts: impl Iterator<Item = &'a Description>) -> (Vec<Description>, Vec<usize>) {
    let (mut known, mut kept): (HashMap<String, usize>, Vec<Description>) = Default::default();
    let number = |description: &Description| {
        let text = serde_json::to_string(description).unwrap_or_default();
        *known.entry(text).or_insert_with(|| {
            kept.push(description.clone());
            kept.len() - 1
        })
    };
    let numbers = of_hosts.map(number).collect();
    (kept, numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fingerpost_record::fixture;

    fn table() -> Table {
        let mut table = Table::default();
        for (node, quota) in [("n1", None), ("n2", Some(0.5)), ("n3", None)] {
            let mut run = fixture::run();
            run.host.cgroup.cpu_quota = quota;
            table.add(node, &run, Stamp(1, 2, 3));
        }
        table
    }

    #[test]
    fn what_hosts_say_alike_is_kept_once() {
        let table = table();
        let (kept, numbers) = distinct(table.hosts.iter().map(|host| &*host.description));
        assert_eq!((kept.len(), numbers), (2, vec![0, 1, 0]));
        assert_eq!(
            (&kept[0], &kept[1]),
            (&*table.hosts[0].description, &*table.hosts[1].description)
        );
    }

    #[test]
    fn what_is_written_is_read_again() {
        let home = tempfile::tempdir().unwrap();
        let path = path(home.path());
        save(&path, &table());
        let read = load(&path).unwrap();
        assert_eq!((read.rows, read.hosts), (table().rows, table().hosts));
        assert!(!table().hosts[0].cells.is_empty());
    }

    #[test]
    fn a_damaged_index_is_none_or_one_that_agrees_with_itself() {
        let home = tempfile::tempdir().unwrap();
        let path = path(home.path());
        assert!(load(&path).is_none());
        save(&path, &table());
        let whole = std::fs::read(&path).unwrap();
        for cut in [0, 10, MAGIC.len() + 4, whole.len() / 2, whole.len() - 1] {
            std::fs::write(&path, &whole[..cut]).unwrap();
            assert!(load(&path).is_none(), "{cut}");
        }
        let mut rng = fastrand::Rng::with_seed(1);
        for _ in 0..500 {
            let mut bytes = whole.clone();
            for _ in 0..rng.usize(1..4) {
                let at = rng.usize(..bytes.len());
                bytes[at] = rng.u8(..);
            }
            std::fs::write(&path, &bytes).unwrap();
            if let Some(read) = load(&path) {
                let rows = read.rows.len();
                assert!(
                    read.hosts
                        .iter()
                        .flat_map(|host| &host.cells)
                        .all(|cell| (cell.0 as usize) < rows)
                );
            }
        }
    }
}
