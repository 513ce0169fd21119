//! Every store holds the same things and gives them back, whatever happens to it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use fingerpost_odb::transfer::{export, import};
use fingerpost_odb::{Cell, Database, Entry, Error, Kind, Reader, Store};

fn never() -> bool {
    false
}

fn readers(database: &Database) -> Vec<Box<dyn Reader>> {
    [
        Some(database.reader().unwrap()),
        database.loaded_reader().unwrap(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn body(reader: &mut dyn Reader, path: &str) -> Option<Vec<u8>> {
    let mut found = None;
    reader
        .cell(path.as_bytes(), &mut |cell| {
            found = Some(cell.body.to_vec())
        })
        .unwrap();
    found
}

/// A directory tree as names and contents.
fn tree(dir: &Path) -> BTreeMap<Vec<u8>, Option<Vec<u8>>> {
    let mut all = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let name = path
                .strip_prefix(dir)
                .unwrap()
                .as_os_str()
                .as_bytes()
                .to_vec();
            all.insert(name, path.is_file().then(|| fs::read(&path).unwrap()));
            if path.is_dir() {
                open.push(path);
            }
        }
    }
    all
}

fn sample(dir: &Path) {
    fs::create_dir_all(dir.join("a/b/c/empty")).unwrap();
    fs::create_dir_all(dir.join("a.d")).unwrap();
    fs::write(dir.join("index.html"), "<p>home").unwrap();
    fs::write(dir.join("a/zero"), "").unwrap();
    fs::write(dir.join("a.html"), "between a and a/").unwrap();
    fs::write(dir.join("a/b/c/big.bin"), vec![7; 3 << 20]).unwrap();
    fs::write(dir.join("a/b/notes.opml"), "<opml/>").unwrap();
    fs::write(dir.join("a/run.sh"), "#!/bin/sh\n").unwrap();
    fs::write(
        dir.join(std::ffi::OsStr::from_bytes(b"a.d/\xff\xfe \n")),
        "odd name",
    )
    .unwrap();
    for i in 0..300 {
        fs::write(dir.join(format!("a/b/{i:03}.txt")), vec![b'x'; i * 37]).unwrap();
    }
}

#[test]
fn what_goes_in_comes_out_byte_for_byte() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("site");
    sample(&dir);
    for store in Store::ALL {
        let file = base.path().join(store.name());
        let went = import(&dir, &file, store, false, &never).unwrap();
        assert_eq!((went.cells, went.tables), (307, 5), "{store}");
        let database = Database::open(&file).unwrap();
        assert_eq!(database.store(), store);
        for (i, mut reader) in readers(&database).into_iter().enumerate() {
            let out = base.path().join(format!("{store}-{i}"));
            assert_eq!(export(&mut *reader, &out).unwrap(), went, "{store}");
            assert_eq!(tree(&out), tree(&dir), "{store}");
            let time = |p: &Path| {
                fs::metadata(p.join("index.html"))
                    .unwrap()
                    .modified()
                    .unwrap()
                    .duration_since(std::time::UNIX_EPOCH)
                    .unwrap()
                    .as_secs()
            };
            assert_eq!(time(&out), time(&dir));
        }
        let beside: Vec<_> = fs::read_dir(base.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .filter(|n| n.starts_with('.'))
            .collect();
        assert!(beside.is_empty(), "{beside:?}");
    }
}

#[test]
fn cells_and_tables_are_found_listed_and_told_apart() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("site");
    sample(&dir);
    for store in Store::ALL {
        let file = base.path().join(store.name());
        import(&dir, &file, store, false, &never).unwrap();
        let database = Database::open(&file).unwrap();
        for mut reader in readers(&database) {
            let r = &mut *reader;
            assert_eq!(body(r, "/a/b/002.txt").unwrap().len(), 74, "{store}");
            for nothing in [
                "",
                "/",
                "a",
                "a/",
                "a/b",
                "none",
                "a/none/x",
                "index.html/x",
                "a/b/c/empty",
                "format",
                "next",
            ] {
                assert_eq!(body(r, nothing), None, "{store} {nothing}");
            }
            for hostile in ["..", "a/../index.html", "a//b", "a//", "//format", "a\0"] {
                assert!(
                    matches!(
                        r.cell(hostile.as_bytes(), &mut |_| panic!("found")),
                        Err(Error::Path(..))
                    ),
                    "{store} {hostile}"
                );
            }
            let names = |r: &mut dyn Reader, p: &str| {
                r.list(p.as_bytes()).unwrap().map(|l| {
                    l.into_iter()
                        .map(|(n, e)| (String::from_utf8(n).unwrap(), e == Entry::Table))
                        .collect::<Vec<_>>()
                })
            };
            let own = |list: &[(&str, bool)]| {
                Some(
                    list.iter()
                        .map(|(n, t)| ((*n).to_owned(), *t))
                        .collect::<Vec<_>>(),
                )
            };
            assert_eq!(
                names(r, ""),
                own(&[
                    ("a", true),
                    ("a.d", true),
                    ("a.html", false),
                    ("index.html", false)
                ]),
                "{store}"
            );
            assert_eq!(
                names(r, "a/b/c"),
                own(&[("big.bin", false), ("empty", true)]),
                "{store}"
            );
            assert_eq!(names(r, "a/b/c/empty"), own(&[]), "{store}");
            assert_eq!(names(r, "a.html"), None, "{store}");
            assert_eq!(r.entry(b"a/b").unwrap(), Some(Entry::Table));
            assert!(matches!(
                r.entry(b"a/b/notes.opml").unwrap(),
                Some(Entry::Cell {
                    kind: Kind::Outline,
                    size: 7,
                    ..
                })
            ));
            assert!(matches!(
                r.entry(b"a/run.sh").unwrap(),
                Some(Entry::Cell {
                    kind: Kind::Script,
                    ..
                })
            ));
            assert_eq!(r.entry(b"nothing").unwrap(), None);
        }
    }
}

