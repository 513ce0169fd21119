//! Numbers of containers by their names, from what Docker, Podman and containerd leave in files. No engine is asked.

use std::fs;
use std::path::{Path, PathBuf};

use fingerpost_record::open;
use fingerpost_sys::cgroup::members;
use serde_json::Value;

/// A file of theirs is some kilobytes; more is not read.
const MOST_BYTES: u64 = 8 << 20;
/// A beginning of a number that is shorter than this is taken for a name.
const LEAST_DIGITS: usize = 6;

/// The numbers, or beginnings of them, that a word may mean: itself where it looks like one, and those of containers of
/// that name.
pub fn ids(wanted: &str) -> Vec<String> {
    ids_below(
        Path::new("/"),
        wanted,
        std::env::var_os("HOME").map(PathBuf::from),
    )
}

fn ids_below(root: &Path, wanted: &str, home: Option<PathBuf>) -> Vec<String> {
    let number = wanted.len() >= LEAST_DIGITS && wanted.bytes().all(|b| b.is_ascii_hexdigit());
    let mut found: Vec<String> = number
        .then(|| wanted.to_ascii_lowercase())
        .into_iter()
        .collect();
    let name = wanted.trim_start_matches('/');
    for (id, dir) in below(&root.join("var/lib/docker/containers")) {
        let is = |v: Value| {
            v["Name"]
                .as_str()
                .is_some_and(|n| n.trim_start_matches('/') == name)
        };
        found.extend(
            json(&dir.join("config.v2.json"))
                .is_some_and(is)
                .then_some(id),
        );
    }
    let podman = [
        Some(root.join("var/lib/containers/storage")),
        home.map(|h| h.join(".local/share/containers/storage")),
    ];
    for (_, dir) in podman.into_iter().flatten().flat_map(|dir| below(&dir)) {
        let Some(Value::Array(all)) = json(&dir.join("containers.json")) else {
            continue;
        };
        let named = |c: &&Value| {
            c["names"]
                .as_array()
                .is_some_and(|names| names.iter().any(|n| n == name))
        };
        found.extend(
            all.iter()
                .filter(named)
                .filter_map(|c| c["id"].as_str().map(str::to_owned)),
        );
    }
    for (_, space) in below(&root.join("run/containerd/io.containerd.runtime.v2.task")) {
        for (id, dir) in below(&space) {
            let is = |v: Value| {
                let annotations = &v["annotations"];
                ["io.kubernetes.cri.container-name", "nerdctl/name"]
                    .iter()
                    .any(|key| annotations[*key] == name)
                    || id == name
            };
            found.extend(
                json(&dir.join("config.json"))
                    .is_some_and(is)
                    .then(|| id.clone()),
            );
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
fn below(dir: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter_map(|e| Some((e.file_name().into_string().ok()?, e.path())))
        .collect()
}

/// A file of a directory that may be somebody else's: a regular one, within bounds.
fn json(path: &Path) -> Option<Value> {
    serde_json::from_slice(&open::beginning(path, MOST_BYTES).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
