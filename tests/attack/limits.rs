//! Limits of the system: processes, file sizes, memory, a full disk, names that are no UTF-8.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixListener;
use std::process::Command;

use fingerpost_record::fixture;

use crate::support::{Home, Said, binary, is_root};

fn run_text() -> Vec<u8> {
    serde_json::to_vec(&fixture::with_everything()).unwrap()
}

#[test]
fn what_is_no_regular_file_is_refused_and_never_waited_for() {
    let home = Home::new();
    assert!(
        Command::new("mkfifo")
            .arg(home.path("pipe.json"))
            .status()
            .unwrap()
            .success()
    );
    let _socket = UnixListener::bind(home.path("socket.json")).unwrap();
    std::os::unix::fs::symlink("loop.json", home.path("loop.json")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", home.path("device.json")).unwrap();
    std::fs::create_dir(home.path("dir.json")).unwrap();
    std::fs::File::create(home.path("sparse.json"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    for name in ["pipe", "socket", "loop", "device", "dir", "sparse"] {
        let file = format!("./{name}.json");
        for words in [
            vec!["show", &file],
            vec!["explain", &file],
            vec!["compare", &file, "ref:lmbench"],
            vec!["zerofill", &file],
            vec!["report", &file, "-o", "r.html"],
            vec!["archive", "import", &file],
            vec!["archive", "import", "--from", "hyperfine", &file],
        ] {
            let said = home.says(&words);
            assert_eq!(said.status, Some(2), "{words:?}: {}", said.err);
            assert!(
                said.err.starts_with("fingerpost: ") && said.err.contains(name),
                "{words:?}: {}",
                said.err
            );
        }
    }
    for name in ["pipe", "device", "loop"] {
        std::fs::rename(
            home.path(format!("{name}.json")),
            home.path(format!("runs/{name}.json")),
        )
        .unwrap();
    }
    let said = home.says(&["archive", "verify"]);
    assert_eq!(said.status, Some(2), "{}", said.err);
    assert!(
        said.err.contains("it is a pipe") && said.err.contains("it is a device"),
        "{}",
        said.err
    );
    home.says(&["archive", "list"]).lived();
}

#[test]
fn what_a_shell_hands_over_may_be_a_pipe() {
    let home = Home::new();
    let file = home.write("x.json", run_text());
    let mut command = Command::new("/bin/sh");
    command
        .args([
            "-c",
            "cat \"$2\" | \"$1\" show /dev/stdin --format csv",
            "sh",
        ])
        .arg(binary())
        .arg(file);
    let said = Said::of(command.env("FINGERPOST_HOME", home.path("")));
    assert_eq!((said.status, said.err.as_str()), (Some(0), ""));
}

#[test]
fn names_that_are_no_utf8_are_names() {
    let home = Home::new();
    let name = OsString::from_vec(b"not\xffutf8\x9b.json".to_vec());
    std::fs::write(home.path(&name), run_text()).unwrap();
    let words = |words: &[&str]| {
        words
            .iter()
            .map(|w| {
                if *w == "FILE" {
                    name.clone()
                } else {
                    OsString::from(w)
                }
            })
            .collect::<Vec<_>>()
    };
    for well in [
        &["show", "FILE"][..],
        &["compare", "FILE", "FILE"],
        &["report", "FILE", "-o", "r.html"],
        &["report", "FILE", "FILE", "-o", "r.html"],
        &["archive", "import", "FILE"],
    ] {
        let said = home.says(&words(well));
        assert_eq!(said.status, Some(0), "{well:?}: {}", said.err);
    }
    home.says(&words(&["explain", "FILE"])).lived();
    // There is nothing of its own in this run, which it has read to say so.
    assert!(
        home.says(&words(&["zerofill", "FILE"]))
            .refused()
            .contains("make one")
    );
    let out = OsString::from_vec(b"out\xff.html".to_vec());
    let said = home.says(&[OsStr::new("report"), &name, OsStr::new("-o"), &out]);
    assert_eq!((said.status, said.err.as_str()), (Some(0), ""));
    assert!(home.path(&out).is_file());
}

#[test]
fn a_run_can_be_kept_under_a_name_that_is_no_utf8() {
    let home = Home::new();
    let out = OsString::from_vec(b"out\xff.json".to_vec());
    let words = ["run", "syscall.null", "--budget", "1", "--quiet", "-o"].map(OsString::from);
    let said = home.says(&words.into_iter().chain([out.clone()]).collect::<Vec<_>>());
    assert!(
        !said.err.contains("panicked") && matches!(said.status, Some(0 | 3)),
        "{:?} {}",
        said.status,
        said.err
    );
    assert!(home.path(&out).is_file(), "{}", said.err);
}

/// A command of the binary under a limit that the shell sets.
fn limited(home: &Home, limit: &str, words: &[&str]) -> Said {
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", &format!("{limit} && exec \"$@\""), "sh"])
        .arg(binary())
        .args(words);
    Said::of(
        command
            .env("FINGERPOST_HOME", home.path(""))
            .current_dir(home.path("")),
    )
}

