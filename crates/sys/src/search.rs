//! Where programs, and the libraries that they load, are looked for.
//!
//! Root starts servers, compilers and tools by name. A directory of `PATH` that others may write to would be theirs to
//! say what root runs, and so would `.` in a directory of theirs. The same holds of the variables by which the dynamic
//! loader finds code for whatever is started: an empty part of `LD_LIBRARY_PATH`, which many a profile makes, is the
//! working directory. This program itself is static and loads nothing.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::system;

/// The most programs that are looked for by the beginning of their names.
const MOST_PROGRAMS: usize = 100;

/// Leaves out of `PATH`, for this process and what it starts, what is relative, and for root also directories that
/// others can change. Gives those of them that are there, to be told.
///
/// To be called once, at the start of the program, before it has a second thread.
pub fn harden() -> Vec<PathBuf> {
    let Some(path) = env::var_os("PATH") else {
        return Vec::new();
    };
    let (kept, left_out) = parted(&path, system::uid() == 0);
    if !left_out.is_empty() {
        // SAFETY: the caller has started no other thread that could read the environment meanwhile.
        unsafe { env::set_var("PATH", kept) };
    }
    left_out
        .into_iter()
        .filter(|dir| dir.is_absolute() && dir.exists())
        .collect()
}

/// Variables that name directories of code, and those that name files of code, for programs that this one starts.
const DIRECTORIES: [&str; 2] = ["LD_LIBRARY_PATH", "GCONV_PATH"];
const FILES: [&str; 2] = ["LD_PRELOAD", "LD_AUDIT"];

/// Leaves out of the variables by which programs find code to load, for this process and what it starts, what is
/// relative, and for root also what others can change. Gives the variables of which something that is not empty was
/// left out, to be told.
///
/// To be called once, at the start of the program, before it has a second thread.
pub fn harden_libraries() -> Vec<&'static str> {
    let mut told = Vec::new();
    for name in DIRECTORIES.into_iter().chain(FILES) {
        let Some(value) = env::var_os(name) else {
            continue;
        };
        let (kept, left_out) = libraries(&value, FILES.contains(&name), system::uid() == 0);
        if left_out.is_empty() {
            continue;
        }
        if left_out.iter().any(|part| !part.is_empty()) {
            told.push(name);
        }
        // SAFETY: as in `harden`. An empty value would be the working directory again.
        unsafe {
            if kept.is_empty() {
                env::remove_var(name);
            } else {
                env::set_var(name, kept);
            }
        }
    }
    told
}

/// The parts of such a variable that are kept, and the others. The loader takes `;` and, between files, blanks as it
/// takes `:`. A file's name without `/` is looked for in the system's directories.
fn libraries(value: &OsStr, files: bool, root: bool) -> (OsString, Vec<OsString>) {
    let between = |byte: &u8| matches!(byte, b':' | b';') || (files && byte.is_ascii_whitespace());
    let (mut kept, mut left_out) = (Vec::new(), Vec::new());
    for part in value.as_bytes().split(between) {
        let place = Path::new(OsStr::from_bytes(part));
        let plain = files && !part.is_empty() && !part.contains(&b'/');
        // Of a file the directory that its name stands in counts, and each that it really lies below.
        let trusted = || match (root, files) {
            (false, _) => true,
            (true, true) => place.parent().is_some_and(is_trusted) && is_trusted(place),
            (true, false) => is_trusted(place),
        };
        if plain || (place.is_absolute() && trusted()) {
            kept.push(part);
        } else if !(files && part.is_empty()) {
            left_out.push(place.as_os_str().to_owned());
        }
    }
    (OsString::from_vec(kept.join(&b':')), left_out)
}

/// Programs on `PATH` whose names begin so: what follows in the name, and the file that would be started, by name. For
/// root only files that nobody else can change, after [`harden`].
pub fn programs(prefix: &str) -> Vec<(String, PathBuf)> {
    let path = env::var_os("PATH").unwrap_or_default();
    programs_in(&path, prefix, system::uid() == 0)
}

fn programs_in(path: &OsStr, prefix: &str, root: bool) -> Vec<(String, PathBuf)> {
    let mut found = BTreeMap::new();
    for dir in env::split_paths(path).filter(|dir| dir.is_absolute()) {
        for entry in dir.read_dir().into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(rest) = name.to_str().and_then(|name| name.strip_prefix(prefix)) else {
                continue;
            };
            let file = dir.join(&name);
            let runs = file
                .metadata()
                .is_ok_and(|meta| meta.is_file() && meta.mode() & 0o111 != 0);
            let safe = !root || is_trusted(&dir) && is_trusted(&file);
            if runs && safe && found.len() < MOST_PROGRAMS {
                found.entry(rest.to_owned()).or_insert(file);
            }
        }
    }
    found.into_iter().collect()
}

/// The directories that are kept, as a value of `PATH`, and the others.
fn parted(path: &OsStr, root: bool) -> (OsString, Vec<PathBuf>) {
    let (kept, left_out): (Vec<_>, Vec<_>) =
        env::split_paths(path).partition(|dir| dir.is_absolute() && (!root || is_trusted(dir)));
    // What comes out of one list can be put into another.
    (env::join_paths(kept).unwrap_or_default(), left_out)
}

