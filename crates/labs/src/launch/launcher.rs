//! Starts one application and times it from before its process is made until it is ready.
//!
//! For `ready = "exit"` that is what hyperfine times: from before the start until the process has been waited for.
//!
//! Nothing is polled where the kernel can tell: the end of a process (pidfd), a line (inotify on the file that takes
//! its output) and a window (the X connection) wake the waiter. A file, a port and a socket are tried every [`RETRY`].

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{PipeWriter, Read, Seek, SeekFrom};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use fingerpost_record::secret;
use fingerpost_sys::spawn::{Process, Spawn};
use fingerpost_sys::{child, memory, system, wait};
use fingerpost_undo::scratch;
use fingerpost_workloads::server_dir::tail;
use regex_lite::Regex;

use super::manifest::{App, Places, PortSpec, Ready, find_program};
use super::window::Display;

/// How often a file, a port or a socket is tried. The kernel's timer slack adds 50 µs, which keeps the whole below 0.2
/// ms.
const RETRY: Duration = Duration::from_micros(120);
/// How long the waiter sleeps at most before it looks whether the user wants to stop.
const LOOK_UP: Duration = Duration::from_millis(50);
/// The user and group `nobody`, for what refuses to run as root.
pub const NOBODY: u32 = 65_534;
/// The resolution of the times, for the record and the reader.
pub const RESOLUTION: &str =
    "exit, line and window wake the clock at once; file, port and socket are tried every 0.12 ms";

/// Where an application is put.
#[derive(Debug, Default)]
pub struct Home {
    /// `cgroup.procs` of every control group that it belongs in.
    pub procs: Vec<PathBuf>,
    /// The mark in its environment by which it is found again.
    pub scratch: PathBuf,
}

/// An application that was launched.
#[derive(Debug)]
pub struct Launched {
    /// From before its process was made to ready.
    pub elapsed: Duration,
    /// Its first process; `None` when it has ended, as `ready = "exit"` expects.
    pub running: Option<Running>,
}

/// An application that runs.
#[derive(Debug)]
pub struct Running {
    /// Its first process.
    pub process: Process,
    /// Its standard input stays open for as long as this.
    _input: PipeWriter,
}

/// Why there is no time.
#[derive(Debug, PartialEq)]
pub enum Trouble {
    /// The user asked to stop.
    Stopped,
    /// It went wrong; the sentence says how.
    Failed(String),
}

impl From<String> for Trouble {
    fn from(sentence: String) -> Self {
        Trouble::Failed(sentence)
    }
}

/// Starts an application and waits until it is ready. What it started is left running; whoever made `home` ends it.
pub fn launch(
    app: &App,
    places: &Places,
    home: &Home,
    stop: &dyn Fn() -> bool,
) -> Result<Launched, Trouble> {
    let mut condition = Condition::new(app, places)?;
    let (output, log) = output(app, places)?;
    let (spawn, input) = program(app, places, home, output)?;
    // Nobody listens where no line is waited for: a wake-up for each write would be part of the time.
    let written = matches!(condition, Condition::Line { .. })
        .then(|| wait::writes(&log))
        .transpose();
    let written = written.map_err(|e| format!("cannot watch the output of {}: {e}", app.name))?;
    let trouble = |e| format!("cannot start {} ({}): {e}", app.name, app.command[0]);
    let spawn = spawn.ready().map_err(trouble)?;
    let start = Instant::now();
    let started = spawn.start().map_err(trouble)?;
    let mut process = started.process;
    let outcome = until_ready(
        app,
        &mut condition,
        &mut process,
        written.as_ref(),
        start,
        stop,
    );
    let ready = match outcome {
        Ok(ready) => ready,
        Err(trouble) => {
            // Its group is ended by whoever made it; the process itself must not stay a zombie until then.
            let _ = child::signal_group(process.pid(), libc::SIGKILL);
            let _ = process.wait();
            return Err(explain(trouble, &log));
        }
    };
    let elapsed = (ready - start).saturating_sub(started.entering);
    let runs = !matches!(process.try_wait(), Ok(Some(_)));
    Ok(Launched {
        elapsed,
        running: runs.then_some(Running {
            process,
            _input: input,
        }),
    })
}

/// Where the application writes, and the path at which it is read. What runs to its end writes to memory: the first
/// block of a new file on a disk costs 25 µs, a twentieth of the time of a small program. What stays may write for
/// long, and goes to a file.
fn output(app: &App, places: &Places) -> Result<(File, PathBuf), String> {
    let trouble = |e| format!("cannot write the output of {}: {e}", app.name);
    if app.ready == Ready::Exit {
        let file = memory::nameless_file().map_err(trouble)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        return Ok((file, path));
    }
    let path = places.output.join("output");
    Ok((File::create_new(&path).map_err(trouble)?, path))
}

