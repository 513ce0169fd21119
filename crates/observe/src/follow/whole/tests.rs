use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use super::*;

const MS: u64 = 1_000_000;

#[test]
fn every_time_is_in_a_step_within_a_hundredth_of_its_middle() {
    for time in (0..2_000).map(|n| (520.0 * 1.01f64.powi(n)) as u64) {
        let found = middle(bucket(time));
        let off = (found - time as f64).abs() / time as f64;
        assert!(
            off < 0.01 || time >= 1 << 41,
            "{time} is in the step of {found}"
        );
    }
    assert_eq!(
        (bucket(0), bucket(511), bucket(u64::MAX)),
        (0, 0, BUCKETS - 1)
    );
}

#[test]
fn quantiles_are_of_all_that_was_counted() {
    let mut counted = Counted::default();
    assert_eq!(counted.quantile(0.5), None);
    (1..=1000).for_each(|n| counted.end(n * MS));
    for (share, wanted) in [(0.5, 500), (0.9, 900), (0.99, 990)] {
        let found = counted.quantile(share).unwrap() / (wanted * MS) as f64;
        assert!((0.99..1.01).contains(&found), "{share}: {found}");
    }
    assert_eq!(counted.longest, 1000 * MS);
    assert!((counted.latency().mean - 0.5005).abs() < 1e-9);
}

#[test]
fn a_unix_sockets_name_is_as_the_kernel_has_it() {
    let name = unix_name("@name");
    assert_eq!((name.len(), &name[..6]), (NAME, &b"\0name\0"[..]));
    assert_eq!(&unix_name("/run/x")[..7], b"/run/x\0");
    let long = unix_name(&"x".repeat(100));
    assert_eq!(
        (&long[..NAME - 1], long[NAME - 1]),
        (&[b'x'; NAME - 1][..], 0)
    );
}

/// Where this process answers, at a port and a name.
fn own(port: u16, name: &std::path::Path) -> Answering {
    let mut answering = Answering::of([std::process::id() as i32]);
    // Other tests listen, too.
    answering.ports.retain(|p| *p == port);
    answering
        .names
        .retain(|n| Some(n.as_str()) == name.to_str());
    assert_eq!((answering.ports.len(), answering.names.len()), (1, 1));
    answering
}

/// What servers and clients talk by.
trait Stream: Read + Write + Send + 'static {}
impl<T: Read + Write + Send + 'static> Stream for T {}

/// What says that the answer is to be given when both have come to it.
const HELD: u8 = 255;

/// Answers each byte, after so many milliseconds as it says, until the other end closes.
fn serve(mut stream: impl Stream, let_go: &Barrier) {
    let mut byte = [0];
    while let Ok(1..) = stream.read(&mut byte) {
        if byte[0] == HELD {
            let_go.wait();
        } else {
            std::thread::sleep(Duration::from_millis(byte[0].into()));
        }
        // In two parts: the answer is over with the last.
        if stream.write_all(&[1]).is_err() || stream.write_all(&[2]).is_err() {
            return;
        }
    }
}

/// Asks for answers after these times, one after the other, and says how long each took.
fn ask(stream: &mut impl Stream, times: &[u8]) -> Vec<u64> {
    let one = |&time: &u8| {
        let begun = Instant::now();
        stream.write_all(&[time]).unwrap();
        stream.read_exact(&mut [0; 2]).unwrap();
        begun.elapsed().as_nanos() as u64
    };
    times.iter().map(one).collect()
}

/// Holds what was counted against what the client saw.
fn check(counted: &Counted, mut took: Vec<u64>) {
    took.sort_unstable();
    assert_eq!(counted.requests, took.len() as u64);
    let near = |found: f64, wanted: u64| {
        // What the client waits for its own CPU is not the server's, which may lose its own when it has answered.
        found <= wanted as f64 * 1.01 + 20e6 && found >= wanted as f64 * 0.5 - 20e6
    };
    let mean = took.iter().sum::<u64>() / took.len() as u64;
    assert!(near(counted.nanoseconds as f64 / took.len() as f64, mean));
    assert!(near(counted.longest as f64, took[took.len() - 1]));
    assert!(counted.longest >= 60 * MS);
    let p50 = counted.quantile(0.5).unwrap();
    assert!(near(p50, took[took.len().div_ceil(2) - 1]), "{p50}");
}

#[test]
fn all_requests_of_tcp_and_unix_sockets_are_counted() {
    if let Err(sentence) = each_is_counted(Whole::open) {
        fingerpost_testing::skipped(sentence);
    }
}

