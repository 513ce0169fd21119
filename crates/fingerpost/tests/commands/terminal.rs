//! What a person sees at a terminal of 80 columns: no line of any command is longer.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::Command;

use crate::common::Home;
use fingerpost_record::fixture::{self, followed, loaded};
use fingerpost_record::{Run, load};
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use unicode_width::UnicodeWidthStr;

const COLUMNS: u16 = 80;

/// Runs a command at a terminal, and gives all that it wrote there.
fn at_terminal(command: &mut Command) -> String {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let slave: OwnedFd = open(
        name.as_c_str(),
        OFlags::RDWR | OFlags::NOCTTY,
        Mode::empty(),
    )
    .unwrap();
    tcsetwinsize(
        &slave,
        Winsize {
            ws_row: 50,
            ws_col: COLUMNS,
            ws_xpixel: 0,
            ws_ypixel: 0,
        },
    )
    .unwrap();
    command
        .env("TERM", "xterm")
        .stdin(slave.try_clone().unwrap())
        .stdout(slave.try_clone().unwrap())
        .stderr(slave);
    let mut child = command.spawn().unwrap();
    // The command keeps copies of the slave's end, which would keep the reading from its end.
    command
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null());
    let mut bytes = Vec::new();
    // With the last writer gone, reading ends with an error.
    let _ = File::from(master).read_to_end(&mut bytes);
    child.wait().unwrap();
    String::from_utf8(bytes).unwrap()
}

/// The text without the sequences that colour it and move the cursor.
fn plain(text: &str) -> String {
    let mut shown = String::new();
    let mut letters = text.chars();
    while let Some(c) = letters.next() {
        if c == '\u{1b}' {
            // `ESC [ parameters letter`
            letters.by_ref().find(|c| c.is_ascii_alphabetic());
        } else {
            shown.push(c);
        }
    }
    shown
}

/// The lines that are too long, with the words of the command.
fn too_long(home: &Home, words: &[&str]) -> Vec<String> {
    let text = plain(&at_terminal(&mut home.command(words)));
    assert!(!text.trim().is_empty(), "{words:?} says nothing");
    let long = text
        .split(['\n', '\r'])
        .filter(|line| line.width() > usize::from(COLUMNS));
    long.map(|line| format!("{words:?}: {} columns: {line}", line.width()))
        .collect()
}

fn runs() -> Vec<Run> {
    let named = |run: Run, id: &str| Run {
        id: id.to_owned(),
        ..run
    };
    vec![
        fixture::run(),
        fixture::later_run(),
        named(fixture::with_everything(), "20260101T000000Z-00000001"),
        named(loaded::healthy(), "20260101T000000Z-00000002"),
        named(loaded::collapsed(), "20260101T000000Z-00000003"),
        named(followed::healthy(), "20260101T000000Z-00000004"),
        named(followed::slow_locks(), "20260101T000000Z-00000005"),
    ]
    .into_iter()
    .chain(crate::common::LABS.map(crate::common::lab))
    .collect()
}

/// What is shown of each run that there is, and of pairs.
fn of_runs(home: &Home) -> Vec<Vec<String>> {
    let own: Vec<String> = load_ids(home);
    let published = [
        "g5-2.7-darwin",
        "flops-g5-2.7-gcc-4.0",
        "launch-10.1",
        "site-powermac-9500",
        "zerofill-g4-1ghz",
    ];
    let all: Vec<String> = own
        .into_iter()
        .chain(published.map(|name| format!("ref:{name}")))
        .collect();
    let words = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
    let shown = all.iter().flat_map(|run| {
        [
            words(&["show", run]),
            words(&["explain", run]),
            words(&["zerofill", run]),
        ]
    });
    let compared = all
        .windows(2)
        .map(|pair| words(&["compare", &pair[0], &pair[1]]));
    shown.chain(compared).collect()
}

fn load_ids(home: &Home) -> Vec<String> {
    let mut files: Vec<_> = std::fs::read_dir(home.runs())
        .unwrap()
        .flatten()
        .map(|e| e.path())
        .collect();
    files.sort();
    files
        .iter()
        .map(|file| load::from_path(file).unwrap().id)
        .collect()
}