/// The program, with its output to a file and its input from a pipe that stays open.
fn program(
    app: &App,
    places: &Places,
    home: &Home,
    output: File,
) -> Result<(Spawn, PipeWriter), String> {
    let words: Vec<String> = app.command.iter().map(|word| places.fill(word)).collect();
    let program = find_program(&words[0]).ok_or_else(|| {
        format!(
            "{} is not installed: no program `{}` here",
            app.name, words[0]
        )
    })?;
    let errors = output
        .try_clone()
        .map_err(|e| format!("cannot write the output of {}: {e}", app.name))?;
    let (reader, input) = std::io::pipe().map_err(|e| format!("cannot make a pipe: {e}"))?;
    let fds = [reader.into(), output.into(), errors.into()];
    let trouble = |e| format!("cannot start {} ({}): {e}", app.name, words[0]);
    let mut spawn = Spawn::new(&program, &words[1..], &places.dir, fds).map_err(trouble)?;
    // What it leaves in the temporary directory goes with the sequence.
    spawn.env("TMPDIR", &places.dir);
    spawn.mark(&home.scratch);
    if app.unprivileged {
        spawn.env("HOME", &places.dir);
        if system::is_root() {
            spawn.user(NOBODY, NOBODY);
            // Whoever runs as nobody can read the environment of the application.
            spawn.env_without(is_secret);
        }
    }
    app.env
        .iter()
        .for_each(|(name, value)| spawn.env(name, places.fill(value)));
    let open = |path: &PathBuf| {
        OpenOptions::new()
            .write(true)
            .open(path)
            .map_err(|e| format!("cannot use the control group {}: {e}", path.display()))
    };
    spawn.groups(home.procs.iter().map(open).collect::<Result<_, _>>()?);
    Ok((spawn, input))
}

fn is_secret(name: &OsStr) -> bool {
    name.to_str().is_some_and(secret::is_secret_name)
}

/// Waits, and gives the moment at which it was ready.
fn until_ready(
    app: &App,
    condition: &mut Condition,
    process: &mut Process,
    written: Option<&OwnedFd>,
    start: Instant,
    stop: &dyn Fn() -> bool,
) -> Result<Instant, Trouble> {
    let mut alive = true;
    let mut looked = start;
    loop {
        if condition.holds(process, alive)? {
            return Ok(Instant::now());
        }
        // What has ended well may have left a server behind, so only a bad end is the end of waiting.
        if !alive && let Some(status) = process.try_wait().ok().flatten().filter(|s| !s.success()) {
            return Err(Trouble::Failed(format!(
                "{} ended before it was ready ({status})",
                app.name
            )));
        }
        let now = Instant::now();
        if now - start > Duration::from_secs(app.timeout) {
            return Err(Trouble::Failed(format!(
                "{} was not ready within {} s; raise its `timeout`",
                app.name, app.timeout
            )));
        }
        if now - looked > LOOK_UP {
            looked = now;
            if stop() {
                return Err(Trouble::Stopped);
            }
        }
        let mut fds: Vec<BorrowedFd> = written.map(AsFd::as_fd).into_iter().collect();
        fds.extend(condition.display().map(AsFd::as_fd));
        if alive {
            fds.push(process.as_fd());
        }
        let tried = matches!(
            condition,
            Condition::Port(_) | Condition::Socket(_) | Condition::File(_)
        );
        let pause = if tried { RETRY } else { LOOK_UP };
        let happened =
            wait::any(&fds, pause).map_err(|e| format!("cannot wait for {}: {e}", app.name))?;
        alive &= happened.last() != Some(&true) || happened.len() != fds.len();
        if let Some(written) = written {
            wait::drain(written.as_fd());
        }
    }
}

/// What `ready` asks for, with what it takes to see it.
enum Condition {
    Exit,
    Line {
        pattern: Regex,
        log: PathBuf,
        from: u64,
        rest: String,
    },
    Port(SocketAddr),
    Socket(PathBuf),
    File(PathBuf),
    Window(Display),
}

