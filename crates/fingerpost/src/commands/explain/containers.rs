//! Numbers of containers by their names, from what Docker, Podman and containerd leave in files. No engine is asked.
//!
//! What engines keep can be another user's: `HOME` may be theirs (`su`), and who runs containers without root keeps the
//! files. So a name counts only in a file that nobody but its owner writes to, who is root, this user, or the user who
//! called by `sudo`; and one budget holds for all that is looked at and read.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use fingerpost_record::open;
use fingerpost_sys::cgroup::members;
use fingerpost_undo::owned;
use serde::Deserialize;

use crate::exit::say;

/// A file of theirs is some kilobytes; a longer one is not read.
const MOST_BYTES: u64 = 8 << 20;
/// Bytes that are read in all.
const ALL_BYTES: u64 = 64 << 20;
/// Names of files and directories that are looked at in all.
const ALL_NAMES: usize = 50_000;
/// A beginning of a number that is shorter than this is taken for a name.
const LEAST_DIGITS: usize = 6;

/// The numbers, or beginnings of them, that a word may mean: itself where it looks like one, and those of containers of
/// that name.
pub fn ids(wanted: &str) -> Vec<String> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let mut look = Look::new();
    let found = look.ids_below(Path::new("/"), wanted, home);
    look.left_out
        .iter()
        .for_each(|sentence| say(&format!("{sentence}; its names of containers do not count")));
    found
}

/// What Docker keeps of a container.
#[derive(Deserialize)]
struct Docker {
    #[serde(rename = "Name")]
    name: String,
}

/// What Podman keeps of one in a list.
#[derive(Deserialize)]
struct Podman {
    id: String,
    names: Option<Vec<String>>,
}

/// What containerd keeps of one.
#[derive(Deserialize)]
struct Containerd {
    annotations: Option<BTreeMap<String, String>>,
}

/// A look through the files, and what may still be looked at.
struct Look {
    bytes: u64,
    names: usize,
    /// Why something does not count, as sentences: one for each cause.
    left_out: Vec<String>,
}

impl Look {
    fn new() -> Look {
        Look {
            bytes: ALL_BYTES,
            names: ALL_NAMES,
            left_out: Vec::new(),
        }
    }

    fn ids_below(&mut self, root: &Path, wanted: &str, home: Option<PathBuf>) -> Vec<String> {
        let number = wanted.len() >= LEAST_DIGITS && wanted.bytes().all(|b| b.is_ascii_hexdigit());
        let mut found: Vec<String> = number
            .then(|| wanted.to_ascii_lowercase())
            .into_iter()
            .collect();
        let name = wanted.trim_start_matches('/');
        for (id, dir) in self.below(&root.join("var/lib/docker/containers")) {
            let kept: Option<Docker> = self.json(&dir.join("config.v2.json"));
            found.extend(
                kept.is_some_and(|kept| kept.name.trim_start_matches('/') == name)
                    .then_some(id),
            );
        }
        // In a directory of another user's, a look alone could wait for their file system.
        let home = home.filter(|home| {
            let owner = fs::metadata(home).map_or(0, |meta| meta.uid());
            if !owned::is_trusted(owner) {
                self.leave_out(home, "is another user's");
            }
            owned::is_trusted(owner)
        });
        let podman = [
            Some(root.join("var/lib/containers/storage")),
            home.map(|h| h.join(".local/share/containers/storage")),
        ];
        for storage in podman.into_iter().flatten() {
            for (_, dir) in self.below(&storage) {
                let all: Vec<Podman> = self.json(&dir.join("containers.json")).unwrap_or_default();
                found.extend(
                    all.into_iter()
                        .filter(|kept| kept.names.iter().flatten().any(|n| n == name))
                        .map(|kept| kept.id),
                );
            }
        }
        for (_, space) in self.below(&root.join("run/containerd/io.containerd.runtime.v2.task")) {
            for (id, dir) in self.below(&space) {
                let kept: Option<Containerd> = self.json(&dir.join("config.json"));
                let is = |kept: Containerd| {
                    let notes = kept.annotations.unwrap_or_default();
                    ["io.kubernetes.cri.container-name", "nerdctl/name"]
                        .iter()
                        .any(|key| notes.get(*key).is_some_and(|n| n == name))
                        || id == name
                };
                found.extend(kept.is_some_and(is).then(|| id.clone()));
            }
        }
        // A name stands for one whole number: a file with a part of one would mean every container that begins so.
        let typed = wanted.to_ascii_lowercase();
        let whole = |id: &String| id.len() == members::CONTAINER || number && *id == typed;
        found.retain(|id| whole(id) && id.bytes().all(|b| b.is_ascii_hexdigit()));
        found.sort();
        found.dedup();
        found
    }

