//! Completion in the shells themselves, typed on a terminal: what TAB puts into the line is run by Enter.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Home, binary};

/// A program as this test starts it, and how the shell is told of our completion (`{}` is the script).
struct Shell {
    words: &'static [&'static str],
    set_up: &'static str,
    script: &'static str,
}

const BASH: Shell = Shell {
    words: &["bash", "--norc", "--noprofile", "-i"],
    set_up: "source {}",
    script: "bash",
};
const ZSH: Shell = Shell {
    words: &["zsh", "-f", "-i"],
    set_up: "autoload -U compinit; compinit -u -D; source {}",
    script: "zsh",
};
const FISH: Shell = Shell {
    words: &["fish", "--no-config", "-i"],
    set_up: "source {}",
    script: "fish",
};

/// Names that are more to a shell than a name.
const NAMES: [&str; 34] = [
    "plain.json",
    "a b.json",
    "it's",
    "say \"hi\"",
    "back\\slash",
    "end\\",
    "a$(touch PWNED).json",
    "$(touch PWNED)",
    "`touch PWNED`",
    "a;touch PWNED;",
    "a|touch PWNED",
    "a&touch PWNED&",
    ">PWNED",
    "<x",
    "*",
    "a*b",
    "[ab]",
    "{a,b}",
    "~",
    "~root",
    "!!",
    "a!b",
    "#x",
    "-rf",
    "--output=PWNED",
    "=ls",
    "%self",
    "^a^b",
    "$HOME",
    "${IFS}x",
    "a:b c",
    "x'\"$`\\ y",
    "d\u{e9}j\u{e0} vu",
    "'; touch PWNED; '",
];
/// Those of them that are typed within quotes and at other places, too.
const OF_THEM: [&str; 5] = [
    "it's",
    "a$(touch PWNED).json",
    "~root",
    "-rf",
    "'; touch PWNED; '",
];
/// Names that are not offered, because no shell can show them as they are.
const UNTYPED: [&[u8]; 6] = [
    b"new\nline;touch PWNED",
    b"\n",
    b"tab\t$(touch PWNED)",
    b"\x1b[2J",
    b"\xff$(touch PWNED)",
    "\u{202e}nosj.a".as_bytes(),
];

/// What is typed before TAB, and the words that the program then gets before the name, which `with` gives.
struct Typed {
    dir: PathBuf,
    keys: String,
    wanted: Vec<OsString>,
}

/// A directory for each, with one file of this name in it.
fn typed(home: &Home, at: usize, name: &[u8], keys: &str, wanted: &[&[u8]]) -> Typed {
    let dir = home.path(format!("typed/{at}"));
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join(OsStr::from_bytes(name)), "").unwrap();
    Typed {
        dir,
        keys: keys.to_owned(),
        wanted: wanted
            .iter()
            .map(|word| OsString::from_vec(word.to_vec()))
            .collect(),
    }
}

fn all(home: &Home, shell: &Shell) -> Vec<Typed> {
    let mut all = Vec::new();
    let mut add = |name: &[u8], keys: &str, wanted: &[&[u8]]| {
        let one = typed(home, all.len(), name, keys, wanted);
        all.push(one);
    };
    for name in NAMES {
        let whole = format!("./{name}");
        add(name.as_bytes(), "show ./\t", &[b"show", whole.as_bytes()]);
    }
    for name in OF_THEM {
        let whole = format!("./{name}");
        for quote in ["\"", "'"] {
            add(
                name.as_bytes(),
                &format!("show {quote}./\t"),
                &[b"show", whole.as_bytes()],
            );
        }
        // Without a directory before it, a name must not become an option or a home. fish offers nothing that begins
        // with a dot where none was typed.
        let leading = name.starts_with(['-', '~']);
        let alone = if leading { &whole } else { name };
        let words: [&[u8]; 4] = [b"report", b"latest", b"-o", alone.as_bytes()];
        let offered = if leading && shell.script == "fish" {
            3
        } else {
            4
        };
        add(name.as_bytes(), "report latest -o \t", &words[..offered]);
        let setting = format!("manifest=./{name}");
        add(
            name.as_bytes(),
            "run launch --set manifest=./\t",
            &[b"run", b"launch", b"--set", setting.as_bytes()],
        );
    }
    for name in UNTYPED {
        add(name, "show ./\t", &[b"show", b"./"]);
    }
    all
}

/// Whether this shell is there. Where everything has to be tested it must be.
fn is_there(shell: &Shell) -> bool {
    ["python3", shell.words[0]]
        .iter()
        .all(|program| fingerpost_testing::can(fingerpost_testing::is_installed(program), program))
}