#[test]
fn a_limit_on_file_sizes_is_told_and_nothing_is_half_written() {
    let home = Home::new();
    home.write("x.json", run_text());
    home.write("r.html", "what was there");
    for words in [
        &["report", "x.json", "-o", "r.html"][..],
        &["archive", "import", "x.json"],
    ] {
        // 8 blocks of 512 bytes.
        let said = limited(&home, "ulimit -f 8", words);
        assert!(
            matches!(said.status, Some(2 | 3)),
            "{words:?}: {:?} {}",
            said.status,
            said.err
        );
        assert!(
            said.err.contains("File too large"),
            "{words:?}: {}",
            said.err
        );
    }
    assert_eq!(
        std::fs::read(home.path("r.html")).unwrap(),
        b"what was there"
    );
    let left = |dir: &str| {
        std::fs::read_dir(home.path(dir))
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect::<Vec<_>>()
    };
    assert_eq!(left("runs"), Vec::<OsString>::new());
    assert_eq!(left("").len(), 3, "{:?}", left(""));
}

#[test]
fn a_limit_on_processes_is_no_panic() {
    let home = Home::new();
    let text = run_text();
    for i in 0..70 {
        home.write(&format!("many{i}.json"), &text);
    }
    std::fs::create_dir(home.path("many")).unwrap();
    (0..70).for_each(|i| {
        std::fs::rename(
            home.path(format!("many{i}.json")),
            home.path(format!("many/{i}.json")),
        )
        .unwrap()
    });
    let said = Said::of(&mut with_processes(
        1,
        &home,
        &["compare", "./many", "./many"],
    ));
    assert!(said.status == Some(0), "{:?} {}", said.status, said.err);
}

/// A command of the binary whose user may have so many processes and threads. Root is exempt from the limit, so that
/// root runs as somebody else.
fn with_processes(most: u32, home: &Home, words: &[&str]) -> Command {
    use std::os::unix::fs::{PermissionsExt, chown};
    use std::os::unix::process::CommandExt;
    let mut command = Command::new("prlimit");
    command
        .arg(format!("--nproc={most}"))
        .arg(binary())
        .args(words);
    command
        .env("FINGERPOST_HOME", home.path(""))
        .env("HOME", home.path(""))
        .current_dir(home.path(""));
    command
        .env_remove("XDG_RUNTIME_DIR")
        .env_remove("XDG_CACHE_HOME");
    if fingerpost_sys::system::is_root() {
        std::fs::set_permissions(home.path(""), std::fs::Permissions::from_mode(0o755)).unwrap();
        for dir in ["", "runs"] {
            chown(home.path(dir), Some(UNUSED), Some(UNUSED)).unwrap();
        }
        command.uid(UNUSED).gid(UNUSED);
    }
    command
}

/// A user of whom there are no processes: the limit counts all of them.
const UNUSED: u32 = 64_321;

#[test]
fn where_no_process_can_be_had_one_sentence_says_so() {
    // An ordinary user may have any number of processes already.
    if !is_root() {
        return;
    }
    for words in [
        &["run", "syscall.null", "--budget", "1", "--quiet"][..],
        &["explain", "--seconds", "1", "--", "true"],
    ] {
        for most in 1..6 {
            let home = Home::new();
            let said = Said::of(&mut with_processes(most, &home, words));
            let case = format!("{words:?} with {most}: {:?} {}", said.status, said.err);
            assert!(matches!(said.status, Some(0 | 2 | 3)), "{case}");
            assert!(
                !said.err.contains("panicked") && !said.err.contains("defect"),
                "{case}"
            );
            assert!(
                said.err.lines().count() <= 1 || said.status == Some(0),
                "{case}"
            );
            // A row that failed has its sentence in the table.
            let told = format!("{}{}", String::from_utf8_lossy(&said.out), said.err);
            assert!(
                said.status == Some(0) || told.contains("temporarily unavailable"),
                "{case}{told}"
            );
            assert!(most > 1 || said.status != Some(0), "{case}");
        }
    }
}

#[test]
fn launch_measures_what_it_can_where_sys_is_empty() {
    if !is_root() {
        return;
    }
    let home = Home::new();
    let app = "[[app]]\nname = \"sh\"\ncommand = [\"sh\", \"-c\", \"echo ready; read x\"]\nready = { line = \"^ready$\" }\n";
    home.write("apps.toml", app);
    // Without control groups the pressure is memory that is taken away from everybody: of what is left here it is
    // little.
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap();
    let little = memory.lines().map(|l| {
        if l.starts_with("MemAvailable:") {
            "MemAvailable: 180000 kB"
        } else {
            l
        }
    });
    home.write(
        "meminfo",
        little.flat_map(|l| [l, "\n"]).collect::<String>(),
    );
    let script = "mount -t tmpfs none /sys && mount --bind meminfo /proc/meminfo && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script, "sh"]).arg(binary());
    command.args([
        "run",
        "launch",
        "--allow-system-changes",
        "--quiet",
        "--profile",
        "quick",
        "--budget",
        "5",
        "--format",
        "json",
    ]);
    command.args([
        "--set",
        "manifest=apps.toml",
        "--set",
        "placements=none,file",
        "--set",
        "rounds=1",
    ]);
    let said = Said::of(
        command
            .env("FINGERPOST_HOME", home.path(""))
            .current_dir(home.path("")),
    );
    assert!(
        matches!(said.status, Some(0 | 3)) && !said.err.contains("panicked"),
        "{:?} {}",
        said.status,
        said.err
    );
    let run: fingerpost_record::Run = serde_json::from_slice(&said.out).unwrap();
    assert!(said.err.contains("pinned reserve"), "{}", said.err);
    for placement in ["none", "file"] {
        let launched = |m: &fingerpost_record::Measurement| {
            m.params.text("placement") == Some(placement) && !m.process_values().is_empty()
        };
        assert!(
            run.measurements.iter().any(launched),
            "{placement}: {} {:?}",
            said.err,
            run.measurements
        );
    }
}
