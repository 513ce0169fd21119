//! A server under attack: the web page, or `site serve`.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use fingerpost_sys::child;
use tempfile::TempDir;

use super::oracle::{Fault, binary, misleading};

/// How long an honest request may take while others attack.
const HONEST: Duration = Duration::from_secs(5);

/// A server, ended with the value.
pub struct Server {
    process: Mutex<Child>,
    err: File,
    /// Held until the server has ended.
    _home: TempDir,
    /// `127.0.0.1:PORT`.
    pub host: String,
    /// What every path begins with: the token of the page; nothing for a site.
    pub base: String,
    /// The peak of its memory before the attack, in bytes.
    calm: u64,
}

impl Server {
    /// Starts `fingerpost WORDS` in this home. Its first line of output ends with its address.
    pub fn start(home: TempDir, words: &[&str]) -> Server {
        let err = tempfile::tempfile().unwrap();
        let mut command = binary();
        command
            .args(words)
            .env("FINGERPOST_HOME", home.path())
            .current_dir(home.path());
        command
            .stdout(Stdio::piped())
            .stderr(err.try_clone().unwrap());
        let mut process = child::die_with_parent(&mut command).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line
            .split_whitespace()
            .last()
            .expect("an address")
            .to_owned();
        let (host, base) = address
            .strip_prefix("http://")
            .unwrap()
            .split_once('/')
            .unwrap();
        let base = if base.is_empty() {
            String::new()
        } else {
            format!("/{}", base.trim_end_matches('/'))
        };
        let mut server = Server {
            process: Mutex::new(process),
            err,
            _home: home,
            host: host.to_owned(),
            base,
            calm: 0,
        };
        server.honest("/").unwrap_or_else(|f| panic!("{}", f.text));
        server.calm = server.peak().expect("it lives");
        server
    }

    /// A connection.
    pub fn connect(&self) -> std::io::Result<TcpStream> {
        let stream = TcpStream::connect(&self.host)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.set_write_timeout(Some(Duration::from_secs(5)))?;
        Ok(stream)
    }

    /// Sends pieces one by one and gives all that comes back until the server closes.
    pub fn converse(&self, pieces: &[&[u8]]) -> Result<Vec<u8>, Fault> {
        let mut stream = self
            .connect()
            .map_err(|e| Fault::new("abort", format!("no connection: {e}")))?;
        let _ = stream.set_nodelay(true);
        for piece in pieces {
            // The server may close before it has read everything.
            if stream.write_all(piece).is_err() {
                break;
            }
        }
        let _ = stream.shutdown(Shutdown::Write);
        let mut answer = Vec::new();
        match stream.take(8 << 20).read_to_end(&mut answer) {
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Err(Fault::new(
                    "hang",
                    format!(
                        "no end of the answer within 5 s of silence, after {} bytes",
                        answer.len()
                    ),
                ))
            }
            // A connection that is reset has been hung up on, as a malformed request deserves.
            _ => Ok(answer),
        }
    }

    /// A well-formed request: its answer, which must be 200.
    pub fn honest(&self, path: &str) -> Result<Vec<u8>, Fault> {
        let (began, host) = (Instant::now(), &self.host);
        let request = format!(
            "GET {}{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n",
            self.base
        );
        let answer = self.converse(&[request.as_bytes()])?;
        if !answer.starts_with(b"HTTP/1.1 200 ") {
            let head = String::from_utf8_lossy(&answer[..answer.len().min(60)]).into_owned();
            return Err(Fault::new(
                "abort",
                format!("an honest request of {path} was answered {head:?}"),
            ));
        }
        if began.elapsed() > HONEST {
            return Err(Fault::new(
                "hang",
                format!("an honest request took {:?}", began.elapsed()),
            ));
        }
        Ok(answer)
    }

    /// Whether it lives, and has not taken more than 64 MiB and four times `input` beyond what it had in peace.
    pub fn well(&self, input: u64) -> Result<(), Fault> {
        if let Some(status) = self.process.lock().unwrap().try_wait().unwrap() {
            return Err(Fault::new(
                "abort",
                format!("the server ended with {status}: {}", self.said()),
            ));
        }
        let (peak, most) = (self.peak().unwrap_or(0), self.calm + (64 << 20) + 4 * input);
        if peak > most {
            return Err(Fault::new(
                "memory",
                format!(
                    "the server took {} MiB, over {} MiB",
                    peak >> 20,
                    most >> 20
                ),
            ));
        }
        let said = self.said();
        if said.contains("panicked") || said.contains("defect") {
            return Err(Fault::new("abort", format!("the server said {said:?}")));
        }
        misleading(said.as_bytes()).map_or(Ok(()), |what| {
            Err(Fault::new(
                "control",
                format!("the server's standard error has {what}"),
            ))
        })
    }

    fn peak(&self) -> Option<u64> {
        let status = std::fs::read_to_string(format!(
            "/proc/{}/status",
            self.process.lock().unwrap().id()
        ))
        .ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))?;
        Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? << 10)
    }

    fn said(&self) -> String {
        // A handle of its own: the offset is shared with the server, which appends.
        let mut own = File::open(format!(
            "/proc/self/fd/{}",
            std::os::fd::AsRawFd::as_raw_fd(&self.err)
        ))
        .unwrap();
        let mut bytes = Vec::new();
        own.rewind().unwrap();
        own.take(1 << 20).read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let process = self.process.get_mut().unwrap();
        let _ = child::signal_group(process.id() as i32, libc::SIGTERM);
        let _ = child::wait_deadline(process, Instant::now() + Duration::from_secs(20));
        let _ = child::signal_group(process.id() as i32, libc::SIGKILL);
        let _ = process.wait();
    }
}
