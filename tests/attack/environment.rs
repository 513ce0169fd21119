//! What a hostile environment or a hostile neighbour process can do: programs found by name, and their words.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::mutate::misleading;
use crate::support::binary;

/// A program of a few lines of shell.
fn program(dir: &Path, name: &str, script: &str) {
    let file = dir.join(name);
    fs::write(&file, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
}

fn with_path(first: &Path, home: &Path, words: &[&str]) -> Output {
    let path = std::env::join_paths(
        [first.to_owned()]
            .into_iter()
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    )
    .unwrap();
    Command::new(binary())
        .args(words)
        .env("PATH", path)
        .env("FINGERPOST_HOME", home)
        .current_dir(first)
        .output()
        .unwrap()
}

/// Asks each compiler for its version, as `doctor` does, and takes less time.
const ASKS: [&str; 6] = [
    "run",
    "clock.gettime",
    "--profile",
    "quick",
    "--budget",
    "0.1",
];

#[test]
fn root_runs_no_program_of_others_from_path() {
    fingerpost_testing::require!(root);
    let (base, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (trap, mark) = (base.path().join("trap"), base.path().join("ran"));
    fs::create_dir(&trap).unwrap();
    program(
        &trap,
        "cc",
        &format!("echo cc 1.0; touch {}", mark.display()),
    );
    // While only root can write there it is searched: the trap works.
    let both: [&[&str]; 2] = [&["doctor", "--seconds", "1"], &ASKS];
    for words in both {
        assert!(
            with_path(&trap, home.path(), words).status.code().is_some() && mark.exists(),
            "{words:?}: the compiler is not asked at all"
        );
        fs::remove_file(&mark).unwrap();
    }

    fs::set_permissions(&trap, fs::Permissions::from_mode(0o1777)).unwrap();
    for words in both {
        let ended = with_path(&trap, home.path(), words);
        assert!(!mark.exists(), "{words:?}: root ran another user's program");
        let said = String::from_utf8(ended.stderr).unwrap();
        assert!(
            said.contains("in PATH is not searched"),
            "{words:?}: {said}"
        );
    }
    fs::set_permissions(&trap, fs::Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::chown(&trap, Some(65534), Some(65534)).unwrap();
    with_path(&trap, home.path(), &ASKS);
    assert!(
        !mark.exists(),
        "root ran a program in another user's directory"
    );
    // The working directory is the trap: root goes where others write.
    let relative = Command::new(binary())
        .args(ASKS)
        .env("PATH", ".:/usr/bin:/bin")
        .env("FINGERPOST_HOME", home.path())
        .current_dir(&trap)
        .output();
    assert!(
        relative.unwrap().status.code().is_some() && !mark.exists(),
        "a program of the working directory was run"
    );
}

/// Compilers and servers that root starts are dynamic, and this program's environment is theirs.
#[test]
fn root_starts_nothing_that_loads_code_of_others() {
    fingerpost_testing::require!(root);
    let (base, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (trap, mark) = (base.path().join("trap"), base.path().join("ran"));
    fs::create_dir(&trap).unwrap();
    let source = format!(
        "#include <fcntl.h>\n__attribute__((constructor)) static void ran(void) {{ open(\"{}\", O_CREAT | O_WRONLY, 0600); }}\n",
        mark.display()
    );
    let c = base.path().join("trap.c");
    fs::write(&c, source).unwrap();
    let library = trap.join("libc.so.6");
    let built = Command::new("gcc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &c])
        .status();
    if !built.is_ok_and(|status| status.success()) {
        return fingerpost_testing::skipped("needs gcc");
    }
    let ran = |name: &str, value: &str| {
        let _ = fs::remove_file(&mark);
        let said = Command::new(binary())
            .args(["doctor", "--seconds", "1"])
            .env(name, value)
            .env("FINGERPOST_HOME", home.path())
            .current_dir(&trap)
            .output()
            .unwrap();
        assert!(said.status.code().is_some());
        mark.exists()
    };
    let named = library.display().to_string();
    assert!(
        ran("LD_PRELOAD", &named),
        "nothing is started that loads code"
    );
    fs::set_permissions(&trap, fs::Permissions::from_mode(0o1777)).unwrap();
    let dir = trap.display().to_string();
    for (name, value) in [
        ("LD_PRELOAD", named.as_str()),
        ("LD_PRELOAD", "./libc.so.6"),
        ("LD_AUDIT", named.as_str()),
        ("LD_LIBRARY_PATH", dir.as_str()),
        ("LD_LIBRARY_PATH", ":/usr/lib"),
        ("LD_LIBRARY_PATH", "."),
    ] {
        assert!(!ran(name, value), "{name}={value}");
    }
}

/// The words of a server that fails are quoted: on the progress line, in the table and in the record.
#[test]
fn the_words_of_a_server_reach_no_terminal_as_they_are() {
    let (base, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    program(
        base.path(),
        "nginx",
        r"printf '\033[2J\033]0;title\007 \302\233 \342\200\256 no good\n' >&2; exit 1",
    );
    let ended = with_path(
        base.path(),
        home.path(),
        &["run", "web", "--set", "server=nginx", "--budget", "2"],
    );
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&ended.stdout),
        String::from_utf8_lossy(&ended.stderr)
    );
    assert!(
        said.contains("no good"),
        "the server's words are not quoted at all: {said}"
    );
    for bytes in [&ended.stdout, &ended.stderr] {
        assert_eq!(misleading(bytes), None, "{said:?}");
    }
}

/// A shell of root's may hold a file open that others may not read (`exec 9<secret`): a server that runs as another
/// user must not get it.
#[test]
fn what_the_caller_has_open_is_not_given_to_a_server() {
    let (base, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(base.path().join("secret"), "kept").unwrap();
    program(
        base.path(),
        "nginx",
        "ls -l /proc/$$/fd >&2; echo no good >&2; exit 1",
    );
    let path = std::env::join_paths(
        [base.path().to_owned()]
            .into_iter()
            .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let script = r#"exec 9<>secret; exec "$0" run web --set server=nginx --budget 2"#;
    let mut command = Command::new("sh");
    command
        .args(["-c", script])
        .arg(binary())
        .env("PATH", path.unwrap())
        .env("FINGERPOST_HOME", home.path())
        .current_dir(base.path());
    let said = String::from_utf8_lossy(&command.output().unwrap().stderr).into_owned();
    assert!(
        said.contains("no good"),
        "the server's words are not quoted at all: {said}"
    );
    assert!(!said.contains("secret"), "{said}");
}
