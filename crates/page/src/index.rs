//! What is known of every run in the archive without reading it again: its head, its groups of rows, and, once asked
//! for, its figures.
//!
//! A file that has not changed (time and size) is not read again, so that listing 1,000 runs costs 1,000 looks at a
//! directory entry.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use fingerpost_record::archive::{self, Archive, ArchiveError, Head};
use fingerpost_record::bounds::MAX_ROWS;
use fingerpost_record::descriptor::{Descriptor, Table, of_before};
use fingerpost_record::text::clean;
use fingerpost_record::{Estimate, Outcome, Params, Unit, lean};
use memchr::memmem::Finder;

/// What tells that a file has not changed.
type Stamp = (Option<SystemTime>, u64);

/// A run of the archive.
pub struct Item {
    /// Its file.
    pub path: PathBuf,
    /// Its head, or why there is none. Texts are cleaned.
    pub head: Result<Head, String>,
    /// The tables that it has rows of, in the order shown. Texts are cleaned.
    pub tables: Vec<Table>,
    stamp: Stamp,
    figures: OnceLock<Arc<Vec<RowFigure>>>,
}

/// One row's figure.
#[derive(Clone, Debug)]
pub struct RowFigure {
    /// The probe.
    pub probe: String,
    /// The parameters as text.
    pub params: String,
    /// The version of its definition.
    pub version: u32,
    /// The unit.
    pub unit: Unit,
    /// The figure.
    pub estimate: Estimate,
    /// Whether it is to be relied on.
    pub trusted: bool,
}

impl Item {
    fn read(path: PathBuf, stamp: Stamp) -> Item {
        let entry = archive::entry(path);
        let head = entry.head.map(cleaned);
        let tables = if head.is_ok() {
            tables_in(&std::fs::read(&entry.path).unwrap_or_default())
        } else {
            vec![]
        };
        Item {
            path: entry.path,
            head,
            tables,
            stamp,
            figures: OnceLock::new(),
        }
    }

    /// The rows with figures; none where the file cannot be read.
    pub fn figures(&self) -> Arc<Vec<RowFigure>> {
        self.figures
            .get_or_init(|| {
                Arc::new(
                    lean::figures_from_path(&self.path)
                        .map_or_else(|_| vec![], |run| figures_of(&run)),
                )
            })
            .clone()
    }
}

fn figures_of(run: &fingerpost_record::Run) -> Vec<RowFigure> {
    let row = |m: &fingerpost_record::Measurement| {
        Some(RowFigure {
            probe: clean(&m.probe).into_owned(),
            params: clean(&m.params.to_string()).into_owned(),
            version: m.version,
            unit: m.unit,
            estimate: m.estimate?,
            trusted: m.outcome == Outcome::Measured,
        })
    };
    run.measurements.iter().filter_map(row).collect()
}

fn cleaned(head: Head) -> Head {
    let text = |t: &str| clean(t).trim().to_owned();
    Head {
        started: text(&head.started),
        command: head.command.iter().map(|w| text(w)).collect(),
        label: head.label.as_deref().map(text),
        hostname: text(&head.hostname),
        kernel: text(&head.kernel),
        cpu_model: text(&head.cpu_model),
        ..head
    }
}

/// The tables of the rows that a run's text names, in the order shown. Looked for in the text, because parsing all of
/// it would take a hundred times as long; they are only good for choosing runs.
fn tables_in(text: &[u8]) -> Vec<Table> {
    let key = b"\"probe\"";
    // By their keys, so that a run that names another table in each row takes no longer than one that has as many rows.
    let mut found: BTreeMap<Cow<str>, Table> = BTreeMap::new();
    for table in Finder::new(key)
        .find_iter(text)
        .take(MAX_ROWS)
        .filter_map(|at| table_of(&text[at + key.len()..]))
    {
        found.entry(table.key.clone()).or_insert(table);
    }
    let mut tables: Vec<Table> = found.into_values().collect();
    tables.sort_by(|a, b| a.order().cmp(&b.order()));
    tables
}

/// What follows this mark, with any space around it.
fn after(text: &[u8], mark: u8) -> Option<&[u8]> {
    text.trim_ascii_start()
        .strip_prefix(&[mark])
        .map(<[u8]>::trim_ascii_start)
}

/// Bytes of a row's text that its descriptor is looked for in.
const MOST_DESCRIPTOR: usize = 4096;

/// The table of a row whose probe's name follows, and behind it its descriptor, where it states one.
fn table_of(text: &[u8]) -> Option<Table> {
    let name = after(text, b':')?.strip_prefix(b"\"")?;
    let length = name.iter().take(64).position(|b| *b == b'"')?;
    let (name, rest) = (
        std::str::from_utf8(&name[..length]).ok()?,
        &name[length + 1..],
    );
    let stated = after(rest, b',')
        .and_then(|rest| rest.strip_prefix(b"\"descriptor\""))
        .and_then(|rest| after(rest, b':'));
    let stated = stated.map(|rest| &rest[..rest.len().min(MOST_DESCRIPTOR)]);
    let stated = stated.and_then(|rest| {
        serde_json::Deserializer::from_slice(rest)
            .into_iter::<Descriptor>()
            .next()?
            .ok()
    });
    let descriptor = stated.unwrap_or_else(|| of_before(name, [&Params::new(), &Params::new()]));
    Some(Table {
        title: clean(&descriptor.table.title).trim().to_owned().into(),
        ..descriptor.table
    })
}

