//! Groups in made-up trees, and, as root, real ones.

use std::process::{Child, Command, Stdio};

use super::*;

const MOUNTS_V2: &str = "1 0 0:1 / /cg rw - cgroup2 cgroup2 rw\n";

fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Paths) {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let paths = Paths::under(dir.path());
    (dir, paths)
}

/// Makes the planned group in a made-up tree and puts the control files there, as the kernel would.
fn made(paths: &Paths, controllers: &[Controller], files: &[&str]) -> Group {
    let mut group = Group::plan(&Hierarchies::of_self(paths), "fp", controllers).unwrap();
    group.make().unwrap();
    for (place, file) in group
        .places
        .iter()
        .flat_map(|place| files.iter().map(move |file| (place, file)))
    {
        fs::write(paths.path(place.directory.join(file)), "").unwrap();
    }
    group
}

fn text(paths: &Paths, file: &str) -> String {
    paths
        .read(file)
        .unwrap_or_else(|error| panic!("{file}: {error}"))
}

#[test]
fn version_2_hands_controllers_down_where_no_process_lives() {
    let (_dir, paths) = tree(&[
        ("proc/self/cgroup", "0::/slice/me\n"),
        ("proc/self/mountinfo", MOUNTS_V2),
        ("cg/cgroup.controllers", "cpu memory io\n"),
        ("cg/cgroup.subtree_control", "cpu memory io\n"),
        ("cg/slice/cgroup.type", "domain\n"),
        ("cg/slice/cgroup.procs", ""),
        ("cg/slice/cgroup.controllers", "cpu memory io\n"),
        ("cg/slice/cgroup.subtree_control", "cpu\n"),
        ("cg/slice/me/cgroup.type", "domain\n"),
        ("cg/slice/me/cgroup.procs", "77\n"),
        ("cg/slice/me/cgroup.controllers", "cpu\n"),
        ("cg/slice/me/cgroup.subtree_control", ""),
    ]);
    let files = [
        "cpu.max",
        "cpu.weight",
        "memory.max",
        "cgroup.procs",
        "io.max",
    ];
    let group = made(
        &paths,
        &[
            Controller::Cpu,
            Controller::Memory,
            Controller::Io,
            Controller::Freezer,
        ],
        &files,
    );
    assert_eq!(group.places()[0].directory, Path::new("/cg/slice/fp"));
    assert_eq!(group.places()[0].home, Path::new("/cg/slice/me"));
    assert_eq!(
        text(&paths, "cg/slice/cgroup.subtree_control"),
        "+memory +io"
    );
    group.set_cpu_quota(Some(0.5)).unwrap();
    assert_eq!(text(&paths, "cg/slice/fp/cpu.max"), "50000 100000");
    group.set_cpu_quota(None).unwrap();
    assert_eq!(text(&paths, "cg/slice/fp/cpu.max"), "max 100000");
    group.set_cpu_weight(0).unwrap();
    assert_eq!(text(&paths, "cg/slice/fp/cpu.weight"), "1");
    group.set_memory_limit(Some(1 << 20)).unwrap();
    assert_eq!(text(&paths, "cg/slice/fp/memory.max"), "1048576");
    group
        .set_io_limit(
            (8, 0),
            Throttle {
                write_bytes: Some(1000),
                ..Default::default()
            },
        )
        .unwrap();
    assert_eq!(
        text(&paths, "cg/slice/fp/io.max"),
        "8:0 rbps=max wbps=1000 riops=max wiops=max"
    );
    group.add_pid(4242).unwrap();
    assert_eq!(group.pids(), [4242]);
}

#[test]
fn version_2_without_delegation_is_refused_with_the_way_out() {
    let (_dir, paths) = tree(&[
        ("proc/self/cgroup", "0::/\n"),
        ("proc/self/mountinfo", MOUNTS_V2),
        ("cg/cgroup.type", "domain\n"),
        ("cg/cgroup.procs", "1\n"),
        ("cg/cgroup.controllers", "cpu\n"),
        ("cg/cgroup.subtree_control", ""),
    ]);
    let error = Group::plan(&Hierarchies::of_self(&paths), "fp", &[Controller::Cpu]).unwrap_err();
    assert!(error.to_string().contains("Delegate=yes"), "{error}");
    let error =
        Group::plan(&Hierarchies::of_self(&paths), "fp", &[Controller::Memory]).unwrap_err();
    assert!(matches!(error, CgroupError::NoController("memory")));
}

