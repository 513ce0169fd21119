//! Passwords that a user gives are kept nowhere.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use fingerpost_record::{Params, Run, fixture};
use tempfile::TempDir;

use crate::support::{binary, is_root, until};

/// Nothing else holds this.
const SECRET: &str = "hunter2Zq7";

/// A home with an archive.
struct Home(TempDir);

impl Home {
    fn new() -> Home {
        Home(tempfile::tempdir().unwrap())
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command
            .args(words)
            .env("FINGERPOST_HOME", self.0.path())
            .env("HOME", self.0.path())
            .current_dir(self.0.path());
        command.stdin(Stdio::null());
        command
    }

    /// What the command says on both outputs.
    fn says(&self, words: &[&str]) -> String {
        let output = self.command(words).output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        assert!(output.status.code().is_some(), "{words:?} was killed");
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Neither the archive nor any format, report or page made of it holds the secret.
    fn keeps_none(&self) {
        for file in files(self.0.path()) {
            let content = std::fs::read(&file).unwrap();
            assert!(!holds(&content), "{} holds the secret", file.display());
        }
        self.shows_none();
    }

    fn shows_none(&self) {
        for format in [
            "table",
            "json",
            "csv",
            "markdown",
            "go-bench",
            "openmetrics",
        ] {
            let text = self.says(&["show", "latest", "--format", format]);
            assert!(
                text.len() > 4 && !holds(text.as_bytes()),
                "{format}: {text}"
            );
        }
        for words in [
            &["report", "latest", "-o", "r.html"][..],
            &["archive", "list"],
            &["explain", "latest"],
            &["compare", "latest", "latest"],
        ] {
            let text = self.says(words);
            assert!(!holds(text.as_bytes()), "{words:?}: {text}");
        }
        assert!(
            !holds(&std::fs::read(self.0.path().join("r.html")).unwrap()),
            "the report"
        );
        self.page_shows_none();
    }

    fn page_shows_none(&self) {
        let mut page = self
            .command(&["serve", "--port", "0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = Vec::new();
        let out = page.stdout.as_mut().unwrap();
        let mut byte = [0];
        while out.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
            line.push(byte[0]);
        }
        let address = String::from_utf8(line)
            .unwrap()
            .trim()
            .trim_end_matches('/')
            .to_owned();
        let get = |path: &str| minreq::get(format!("{address}{path}")).send().unwrap();
        let list = get("/");
        let body = list.as_str().unwrap().to_owned();
        let id = files(&self.0.path().join("runs"))[0]
            .file_stem()
            .unwrap()
            .to_string_lossy()
            .into_owned();
        let run = get(&format!("/run/{id}"));
        assert_eq!((list.status_code, run.status_code), (200, 200));
        assert!(
            !holds(body.as_bytes()) && !holds(run.as_bytes()),
            "the page"
        );
        end(page);
    }
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

fn holds(bytes: &[u8]) -> bool {
    bytes
        .windows(SECRET.len())
        .any(|window| window == SECRET.as_bytes())
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap().flatten() {
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => found.extend(files(&entry.path())),
            kind if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
    found
}

/// This process and those below it.
fn tree(root: u32) -> BTreeSet<u32> {
    let mut all = BTreeSet::from([root]);
    loop {
        let before = all.len();
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Ok(pid) = entry.file_name().to_string_lossy().parse::<u32>() else {
                continue;
            };
            let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let parent = stat
                .rsplit_once(')')
                .and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
            if parent.is_some_and(|parent: u32| all.contains(&parent)) {
                all.insert(pid);
            }
        }
        if all.len() == before {
            return all;
        }
    }
}

/// What a server holds open.
type Connections = Arc<Mutex<Vec<TcpStream>>>;

/// A server that takes connections and never says a word, so that a run can be looked at for as long as it takes.
fn silent_server() -> (u16, Connections) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let connections = Connections::default();
    let held = connections.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            held.lock().unwrap().push(stream);
        }
    });
    (port, connections)
}

#[test]
fn no_started_process_shows_the_password_to_others() {
    let (port, connections) = silent_server();
    for scheme in ["mysql", "postgres"] {
        let home = Home::new();
        let url = format!("url={scheme}://root:{SECRET}@127.0.0.1:{port}/x");
        let mut run = home
            .command(&["run", "database", "--set", &url, "--progress", "json"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        until("the server is asked", || {
            !connections.lock().unwrap().is_empty()
        });
        let below: Vec<u32> = tree(run.id())
            .into_iter()
            .filter(|pid| *pid != run.id())
            .collect();
        assert!(!below.is_empty());
        for pid in below {
            for file in ["cmdline", "environ"] {
                let content = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
                assert!(!holds(&content), "/proc/{pid}/{file} holds the secret");
            }
        }
        // It is killed: what is on disk by now is kept.
        run.kill().unwrap();
        connections.lock().unwrap().clear();
        let mut said = String::new();
        run.stderr
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
        run.wait().unwrap();
        assert!(!holds(said.as_bytes()), "{said}");
        home.keeps_none();
    }
}

#[test]
fn what_failed_or_was_refused_is_told_without_the_password() {
    let home = Home::new();
    for words in [
        &[
            "run",
            "database",
            "--set",
            "url=mysql://root:SECRET@127.0.0.1:1/x",
        ][..],
        &[
            "run",
            "database",
            "--set=url=postgres://u:SECRET@127.0.0.1:1/x?ssl=1",
        ],
        &[
            "run",
            "database",
            "--set",
            "url=mysql://root:SECRET@127.0.0.1:0/x",
        ],
        &[
            "run",
            "database",
            "--set",
            "mysql://root:SECRET@127.0.0.1/x",
        ],
        &["run", "database", "--set", "password=SECRET"],
        &["run", "web", "--set", "url=http://u:SECRET@127.0.0.1:1/"],
        &[
            "run",
            "web",
            "--set",
            "url=http://127.0.0.1:1/?token=SECRET",
        ],
        &["run", "--password=SECRET"],
        &["run", "mysql://root:SECRET@127.0.0.1/x"],
        &[
            "ab",
            "database",
            "--a",
            "url=mysql://root:SECRET@127.0.0.1:1/x",
            "--b",
            "url=mysql://root:SECRET@127.0.0.1:1/y",
        ],
        &["show", "http://u:SECRET@127.0.0.1/run.json"],
    ] {
        let words: Vec<String> = words
            .iter()
            .map(|word| word.replace("SECRET", SECRET))
            .collect();
        let text = home.says(&words.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(!holds(text.as_bytes()), "{words:?}: {text}");
    }
    home.keeps_none();
}

/// Answers every request with a short page.
fn web_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let mut request = [0; 4096];
                while stream.read(&mut request).is_ok_and(|n| n > 0) {
                    if stream
                        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                        .is_err()
                    {
                        return;
                    }
                }
            });
        }
    });
    port
}