/// Every command once and more, but those that go on until they are stopped and those that write for programs.
const COMMANDS: &[&str] = &[
    "doctor --seconds 1",
    "list",
    "list zerofill",
    "list database",
    "list syscall",
    "list memory",
    "list cpu.quota",
    "list lmbench.null_io",
    "run syscall.null clock --profile quick --budget 1",
    "run memory.latency --budget 1 --set size=4096,65536",
    "run site --budget 1 --set parts=rounds --set pages=100 --set urls=20",
    "ab syscall.poll --a fds=50 --b fds=200 --budget 1",
    "compare ref:g5-2.5-linux ref:g5-2.7-darwin",
    "prove app.lock --seconds 2",
    "zerofill --solve 100,200,150,320",
    "zerofill",
    "replay ref:all",
    "explain -- true",
    "report ref:g5-2.7-darwin -o report.html",
    "archive list",
    "archive verify",
    "archive export latest latest.json",
    "archive import latest.json",
    "site import pages pages.odb",
    "site ls pages.odb",
    "site verify pages.odb",
    "archive export latest records/n1.json",
    "fleet gather records -o sweep",
    "fleet show sweep",
    "fleet show sweep n1",
    "fleet history n1 sweep sweep",
    "fleet drain sweep",
    "archive remove latest",
    // Mistakes.
    "fleet shwo sweep",
    "fleet show nothing",
    "fleet show sweep n2",
    "fleet run --ssh -w n[1-",
    "fleet gather nothing -o other",
    "rnu",
    "archive lst",
    "show nothing",
    "show lates",
    "show g5-2.7-darwin",
    "show ref:nothing",
    "explain ls",
    "run nothing-like-it",
    "run syscall.nul",
    "run syscall.select --set fdz=1",
    "run database --set engine=mariab",
    "run web --set server=ngnix",
    "list nothing-like-it",
    "prove nothing-like-it",
    "prove --servers --only nothing-like-it",
    "replay ref:nothing",
    "replay ref:mysql-scalin",
    "compare latest",
    "compare latest latest --threshold 7",
    "doctor --seconds 0",
    "load nothing",
    "load http://127.0.0.1:1/ --seconds 1",
    "ab syscall.null --a fds",
    "zerofill --solve 1,2",
    "site ls nothing",
    "report nothing -o x.html",
];

/// Commands that have no line in [`COMMANDS`], and why.
const WITHOUT: &[(&str, &str)] = &[
    ("serve", "goes on until it is stopped"),
    ("completions", "for a shell"),
    ("man", "for man"),
];