#[test]
fn version_1_has_a_directory_for_each_hierarchy() {
    let (_dir, paths) = tree(&[
        (
            "proc/self/cgroup",
            "3:cpuset:/\n2:memory:/a\n1:cpu:/\n4:blkio:/\n",
        ),
        (
            "proc/self/mountinfo",
            "1 0 0:1 / /m rw - cgroup cgroup rw,memory\n2 0 0:2 / /c rw - cgroup cgroup rw,cpu\n3 0 0:3 / /b rw - \
             cgroup cgroup rw,blkio\n",
        ),
        ("m/a/cgroup.procs", ""),
        ("c/cgroup.procs", ""),
        ("b/cgroup.procs", ""),
    ]);
    let files = [
        "cpu.cfs_period_us",
        "cpu.cfs_quota_us",
        "cpu.shares",
        "memory.limit_in_bytes",
    ];
    let io = ["read_bps", "write_bps", "read_iops", "write_iops"]
        .map(|name| format!("blkio.throttle.{name}_device"));
    let files: Vec<&str> = files
        .into_iter()
        .chain(io.iter().map(String::as_str))
        .collect();
    let group = made(
        &paths,
        &[Controller::Memory, Controller::Cpu, Controller::Io],
        &files,
    );
    group.set_cpu_quota(Some(1.5)).unwrap();
    group.set_cpu_weight(200).unwrap();
    group.set_memory_limit(Some(4096)).unwrap();
    group
        .set_io_limit(
            (254, 0),
            Throttle {
                read_operations: Some(7),
                ..Default::default()
            },
        )
        .unwrap();
    assert_eq!(
        (
            text(&paths, "c/fp/cpu.cfs_period_us"),
            text(&paths, "c/fp/cpu.cfs_quota_us")
        ),
        ("100000".into(), "150000".into())
    );
    assert_eq!(text(&paths, "c/fp/cpu.shares"), "2048");
    assert_eq!(text(&paths, "m/a/fp/memory.limit_in_bytes"), "4096");
    assert_eq!(
        text(&paths, "b/fp/blkio.throttle.read_iops_device"),
        "254:0 7"
    );
    assert_eq!(
        text(&paths, "b/fp/blkio.throttle.write_bps_device"),
        "254:0 0"
    );
}

#[test]
fn names_and_values_that_no_kernel_takes_are_refused() {
    let (_dir, paths) = tree(&[
        ("proc/self/cgroup", "1:cpu:/\n"),
        ("proc/self/mountinfo", "2 0 0:2 / /c rw - cgroup c rw,cpu\n"),
        ("c/x", ""),
    ]);
    for name in ["", "..", "a/b", ".x", "a b", &"x".repeat(65)] {
        let result = Group::plan(&Hierarchies::of_self(&paths), name, &[Controller::Cpu]);
        assert!(matches!(result, Err(CgroupError::Name(_))), "{name}");
    }
    let group = made(
        &paths,
        &[Controller::Cpu],
        &["cpu.cfs_period_us", "cpu.cfs_quota_us"],
    );
    for cpus in [0.0, -1.0, f64::NAN, f64::INFINITY, 0.001] {
        assert!(
            matches!(group.set_cpu_quota(Some(cpus)), Err(CgroupError::Value(_))),
            "{cpus}"
        );
    }
}

#[test]
fn a_place_survives_a_journal() {
    let place = Place {
        directory: "/c/fp".into(),
        home: "/c".into(),
        enabled: vec!["cpu".into()],
        version: None,
        controllers: vec![],
    };
    let text = serde_json::to_string(&place).unwrap();
    assert_eq!(serde_json::from_str::<Place>(&text).unwrap(), place);
}

/// The controllers of this machine that a group can be made with, or `None` where that needs rights that we lack.
fn real_group(name: &str, controllers: &[Controller]) -> Option<Group> {
    let name = format!("fingerpost-test-{name}-{}", std::process::id());
    fingerpost_testing::had(Group::create(&name, controllers))
}

fn sleeper() -> Child {
    Command::new("sleep")
        .arg("60")
        .stdin(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn a_real_group_limits_and_goes_away() {
    let Some(group) = real_group("limits", &[Controller::Cpu, Controller::Memory]) else {
        return;
    };
    group.set_cpu_quota(Some(0.5)).unwrap();
    group.set_memory_limit(Some(64 << 20)).unwrap();
    let mut child = sleeper();
    group.add_pid(child.id()).unwrap();
    assert_eq!(group.pids(), [child.id()]);
    assert!(group.throttling().is_some() && group.memory_bytes().is_some());
    let (directory, version) = group.place(Controller::Memory).unwrap();
    let file = if version == Version::V1 {
        "memory.limit_in_bytes"
    } else {
        "memory.max"
    };
    assert_eq!(
        group.paths.number::<u64>(directory.join(file)),
        Some(64 << 20)
    );
    let places: Vec<PathBuf> = group
        .places
        .iter()
        .map(|place| place.directory.clone())
        .collect();
    // The child still lives: it is moved out, not killed.
    group.remove().unwrap();
    assert!(places.iter().all(|place| !place.exists()));
    assert!(child.try_wait().unwrap().is_none());
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn a_real_group_left_behind_is_removed_by_its_places() {
    let Some(group) = real_group("left", &[Controller::Freezer]) else {
        return;
    };
    let places: Vec<Place> = group
        .places
        .iter()
        .map(|p| serde_json::from_str(&serde_json::to_string(p).unwrap()).unwrap())
        .collect();
    // As if the process had been killed: nothing is dropped.
    std::mem::forget(group);
    for place in &places {
        assert!(place.directory.exists());
        remove_directory(place).unwrap();
        assert!(!place.directory.exists());
        remove_directory(place).unwrap();
    }
}

#[test]
fn a_real_group_of_version_2_takes_a_process() {
    let mut hierarchies = Hierarchies::of_self(&Paths::system());
    hierarchies.all.retain(|h| h.version == Version::V2);
    if hierarchies.all.is_empty() {
        return fingerpost_testing::skipped("no version 2 hierarchy is mounted");
    }
    let mut group = Group::plan(
        &hierarchies,
        &format!("fingerpost-test-v2-{}", std::process::id()),
        &[Controller::Freezer],
    )
    .unwrap();
    if let Err(error) = group.make() {
        return fingerpost_testing::skipped(error);
    }
    let mut child = sleeper();
    group.add_pid(child.id()).unwrap();
    assert_eq!(group.pids(), [child.id()]);
    child.kill().unwrap();
    child.wait().unwrap();
    group.remove().unwrap();
}
