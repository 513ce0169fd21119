//! The C compilers of the host, found by their names and asked for their versions.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use crate::child;
use crate::procfs::Paths;

/// How long a compiler may take to say its version.
const DEADLINE: Duration = Duration::from_secs(1);
/// Enough for the first line of any version text.
const LONGEST_VERSION: u64 = 4096;

/// The C compilers of a system: each file that is one by its name, with all its names.
pub fn find(paths: &Paths) -> BTreeMap<PathBuf, Vec<String>> {
    let own = std::env::var_os("PATH").filter(|_| paths.is_system());
    let usual = || {
        ["/usr/local/bin", "/usr/bin", "/bin"]
            .map(PathBuf::from)
            .to_vec()
    };
    let directories = own.map_or_else(usual, |own| {
        std::env::split_paths(&own)
            .filter(|dir| dir.is_absolute())
            .collect()
    });
    let mut found: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
    for directory in directories {
        for name in paths
            .names(&directory)
            .into_iter()
            .filter(|name| is_compiler(name))
        {
            let Ok(file) = paths.path(directory.join(&name)).canonicalize() else {
                continue;
            };
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
            n.starts_with(|c: char| c.is_ascii_digit())
                && n.chars().all(|c| c.is_ascii_digit() || c == '.')
        })
    };
    let rest = name
        .strip_prefix("gcc")
        .or_else(|| name.strip_prefix("clang"));
    name == "cc" || rest.is_some_and(|rest| rest.is_empty() || numbered(rest))
}

/// The first line that a compiler's `--version` prints, or `None` when it takes too long or prints nothing.
pub fn version(file: &Path) -> Option<String> {
    let mut command = Command::new(file);
    command
        .arg("--version")
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
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
    let line: String = text
        .lines()
        .next()?
        .trim()
        .chars()
        .filter(|c| !c.is_control())
        .take(200)
        .collect();
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
        for name in [
            "gcc-ar",
            "gcc-ar-12",
            "clang++",
            "clang-format",
            "clang-cpp-14",
            "ccache",
            "gcc-",
            "gccgo",
        ] {
            assert!(!is_compiler(name), "{name}");
        }
    }
}