/// The names of a command's own commands, as its help lists them.
fn commands(home: &Home, of: &[&str]) -> Vec<String> {
    let help = home.says(&[of, &["--help"]].concat()).well();
    let list = help
        .split("Commands:\n")
        .nth(1)
        .unwrap_or_default()
        .split("\n\n")
        .next()
        .unwrap_or_default();
    let named = |line: &&str| line.starts_with("  ") && !line.starts_with("   ");
    list.lines()
        .filter(named)
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn no_line_of_any_command_is_longer_than_the_terminal_is_wide() {
    let home = Home::with(&runs());
    ["pages", "records"]
        .iter()
        .for_each(|dir| std::fs::create_dir(home.path().join(dir)).unwrap());
    std::fs::write(home.path().join("pages/index.html"), "page").unwrap();
    let all = commands(&home, &[]);
    assert!(all.len() > 12, "{all:?}");
    for name in all.iter().filter(|name| *name != "help") {
        let tried = COMMANDS
            .iter()
            .any(|line| line.split(' ').next() == Some(name));
        assert!(
            tried || WITHOUT.iter().any(|(without, _)| without == name),
            "{name} is tried nowhere"
        );
    }
    let long: Vec<String> = COMMANDS
        .iter()
        .flat_map(|line| too_long(&home, &line.split(' ').collect::<Vec<_>>()))
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn no_line_of_any_run_is_longer_than_the_terminal_is_wide() {
    let home = Home::with(&runs());
    let of_one =
        |words: Vec<String>| too_long(&home, &words.iter().map(String::as_str).collect::<Vec<_>>());
    let long: Vec<String> = of_runs(&home).into_iter().flat_map(of_one).collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn a_person_is_told_what_to_do_next_and_a_program_is_not() {
    let home = Home::with(&runs());
    let said = |words: &[&str]| plain(&at_terminal(&mut home.command(words)));
    assert!(
        said(&["show", "latest"])
            .trim_end()
            .ends_with("next: see it: fingerpost serve; beside the run before:\r\n    fingerpost compare latest~1"),
        "{}",
        said(&["show", "latest"])
    );
    assert!(said(&["archive", "list"]).contains("next: look at them: fingerpost serve"));
    assert!(!said(&["show", "latest", "--format", "csv"]).contains("next:"));
    assert!(!home.says(&["archive", "list"]).err.contains("next:"));
    assert!(!said(&["show", "nothing"]).contains("next:"));
}

#[test]
fn no_line_of_any_help_is_longer_than_the_terminal_is_wide() {
    let home = Home::with(&[]);
    let mut long = too_long(&home, &["--help"]);
    for name in commands(&home, &[]).iter().filter(|name| *name != "help") {
        for words in [vec!["help", name], vec![name, "-h"], vec![name, "--help"]] {
            long.extend(too_long(&home, &words));
        }
        for inner in commands(&home, &[name])
            .iter()
            .filter(|inner| *inner != "help")
        {
            long.extend(too_long(&home, &[name, inner, "--help"]));
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn who_types_the_bare_name_sees_the_help_as_it_is_laid_out() {
    let home = Home::with(&[]);
    let lines = |words: &[&str]| {
        plain(&at_terminal(&mut home.command(words)))
            .lines()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let (bare, asked) = (lines(&[]), lines(&["--help"]));
    let commands = |lines: &[String]| {
        lines
            .iter()
            .skip_while(|line| *line != "Commands:")
            .take_while(|line| !line.is_empty())
            .cloned()
            .collect::<Vec<_>>()
    };
    assert!(commands(&bare).len() > 10, "{bare:?}");
    assert_eq!(commands(&bare), commands(&asked));
}

/// A mistake in one word, and the word that its message proposes; nothing where none is near.
const MEANT: &[(&str, Option<&str>)] = &[
    ("rnu", Some("'run'")),
    ("archive lst", Some("'list'")),
    ("show lates", Some("“latest”")),
    ("show g5-2.7-darwin", Some("“ref:g5-2.7-darwin”")),
    ("show ref:g5-2.7-darwim", Some("“g5-2.7-darwin”")),
    ("show ref:nothing", None),
    ("replay ref:mysql-scalin", Some("'ref:mysql-scaling'")),
    ("replay ref:nothing", None),
    ("explain ls", Some("explain -- ls")),
    ("run syscal.nul", Some("“syscall.null”")),
    ("run datbase", Some("“database”")),
    ("list syscal", Some("“syscall”")),
    ("list lmbench.nul_io", Some("“lmbench.null_io”")),
    ("run syscall.select --set fdz=1", Some("“fds”")),
    ("run database --set egnine=sqlite", Some("“engine”")),
    ("run database --set engine=mariab", Some("“mariadb”")),
    (
        "run database --set engine=mariadb --set storage=myism",
        Some("“myisam”"),
    ),
    ("run web --set server=ngnix", Some("“nginx”")),
    ("run web --set keepalive=bth", Some("“both”")),
    ("run site --set state=worm", Some("“warm”")),
    ("run site --set store=lmbd", Some("“lmdb”")),
    ("run site --set filesystems=ext5", Some("“ext4”")),
    ("zerofill --api mmp", Some("“mmap”")),
    ("ab syscall.null --a cpu=0 --b cpv=1", Some("“cpu”")),
    (
        "compare ref:g5-2.7-darwin ref:g5-2.5-linus",
        Some("“g5-2.5-linux”"),
    ),
    ("report ref:g5-2.5-linus -o x.html", Some("“g5-2.5-linux”")),
    ("fleet chekc", Some("'check'")),
    ("help shwo", Some("'show'")),
    ("doctor --secons 1", Some("'--seconds'")),
    ("compare latest latest --fail-on slwer", Some("'slower'")),
    ("completions bsh", Some("'bash'")),
    ("man shwo", Some("“show”")),
    ("man archive lst", Some("“list”")),
    ("prove --servers --only redsi", Some("“redis”")),
    ("run syscall.null --porfile quick", Some("'--profile'")),
    ("run zerofill --set api=mmp", Some("“mmap”")),
    ("run ipc.pipe --set placement=crss", Some("“cross”")),
    ("run syscall.select --set fds=many", None),
    ("list cpu.quoat", Some("“cpu.quota”")),
    ("list app.lokc", Some("“app.lock”")),
    ("archive label lates x", Some("“latest”")),
    ("archive remove lates", Some("“latest”")),
    ("load mysq://db-1/x", Some("“mysql”")),
    ("prove cpu.quot", Some("“cpu.quota”")),
    ("prove --servers --only cpu.quot", Some("“cpu.quota”")),
    ("show --format jsno", Some("'json'")),
    ("run launch --set placements=zrm", Some("“zram”")),
    ("run launch --set manifest=publishd", Some("“published”")),
    ("load mysql://127.0.0.1/x --set mixx=read", Some("“mix”")),
    ("site import . x.odb --store lmbd", Some("'lmdb'")),
];

#[test]
fn a_mistyped_word_is_answered_with_the_right_one() {
    let home = Home::with(&[]);
    for (line, meant) in MEANT {
        let said = home.says(&line.split(' ').collect::<Vec<_>>());
        assert_eq!(
            (said.status, said.out.as_str()),
            (2, ""),
            "{line}: {}",
            said.err
        );
        match meant {
            Some(word) => assert!(said.err.contains(word), "{line}: no {word} in {}", said.err),
            None => assert!(
                !said.err.contains("did you mean") && !said.err.contains("tip:"),
                "{line}: {}",
                said.err
            ),
        }
    }
    assert_eq!(std::fs::read_dir(home.runs()).unwrap().count(), 0);
}

#[test]
fn a_runs_beginning_with_a_wrong_digit_is_answered_with_it() {
    let home = Home::with(&[fixture::run()]);
    let id = fixture::run().id;
    let wrong = format!("{}Y", &id[..12]);
    for words in [
        vec!["show", &wrong],
        vec!["report", &wrong, "-o", "x.html"],
        vec!["compare", &wrong, "latest"],
        vec!["archive", "remove", &wrong],
    ] {
        let said = home.says(&words).refused();
        assert!(
            said.contains(&format!("did you mean “{id}”?")),
            "{words:?}: {said}"
        );
    }
    assert!(
        !home
            .says(&["show", "20010101"])
            .refused()
            .contains("did you mean")
    );
}

#[test]
fn a_setting_of_a_lab_that_cannot_be_leaves_no_run_behind() {
    let home = Home::with(&[]);
    for line in [
        "run database --set engine=mariab",
        "run database --set server.no/name=1",
        "run database --set dir=/nowhere/at/all",
        "run web --set server=ngnix",
        "run site --set state=luke",
        "run launch --set state=luke",
        "run syscall.null database --set mix=raed --budget 60",
        "run zerofill --set api=heap",
        "run flops --set compiler=gcc",
        "run syscall.null ipc.pipe --set placement=far",
    ] {
        let said = home.says(&[&line.split(' ').collect::<Vec<_>>()[..], &["--quiet"]].concat());
        assert_eq!(
            (said.status, said.out.as_str()),
            (2, ""),
            "{line}: {}",
            said.err
        );
        let kept = std::fs::read_dir(home.runs()).unwrap().count();
        assert_eq!(kept, 0, "{line} keeps a run");
    }
}