/// A program that completes as ours does, and that writes down the words that it gets otherwise, beside the directory
/// that it is started in.
fn recorder(home: &Home) -> PathBuf {
    let bin = home.path("bin");
    std::fs::create_dir(&bin).unwrap();
    let script = format!(
        "#!/bin/sh\n[ -z \"$FINGERPOST_COMPLETE\" ] || exec {} \"$@\"\n\
         printf '%s\\0' \"$@\" > \"$PWD.part\" && mv \"$PWD.part\" \"$PWD.words\"\n",
        binary().display()
    );
    let file = bin.join("fingerpost");
    std::fs::write(&file, script).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
    bin
}

/// Types all of it, and gives what went wrong.
fn types(home: &Home, shell: &Shell, all: &[Typed]) {
    let bin = recorder(home);
    let script = home.write("completions", home.says(&["completions", shell.script]).out);
    let set_up = shell.set_up.replace("{}", &script.display().to_string());
    let mut steps = vec![step(&format!("{set_up}\r: > ready\r"), &home.path("ready"))];
    for one in all {
        let dir = one.dir.display();
        let there = one.dir.with_extension("at");
        steps.push(step(
            &format!("cd {dir} && : > {}\r", there.display()),
            &there,
        ));
        steps.push(step(
            &format!("fingerpost {}\r", one.keys),
            &one.dir.with_extension("words"),
        ));
    }
    let asked = serde_json::json!({ "shell": shell.words, "steps": steps });
    let asked = home.write("asked.json", asked.to_string());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(std::iter::once(bin).chain(std::env::split_paths(&path)));
    let said = Command::new("python3")
        .arg("-c")
        .arg(include_str!("completion/typing.py"))
        .arg(asked)
        .current_dir(home.path(""))
        .env("PATH", path.unwrap())
        .env("HOME", home.path(""))
        .env("FINGERPOST_HOME", home.path(""))
        .env("TERM", "xterm")
        .env("LC_ALL", "C.UTF-8")
        .env_remove("ENV")
        .output()
        .unwrap();
    let screen = || String::from_utf8_lossy(&said.stdout).into_owned();
    let mut wrong = Vec::new();
    for one in all {
        let words = std::fs::read(one.dir.with_extension("words")).unwrap_or_default();
        let mut words: Vec<&OsStr> = words.split(|b| *b == 0).map(OsStr::from_bytes).collect();
        words.pop();
        if words != one.wanted {
            wrong.push(format!(
                "{:?}: {words:?} in place of {:?}",
                one.keys, one.wanted
            ));
        }
        for dir in [&one.dir, &home.path("typed"), &home.path("")] {
            if dir.join("PWNED").exists() {
                wrong.push(format!("{:?} ran {:?}", one.keys, one.wanted));
            }
        }
    }
    let failed = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(
        wrong.is_empty() && said.status.success(),
        "{failed}\n{}\n{}",
        wrong.join("\n"),
        screen()
            .chars()
            .rev()
            .take(2000)
            .collect::<Vec<_>>()
            .iter()
            .rev()
            .collect::<String>()
    );
}

fn step(keys: &str, file: &Path) -> serde_json::Value {
    serde_json::json!([keys, file.to_str().unwrap()])
}

#[test]
fn bash_runs_nothing_of_a_name_that_it_completes() {
    let home = Home::new();
    if is_there(&BASH) {
        types(&home, &BASH, &all(&home, &BASH));
    }
}

#[test]
fn zsh_runs_nothing_of_a_name_that_it_completes() {
    let home = Home::new();
    if is_there(&ZSH) {
        types(&home, &ZSH, &all(&home, &ZSH));
    }
}

#[test]
fn fish_runs_nothing_of_a_name_that_it_completes() {
    let home = Home::new();
    if is_there(&FISH) {
        types(&home, &FISH, &all(&home, &FISH));
    }
}

#[test]
fn hostile_names_of_runs_and_whole_directories_run_nothing() {
    for shell in [&BASH, &ZSH, &FISH] {
        if !is_there(shell) {
            continue;
        }
        let home = Home::new();
        let id = "2026;touch${IFS}PWNED;'\"`touch${IFS}PWNED`$(touch${IFS}PWNED)";
        home.write(&format!("runs/{id}.json"), "{}");
        let mut all = vec![typed(&home, 0, b"x", "show 2026\t", &[b"show", b"2026"])];
        // Of many that begin alike no name is put into the line, and twice TAB shows them.
        let many = typed(&home, 1, b"$(touch PWNED)", "show ./\t", &[b"show", b"./"]);
        for name in NAMES.iter().filter(|name| **name != "plain.json") {
            std::fs::write(many.dir.join(name), "").unwrap();
        }
        all.push(many);
        types(&home, shell, &all);
    }
}
