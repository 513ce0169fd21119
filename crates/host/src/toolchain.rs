//! The host's C library and C compilers. We are linked statically and use neither: labs compile with them, servers run
//! on them.

use std::path::PathBuf;

use fingerpost_sys::compilers::{find, version};
use fingerpost_sys::procfs::Paths;
use memchr::memmem;

/// More is not asked: a directory full of compilers is somebody's test farm.
const MOST_COMPILERS: usize = 12;

/// The C library that programs of this host use: `glibc 2.36`, `musl 1.2.4`.
pub(crate) fn libc(paths: &Paths) -> Option<String> {
    let roots = ["lib64", "lib", "usr/lib64", "usr/lib"];
    let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
    let candidates = roots.iter().flat_map(|root| {
        [
            format!("{root}/{triplet}/libc.so.6"),
            format!("{root}/libc.so.6"),
        ]
    });
    candidates
        .filter_map(|name| paths.bytes(name).ok())
        .find_map(|bytes| glibc_version(&bytes))
        .or_else(|| musl(paths))
}

/// glibc carries its own banner: `GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.`
fn glibc_version(bytes: &[u8]) -> Option<String> {
    let start = memmem::find(bytes, b"GNU C Library (")?;
    let banner: String = bytes[start..]
        .iter()
        .take(200)
        .take_while(|&&b| b != b'\n' && b != 0)
        .map(|&b| char::from(b))
        .collect();
    let (_, version) = banner.split_once("release version ")?;
    let version: String = version
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == '.')
        .collect();
    let version = version.trim_end_matches('.');
    (!version.is_empty()).then(|| format!("glibc {version}"))
}

/// musl does not carry its version in text that can be told from other text; the package database of Alpine knows it.
fn musl(paths: &Paths) -> Option<String> {
    let loader = |name: &String| name.starts_with("ld-musl-");
    paths.names("lib").iter().find(|name| loader(name))?;
    let packages = paths.read("lib/apk/db/installed").unwrap_or_default();
    let version = packages
        .split("\n\n")
        .find(|package| package.lines().any(|line| line == "P:musl"));
    let version =
        version.and_then(|package| package.lines().find_map(|line| line.strip_prefix("V:")));
    Some(version.map_or("musl".to_owned(), |version| format!("musl {version}")))
}

/// The compilers found, `NAMES: first line of --version`, one entry for all names of one file.
pub(crate) fn compilers(paths: &Paths) -> Vec<String> {
    std::thread::scope(|scope| {
        let ask = |(file, names): (PathBuf, Vec<String>)| {
            let ask =
                move || version(&file).map(|version| format!("{}: {version}", names.join(", ")));
            std::thread::Builder::new().spawn_scoped(scope, ask)
        };
        let asked: Vec<_> = find(paths)
            .into_iter()
            .take(MOST_COMPILERS)
            .map(ask)
            .collect();
        // Where no thread can be had there is no process to be asked either: the compiler is left out.
        let mut compilers: Vec<String> = asked
            .into_iter()
            .filter_map(|thread| thread.ok()?.join().ok()?)
            .collect();
        compilers.sort();
        compilers
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glibc_by_its_banner() {
        let bytes = b"\0\0GNU C Library (Debian GLIBC 2.36-9+deb12u13) stable release version 2.36.\nCopyright\0";
        assert_eq!(glibc_version(bytes).as_deref(), Some("glibc 2.36"));
        assert_eq!(glibc_version(b"GNU C Library (cut sho"), None);
        assert_eq!(
            glibc_version(b"GNU C Library (x) stable release version \0"),
            None
        );
    }
}
