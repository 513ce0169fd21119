//! The host's C library and C compilers. We are linked statically and use neither: labs compile with them, servers run
//! on them.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use fingerpost_sys::child;
use fingerpost_sys::procfs::Paths;
use memchr::memmem;

/// How long a compiler may take to say its version.
const DEADLINE: Duration = Duration::from_secs(1);
/// More is not asked: a directory full of compilers is somebody's test farm.
const MOST_COMPILERS: usize = 12;
/// Enough for the first line of any version text.
const LONGEST_VERSION: u64 = 4096;

/// The C library that programs of this host use: `glibc 2.36`, `musl 1.2.4`.
pub(crate) fn libc(paths: &Paths) -> Option<String> {
    let roots = ["lib64", "lib", "usr/lib64", "usr/lib"];
    let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
    let candidates = roots.iter().flat_map(|root| [format!("{root}/{triplet}/libc.so.6"), format!("{root}/libc.so.6")]);
    candidates.filter_map(|name| paths.bytes(name).ok()).find_map(|bytes| glibc_version(&bytes)).or_else(|| musl(paths))
}

/// glibc carries its own banner: `GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.`
fn glibc_version(bytes: &[u8]) -> Option<String> {
    let start = memmem::find(bytes, b"GNU C Library (")?;
    let banner: String =
        bytes[start..].iter().take(200).take_while(|&&b| b != b'\n' && b != 0).map(|&b| char::from(b)).collect();
    let (_, version) = banner.split_once("release version ")?;
    let version: String = version.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    let version = version.trim_end_matches('.');
    (!version.is_empty()).then(|| format!("glibc {version}"))
}

/// musl does not carry its version in text that can be told from other text; the package database of Alpine knows it.
fn musl(paths: &Paths) -> Option<String> {
    let loader = |name: &String| name.starts_with("ld-musl-");
    paths.names("lib").iter().find(|name| loader(name))?;
    let packages = paths.read("lib/apk/db/installed").unwrap_or_default();
    let version = packages.split("\n\n").find(|package| package.lines().any(|line| line == "P:musl"));
    let version = version.and_then(|package| package.lines().find_map(|line| line.strip_prefix("V:")));
    Some(version.map_or("musl".to_owned(), |version| format!("musl {version}")))
}

/// The compilers found, `NAMES: first line of --version`, one entry for all names of one file.
pub(crate) fn compilers(paths: &Paths) -> Vec<String> {
    let found = find(paths);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for (file, names) in found.into_iter().take(MOST_COMPILERS) {
            let sender = sender.clone();
            let ask = move || {
                let line = version(&file).map(|version| format!("{}: {version}", names.join(", ")));
                // The receiver outlives the threads.
                let _ = sender.send(line);
            };
            // Where no thread can be had there is no process to be asked either: the compiler is left out.
            let _ = std::thread::Builder::new().spawn_scoped(scope, ask);
        }
    });
    drop(sender);
    let mut compilers: Vec<String> = receiver.into_iter().flatten().collect();
    compilers.sort();
    compilers
}

/// The C compilers of this system: each file that is one by its name, with all its names.
pub fn c_compilers() -> BTreeMap<PathBuf, Vec<String>> {
    find(&Paths::system())
}

/// Files that are compilers by their name, with all their names.
fn find(paths: &Paths) -> BTreeMap<PathBuf, Vec<String>> {
    let own = std::env::var_os("PATH").filter(|_| paths.is_system());
    let usual = || ["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from).to_vec();
    let directories =
        own.map_or_else(usual, |own| std::env::split_paths(&own).filter(|dir| dir.is_absolute()).collect());
    let mut found: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
    for directory in directories {
        for name in paths.names(&directory).into_iter().filter(|name| is_compiler(name)) {
            let Ok(file) = paths.path(directory.join(&name)).canonicalize() else { continue };
            let names = found.entry(file).or_default();
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    found
}

/// `cc`, `gcc`, `gcc-12`, `clang-14.0`, but not `gcc-ar` nor `clang-format`.
fn is_compiler(name: &str) -> bool {
    let numbered = |rest: &str| {
        rest.strip_prefix('-').is_some_and(|n| {
            n.starts_with(|c: char| c.is_ascii_digit()) && n.chars().all(|c| c.is_ascii_digit() || c == '.')
        })
    };
    name == "cc"
        || ["gcc", "clang"]
            .iter()
            .any(|base| name.strip_prefix(base).is_some_and(|rest| rest.is_empty() || numbered(rest)))
}

/// The first line that a compiler's `--version` prints, or `None` when it takes too long or prints nothing.
pub fn version(file: &Path) -> Option<String> {
    let mut command = Command::new(file);
    command.arg("--version").env("LC_ALL", "C").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut running = child::die_with_parent(&mut command).spawn().ok()?;
    let output = running.stdout.take()?;
    let (sender, receiver) = mpsc::channel();
    // Not joined: a grandchild that fled our group could hold the pipe open for ever.
    // Where no thread can be had the sender goes with the closure, and the text is empty.
    let _ = std::thread::Builder::new().spawn(move || {
        let mut text = Vec::new();
        let _ = output.take(LONGEST_VERSION).read_to_end(&mut text);
        let _ = sender.send(text);
    });
    let text = receiver.recv_timeout(DEADLINE).unwrap_or_default();
    // Whatever is left of it, also when it has answered; the group is gone already when all is well.
    let _ = child::signal_group(running.id() as i32, 9);
    let _ = running.wait();
    let text = String::from_utf8_lossy(&text);
    let line: String = text.lines().next()?.trim().chars().filter(|c| !c.is_control()).take(200).collect();
    (!line.is_empty()).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_by_name() {
        for name in ["cc", "gcc", "gcc-12", "clang", "clang-14", "gcc-4.9"] {
            assert!(is_compiler(name), "{name}");
        }
        for name in ["gcc-ar", "gcc-ar-12", "clang++", "clang-format", "clang-cpp-14", "ccache", "gcc-", "gccgo"] {
            assert!(!is_compiler(name), "{name}");
        }
    }

    #[test]
    fn glibc_by_its_banner() {
        let bytes = b"\0\0GNU C Library (Debian GLIBC 2.36-9+deb12u13) stable release version 2.36.\nCopyright\0";
        assert_eq!(glibc_version(bytes).as_deref(), Some("glibc 2.36"));
        assert_eq!(glibc_version(b"GNU C Library (cut sho"), None);
        assert_eq!(glibc_version(b"GNU C Library (x) stable release version \0"), None);
    }
}