#[test]
fn rows_of_ones_own_server_do_not_tell_its_addresss_token() {
    let home = Home::new();
    let url = format!(
        "url=http://127.0.0.1:{}/x?token={SECRET}&page=1",
        web_server()
    );
    let said = home.says(&[
        "run",
        "web",
        "--set",
        &url,
        "--set",
        "connections=1",
        "--budget",
        "2",
        "-q",
    ]);
    assert!(
        said.contains("web.throughput") && !holds(said.as_bytes()),
        "{said}"
    );
    home.keeps_none();
}

#[test]
fn the_words_of_an_explained_command_are_cut() {
    let home = Home::new();
    for format in ["table", "json", "markdown"] {
        let script = format!("true mysql -p{SECRET} postgres://u:{SECRET}@h/x");
        let words = [
            "explain",
            "--format",
            format,
            "--",
            "sh",
            "-c",
            &script,
            &format!("--password={SECRET}"),
            "--token",
            SECRET,
        ];
        let said = home.says(&words);
        assert!(
            said.replace('\\', "").contains("***") && !holds(said.as_bytes()),
            "{said}"
        );
    }
}

/// A record as an older version kept it.
fn old_record() -> Run {
    let mut run = fixture::run();
    let url = format!("mysql://root:{SECRET}@db/x");
    run.command = [
        "fingerpost",
        "run",
        "--set",
        &format!("url={url}"),
        "--server-prefix",
        &format!("env PGPASSWORD={SECRET}"),
    ]
    .map(str::to_owned)
    .to_vec();
    let params = Params::new().with("server", format!("http://u:{SECRET}@127.0.0.1/").as_str());
    run.measurements[0].params = params;
    run.measurements[0].reason = Some(format!("url={url} does not answer"));
    let workload = format!("mysqldump -p{SECRET} db");
    let text = format!(
        r#"{{"workload":"{workload}","params":{{}},"observer":"x","source":"{url}","series":[],
        "totals":{{}},"self_cost":0.0,"lost":0}}"#
    );
    run.observations.push(serde_json::from_str(&text).unwrap());
    let text = format!(
        r#"{{"workload":"{workload}","params":{{}},"transactions":1,
        "seconds_per_transaction":0.001,"parts":[],"unexplained":1.0}}"#
    );
    run.budgets.push(serde_json::from_str(&text).unwrap());
    run
}

#[test]
fn a_record_of_an_older_version_is_shown_without_its_passwords() {
    let home = Home::new();
    let run = old_record();
    let text = serde_json::to_vec(&run).unwrap();
    assert!(holds(&text));
    let runs = home.0.path().join("runs");
    std::fs::create_dir(&runs).unwrap();
    std::fs::write(runs.join(format!("{}.json", run.id)), text).unwrap();
    home.shows_none();
}

#[test]
fn a_private_server_does_not_inherit_the_users_passwords() {
    if !is_root() {
        return;
    }
    let home = Home::new();
    let mut command = home.command(&[
        "run",
        "web",
        "--set",
        "server=nginx",
        "--set",
        "connections=1",
        "--budget",
        "20",
        "-q",
    ]);
    let mut run = command
        .env("PGPASSWORD", SECRET)
        .env("MYSQL_PWD", SECRET)
        .env("API_TOKEN", SECRET)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut others = Vec::new();
    until("the server runs as another user", || {
        let is_others =
            |pid: &u32| std::fs::metadata(format!("/proc/{pid}")).is_ok_and(|meta| meta.uid() != 0);
        // Until it has become the server it is a copy of this program, which no other user may read: the kernel clears
        // its dumpable flag.
        let exe = |pid: u32| std::fs::read_link(format!("/proc/{pid}/exe")).ok();
        let is_a_server = |pid: &u32| exe(*pid).is_some_and(|server| Some(server) != exe(run.id()));
        others = tree(run.id())
            .into_iter()
            .filter(|pid| is_others(pid) && is_a_server(pid))
            .collect();
        assert!(run.try_wait().unwrap().is_none(), "it ended");
        !others.is_empty()
    });
    for pid in others {
        assert!(
            !holds(&std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default()),
            "/proc/{pid}/environ holds the secret"
        );
    }
    end_well(&mut run);
}

/// Ends a run as a user does, so that it cleans up.
fn end_well(run: &mut Child) {
    let killed = Command::new("kill")
        .args(["-INT", &run.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    run.wait().unwrap();
}