impl Condition {
    fn new(app: &App, places: &Places) -> Result<Condition, String> {
        Ok(match &app.ready {
            Ready::Exit => Condition::Exit,
            Ready::Line(pattern) => {
                let pattern = Regex::new(pattern)
                    .map_err(|e| format!("{}: `line` is no regular expression: {e}", app.name))?;
                Condition::Line {
                    pattern,
                    log: places.output.join("output"),
                    from: 0,
                    rest: String::new(),
                }
            }
            Ready::Port(spec) => {
                Condition::Port(SocketAddr::from((Ipv4Addr::LOCALHOST, port(spec, places)?)))
            }
            Ready::Socket(path) => Condition::Socket(places.dir.join(places.fill(path))),
            Ready::File(path) => Condition::File(places.dir.join(places.fill(path))),
            Ready::Window => {
                let name = app
                    .env
                    .get("DISPLAY")
                    .cloned()
                    .or_else(|| std::env::var("DISPLAY").ok());
                let name = name.ok_or_else(|| {
                    format!(
                        "{} shows a window, and there is no X display: set DISPLAY",
                        app.name
                    )
                })?;
                Condition::Window(Display::connect(&name)?)
            }
        })
    }

    fn display(&self) -> Option<&Display> {
        if let Condition::Window(display) = self {
            Some(display)
        } else {
            None
        }
    }

    fn holds(&mut self, process: &mut Process, alive: bool) -> Result<bool, String> {
        match self {
            Condition::Exit => Ok(!alive
                && process
                    .try_wait()
                    .map_err(|e| format!("cannot wait: {e}"))?
                    .is_some_and(|s| s.success())),
            Condition::Line {
                pattern,
                log,
                from,
                rest,
            } => Ok(has_line(pattern, log, from, rest)),
            Condition::Port(address) => {
                Ok(TcpStream::connect_timeout(address, Duration::from_secs(1)).is_ok())
            }
            Condition::Socket(path) => Ok(UnixStream::connect(path).is_ok()),
            Condition::File(path) => Ok(path.exists()),
            Condition::Window(display) => display.window_shown().map_err(|e| e.to_string()),
        }
    }
}

fn port(spec: &PortSpec, places: &Places) -> Result<u16, String> {
    match spec {
        PortSpec::Number(port) => Ok(*port),
        PortSpec::Word(word) => places
            .fill(word)
            .parse()
            .map_err(|_| format!("`{word}` is no port")),
    }
}

/// Reads what was written since the last time and tells whether a whole line, or the beginning of one, matches.
fn has_line(pattern: &Regex, log: &Path, from: &mut u64, rest: &mut String) -> bool {
    let mut new = Vec::new();
    if let Ok(mut file) = File::open(log)
        && file.seek(SeekFrom::Start(*from)).is_ok()
    {
        // An application that writes without end must not fill the memory.
        let _ = file.take(1 << 20).read_to_end(&mut new);
    }
    *from += new.len() as u64;
    rest.push_str(&String::from_utf8_lossy(&new));
    let found = rest.lines().any(|line| pattern.is_match(line));
    let last = rest.rfind('\n').map_or(0, |end| end + 1);
    rest.drain(..last);
    found
}

/// Adds the last line that the application wrote: it mostly says why.
fn explain(trouble: Trouble, log: &Path) -> Trouble {
    let Trouble::Failed(sentence) = trouble else {
        return trouble;
    };
    let text = File::open(log).map(|file| tail(&file)).unwrap_or_default();
    let last = text.lines().rev().find(|line| !line.trim().is_empty());
    Trouble::Failed(match last {
        Some(line) => format!(
            "{sentence}; its last line: {}",
            line.trim().chars().take(200).collect::<String>()
        ),
        None => sentence,
    })
}