#[test]
fn a_write_is_seen_whole_by_the_next_request_or_not_at_all() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("site");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("old.txt"), "old").unwrap();
    for store in Store::ALL {
        let file = base.path().join(store.name());
        import(&dir, &file, store, false, &never).unwrap();
        let cell = |text: &'static str| Cell {
            kind: Kind::Text,
            modified: 5,
            body: text.as_bytes(),
        };
        let database = Database::open_for_writing(&file).unwrap();
        let mut readers = readers(&database);
        for reader in &mut readers {
            assert_eq!(body(&mut **reader, "old.txt").unwrap(), b"old", "{store}");
        }
        database
            .write(&mut |w| {
                w.put(b"old.txt", &cell("new"))?;
                w.put(b"deep/er/page.html", &cell("page"))?;
                w.table(b"deep/empty")
            })
            .unwrap();
        let failed = database.write(&mut |w| {
            w.put(b"old.txt", &cell("never"))?;
            w.put(b"old.txt/below", &cell("x"))
        });
        assert!(matches!(failed, Err(Error::Mismatch(..))), "{store}");
        assert!(
            database.write(&mut |w| w.put(b"deep", &cell("x"))).is_err(),
            "a table is no cell"
        );
        assert!(database.write(&mut |w| w.put(b"../x", &cell("x"))).is_err());
        assert!(database.write(&mut |w| w.put(b"", &cell("x"))).is_err());
        for reader in &mut readers {
            assert_eq!(body(&mut **reader, "old.txt").unwrap(), b"new", "{store}");
            assert_eq!(
                body(&mut **reader, "deep/er/page.html").unwrap(),
                b"page",
                "{store}"
            );
            assert_eq!(reader.list(b"deep/empty").unwrap(), Some(vec![]), "{store}");
        }
        drop(readers);
        drop(database);
        // Again after everything was closed.
        let database = Database::open(&file).unwrap();
        assert_eq!(
            body(&mut *database.reader().unwrap(), "deep/er/page.html").unwrap(),
            b"page",
            "{store}"
        );
    }
}

#[test]
fn foreign_and_damaged_files_are_refused() {
    let base = tempfile::tempdir().unwrap();
    let file = base.path().join("f");
    for content in [
        &b""[..],
        b"short",
        &[0; 5000],
        b"SQLite format 3\0 and then nothing that SQLite would know",
    ] {
        fs::write(&file, content).unwrap();
        assert!(Database::open(&file).is_err());
    }
    assert!(Database::open(base.path()).is_err());
    assert!(Database::open(&base.path().join("none")).is_err());
    rusqlite::Connection::open(base.path().join("other.db"))
        .unwrap()
        .execute_batch("CREATE TABLE t (x)")
        .unwrap();
    assert!(matches!(
        Database::open(&base.path().join("other.db")),
        Err(Error::Foreign(_))
    ));
}