/// The archive as far as it is known.
pub struct Index {
    /// The archive itself.
    pub archive: Archive,
    known: Mutex<HashMap<PathBuf, Arc<Item>>>,
}

impl Index {
    /// An index that knows nothing yet.
    pub fn new(archive: Archive) -> Index {
        Index {
            archive,
            known: Mutex::default(),
        }
    }

    /// Reads what is there beside whatever happens next.
    pub fn warm(self: &Arc<Self>) {
        let index = self.clone();
        // Where the system refuses a thread, the first page that is asked for reads.
        let _ = std::thread::Builder::new().spawn(move || index.items().map(drop));
    }

    /// Every run, the newest first, the unreadable last.
    ///
    /// # Errors
    /// When the archive cannot be read.
    pub fn items(&self) -> Result<Vec<Arc<Item>>, ArchiveError> {
        // Held while reading: who comes at the same time would only read the same files again.
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = std::mem::take(&mut *known);
        let (mut list, mut unread) = (Vec::new(), Vec::new());
        for path in self.archive.files()? {
            let stamp = stamp(&path);
            match before.remove(&path).filter(|item| item.stamp == stamp) {
                Some(item) => list.push(item),
                None => unread.push((path, stamp)),
            }
        }
        list.extend(read_all(unread));
        *known = list
            .iter()
            .map(|item| (item.path.clone(), item.clone()))
            .collect();
        drop(known);
        list.sort_by(|a, b| {
            let key = |i: &Arc<Item>| {
                i.head
                    .as_ref()
                    .ok()
                    .map(|h| (h.started.clone(), h.id.clone()))
            };
            key(b).cmp(&key(a)).then_with(|| a.path.cmp(&b.path))
        });
        Ok(list)
    }
}

fn stamp(path: &Path) -> Stamp {
    std::fs::metadata(path).map_or((None, 0), |m| (m.modified().ok(), m.len()))
}

fn read_all(unread: Vec<(PathBuf, Stamp)>) -> Vec<Arc<Item>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let each = unread.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let read = |part: &[(PathBuf, Stamp)]| {
            part.iter()
                .map(|(path, stamp)| Arc::new(Item::read(path.clone(), *stamp)))
                .collect::<Vec<_>>()
        };
        // Where the system refuses another thread, this one reads its part.
        let start = |part| {
            std::thread::Builder::new()
                .spawn_scoped(scope, move || read(part))
                .map_err(|_| part)
        };
        let parts: Vec<_> = unread.chunks(each).map(start).collect();
        parts
            .into_iter()
            .flat_map(|part| part.map_or_else(read, |thread| thread.join().unwrap_or_default()))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fingerpost_record::fixture;

    #[test]
    fn tables_are_found_in_any_spacing_and_nonsense_is_passed_over() {
        let mut run = fixture::run();
        run.measurements[0].descriptor = Some(Descriptor::of(&Table::new(
            "queues",
            "Message\u{202e} queues",
        )));
        let compact = tables_in(&serde_json::to_vec(&run).unwrap());
        assert_eq!(
            compact,
            tables_in(&serde_json::to_vec_pretty(&run).unwrap())
        );
        let has = |key: &str| compact.iter().any(|table| table.key == key);
        assert!(has("syscalls") && has("fs") && !has("web"));
        assert_eq!(
            compact.last(),
            Some(&Table::new("queues", "Message\u{fffd} queues"))
        );
        for text in [
            &b"\"probe\""[..],
            b"\"probe\":",
            b"\"probe\":\"",
            b"\"probe\":3",
            b"\"probe\":\"\xff\xff\"",
        ] {
            assert!(tables_in(text).is_empty());
        }
        for text in [
            &b"\"probe\":\"fs.x\",\"descriptor\":"[..],
            b"\"probe\":\"fs.x\",\"descriptor\":{\"table\":3}",
        ] {
            assert_eq!(tables_in(text)[0].key, "fs");
        }
    }

    #[test]
    fn a_changed_file_is_read_again_and_a_removed_one_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let index = Index::new(Archive::open(Some(dir.path().to_owned())).unwrap());
        assert!(index.items().unwrap().is_empty());
        let run = fixture::run();
        let path = index.archive.path_of(&run.id);
        std::fs::write(&path, serde_json::to_vec(&run).unwrap()).unwrap();
        assert_eq!(
            index.items().unwrap()[0].head.as_ref().unwrap().hostname,
            "small-guest"
        );
        let mut longer = run.clone();
        longer.host.hostname = "another-guest".into();
        std::fs::write(&path, serde_json::to_vec(&longer).unwrap()).unwrap();
        let items = index.items().unwrap();
        assert_eq!(items[0].head.as_ref().unwrap().hostname, "another-guest");
        assert!(items[0].figures().len() > 30);
        assert!(Arc::ptr_eq(&items[0], &index.items().unwrap()[0]));
        std::fs::remove_file(&path).unwrap();
        assert!(index.items().unwrap().is_empty());
    }
}