/// Whether nobody but root, and who became root by `sudo`, can put a program there or replace a directory on the way.
///
/// A group may write: `/usr/local/bin` is open to the group `staff` on many hosts, and who is in it is for the
/// administrator to say.
fn is_trusted(dir: &Path) -> bool {
    let caller = env::var("SUDO_UID")
        .ok()
        .and_then(|text| text.parse::<u32>().ok());
    let safe = |place: &Path, last: bool| {
        place.metadata().is_ok_and(|meta| {
            let owner =
                meta.uid() == 0 || meta.uid() == system::uid() || Some(meta.uid()) == caller;
            // In a sticky directory others cannot replace what is ours: it may lie on the way. But they can add, so it
            // may not be the last.
            let harmless = meta.mode() & 0o1000 != 0 && !last;
            owner && (meta.mode() & 0o002 == 0 || harmless)
        })
    };
    dir.canonicalize().is_ok_and(|real| {
        real.ancestors()
            .enumerate()
            .all(|(step, place)| safe(place, step == 0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn programs_are_found_by_their_beginning_first_come_first() {
        let base = tempfile::tempdir().unwrap();
        let (one, two) = (base.path().join("one"), base.path().join("two"));
        let put = |dir: &Path, name: &str, mode: u32| {
            fs::create_dir_all(dir).unwrap();
            fs::write(dir.join(name), "").unwrap();
            fs::set_permissions(dir.join(name), fs::Permissions::from_mode(mode)).unwrap();
        };
        put(&one, "x-a", 0o755);
        put(&two, "x-a", 0o755);
        put(&two, "x-b", 0o757);
        put(&two, "x-c", 0o644);
        put(&two, "y-d", 0o755);
        let path = env::join_paths([&one, &two, Path::new("relative")]).unwrap();
        let of = |file: PathBuf, name: &str| (name.to_owned(), file);
        let mut all = vec![of(one.join("x-a"), "a"), of(two.join("x-b"), "b")];
        assert_eq!(programs_in(&path, "x-", false), all);
        // Root starts none that others can change.
        all.pop();
        if fingerpost_testing::is_root() {
            assert_eq!(programs_in(&path, "x-", true), all);
        }
        fs::set_permissions(&one, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(!programs_in(&path, "x-", true).contains(&all[0]));
    }

    #[test]
    fn what_others_can_change_is_not_searched_by_root() {
        let base = tempfile::tempdir().unwrap();
        let make = |name: &str, mode: u32| {
            let dir = base.path().join(name);
            fs::create_dir(&dir).unwrap();
            fs::set_permissions(&dir, fs::Permissions::from_mode(mode)).unwrap();
            dir
        };
        let (own, group, open, sticky) = (
            make("own", 0o755),
            make("group", 0o2775),
            make("open", 0o777),
            make("sticky", 0o1777),
        );
        let below = open.join("below");
        fs::create_dir(&below).unwrap();
        let none = base.path().join("none");
        let all = [
            &own,
            &group,
            &open,
            &sticky,
            &below,
            &none,
            Path::new("."),
            Path::new("bin"),
            Path::new(""),
        ];
        let path = env::join_paths(all).unwrap();
        let (kept, left_out) = parted(&path, true);
        assert_eq!(
            env::split_paths(&kept).collect::<Vec<_>>(),
            [own.clone(), group.clone()]
        );
        assert_eq!(left_out.len(), 7);
        let (kept, left_out) = parted(&path, false);
        assert_eq!(
            (env::split_paths(&kept).count(), left_out.len()),
            (6, 3),
            "a user may choose, but not what is relative"
        );
        assert_eq!(parted(OsStr::new(""), true).1.len(), 1);
    }

    #[test]
    fn code_is_loaded_from_no_place_that_others_can_change() {
        let base = tempfile::tempdir().unwrap();
        let own = base.path().join("own");
        let open = base.path().join("open");
        for (dir, mode) in [(&own, 0o755), (&open, 0o1777)] {
            fs::create_dir(dir).unwrap();
            fs::set_permissions(dir, fs::Permissions::from_mode(mode)).unwrap();
        }
        let (own, open) = (own.display(), open.display());
        let of = |value: &str, files: bool, root: bool| {
            let (kept, left_out) = libraries(OsStr::new(value), files, root);
            (kept.into_string().unwrap(), left_out.len())
        };
        let own_only = own.to_string();
        assert_eq!(of(&format!(":{own}"), false, true), (own_only.clone(), 1));
        assert_eq!(
            of(&format!("{own}:;.:lib:{open}:$ORIGIN/x"), false, true),
            (own_only, 5)
        );
        assert_eq!(
            of(&format!("{open}:"), false, false),
            (open.to_string(), 1),
            "a user may choose, but not what is relative"
        );
        fs::write(base.path().join("own/a.so"), "").unwrap();
        fs::write(base.path().join("open/b.so"), "").unwrap();
        let both = format!("libx.so.1 {own}/a.so:{open}/b.so ./c.so");
        assert_eq!(of(&both, true, true), (format!("libx.so.1:{own}/a.so"), 2));
        // In a link of ours to a place of theirs it is theirs.
        let link = base.path().join("link");
        std::os::unix::fs::symlink(base.path().join("open"), &link).unwrap();
        assert_eq!(of(&link.display().to_string(), false, true).1, 1);
    }
}
