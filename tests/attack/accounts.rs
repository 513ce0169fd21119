//! The accounts of private servers, and the host's own servers beside ours.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;

use tempfile::TempDir;

use crate::support::{binary, is_root, until};

/// Somebody who runs as a server's user, finds every directory of ours that he can write to, and puts links where root
/// may be about to open, write or chown something: at names that a file of root's is known to have or, if he replaces,
/// at every name that one is known to have and in place of every file that he may remove. He learns the directories as
/// any user does: from the command lines of processes and the environment of his own, and by looking. Of several runs
/// he attacks the one with the mark in its environment.
const ATTACKER: &str = r#"
use strict; use warnings; no warnings 'recursion';
my ($canary, $replace, $mark, @roots) = @ARGV;
my @roots_files = qw(log server.log output error.log server.conf nginx.conf apache.conf fingerpost lock);
my @names = (@roots_files, qw(postmaster.pid server.pid nginx.pid apache.pid server.sock data run own tmp));
# What may be in a directory that he cannot list.
my @below = (@names, map { ("web-server-$_", "database-mariadb-$_", "database-postgresql-$_", "sequence") } 0 .. 2);
sub attack { my ($dir, $depth) = @_;
    return if $depth > 6 || !lstat($dir) || !-d _;
    # initdb refuses a directory that is not empty.
    if (-w _ && ($replace || $dir !~ m{/data$})) {
        symlink($canary, "$dir/$_") for $replace ? @names : @roots_files;
        if ($replace && opendir(my $d, $dir)) {
            for my $name (grep { !/^\.\.?$/ } readdir $d) {
                my $path = "$dir/$name";
                next if !lstat($path) || -l _ || -d _;
                unlink($path) && symlink($canary, $path);
            }
        }
    }
    my @there = @below;
    if (opendir(my $d, $dir)) { @there = grep { !/^\.\.?$/ } readdir $d; }
    attack("$dir/$_", $depth + 1) for @there;
}
while (1) {
    my %dirs = map { $_ => 1 } @roots;
    for my $proc (glob '/proc/[0-9]*') {
        my $all = '';
        for my $file ("$proc/cmdline", "$proc/environ") {
            open(my $f, '<', $file) or next; local $/; $all .= "\0" . (<$f> // '');
        }
        for my $text ($all) {
            # Other runs of this machine are not his to attack.
            next if index($text, $mark) < 0;
            for my $path ($text =~ m{(/[^\0\s"=:;,]*)}g) {
                for (my $up = $path; $up =~ m{fingerpost|/run-|/r/}; $up =~ s{/[^/]*$}{}) { $dirs{$up} = 1; }
            }
        }
    }
    for (1 .. 20) {
        attack($_, 0) for keys %dirs;
        # Without a pause, tracing his calls takes longer than the run.
        select(undef, undef, undef, 0.0005);
    }
}
"#;

/// What only root may change: a file and a directory.
struct Canary {
    dir: TempDir,
}

impl Canary {
    fn new() -> Canary {
        let dir = tempfile::tempdir().unwrap();
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::write(dir.path().join("shadow"), "root:secret\n").unwrap();
        std::fs::set_permissions(dir.path().join("shadow"), PermissionsExt::from_mode(0o600))
            .unwrap();
        Canary { dir }
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("shadow")
    }

    #[track_caller]
    fn is_untouched(&self, when: &str) {
        let meta = std::fs::symlink_metadata(self.file()).expect("the file is there");
        let content = std::fs::read_to_string(self.file()).unwrap();
        assert_eq!(
            (content.as_str(), meta.uid(), meta.mode() & 0o7777),
            ("root:secret\n", 0, 0o600),
            "{when}: root was led to a file of its own"
        );
        assert_eq!(
            std::fs::read_dir(self.dir.path()).unwrap().count(),
            1,
            "{when}"
        );
    }
}

/// A process that ends with the test, whatever the test does.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn attacker(uid: u32, canary: &Canary, replaces: bool, place: &Place) -> Ends {
    let mut command = Command::new("/usr/bin/perl");
    command
        .args(["-e", ATTACKER])
        .arg(canary.file())
        .arg(if replaces { "1" } else { "0" })
        .arg(place.home.path())
        .arg(place.tmp());
    let child = command
        .uid(uid)
        .gid(uid)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    Ends(child.expect("/usr/bin/perl is here"))
}

fn uid_of(name: &str) -> u32 {
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap();
    let line = passwd
        .lines()
        .find(|line| line.starts_with(&format!("{name}:")))
        .unwrap_or_else(|| panic!("no user {name}: make install-test-tools"));
    line.split(':').nth(2).unwrap().parse().unwrap()
}

/// A home that servers' users can pass through, with a temporary directory in it.
struct Place {
    home: TempDir,
}

impl Place {
    fn new() -> Place {
        let home = tempfile::Builder::new().prefix("fp").tempdir().unwrap();
        std::fs::set_permissions(home.path(), PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::create_dir(home.path().join("t")).unwrap();
        std::fs::set_permissions(home.path().join("t"), PermissionsExt::from_mode(0o1777)).unwrap();
        Place { home }
    }

    fn tmp(&self) -> PathBuf {
        self.home.path().join("t")
    }

    fn start(&self, words: &[&str]) -> Ends {
        let mut command = Command::new(binary());
        command
            .arg("run")
            .args(words)
            .args(["--quiet", "--profile", "quick"])
            .current_dir(self.home.path());
        command
            .env("FINGERPOST_HOME", self.home.path().join("h"))
            .env("TMPDIR", self.tmp())
            .stdin(Stdio::null());
        let said = std::fs::File::create(self.home.path().join("said")).unwrap();
        Ends(command.stdout(Stdio::null()).stderr(said).spawn().unwrap())
    }

    /// What the run that was started last said on its standard error.
    fn said(&self) -> String {
        std::fs::read_to_string(self.home.path().join("said")).unwrap()
    }
}

/// A lab with a private server, and who that runs as.
const LABS: [(&str, &[&str]); 5] = [
    (
        "mysql",
        &[
            "database",
            "--set",
            "engine=mariadb",
            "--set",
            "clients=1",
            "--budget",
            "1",
        ],
    ),
    (
        "postgres",
        &[
            "database",
            "--set",
            "engine=postgresql",
            "--set",
            "clients=1",
            "--budget",
            "1",
        ],
    ),
    (
        "www-data",
        &[
            "web",
            "--set",
            "server=nginx",
            "--set",
            "connections=1",
            "--budget",
            "1",
        ],
    ),
    (
        "www-data",
        &[
            "web",
            "--set",
            "server=apache",
            "--set",
            "connections=1",
            "--budget",
            "1",
        ],
    ),
    (
        "www-data",
        &[
            "web",
            "--set",
            "connections=1",
            "--budget",
            "1",
            "--server-prefix",
            "nice -n 1",
        ],
    ),
];

/// Where scratch directories may be.
fn roots(place: &Place) -> Vec<PathBuf> {
    vec![place.tmp(), "/run/fingerpost".into()]
}

#[test]
fn a_servers_user_who_puts_links_everywhere_leads_root_nowhere() {
    if !is_root() {
        return;
    }
    for (user, words) in LABS {
        // Links at names that only root's files have do not keep the server from working, so that everything that root
        // does comes to pass.
        for replaces in [false, true] {
            let (place, canary) = (Place::new(), Canary::new());
            let mut attacker = attacker(uid_of(user), &canary, replaces, &place);
            let mut run = place.start(words);
            until("the run ends", || {
                canary.is_untouched(&format!("{words:?} as {user}"));
                run.0.try_wait().unwrap().is_some()
            });
            canary.is_untouched(&format!("{words:?} as {user}, at the end"));
            // A server may not work where its own files are replaced.
            assert!(
                replaces || run.0.wait().unwrap().success(),
                "{words:?} as {user}: {}",
                place.said()
            );
            assert!(
                attacker.0.try_wait().unwrap().is_none(),
                "the attacker stopped by himself"
            );
        }
    }
}

/// Every entry of root's in a directory that belongs to somebody else.
fn of_root_in_others(dir: &Path, found: &mut Vec<PathBuf>) {
    let Ok(owner) = std::fs::symlink_metadata(dir).map(|meta| meta.uid()) else {
        return;
    };
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let Ok(meta) = std::fs::symlink_metadata(entry.path()) else {
            continue;
        };
        if owner != 0 && meta.uid() == 0 {
            found.push(entry.path());
        }
        if meta.is_dir() {
            of_root_in_others(&entry.path(), found);
        }
    }
}

/// What a run's own directories show of those of its server's user while it works.
#[derive(Default)]
struct Watch {
    of_root: Vec<PathBuf>,
    users: bool,
}

impl Watch {
    fn look(&mut self, uid: u32, roots: &[PathBuf]) {
        for root in roots {
            of_root_in_others(root, &mut self.of_root);
            self.users = self.users || owned_by(uid, root, 4);
        }
    }

    #[track_caller]
    fn saw_nothing_of_roots(&self, whose: &str) {
        assert!(
            self.of_root.is_empty(),
            "{whose}: root's in a directory of somebody else: {:?}",
            self.of_root
        );
        assert!(
            self.users,
            "{whose}: no directory of its user was ever seen, so that nothing of root's could be"
        );
    }
}

#[test]
fn nothing_of_roots_lies_in_a_directory_of_a_servers_user() {
    if !is_root() {
        return;
    }
    // The servers that packages install are watched beside the host's own.
    let (user, words) = LABS[4];
    let (place, mut watch) = (Place::new(), Watch::default());
    let mut run = place.start(words);
    until("the run ends", || {
        watch.look(uid_of(user), &roots(&place));
        run.0.try_wait().unwrap().is_some()
    });
    watch.saw_nothing_of_roots(&words.join(" "));
    assert!(
        run.0.wait().unwrap().success(),
        "{words:?}: {}",
        place.said()
    );
}

fn owned_by(uid: u32, dir: &Path, depth: usize) -> bool {
    std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .flatten()
        .any(|entry| {
            let Ok(meta) = std::fs::symlink_metadata(entry.path()) else {
                return false;
            };
            meta.is_dir()
                && (meta.uid() == uid || (depth > 0 && owned_by(uid, &entry.path(), depth - 1)))
        })
}

/// The host's own servers, with temporary tables in use, beside each lab: `bench/neighbours` starts both and compares.
/// Meanwhile nothing of root's lies in a directory of a server's user.
#[test]
fn the_hosts_own_servers_are_untouched_by_ours() {
    if !is_root() {
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/neighbours");
    let mut command = Command::new(script);
    command
        .arg("--binary")
        .arg(binary())
        .arg("--short")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut script = Ends(command.spawn().unwrap());
    let (stdout, stderr) = (
        script.0.stdout.take().unwrap(),
        script.0.stderr.take().unwrap(),
    );
    // A line for each lab; these are its runs' users.
    let (line, lines) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        BufReader::new(stdout)
            .lines()
            .for_each(|text| _ = line.send(text.unwrap()))
    });
    let mut users = ["mysql", "mysql", "postgres", "www-data", "www-data"].into_iter();
    let (mut said, mut user) = (Vec::new(), users.next());
    let mut watch = Watch::default();
    until("the labs end", || {
        if let Some(user) = user {
            watch.look(uid_of(user), &scratch_in_tmp());
        }
        for text in lines.try_iter() {
            said.push((text, std::mem::take(&mut watch)));
            user = users.next();
        }
        reader.is_finished()
    });
    let status = script.0.wait().unwrap();
    said.extend(lines.try_iter().map(|text| (text, Watch::default())));
    let all: String = said.iter().map(|(text, _)| format!("{text}\n")).collect();
    assert!(
        status.success() && said.len() == 6,
        "{all}{}",
        std::io::read_to_string(stderr).unwrap()
    );
    said[..5]
        .iter()
        .for_each(|(text, watch)| watch.saw_nothing_of_roots(text));
}

/// Scratch directories of all runs that have their own in /tmp.
fn scratch_in_tmp() -> Vec<PathBuf> {
    let ours = |path: &PathBuf| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with("fingerpost-"))
    };
    let of_tmp = std::fs::read_dir("/tmp")
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .filter(ours);
    of_tmp.chain(["/run/fingerpost".into()]).collect()
}
