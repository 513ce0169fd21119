//! Where programs are.

use std::fs::{self, DirEntry};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Where to look for servers besides PATH: distributions keep them out of users' way.
const USUAL_PLACES: [&str; 7] = [
    "/usr/sbin",
    "/usr/bin",
    "/usr/libexec",
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/local/libexec",
    "/sbin",
];

/// Finds the first of these programs, in `more` places, PATH and the usual places.
pub fn find_program(names: &[&str], more: &[PathBuf]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places: Vec<PathBuf> = more.to_vec();
    places.extend(std::env::split_paths(&path));
    places.extend(USUAL_PLACES.iter().map(PathBuf::from));
    names.iter().find_map(|name| {
        places
            .iter()
            .map(|place| place.join(name))
            .find(|file| is_program(file))
    })
}

/// Whether a file can be started.
pub fn is_program(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The directories where distributions keep each version of PostgreSQL, newest first.
pub fn postgresql_versions() -> Vec<PathBuf> {
    let entries = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let version = |entry: DirEntry| {
        Some((
            entry.file_name().to_str()?.parse().ok()?,
            entry.path().join("bin"),
        ))
    };
    let mut found: Vec<(u32, PathBuf)> = entries.filter_map(version).collect();
    found.sort();
    found.into_iter().rev().map(|(_, path)| path).collect()
}
