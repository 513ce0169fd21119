//! The site laboratory: files against an object database, as serverSimulator compared them in 1996.
//!
//! A structured site is made from a seed (or taken from the user), put into every object database, and read in rounds
//! of 100 random URLs. In a round every contestant reads the same list, whole, and a sum over all of the bytes is made
//! of it, in random order, each in a process of its own; what was read is checked outside the timing. Files are read in
//! the kernel's page cache, databases in their own or the kernel's: what is compared is the way to a page, not the
//! disk, unless the state is `cold`.

pub mod analysis;
mod contest;
mod course;
mod parts;
mod places;
mod prepare;
mod settings;
mod shown;
mod start;
mod warming;

use fingerpost_record::Profile;

use crate::{Context, Lab, LabError, Setting};
use settings::{Part, Settings};

fn run(context: &mut Context) -> Result<(), LabError> {
    let settings = Settings::new(context.settings, context.profile)?;
    let places = places::make(&settings, context)?;
    let tasks = settings.parts.len() * places.len();
    let budget = context.budget / tasks.max(1) as u32;
    let mut done = 0;
    for place in &places {
        for part in &settings.parts {
            if context.sink.interrupted() {
                return Ok(());
            }
            let mut course = course::Course {
                settings: &settings,
                place,
                budget,
                share: (done as f64 / tasks as f64, 1.0 / tasks as f64),
                context: &mut *context,
            };
            match part {
                Part::Rounds => parts::rounds(&mut course)?,
                Part::Sizes => parts::sizes(&mut course)?,
                Part::Folders => parts::folders(&mut course)?,
                Part::Depth => parts::depth(&mut course)?,
                Part::Readers => parts::readers(&mut course)?,
                Part::Served => parts::served(&mut course)?,
            }
            done += 1;
        }
    }
    places::end(places, context);
    Ok(())
}

/// Names of all contestants.
const STORES: [&str; 12] = [
    "files-open",
    "files-openat",
    "files-mmap",
    "files-uring",
    "lmdb-loaded",
    "lmdb",
    "lmdb-flat",
    "sqlite",
    "sqlite-flat",
    "redb",
    "redb-flat",
    "all",
];

/// The descriptor.
pub static LAB: Lab = Lab {
    name: "site",
    summary: "reading a web site's pages from files and from an object database (LMDB, SQLite, redb)",
    rows: &[
        (&course::OF_ROUND, "reading 100 random pages of the site whole, from files or from an object database"),
        (&course::OF_SIZE, "reading one page of this size, of a store that holds pages of this size only"),
        (&course::OF_FOLDER, "reading one page of a folder that holds so many entries"),
        (&course::OF_DEPTH, "reading one page that lies so many folders deep"),
        (&course::OF_READERS, "pages that so many readers at once read in a second"),
        (&course::OF_SPACE, "bytes on the disk that the store needs for the site"),
        (
            &course::OF_IMPORT,
            "the time until all pages of the site are in the store and on the disk; for files, a copy of them",
        ),
        (&course::OF_SERVED, "requests that this program's web server answers in a second from the store"),
    ],
    settings: &[
        Setting::new("site", "made from the seed", "a directory whose files are the pages").path(),
        Setting::new("pages", "1000", "pages of the site that is made").whole(1, 100_000),
        Setting::new("urls", "100", "random URLs in one round").whole(1, 100_000),
        Setting::new(
            "store",
            "all",
            "contestants: files-open, files-openat, files-mmap, files-uring, lmdb-loaded, lmdb, lmdb-flat, sqlite …",
        )
        .several(&STORES),
        Setting::new(
            "state",
            "warm",
            "warm, cold, both, or warming: eleven rounds from the start; cold and warming drop the system's caches, as \
             root with --allow-system-changes",
        )
        .one_of(&["warm", "cold", "both", "warming"]),
        Setting::new(
            "memory",
            "none",
            "with state=warming: memory that a reader may have, its page cache included, such as 8M (with pages=4000 \
             and urls=400); a list such as none,8M; as root with --allow-system-changes",
        ).whole(2 << 20, 1 << 40)
        .several(&["none"]),
        Setting::new("parts", "rounds,sizes (quick)", "rounds, sizes, folders, depth, readers, served, or all")
            .several(&["rounds", "sizes", "folders", "depth", "readers", "served", "all"]),
        Setting::new("folder", "10,100,1000,10000", "numbers of files in one folder").list(1, 100_000),
        Setting::new("readers", "1,2,4,8", "numbers of readers at a time").list(1, 256),
        Setting::new("dirs", "the work directory", "directories, each on a file system to measure on")
            .several(&[])
            .path(),
        Setting::new(
            "filesystems",
            "none",
            "ext4, xfs, btrfs, tmpfs: made on loop images, as root with --allow-system-changes",
        )
        .several(&settings::FILESYSTEMS),
    ],
    missing: |settings| Settings::new(settings, Profile::Quick).err().map(|e| e.to_string()),
    check: |settings, profile| Settings::new(settings, profile).map(drop),
    analyses: &[&shown::ANALYSIS],
    run,
    ..Lab::USUAL
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_contestant_is_proposed() {
        let names: Vec<&str> = fingerpost_workloads::site::Access::all()
            .into_iter()
            .map(|a| a.name())
            .collect();
        assert_eq!(STORES.split_last(), Some((&"all", names.as_slice())));
    }
}
