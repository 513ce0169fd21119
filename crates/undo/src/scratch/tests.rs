use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::*;

/// As kill -9 does: the locks are released, nothing else happens.
fn kill(mut scratch: Scratch) {
    scratch._locks = (fs::File::open("/dev/null").unwrap(), Vec::new());
    std::mem::forget(scratch);
}

fn runs(root: &Path) -> Vec<PathBuf> {
    fs::read_dir(root.join(places::CONTROL))
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect()
}

/// Sweeps until something is told, or a path is gone. A child of another test, between its fork and its exec, holds a
/// lock that was dropped here.
fn swept(root: &Path, path: &Path) -> Vec<String> {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let told = sweep_in(root);
        if !told.is_empty() || !path.exists() || Instant::now() > deadline {
            return told;
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_dropped_scratch_leaves_nothing() {
    let base = tempfile::tempdir().unwrap();
    let root = base.path().join("root");
    let mine = base.path().join("mine");
    fs::create_dir(&mine).unwrap();
    {
        let mut scratch = Scratch::create_in(&root).unwrap();
        let (dir, _) = scratch.directory_in(&mine).unwrap();
        fs::write(dir.join("file"), "x").unwrap();
        let (nested, ticket) = scratch
            .directory_in(scratch.path().to_owned().as_path())
            .unwrap();
        fs::write(nested.join("file"), "x").unwrap();
        scratch.undo(ticket).unwrap();
        assert!(!nested.exists() && scratch.path().exists());
        fs::write(scratch.subdir("data").unwrap().join("file"), "x").unwrap();
        assert_eq!(runs(&root).len(), 1);
    }
    assert!(runs(&root).is_empty() && fs::read_dir(&mine).unwrap().next().is_none());
    assert_eq!(
        fs::read_dir(&root).unwrap().count(),
        1,
        "the control directory stays"
    );
}

#[test]
fn a_scratch_whose_owner_lives_is_not_swept() {
    let base = tempfile::tempdir().unwrap();
    let scratch = Scratch::create_in(&base.path().join("root")).unwrap();
    // A lock belongs to the open file, so a second open of it in this process competes as another process would.
    assert!(sweep_in(&base.path().join("root")).is_empty());
    assert!(scratch.path().exists());
}

/// What the owner had begun to start has its lock until it is another program: that is waited for.
#[test]
fn a_lock_that_outlives_its_owner_is_waited_for() {
    use std::os::unix::fs::FileExt;
    let base = tempfile::tempdir().unwrap();
    let root = base.path().join("root");
    let scratch = Scratch::create_in(&root).unwrap();
    let (name, dir) = (scratch.run.1.clone(), scratch.path().to_owned());
    let held = scratch._locks.0.try_clone().unwrap();
    let control = Dir::open(&root, crate::owned::Trust::Strict).unwrap();
    let control = control.private(places::CONTROL).unwrap();
    let found = || reclaim(&control, name.as_ref(), "").unwrap();
    assert_eq!(found(), Found::InUse);
    // No process has this number and this start.
    held.write_at(b"1 1\n", 0).unwrap();
    held.set_len(4).unwrap();
    kill(scratch);
    assert_eq!(found(), Found::Guarded);
    drop(held);
    assert!(!swept(&root, &dir).is_empty() && !dir.exists());
}

#[test]
fn what_a_killed_owner_left_is_swept() {
    let base = tempfile::tempdir().unwrap();
    let root = base.path().join("root");
    let mut scratch = Scratch::create_in(&root).unwrap();
    let (outside, _) = scratch.directory_in(base.path()).unwrap();
    fs::write(outside.join("file"), "x").unwrap();
    let mut server = scratch.spawn(Command::new("sleep").arg("600")).unwrap();
    let dir = scratch.path().to_owned();
    kill(scratch);
    let told = swept(&root, &dir);
    assert!(told.iter().any(|s| s.contains("process group")), "{told:?}");
    assert!(!dir.exists() && !outside.exists());
    assert!(
        child::wait_deadline(&mut server.child, Instant::now() + Duration::from_secs(10))
            .unwrap()
            .is_some()
    );
    assert!(sweep_in(&root).is_empty() && runs(&root).is_empty());
}

#[test]
fn a_server_that_was_stopped_is_in_the_journal_no_more() {
    let base = tempfile::tempdir().unwrap();
    let mut scratch = Scratch::create_in(&base.path().join("root")).unwrap();
    let script = "trap '' TERM; sleep 600 & echo ready; wait; wait";
    let mut server = scratch
        .spawn(
            Command::new("sh")
                .args(["-c", script])
                .stdout(std::process::Stdio::piped()),
        )
        .unwrap();
    let mut ready = [0; 6];
    io::Read::read_exact(&mut server.child.stdout.take().unwrap(), &mut ready).unwrap();
    let entries = scratch.log.entries.len();
    let pgid = server.pid();
    scratch.stop(server).unwrap();
    assert_eq!(scratch.log.entries.len(), entries - 1);
    let rest = || {
        child::marked(scratch.path())
            .into_iter()
            .filter(|pid| sample::process(*pid).is_some_and(|p| p.group == pgid))
            .count()
    };
    let deadline = Instant::now() + Duration::from_secs(10);
    while rest() > 0 {
        assert!(Instant::now() < deadline, "the group lives on");
        std::thread::yield_now();
    }
    // One that ended by itself, and was waited for, left what it started.
    let mut gone = scratch
        .spawn(Command::new("sh").args(["-c", "sleep 600 & exit 0"]))
        .unwrap();
    gone.child.wait().unwrap();
    scratch.stop(gone).unwrap();
    assert!(child::marked(scratch.path()).is_empty());
}

#[test]
fn a_root_that_others_can_write_to_is_refused() {
    let base = tempfile::tempdir().unwrap();
    let root = base.path().join("root");
    fs::create_dir(&root).unwrap();
    fs::set_permissions(&root, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(
        Scratch::create_in(&root)
            .unwrap_err()
            .to_string()
            .contains("not this user's alone")
    );
    assert!(sweep_in(&root).is_empty());
}

#[test]
fn what_is_not_ours_alone_is_not_undone() {
    let base = tempfile::tempdir().unwrap();
    let root = base.path().join("root");
    let file = |name: &str| runs(&root)[0].join(name);
    let widen: [&dyn Fn() -> PathBuf; 4] = [
        &|| root.join(places::CONTROL),
        &|| runs(&root)[0].clone(),
        &|| file("lock"),
        &|| file("journal"),
    ];
    for path in widen {
        let mut scratch = Scratch::create_in(&root).unwrap();
        let (outside, _) = scratch.directory_in(base.path()).unwrap();
        kill(scratch);
        let path = path();
        let before = fs::metadata(&path).unwrap().permissions();
        fs::set_permissions(&path, fs::Permissions::from_mode(before.mode() | 0o007)).unwrap();
        let told = sweep_in(&root);
        assert!(outside.exists(), "{}: {told:?}", path.display());
        fs::set_permissions(&path, before).unwrap();
        let told = swept(&root, &outside);
        assert!(!outside.exists(), "{}: {told:?}", path.display());
    }
}

#[test]
fn a_journal_that_we_cannot_have_written_is_kept_and_said() {
    let base = tempfile::tempdir().unwrap();
    let root = base.path().join("root");
    let scratch = Scratch::create_in(&root).unwrap();
    let (work, run) = (scratch.path().to_owned(), runs(&root)[0].clone());
    kill(scratch);
    let victim = base.path().join("victim");
    fs::write(&victim, "x").unwrap();
    let text = fs::read_to_string(run.join("journal")).unwrap();
    fs::write(
        run.join("journal"),
        format!("{text}{{\"n\":1,\"undo\":\"remove_path\",\"path\":{victim:?}}}\n"),
    )
    .unwrap();
    let told = swept(&root, &run);
    assert!(
        told.len() == 1 && told[0].contains("left alone: line 3"),
        "{told:?}"
    );
    assert!(victim.exists() && work.exists() && run.exists());
}
