//! Small servers that do not answer, each for another reason, and some that are well.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use fingerpost_record::under_way::{Place, Progress, UnderWay, WaitKind};

use super::watch::Watcher;

/// What all servers begin with: a socket that listens, told by its port.
const COMMON: &str = "
import fcntl, os, selectors, socket, sys, tempfile, threading, time
l = socket.socket(); l.bind(('127.0.0.1', 0)); l.listen(64)
def ready(): print(l.getsockname()[1], flush=True)
";

struct Server {
    child: Child,
    port: u16,
}

impl Server {
    /// Starts it; nothing where there is no Python.
    fn start(code: &str) -> Option<Server> {
        let started = Command::new("python3")
            .args(["-c", &format!("{COMMON}{code}")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut child = match started {
            Ok(child) => child,
            Err(e) => {
                fingerpost_testing::skipped(format_args!("no python3: {e}"));
                return None;
            }
        };
        let mut line = String::new();
        let out = child.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        Some(Server {
            port: line.trim().parse().expect("it tells its port"),
            child,
        })
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    fn ask(&self) -> TcpStream {
        let mut stream = self.connect();
        stream.write_all(b"q").unwrap();
        stream
    }

    /// Looks until what is under way is as it is wanted.
    #[track_caller]
    fn until(&self, wanted: impl Fn(&UnderWay) -> bool) -> UnderWay {
        let began = Instant::now();
        loop {
            let mut watcher = Watcher::new(vec![self.child.id() as i32], Vec::new(), None).unwrap();
            watcher.ask();
            watcher.look(true);
            watcher.count();
            let found = watcher.finish();
            if wanted(&found) {
                return found;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "{found:#?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The place of the only request, when its thread waits for this kind of thing.
    #[track_caller]
    fn waiting(&self, kind: WaitKind) -> Place {
        // While it is not read, the server is still on its way there.
        let of = |u: &UnderWay| {
            let request = u.requests.first()?;
            let read = request.progress == Progress::Read;
            Some(request.place.as_ref()?.wait.kind).filter(|_| read)
        };
        let found = self.until(|u| u.count == 1 && of(u) == Some(kind));
        assert!(found.requests[0].client.starts_with("127.0.0.1:"));
        found.requests[0].place.clone().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Processes that a server made end when its standard input does.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_lock_on_a_file_is_told_with_its_holder() {
    let Some(server) = Server::start(
        "
f = tempfile.NamedTemporaryFile(suffix='.session'); r, w = os.pipe()
if os.fork() == 0:
    g = open(f.name); fcntl.flock(g, fcntl.LOCK_EX); os.write(w, b'x'); sys.stdin.read(); os._exit(0)
os.read(r, 1); ready(); c, _ = l.accept(); c.recv(9); fcntl.flock(f, fcntl.LOCK_EX)
",
    ) else {
        return;
    };
    let _client = server.ask();
    let place = server.waiting(WaitKind::FileLock);
    assert!(place.wait.path.ends_with(".session"), "{place:?}");
    let holder = place.wait.whom.expect("the kernel tells who holds it");
    assert_ne!(holder.pid, place.process.pid);
    assert_eq!(place.process.pid, server.child.id() as i32);
}

#[test]
fn a_pipe_is_told_with_the_process_at_its_other_end() {
    let Some(server) = Server::start(
        "
r, w = os.pipe()
if os.fork() == 0:
    os.close(r); sys.stdin.read(); os._exit(0)
os.close(w); ready(); c, _ = l.accept(); c.recv(9); os.read(r, 1)
",
    ) else {
        return;
    };
    let _client = server.ask();
    let place = server.waiting(WaitKind::Pipe);
    assert_ne!(place.wait.whom.unwrap().pid, place.process.pid);
}

#[test]
fn another_service_is_told_by_its_address_and_process() {
    let Some(backend) = Server::start("ready(); c, _ = l.accept(); sys.stdin.read()\n") else {
        return;
    };
    let port = backend.port;
    let server = Server::start(&format!(
        "
ready(); c, _ = l.accept(); c.recv(9)
b = socket.create_connection(('127.0.0.1', {port})); b.sendall(b'q'); b.recv(9)
"
    ))
    .unwrap();
    let _client = server.ask();
    let place = server.waiting(WaitKind::Peer);
    assert_eq!(place.wait.address, format!("127.0.0.1:{port}"));
    assert_eq!(place.wait.whom.unwrap().pid, backend.child.id() as i32);
}

#[test]
fn what_the_other_service_waits_for_is_told_behind_it() {
    let Some(backend) = Server::start("ready(); c, _ = l.accept(); c.recv(9); time.sleep(1000)\n")
    else {
        return;
    };
    let port = backend.port;
    let server = Server::start(&format!(
        "
ready(); c, _ = l.accept(); c.recv(9)
b = socket.create_connection(('127.0.0.1', {port})); b.sendall(b'q'); b.recv(9)
"
    ))
    .unwrap();
    let _client = server.ask();
    let behind = |u: &UnderWay| {
        let place = u.requests.first()?.place.as_ref()?.peer.as_ref()?;
        Some((place.process.pid, place.wait.kind))
    };
    let wanted = Some((backend.child.id() as i32, WaitKind::Sleep));
    server.until(|u| behind(u) == wanted);
}

#[test]
fn a_lock_in_memory_and_a_sleep_are_told_apart() {
    for (code, kind) in [
        (
            "k = threading.Lock(); k.acquire(); k.acquire()",
            WaitKind::Lock,
        ),
        ("time.sleep(1000)", WaitKind::Sleep),
    ] {
        let Some(server) =
            Server::start(&format!("ready(); c, _ = l.accept(); c.recv(9)\n{code}\n"))
        else {
            return;
        };
        let _client = server.ask();
        let place = server.waiting(kind);
        assert!(
            !place.functions.is_empty() || cfg!(not(target_arch = "x86_64")),
            "its stack can be read here, so it is unwound: {place:?}"
        );
    }
}

#[test]
fn a_worker_that_a_silent_client_holds_is_told_with_that_client() {
    let Some(server) = Server::start(
        "ready()\nwhile 1:\n    c, _ = l.accept()\n    if c.recv(9): c.sendall(b'a')\n    c.close()\n",
    ) else {
        return;
    };
    let silent = server.connect();
    // It has accepted that one before the next comes.
    server.until(|u| u.count == 0 && u.connections == 1);
    let _client = server.ask();
    let held = |u: &UnderWay| {
        u.workers
            .first()
            .is_some_and(|w| w.wait.kind == WaitKind::Client)
    };
    let found = server.until(|u| u.count == 1 && held(u));
    assert_eq!(found.requests[0].progress, Progress::NotAccepted);
    assert_eq!(
        found.workers[0].wait.address,
        silent.local_addr().unwrap().to_string()
    );
    drop(silent);
    server.until(|u| u.count == 0);
}

/// A server of one thread that waits for all of its connections together, and asks another for each request.
const PROXY: &str = "
s = selectors.EpollSelector(); s.register(l, 1); ready()
while 1:
    for key, _ in s.select():
        if key.fileobj is l:
            c, _ = l.accept(); b = socket.create_connection(('127.0.0.1', BACKEND))
            s.register(c, 1, b); s.register(b, 1, c)
        else:
            key.data.sendall(key.fileobj.recv(99) or sys.exit())
";

#[test]
fn a_loop_that_waits_for_a_backend_is_told_by_its_last_asking() {
    // The first request is answered, the second is not: it comes within the tick of the first answer.
    let Some(backend) = Server::start(
        "
ready(); all = []
while 1:
    c, _ = l.accept(); c.recv(9); c.sendall(b'a'); all.append(c)
",
    ) else {
        return;
    };
    let server = Server::start(&PROXY.replace("BACKEND", &backend.port.to_string())).unwrap();
    let mut clients: Vec<TcpStream> = (0..3).map(|_| server.ask()).collect();
    for client in &mut clients {
        client.read_exact(&mut [0]).unwrap();
        client.write_all(b"q").unwrap();
    }
    let waits = |u: &UnderWay| {
        let of = |r: &fingerpost_record::under_way::Request| {
            r.place
                .as_ref()
                .is_some_and(|p| p.wait.kind == WaitKind::Peer)
        };
        u.count == 3 && u.requests.iter().all(of)
    };
    let found = server.until(waits);
    let place = found.requests[0].place.as_ref().unwrap();
    assert_eq!(place.wait.address, format!("127.0.0.1:{}", backend.port));
    assert_eq!(
        place.wait.whom.as_ref().unwrap().pid,
        backend.child.id() as i32
    );
}

#[test]
fn threads_that_serve_a_connection_each_have_its_request() {
    let Some(server) = Server::start(
        "
k = threading.Lock(); k.acquire()
def serve(c):
    c.recv(9); k.acquire()
ready()
while 1: threading.Thread(target=serve, args=(l.accept()[0],)).start()
",
    ) else {
        return;
    };
    let mut clients = Vec::new();
    for _ in 0..3 {
        clients.push(server.ask());
    }
    // Which thread has which is told by when each read and when each thread ran: on a busy machine that may not tell it of
    // every one, and then it is not known.
    let found = server.until(|u| {
        let read = |r: &fingerpost_record::under_way::Request| r.progress == Progress::Read;
        u.count == 3 && u.requests.iter().all(read) && u.requests.iter().any(|r| r.place.is_some())
    });
    let places: Vec<&Place> = found
        .requests
        .iter()
        .filter_map(|r| r.place.as_ref())
        .collect();
    assert!(
        places.iter().all(|p| p.wait.kind == WaitKind::Lock),
        "{places:#?}"
    );
    let mut tids: Vec<i32> = places.iter().map(|p| p.tid).collect();
    tids.sort_unstable();
    tids.dedup();
    assert_eq!(tids.len(), places.len(), "a thread has one request");
}

#[test]
fn a_service_that_waits_for_its_clients_has_no_request() {
    let Some(server) = Server::start(
        "
ready(); all = []
for _ in range(3): all.append(l.accept()[0])
# One that was answered, one that only receives what it asked for once, one that tells and expects nothing.
for c in all: c.recv(9)
all[0].sendall(b'a')
for _ in range(3): all[1].sendall(b'news'); time.sleep(.02)
s = selectors.EpollSelector(); s.register(l, 1)
for c in all: s.register(c, 1)
while 1:
    for key, _ in s.select(): key.fileobj.recv(99) or sys.exit()
",
    ) else {
        return;
    };
    let mut clients: Vec<TcpStream> = (0..3).map(|_| server.ask()).collect();
    clients[0].read_exact(&mut [0]).unwrap();
    clients[1].read_exact(&mut [0; 12]).unwrap();
    let found = server.until(|u| u.count == 0 && u.connections == 3 && u.mean == 0.0);
    assert_eq!(
        found.quiet, 1,
        "nobody can tell what the third is: {found:?}"
    );
}
