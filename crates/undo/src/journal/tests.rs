use super::log::{Log, MOST_BYTES, areas, order, parse};
use super::*;

const AREA: &str = "/tmp/fingerpost-0123456789abcdef";

fn new_dir(base: &Path) -> Dir {
    Dir::open(base, Trust::Strict).unwrap()
}

fn text(dir: &Path) -> String {
    fs::read_to_string(dir.join(log::NAME)).unwrap()
}

fn directory() -> Undo {
    Undo::RemoveDirectory { path: AREA.into() }
}

#[test]
fn a_journal_survives_being_cut_short_and_refuses_all_else() {
    let base = tempfile::tempdir().unwrap();
    let dir = new_dir(base.path());
    let mut log = Log::create(&dir).unwrap();
    log.record(&dir, directory()).unwrap();
    log.made(0, Identity { dev: 1, ino: 2 }).unwrap();
    log.record(
        &dir,
        Undo::RemovePath {
            path: Path::new(AREA).join("a b"),
        },
    )
    .unwrap();
    log.record(
        &dir,
        Undo::SwapOff {
            path: "/dev/loop3".into(),
            uuid: [7; 16],
        },
    )
    .unwrap();
    log.strike(1).unwrap();
    let whole = text(base.path());
    assert_eq!(parse(&whole).unwrap(), log.entries);
    assert_eq!(Log::open(&dir).unwrap().unwrap().entries, log.entries);
    assert_eq!(
        areas(&log.entries).0,
        [Area {
            path: AREA.into(),
            made: Some(Identity { dev: 1, ino: 2 })
        }]
    );
    let cut = parse(&whole[..whole.len() - 5]).unwrap();
    assert_eq!(cut.len(), 3, "the last line was for what had not happened");
    assert!(parse(&whole[5..]).unwrap_err().contains("line 1"));
    assert!(
        parse(&(whole.clone() + &whole))
            .unwrap_err()
            .contains("number is taken")
    );
    assert!(
        parse("{\"undo\":\"write_file\",\"path\":\"/etc/x\",\"content\":\"1\"}\n").is_err(),
        "as former versions wrote it"
    );
}

fn within(name: &str) -> PathBuf {
    Path::new(AREA).join(name)
}

fn place(directory: &str, home: &str) -> Undo {
    let place = serde_json::json!({"directory": directory, "home": home, "enabled": ["memory"]});
    Undo::RemoveGroup {
        place: serde_json::from_value(place).unwrap(),
    }
}

fn setting(file: &str, content: &str) -> Undo {
    Undo::GroupSetting {
        file: file.into(),
        content: content.into(),
    }
}

fn threads(tid: i32, nice: i32) -> Undo {
    let was = [serde_json::json!({"pid": 42, "tid": tid, "started": 7, "had": {"nice": nice}})];
    let before = serde_json::json!({"boot": boot_id(), "to": {"nice": -20}, "was": was});
    Undo::Threads {
        before: serde_json::from_value(before).unwrap(),
    }
}