/// Runs the untimed commands of an application, each for a minute at most.
pub fn run_untimed(
    app: &App,
    commands: &[Vec<String>],
    places: &Places,
    home: &Home,
) -> Result<(), String> {
    for words in commands {
        let words: Vec<String> = words.iter().map(|word| places.fill(word)).collect();
        let program = find_program(&words[0]).ok_or_else(|| {
            format!(
                "{} cannot be prepared: no program `{}` here",
                app.name, words[0]
            )
        })?;
        let mut command = Command::new(program);
        command
            .args(&words[1..])
            .current_dir(&places.dir)
            .env("TMPDIR", &places.dir);
        child::mark(&mut command, &home.scratch);
        if app.unprivileged {
            scratch::drop_privileges(&mut command, NOBODY, NOBODY);
            std::env::vars_os()
                .filter(|(name, _)| is_secret(name))
                .for_each(|(name, _)| {
                    command.env_remove(name);
                });
            command.env("HOME", &places.dir);
        }
        child::die_with_parent(&mut command);
        let trouble =
            |what: String| format!("{} cannot be prepared: `{}` {what}", app.name, words[0]);
        let output = child::run_bounded(&mut command, Instant::now() + Duration::from_secs(60))
            .map_err(|e| trouble(e.to_string()))?;
        match output.status {
            Some(status) if status.success() => {}
            Some(status) => {
                let errors = String::from_utf8_lossy(&output.stderr).into_owned();
                return Err(trouble(format!(
                    "ended with {status}: {}",
                    errors.lines().last().unwrap_or("it says nothing")
                )));
            }
            None => return Err(trouble("did not end within a minute".into())),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::manifest;

    fn app(text: &str) -> App {
        manifest::parse(&format!("[[app]]\nname = \"x\"\n{text}"))
            .unwrap()
            .remove(0)
    }

    fn try_it(text: &str) -> (Result<Launched, Trouble>, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let places = Places {
            dir: dir.path().into(),
            data: dir.path().into(),
            output: dir.path().into(),
            port,
        };
        let home = Home {
            procs: Vec::new(),
            scratch: dir.path().into(),
        };
        (launch(&app(text), &places, &home, &|| false), dir)
    }

    #[track_caller]
    fn ends_ready(text: &str) {
        let (launched, dir) = try_it(text);
        let launched = launched.unwrap();
        assert!(launched.elapsed > Duration::ZERO);
        child::kill_all(|| child::marked(dir.path())).unwrap();
        if let Some(mut running) = launched.running {
            running.process.wait().unwrap();
        }
    }

    #[test]
    fn an_end_a_line_a_file_and_a_socket_are_seen() {
        ends_ready("command = [\"true\"]\nready = \"exit\"");
        ends_ready(
            "command = [\"sh\", \"-c\", \"echo no; echo go; read x\"]\nready = { line = \"^go$\" }",
        );
        ends_ready(
            "command = [\"sh\", \"-c\", \": > {dir}/f; read x\"]\nready = { file = \"{dir}/f\" }",
        );
        if find_program("python3").is_some() {
            let serve = |family: &str, address: &str| {
                format!(
                    "import socket; s = socket.socket(socket.{family}); s.bind({address}); s.listen(); s.accept(); \
                     input()"
                )
            };
            let unix = serve("AF_UNIX", "'{dir}/s'");
            ends_ready(&format!(
                "command = [\"python3\", \"-c\", \"{unix}\"]\nready = {{ socket = \"{{dir}}/s\" }}"
            ));
            let tcp = serve("AF_INET", "('127.0.0.1', {port})");
            ends_ready(&format!(
                "command = [\"python3\", \"-c\", \"{tcp}\"]\nready = {{ port = \"{{port}}\" }}"
            ));
        }
    }

    #[test]
    fn what_ends_badly_never_starts_or_is_never_ready_is_told_in_a_sentence() {
        let sentence = |text: &str| match try_it(text).0 {
            Err(Trouble::Failed(sentence)) => sentence,
            other => panic!("{other:?}"),
        };
        let bad = sentence(
            "command = [\"sh\", \"-c\", \"echo no such thing >&2; exit 3\"]\nready = { line = \"x\" }",
        );
        assert!(
            bad.contains("ended before it was ready") && bad.contains("no such thing"),
            "{bad}"
        );
        let bad = sentence("command = [\"sh\", \"-c\", \"echo alas; false\"]\nready = \"exit\"");
        assert!(
            bad.contains("ended before") && bad.contains("alas"),
            "{bad}"
        );
        assert!(
            sentence("command = [\"no-such-program\"]\nready = \"exit\"")
                .contains("is not installed")
        );
        assert!(
            sentence("command = [\"sleep\", \"60\"]\nready = { line = \"x\" }\ntimeout = 1")
                .contains("not ready within 1 s")
        );
        assert!(
            sentence("command = [\"true\"]\nready = \"window\"\nenv = { DISPLAY = \"far:0\" }")
                .contains("no X display")
        );
    }

    #[test]
    fn a_wish_to_stop_ends_the_wait() {
        let dir = tempfile::tempdir().unwrap();
        let places = Places {
            dir: dir.path().into(),
            data: dir.path().into(),
            output: dir.path().into(),
            port: 1,
        };
        let app = app("command = [\"sleep\", \"60\"]\nready = { line = \"x\" }");
        let home = Home {
            procs: Vec::new(),
            scratch: dir.path().into(),
        };
        assert_eq!(
            launch(&app, &places, &home, &|| true).unwrap_err(),
            Trouble::Stopped
        );
    }

    #[test]
    fn a_line_is_found_in_pieces_too() {
        let dir = tempfile::tempdir().unwrap();
        let log = dir.path().join("log");
        let pattern = Regex::new("listening on 80$").unwrap();
        let (mut from, mut rest) = (0, String::new());
        std::fs::write(&log, "start\nlisten").unwrap();
        assert!(!has_line(&pattern, &log, &mut from, &mut rest));
        std::fs::write(&log, "start\nlistening on 80\n").unwrap();
        assert!(has_line(&pattern, &log, &mut from, &mut rest));
    }
}
