use std::fs as paths;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

fn mode(path: &Path, mode: u32) {
    paths::set_permissions(path, paths::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_directory_that_others_could_change_is_refused() {
    let base = tempfile::tempdir().unwrap();
    let (open, inner) = (base.path().join("open"), base.path().join("open/inner"));
    paths::create_dir_all(&inner).unwrap();
    assert!(Dir::open(&inner, Trust::Strict).is_ok());
    mode(&open, 0o777);
    let refused = Dir::open(&inner, Trust::Strict).unwrap_err().to_string();
    assert!(
        refused.contains("/open ") && refused.contains("0777"),
        "{refused}"
    );
    mode(&open, 0o1777);
    assert!(
        Dir::open(&inner, Trust::Strict).is_ok(),
        "a sticky directory keeps what is ours"
    );
    paths::write(base.path().join("file"), "").unwrap();
    assert!(Dir::open(&base.path().join("file"), Trust::Strict).is_err());
}

#[test]
fn links_of_ours_are_followed_and_those_of_others_are_not() {
    let base = tempfile::tempdir().unwrap();
    let (real, link) = (base.path().join("real"), base.path().join("link"));
    paths::create_dir(&real).unwrap();
    symlink(
        "../".to_owned() + base.path().file_name().unwrap().to_str().unwrap() + "/real",
        &link,
    )
    .unwrap();
    let identity = Dir::open(&real, Trust::Strict).unwrap().identity().unwrap();
    assert_eq!(
        Dir::open(&link, Trust::Strict).unwrap().identity().unwrap(),
        identity
    );
    symlink("loop", base.path().join("loop")).unwrap();
    assert_eq!(
        Dir::open(&base.path().join("loop"), Trust::Strict)
            .unwrap_err()
            .raw_os_error(),
        Some(libc::ELOOP)
    );
    if fingerpost_sys::system::is_root() {
        std::os::unix::fs::lchown(&link, Some(65534), None).unwrap();
        assert!(
            Dir::open(&link, Trust::Strict)
                .unwrap_err()
                .to_string()
                .contains("another user")
        );
        std::os::unix::fs::lchown(&real, Some(65534), None).unwrap();
        assert!(
            Dir::open(&real, Trust::Strict)
                .unwrap_err()
                .to_string()
                .contains("owner 65534")
        );
    }
}

#[test]
fn what_is_opened_as_ours_is_ours_alone() {
    let base = tempfile::tempdir().unwrap();
    let dir = Dir::open(base.path(), Trust::Strict).unwrap();
    let made = dir.make("made", 0o711).unwrap();
    assert_eq!(
        paths::metadata(made.path()).unwrap().permissions().mode() & 0o777,
        0o711
    );
    assert!(
        dir.private("made")
            .unwrap_err()
            .to_string()
            .contains("0711")
    );
    assert!(dir.make("made", 0o700).is_err(), "it must be new");
    symlink("made", base.path().join("link")).unwrap();
    assert!(dir.own("link").is_err());
    made.new_file("lock").unwrap();
    assert!(made.file("lock").is_ok());
    assert!(made.new_file("lock").is_err());
    mode(&made.path().join("lock"), 0o644);
    assert!(made.file("lock").is_err());
    symlink("lock", made.path().join("other")).unwrap();
    assert!(made.file("other").is_err());
    rustix::fs::mknodat(&made, "fifo", FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    assert!(
        made.file("fifo").is_err(),
        "and it did not wait for the other end"
    );
}

#[test]
fn removing_follows_no_link_and_takes_only_what_is_meant() {
    let base = tempfile::tempdir().unwrap();
    let dir = Dir::open(base.path(), Trust::Strict).unwrap();
    let kept = base.path().join("kept");
    paths::create_dir(&kept).unwrap();
    paths::write(kept.join("file"), "x").unwrap();
    let tree = dir.make("tree", 0o700).unwrap();
    symlink(&kept, tree.path().join("link")).unwrap();
    paths::create_dir(tree.path().join("within")).unwrap();
    let other = dir.make("other", 0o700).unwrap().identity().unwrap();
    assert_eq!(dir.remove("tree", Some(other)).unwrap(), Removal::Replaced);
    assert!(tree.path().exists());
    assert_eq!(
        dir.remove("tree", Some(tree.identity().unwrap())).unwrap(),
        Removal::Gone
    );
    assert!(!tree.path().exists() && kept.join("file").exists());
    assert_eq!(dir.remove("tree", None).unwrap(), Removal::Gone);
    symlink(&kept, base.path().join("swapped")).unwrap();
    assert_eq!(
        dir.remove("swapped", Some(other)).unwrap(),
        Removal::Replaced
    );
    assert_eq!(dir.remove("swapped", None).unwrap(), Removal::Gone);
    assert!(kept.join("file").exists());
}

#[test]
fn a_tree_of_any_depth_is_removed_with_few_descriptors() {
    let base = tempfile::tempdir().unwrap();
    let dir = Dir::open(base.path(), Trust::Strict).unwrap();
    let mut at = OwnedFd::from(paths::File::from(dir.make("deep", 0o700).unwrap().fd));
    for _ in 0..1500 {
        fs::mkdirat(&at, "d", Mode::from_raw_mode(0o700)).unwrap();
        at = fs::openat(&at, "d", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
    }
    assert_eq!(dir.remove("deep", None).unwrap(), Removal::Gone);
    assert!(!base.path().join("deep").exists());
}

#[test]
fn outside_of_a_map_is_nobody_and_a_whole_map_has_no_outside() {
    assert!(!walk::unmapped("         0          0 4294967295\n", 65534));
    assert!(walk::unmapped("         0       1000          1\n", 65534));
    assert!(!walk::unmapped("0 100000 65536\n", 65534));
    assert!(!walk::unmapped("", 65534));
}