#[test]
fn an_entry_says_no_more_than_this_version_writes() {
    let known = Areas(vec![Area {
        path: AREA.into(),
        made: None,
    }]);
    let good = [
        directory(),
        Undo::RemovePath {
            path: within("data/x"),
        },
        Undo::Unmount {
            path: within("mount-ext4"),
        },
        Undo::KillMarked {
            scratch: AREA.into(),
        },
        Undo::WriteFile {
            path: "/sys/kernel/mm/transparent_hugepage/enabled".into(),
            content: "madvise\n".into(),
        },
        Undo::SwapOff {
            path: within("swap"),
            uuid: [0; 16],
        },
        Undo::SwapOn {
            path: "/swapfile".into(),
            priority: -2,
        },
        Undo::LoopDetach {
            device: "/dev/loop7".into(),
            backing: within("image"),
            remove: true,
        },
        Undo::KillGroup {
            pgid: 42,
            start: 1,
            boot: boot_id(),
        },
        place(
            "/sys/fs/cgroup/none/fingerpost-launch-1",
            "/sys/fs/cgroup/none",
        ),
        setting("/sys/fs/cgroup/none/at/all/cpu.max", "150000 100000"),
        setting("/sys/fs/cgroup/none/at/all/freezer.state", "THAWED"),
        Undo::Continue {
            processes: vec![(42, 7)],
            boot: boot_id(),
        },
        threads(42, 5),
    ];
    for undo in &good {
        assert_eq!(permit::check(undo, &known), Ok(()), "{undo:?}");
    }
    let path = |p: &str| Undo::RemovePath { path: p.into() };
    let write = |path: &str, content: &str| Undo::WriteFile {
        path: path.into(),
        content: content.into(),
    };
    let bad = [
        path("/etc/passwd"),
        path(AREA),
        path(&format!("{AREA}/../x")),
        path(&format!("{AREA}//x")),
        path("relative"),
        Undo::RemoveDirectory {
            path: "/etc".into(),
        },
        Undo::RemoveDirectory {
            path: "/tmp/fingerpost-0".into(),
        },
        Undo::RemoveDirectory {
            path: "/tmp/../fingerpost-0123456789abcdef".into(),
        },
        Undo::RemoveSegment {
            note: "/var/lib/postgresql/postmaster.pid".into(),
        },
        Undo::Unmount {
            path: "/home".into(),
        },
        Undo::Unmount {
            path: within("data/deep"),
        },
        Undo::KillMarked {
            scratch: "/tmp/fingerpost-fedcba9876543210".into(),
        },
        Undo::KillMembers {
            directory: "/sys/fs/cgroup/system.slice".into(),
        },
        Undo::KillMembers {
            directory: "/tmp/fingerpost-x".into(),
        },
        Undo::KillGroup {
            pgid: 1,
            start: 0,
            boot: String::new(),
        },
        Undo::KillGroup {
            pgid: -1,
            start: 0,
            boot: String::new(),
        },
        write("/etc/passwd", "x"),
        write(
            "/sys/kernel/mm/transparent_hugepage/enabled",
            "always\nnever",
        ),
        write("/sys/kernel/mm/transparent_hugepage/../../../etc", "x"),
        Undo::SwapOff {
            path: "/swapfile".into(),
            uuid: [0; 16],
        },
        Undo::LoopDetach {
            device: "/dev/loop7".into(),
            backing: "/srv/image".into(),
            remove: true,
        },
        Undo::LoopDetach {
            device: "/dev/sda".into(),
            backing: within("image"),
            remove: true,
        },
        Undo::Unthrottle {
            file: "/etc/blkio.throttle.x_device".into(),
            device: "7:0".into(),
        },
        place("/etc/fingerpost-x", "/etc"),
        place("/sys/fs/cgroup/system.slice", "/sys/fs/cgroup"),
        setting("/etc/cpu.max", "1 1"),
        setting("/sys/fs/cgroup/none/cgroup.procs", "1"),
        setting("/sys/fs/cgroup/none/freezer.state", "FROZEN"),
        Undo::Continue {
            processes: vec![(1, 7)],
            boot: boot_id(),
        },
        threads(1, 5),
        threads(42, 50),
    ];
    for undo in &bad {
        assert!(permit::check(undo, &known).is_err(), "{undo:?}");
    }
}

#[test]
fn a_grown_journal_is_written_anew_and_a_full_one_takes_no_more() {
    let base = tempfile::tempdir().unwrap();
    let dir = new_dir(base.path());
    let mut log = Log::create(&dir).unwrap();
    log.record(&dir, directory()).unwrap();
    log.made(0, Identity { dev: 1, ino: 2 }).unwrap();
    for _ in 0..150 {
        let n = log
            .record(
                &dir,
                Undo::RemovePath {
                    path: Path::new(AREA).join("x".repeat(1000)),
                },
            )
            .unwrap();
        log.strike(n).unwrap();
    }
    assert!(
        text(base.path()).len() < 80 << 10,
        "{}",
        text(base.path()).len()
    );
    assert_eq!(parse(&text(base.path())).unwrap(), log.entries);
    assert_eq!(
        areas(&log.entries).0[0].made,
        Some(Identity { dev: 1, ino: 2 })
    );
    let name = "x".repeat(4000);
    let refused = (0..1000)
        .find_map(|_| {
            log.record(
                &dir,
                Undo::RemovePath {
                    path: Path::new(AREA).join(&name),
                },
            )
            .err()
        })
        .unwrap();
    assert_eq!(refused.kind(), io::ErrorKind::FileTooLarge);
    assert!(text(base.path()).len() < MOST_BYTES as usize);
    fs::write(
        base.path().join(log::NAME),
        vec![b'x'; MOST_BYTES as usize + 1],
    )
    .unwrap();
    assert!(Log::open(&dir).unwrap().unwrap_err().contains("more than"));
    fs::write(base.path().join(log::NAME), [0xff, b'\n']).unwrap();
    assert!(Log::open(&dir).unwrap().is_err());
}

#[test]
fn settings_come_first_and_processes_end_before_the_rest() {
    let text = r#"{"n":0,"undo":"remove_directory","path":"/tmp/fingerpost-0123456789abcdef"}
{"n":1,"undo":"kill_marked","scratch":"/tmp/fingerpost-0123456789abcdef"}
{"n":2,"undo":"unmount","path":"/tmp/fingerpost-0123456789abcdef/m"}
{"n":3,"undo":"kill_group","pgid":5,"start":1,"boot":"b"}
{"n":4,"undo":"zram_reset","number":0,"bytes":1,"remove":false}
{"n":5,"undo":"write_file","path":"/sys/kernel/mm/transparent_hugepage/enabled","content":"madvise"}
{"n":6,"undo":"continue","processes":[[7,8]],"boot":"b"}
{"n":7,"undo":"swap_on","path":"/dev/sda2","priority":-2}
"#;
    assert_eq!(order(&parse(text).unwrap()), [7, 5, 6, 3, 1, 4, 2, 0]);
}