    /// Names and paths in a directory; none where it cannot be read.
    fn below(&mut self, dir: &Path) -> Vec<(String, PathBuf)> {
        let entries = fs::read_dir(dir).into_iter().flatten().flatten();
        // One more than there may be says that there are too many.
        let mut found: Vec<_> = entries
            .take(self.names + 1)
            .filter_map(|e| Some((e.file_name().into_string().ok()?, e.path())))
            .collect();
        if found.len() > self.names {
            self.leave_out(dir, "has too many entries");
            found.truncate(self.names);
        }
        self.names -= found.len();
        found
    }

    /// A file of a directory that may be somebody else's: a regular one of somebody whom we trust, within bounds.
    fn json<T: for<'d> Deserialize<'d>>(&mut self, path: &Path) -> Option<T> {
        let opened = open::regular(path).ok()?;
        let meta = opened.file.metadata().ok()?;
        if !owned::is_trusted(meta.uid()) || meta.mode() & 0o022 != 0 {
            self.leave_out(path, "is another user's, or others can write to it");
            return None;
        }
        if meta.len() > MOST_BYTES.min(self.bytes) {
            self.leave_out(path, "is too long, alone or with what was read before");
            return None;
        }
        let mut text = Vec::new();
        opened.file.take(meta.len()).read_to_end(&mut text).ok()?;
        self.bytes -= text.len() as u64;
        serde_json::from_slice(&text).ok()
    }

    fn leave_out(&mut self, path: &Path, why: &str) {
        if !self.left_out.iter().any(|said| said.ends_with(why)) {
            self.left_out.push(format!("{} {why}", path.display()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids_below(root: &Path, wanted: &str, home: Option<PathBuf>) -> Vec<String> {
        Look::new().ids_below(root, wanted, home)
    }

    #[test]
    fn names_are_found_where_engines_leave_them() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: String, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let (a, b, c) = ("a".repeat(64), "b".repeat(64), "c".repeat(64));
        write(
            format!("var/lib/docker/containers/{a}/config.v2.json"),
            r#"{"Name":"/shop"}"#,
        );
        write(
            "var/lib/containers/storage/overlay-containers/containers.json".into(),
            &format!(r#"[{{"id":"{b}","names":["till"]}}]"#),
        );
        let annotations = r#"{"annotations":{"io.kubernetes.cri.container-name":"stock"}}"#;
        write(
            format!("run/containerd/io.containerd.runtime.v2.task/k8s.io/{c}/config.json"),
            annotations,
        );
        write(
            format!("var/lib/docker/containers/{}/config.v2.json", "d".repeat(2)),
            r#"{"Name":"/part"}"#,
        );
        let ids = |wanted: &str| ids_below(root.path(), wanted, None);
        assert_eq!(
            (ids("shop"), ids("till"), ids("stock")),
            (vec![a], vec![b], vec![c])
        );
        assert!(ids("part").is_empty(), "a part of a number is none");
        assert_eq!(
            (ids("deadbeef"), ids("other"), ids("abc")),
            (vec!["deadbeef".to_owned()], vec![], vec![]),
            "too short for a number"
        );
    }

    #[test]
    fn what_others_can_write_does_not_count_and_there_is_a_budget() {
        use std::os::unix::fs::PermissionsExt as _;
        let root = tempfile::tempdir().unwrap();
        let storage = root.path().join("var/lib/containers/storage/overlay");
        fs::create_dir_all(&storage).unwrap();
        let file = storage.join("containers.json");
        let id = "b".repeat(64);
        fs::write(&file, format!(r#"[{{"id":"{id}","names":["till"]}}]"#)).unwrap();
        let ids = |look: &mut Look| look.ids_below(root.path(), "till", None);
        assert_eq!(ids(&mut Look::new()).len(), 1);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        let mut look = Look::new();
        assert_eq!(ids(&mut look).len(), 0);
        assert!(look.left_out[0].contains("others can write"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        for (bytes, names, why) in [(20, 9, "too long"), (999, 0, "too many")] {
            let mut look = Look {
                bytes,
                names,
                left_out: Vec::new(),
            };
            assert_eq!(ids(&mut look).len(), 0);
            assert!(look.left_out[0].contains(why), "{:?}", look.left_out);
        }
    }
}
