//! What the server writes down: each request with its stages.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, PoisonError};

use fingerpost_sys::trace::monotonic_ns;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::Kind;

/// Requests that are logged; at a millisecond each this is a quarter of an hour of one client.
const MOST: usize = 1 << 20;

/// A request as the server saw it. Times are nanoseconds on the monotonic clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Served {
    /// The thread that answered it.
    pub tid: i32,
    /// When it had been read.
    pub received: u64,
    /// When it was about to be answered.
    pub answered: u64,
    /// What it did, in order.
    pub stages: Vec<Stage>,
}

/// One stage of a request.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// What it did.
    pub kind: Kind,
    /// When it began.
    pub start: u64,
    /// When it ended.
    pub end: u64,
    /// The thread whose CPU time `cpu` is: the lock's holder for the kinds with a lock.
    pub tid: i32,
    /// CPU time of that thread from the stage's beginning to its end, in nanoseconds.
    pub cpu: u64,
    /// Nanoseconds that it was ready and waited for a CPU, by the kernel's own account.
    pub ready: u64,
    /// The same of the thread that serves the request, where that is another one: 0 otherwise.
    pub own_ready: u64,
    /// As `own_ready`: on a CPU.
    pub own_cpu: u64,
}

/// The log of all threads.
#[derive(Debug, Default)]
pub struct Log {
    served: Mutex<Vec<Served>>,
}

impl Log {
    /// Writes a request down.
    pub fn add(&self, served: Served) {
        let mut log = self.served.lock().unwrap_or_else(PoisonError::into_inner);
        if log.len() < MOST {
            log.push(served);
        }
    }

    /// Everything until now; the log is empty afterwards.
    pub fn take(&self) -> Vec<Served> {
        std::mem::take(&mut self.served.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A moment in a thread's life.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// Nanoseconds on the monotonic clock.
    pub at: u64,
    /// CPU nanoseconds of the thread.
    pub cpu: u64,
    /// Nanoseconds that it was ready and waited for a CPU.
    pub ready: u64,
}

/// The account of the thread that made it, which alone may ask it.
#[derive(Debug)]
pub struct Account {
    schedstat: Option<File>,
}

impl Account {
    /// Of the calling thread. Where the kernel keeps no account of waiting, none is told.
    pub fn own() -> Account {
        Account {
            schedstat: File::open("/proc/thread-self/schedstat").ok(),
        }
    }

    /// Now.
    pub fn now(&self) -> Moment {
        let cpu = clock_gettime(ClockId::ThreadCPUTime);
        Moment {
            at: monotonic_ns(),
            cpu: cpu.tv_sec as u64 * 1_000_000_000 + cpu.tv_nsec as u64,
            ready: self.ready().unwrap_or(0),
        }
    }

    /// The second number of the file.
    fn ready(&self) -> Option<u64> {
        let mut text = [0; 64];
        let n = self.schedstat.as_ref()?.read_at(&mut text, 0).ok()?;
        std::str::from_utf8(&text[..n])
            .ok()?
            .split_ascii_whitespace()
            .nth(1)?
            .parse()
            .ok()
    }
}

/// The calling thread's id.
pub fn own_tid() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}
