//! Functions that a program made at run time, as it tells them itself: `/tmp/perf-PID.map`, a line `START LENGTH NAME`
//! each.
//!
//! `/tmp` is everybody's, and the text is whoever's it is: the file is looked for below the process's own root, must be
//! a regular file of the process's own user or root, and is read to a bound. What it says names functions, and nothing
//! else.

use std::fs::File;
use std::io::Read;

use fingerpost_sys::procfs::process::Status;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, fstat, open, openat2};

/// Bytes that are read, functions that are kept, and characters of a name.
const MOST_BYTES: u64 = 64 << 20;
const MOST_FUNCTIONS: usize = 500_000;
const MOST_NAME: usize = 200;

/// Functions by address.
#[derive(Debug, Default, PartialEq)]
pub struct Jit {
    functions: Vec<(u64, u64, String)>,
}

impl Jit {
    /// Those of a process that still lives; none where it tells none.
    pub fn of(pid: i32) -> Jit {
        text_of(pid).map_or_else(Jit::default, |text| Jit::parse(&text))
    }

    /// Reads the lines that are such.
    pub fn parse(text: &str) -> Jit {
        let function = |line: &str| {
            let mut words = line.splitn(3, ' ');
            let mut number =
                || u64::from_str_radix(words.next()?.trim_start_matches("0x"), 16).ok();
            let (start, length) = (number()?, number()?);
            let name: String = words
                .next()?
                .trim()
                .chars()
                .filter(|c| !c.is_control())
                .take(MOST_NAME)
                .collect();
            (length > 0 && !name.is_empty()).then_some((start, length, name))
        };
        let mut functions: Vec<_> = text
            .lines()
            .filter_map(function)
            .take(MOST_FUNCTIONS)
            .collect();
        // Code that was thrown away leaves its line behind: the last one of an address counts.
        functions.reverse();
        functions.sort_by_key(|f| f.0);
        functions.dedup_by_key(|f| f.0);
        Jit { functions }
    }

    /// The function at an address.
    pub fn at(&self, address: u64) -> Option<&str> {
        let (start, length, name) =
            self.functions[..self.functions.partition_point(|f| f.0 <= address)].last()?;
        (address - start < *length).then_some(name)
    }
}

fn text_of(pid: i32) -> Option<String> {
    let status = Status::parse(&std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?);
    let (user, inner) = (status.effective_user?, status.inner_pid.unwrap_or(pid));
    let root = open(
        format!("/proc/{pid}/root"),
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .ok()?;
    // Links are followed within that root only, and the file itself is none.
    let inside = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let flags =
        OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = openat2(
        &root,
        format!("tmp/perf-{inner}.map"),
        flags,
        Mode::empty(),
        inside,
    )
    .ok()?;
    let stat = fstat(&file).ok()?;
    let theirs = stat.st_uid == user || stat.st_uid == 0;
    (theirs && FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile).then_some(())?;
    let mut bytes = Vec::new();
    File::from(file)
        .take(MOST_BYTES)
        .read_to_end(&mut bytes)
        .ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_address_and_the_last_line_of_one_counts() {
        let text = "1000 20 old\n1000 20 new one\n0x1040 10 LazyCompile:*f /srv/app.js:3\nnonsense\n2000 0 empty\nzz 1 \
            x\n3000 5\n";
        let jit = Jit::parse(text);
        assert_eq!(jit.at(0x101f), Some("new one"));
        assert_eq!(jit.at(0x1045), Some("LazyCompile:*f /srv/app.js:3"));
        assert_eq!(
            (jit.at(0x1020), jit.at(0x2000), jit.at(0x3000), jit.at(0)),
            (None, None, None, None)
        );
        assert_eq!(
            Jit::parse("1 5 a\u{1b}[2Jb").at(2),
            Some("a[2Jb"),
            "nothing that acts on a terminal"
        );
        assert_eq!(
            Jit::parse(&format!("1 5 {}", "x".repeat(9999)))
                .at(1)
                .map(str::len),
            Some(MOST_NAME)
        );
    }

    #[test]
    fn no_line_is_too_wild() {
        let good = "7f00 20 Builtin:Call\nffffffffffffffff ffffffffffffffff last\n";
        for at in 0..good.len() {
            for value in [b' ', b'\n', b'f', 0, 0xff, b'-'] {
                let mut bytes = good.as_bytes().to_vec();
                bytes[at] = value;
                let jit = Jit::parse(&String::from_utf8_lossy(&bytes));
                for address in [0, 0x7f00, u64::MAX] {
                    jit.at(address);
                }
            }
        }
    }

    #[test]
    fn a_map_is_read_of_a_regular_file_of_the_process_itself_only() {
        let own = std::process::id() as i32;
        let path = std::path::PathBuf::from(format!("/tmp/perf-{own}.map"));
        let secret = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(secret.path(), "10 10 not_yours\n").unwrap();
        std::os::unix::fs::symlink(secret.path(), &path).unwrap();
        let by_link = Jit::of(own);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "10 10 mine\n").unwrap();
        let mine = Jit::of(own);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(by_link, Jit::default(), "a link is not followed");
        assert_eq!(mine.at(0x18), Some("mine"));
    }
}