#[test]
fn an_import_replaces_only_when_told_and_leaves_links_out() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("site");
    sample(&dir);
    std::os::unix::fs::symlink("/etc/passwd", dir.join("link")).unwrap();
    let file = base.path().join("f");
    let went = import(&dir, &file, Store::ALL[0], false, &never).unwrap();
    assert!(went.left_out.len() == 1 && went.left_out[0].contains("symbolic link"));
    assert!(import(&dir, &file, Store::ALL[0], false, &never).is_err());
    // What a killed import left is cleared away by the next; what one is at work in stays, and what is none of ours.
    let leftover = |letter: &str, inside: &str| {
        let dir = base
            .path()
            .join(format!(".fingerpost-import-{}", letter.repeat(16)));
        fs::DirBuilder::new().mode(0o700).create(&dir).unwrap();
        fs::write(dir.join(inside), "x").unwrap();
        dir
    };
    let inside = format!("odb-{}", "a".repeat(16));
    let (dead, alive, other) = (
        leftover("a", &inside),
        leftover("b", &inside),
        leftover("c", "precious"),
    );
    let working = fs::File::open(&alive).unwrap();
    rustix::fs::flock(&working, rustix::fs::FlockOperation::LockExclusive).unwrap();
    assert!(
        import(&dir, &file, Store::ALL[2], true, &|| true).is_err(),
        "interrupted"
    );
    assert_eq!(
        Database::open(&file).unwrap().store(),
        Store::ALL[0],
        "the old one stays"
    );
    import(&dir, &file, Store::ALL[2], true, &never).unwrap();
    assert_eq!(Database::open(&file).unwrap().store(), Store::ALL[2]);
    assert!(!dead.exists() && alive.exists() && other.join("precious").exists());
    let left = fs::read_dir(base.path()).unwrap().filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.as_bytes().starts_with(b".fingerpost-import-")
    });
    assert_eq!(left.count(), 2, "ours are gone");
    let full = base.path().join("full");
    fs::create_dir_all(full.join("x")).unwrap();
    assert!(
        export(
            &mut *Database::open(&file).unwrap().reader().unwrap(),
            &full
        )
        .is_err()
    );
}

#[test]
fn a_path_too_long_for_lmdbs_flat_key_is_refused() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("site");
    let long = [&"d".repeat(200), &"e".repeat(200), &"f".repeat(200)]
        .map(|s| s.as_str())
        .join("/");
    fs::create_dir_all(dir.join(&long)).unwrap();
    fs::write(dir.join(&long).join("page.html"), "x").unwrap();
    for store in Store::ALL {
        let file = base.path().join(store.name());
        let imported = import(&dir, &file, store, false, &never);
        if store.name() == "lmdb-flat" {
            assert!(imported.unwrap_err().to_string().contains("nested keys"));
        } else {
            imported.unwrap();
            let database = Database::open(&file).unwrap();
            assert!(
                body(
                    &mut *database.reader().unwrap(),
                    &format!("{long}/page.html")
                )
                .is_some(),
                "{store}"
            );
        }
    }
}

#[test]
fn no_file_of_locks_can_be_opened_by_others() {
    use std::os::unix::fs::PermissionsExt;
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("site");
    sample(&dir);
    for store in Store::ALL {
        let file = base.path().join(store.name());
        import(&dir, &file, store, false, &never).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        let suffix = if store.name().starts_with("sqlite") {
            "-shm"
        } else {
            "-lock"
        };
        let locks = base.path().join(format!("{store}{suffix}"));
        // As former versions, or other programs, left it.
        fs::write(&locks, vec![0; 40_000]).unwrap();
        fs::set_permissions(&locks, fs::Permissions::from_mode(0o644)).unwrap();
        let database = Database::open(&file).unwrap();
        let mut reader = database.reader().unwrap();
        assert!(body(&mut *reader, "index.html").is_some(), "{store}");
        let mode = fs::metadata(&locks).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0o600, "{store}");
    }
}

#[test]
fn a_writer_and_readers_of_redb_exclude_each_other() {
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("site");
    sample(&dir);
    let store: Store = "redb".parse().unwrap();
    let file = base.path().join("f");
    import(&dir, &file, store, false, &never).unwrap();
    let readers = [
        Database::open(&file).unwrap(),
        Database::open(&file).unwrap(),
    ];
    let said = |result: fingerpost_odb::Result<Database>| match result {
        Ok(_) => panic!("it was opened"),
        Err(e) => e.to_string(),
    };
    let me = format!("process {}", std::process::id());
    assert!(said(Database::open_for_writing(&file)).contains(&me));
    drop(readers);
    let writer = Database::open_for_writing(&file).unwrap();
    assert!(said(Database::open(&file)).contains(&me));
    drop(writer);
    Database::open(&file).unwrap();
    // Another program with redb, which knows the database's own locks only.
    let other = redb::Database::open(&file).unwrap();
    assert!(said(Database::open(&file)).contains(&me));
    drop(other);
    let ours = Database::open(&file).unwrap();
    assert!(redb::Database::open(&file).is_err());
    drop(ours);
}