#[test]
fn programs_and_probes_at_functions_count_as_tracepoints_do() {
    // Some kernels allow neither, and count by tracepoints alone.
    for probes in [false, true] {
        if let Err(sentence) = each_is_counted(|answering| Whole::by(answering, false, &[probes])) {
            eprintln!("skipped: {sentence}");
        }
    }
}

fn each_is_counted(open: impl Fn(&Answering) -> Result<Whole, String>) -> Result<(), String> {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = tcp.local_addr().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("socket");
    let unix = UnixListener::bind(&path).unwrap();
    let mut whole = open(&own(address.port(), &path))?;
    let let_go = Arc::new(Barrier::new(2));
    let at_server = Arc::clone(&let_go);
    let servers = std::thread::spawn(move || {
        for stream in tcp.incoming().take(2) {
            let stream = stream.unwrap();
            // Else the answer's second part waits for the acknowledgement of the first.
            stream.set_nodelay(true).unwrap();
            let held = Arc::clone(&at_server);
            std::thread::spawn(move || serve(stream, &held));
        }
        serve(unix.accept().unwrap().0, &at_server);
    });
    let times = [1, 0, 60, 0, 2, 0, 0, 3];
    let mut client = TcpStream::connect(address).unwrap();
    client.set_nodelay(true).unwrap();
    let mut took = ask(&mut client, &times);
    // Another connection's request is under way meanwhile, and no end was seen of it.
    let mut held = TcpStream::connect(address).unwrap();
    let asked = monotonic_ns();
    held.write_all(&[HELD]).unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    let found = loop {
        let under_way = whole.under_way().unwrap();
        if let Some(found) = under_way.iter().find(|u| u.tid.is_some()) {
            break *found;
        }
        assert!(Instant::now() < deadline, "{under_way:?}");
        std::thread::yield_now();
    };
    assert_eq!(
        (found.local, found.peer),
        (address, held.local_addr().unwrap())
    );
    assert!(found.since_ns >= asked && found.read_ns.unwrap() >= found.since_ns);
    let look = whole.look().unwrap();
    assert_eq!((look.under_way, look.under_way_unread), (1, 0));
    let_go.wait();
    held.read_exact(&mut [0; 2]).unwrap();
    took.push(monotonic_ns() - asked);
    let mut client = UnixStream::connect(&path).unwrap();
    took.extend(ask(&mut client, &times));
    drop((client, held));
    servers.join().unwrap();
    let look = whole.look().unwrap();
    assert_eq!(look.latency.count, took.len() as u64, "{look:?}");
    assert_eq!((look.under_way, look.opened), (0, 2), "{look:?}");
    assert!(look.longest >= 0.06 && look.seconds > 0.12, "{look:?}");
    check(&whole.all().unwrap().0, took);
    Ok(())
}

/// A server with its client in a network name space of their own, at the same port as all others of its kind. It does
/// what it is told: so many requests.
const ALONE: &str = r#"
import socket, sys, threading
listener = socket.create_server(("127.0.0.1", 5432))
def serve():
    stream = listener.accept()[0]
    while stream.recv(1):
        stream.sendall(b"x")
threading.Thread(target=serve, daemon=True).start()
print("listens", flush=True)
stream = socket.create_connection(("127.0.0.1", 5432))
for _ in range(int(sys.stdin.readline())):
    stream.sendall(b"x")
    stream.recv(1)
print("done", flush=True)
sys.stdin.readline()
"#;

#[test]
fn servers_at_the_same_port_of_three_name_spaces_are_told_apart() {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};
    let begin = || {
        let mut command = Command::new("unshare");
        let up = "ip link set lo up && exec python3 -c \"$0\"";
        command
            .args(["--net", "sh", "-c", up, ALONE])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().ok()?;
        let mut lines = BufReader::new(child.stdout.take()?).lines();
        match lines.next() {
            Some(Ok(line)) if line == "listens" => Some((child, lines)),
            _ => {
                _ = child.kill();
                _ = child.wait();
                None
            }
        }
    };
    let mut all: Vec<_> = (0..3).filter_map(|_| begin()).collect();
    let answering = all
        .get(1)
        .map(|(child, _)| Answering::of([child.id() as i32]));
    let whole = answering.map(|answering| Whole::open(&answering));
    if let (3, Some(Ok(whole))) = (all.len(), &whole) {
        for (n, (child, lines)) in all.iter_mut().enumerate() {
            writeln!(child.stdin.as_mut().unwrap(), "{}", 10 * (n + 1)).unwrap();
            assert_eq!(lines.next().unwrap().unwrap(), "done");
        }
        let look = whole.look().unwrap();
        assert_eq!(look.latency.count, 20, "{look:?}");
    } else {
        let refused = whole.and_then(Result::err);
        fingerpost_testing::skipped(format_args!("{refused:?}"));
    }
    for (mut child, _) in all {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