#[test]
fn a_group_of_another_boot_or_start_is_a_strangers() {
    use std::os::unix::process::CommandExt;
    let mut child = std::process::Command::new("sleep")
        .arg("600")
        .process_group(0)
        .spawn()
        .unwrap();
    let pgid = child.id() as i32;
    let start = child::start_time(pgid).unwrap();
    let of = |start, boot: &str| {
        Undo::KillGroup {
            pgid,
            start,
            boot: boot.to_owned(),
        }
        .apply(&Areas::default())
    };
    of(start + 1, &boot_id()).unwrap();
    of(0, &boot_id()).unwrap();
    of(start, "another boot").unwrap();
    assert!(child.try_wait().unwrap().is_none());
    of(start, &boot_id()).unwrap();
    assert!(!child.wait().unwrap().success());
}

#[test]
fn the_note_of_a_postgresql_server_names_its_segment() {
    let note = "4711\n/data\n1700000000\n5432\n/run\n\n   5432001        29\nready   \n";
    assert_eq!(parse_postmaster_note(note), Some((5_432_001, 29)));
    assert_eq!(parse_postmaster_note("4711\n/data\n"), None);
}

#[test]
fn what_lies_within_is_reached_without_following_links() {
    let base = tempfile::tempdir().unwrap();
    let kept = base.path().join("kept");
    fs::create_dir(&kept).unwrap();
    fs::write(kept.join("file"), "x").unwrap();
    let dir = new_dir(base.path());
    let area = dir.make("fingerpost-0123456789abcdef", 0o711).unwrap();
    let areas = Areas(vec![Area {
        path: area.path().into(),
        made: Some(area.identity().unwrap()),
    }]);
    std::os::unix::fs::symlink(&kept, area.path().join("out")).unwrap();
    let remove = |name: &str| {
        Undo::RemovePath {
            path: area.path().join(name),
        }
        .apply(&areas)
    };
    assert!(remove("out/file").is_err());
    assert!(kept.join("file").exists());
    fs::create_dir_all(area.path().join("data/deep")).unwrap();
    assert_eq!(remove("data/deep"), Ok(()));
    assert_eq!(
        remove("data/deep"),
        Ok(()),
        "what is gone needs no removing"
    );
    assert_eq!(remove("none/none"), Ok(()));
    assert!(area.path().join("data").exists());
    assert_eq!(
        Undo::RemoveSegment {
            note: area.path().join("out/file")
        }
        .apply(&areas),
        Ok(())
    );

    let whole = Undo::RemoveDirectory {
        path: area.path().into(),
    };
    fs::rename(area.path(), base.path().join("moved")).unwrap();
    fs::create_dir(area.path()).unwrap();
    fs::write(area.path().join("file"), "x").unwrap();
    assert!(whole.apply(&areas).unwrap_err().contains("left alone"));
    assert_eq!(remove("file"), Ok(()));
    assert!(
        area.path().join("file").exists(),
        "it is in another directory than ours"
    );
}

/// A segment of shared memory of ours, with its key.
#[allow(unsafe_code)]
fn segment() -> (i32, i32) {
    let key = 0x4651_0000 | (std::process::id() as i32 & 0xffff);
    // SAFETY: shmget takes plain numbers.
    let id = unsafe { libc::shmget(key, 4096, libc::IPC_CREAT | libc::IPC_EXCL | 0o600) };
    assert!(id >= 0, "{}", io::Error::last_os_error());
    (key, id)
}

#[test]
fn a_segment_is_removed_only_where_the_notes_owner_made_it() {
    let base = tempfile::tempdir().unwrap();
    let area = new_dir(base.path())
        .make("fingerpost-0123456789abcdef", 0o711)
        .unwrap();
    let areas = Areas(vec![Area {
        path: area.path().into(),
        made: Some(area.identity().unwrap()),
    }]);
    let (note, second) = (
        area.path().join("postmaster.pid"),
        area.path().join("second"),
    );
    let (key, id) = segment();
    fs::write(
        &note,
        format!("1\n/data\n1\n5432\n/run\n\n{key} {id}\nready\n"),
    )
    .unwrap();
    let exists = || {
        fs::read_to_string("/proc/sysvipc/shm")
            .unwrap()
            .lines()
            .any(|l| l.split_ascii_whitespace().nth(1) == Some(&id.to_string()))
    };
    let undo = Undo::RemoveSegment { note: note.clone() };
    if fingerpost_sys::system::is_root() {
        // The server's user names a segment of somebody else's.
        std::os::unix::fs::chown(&note, Some(65_534), None).unwrap();
        assert_eq!(undo.apply(&areas), Ok(()));
        assert!(exists());
        std::os::unix::fs::chown(&note, Some(0), None).unwrap();
    }
    // Another name of somebody's file has somebody's owner, and not that of who put it there.
    fs::hard_link(&note, &second).unwrap();
    assert_eq!(undo.apply(&areas), Ok(()));
    assert!(exists());
    fs::remove_file(&second).unwrap();
    assert_eq!(undo.apply(&areas), Ok(()));
    assert!(!exists());
}
