//! The stages themselves. Each lasts until a time, by its own clock, and at least one operation.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Duration;

use fingerpost_sys::map::Cold;
use fingerpost_sys::trace::monotonic_ns;
use rustix::fs::OFlags;

use super::basic::{SyncedFile, compute_until, nameless};
use super::lock::Lock;
use super::log::{Account, Stage, own_tid};
use super::{Kind, Order, peer};

/// Bytes of one read of `/dev/zero`: enough that the call takes the time. Its way into the kernel and out again, with
/// the programs of whoever watches, lies outside of the tracepoints: some 0.35 µs, which is a seventh of the 2.4 µs
/// that 128 KiB take, and a sixtieth of this.
const READ: usize = 1 << 20;
/// Pages of the file that is read by touching it, and how far apart those are that are touched.
const PAGES: usize = 8192;
const STRIDE: usize = 16;

/// What a thread needs to do stages.
pub struct Stages {
    account: Account,
    lock: Lock,
    file: SyncedFile,
    zeros: File,
    buffer: Vec<u8>,
    peer: TcpStream,
    cold: Cold,
    /// The next page of the cold file that has not been touched.
    page: usize,
}

impl Stages {
    /// For the calling thread. Files are made in this directory; the peer listens at this port.
    pub fn new(dir: &Path, peer: u16) -> io::Result<Stages> {
        let cold = nameless(dir, "truth", OFlags::empty())?;
        let block = vec![b'x'; 1 << 20];
        for at in (0..PAGES * 4096).step_by(block.len()) {
            cold.write_all_at(&block, at as u64)?;
        }
        cold.sync_all()?;
        let stream = TcpStream::connect(("127.0.0.1", peer))?;
        stream.set_nodelay(true)?;
        let mut stages = Stages {
            account: Account::own(),
            lock: Lock::new(dir)?,
            file: SyncedFile::new(dir)?,
            zeros: File::open("/dev/zero")?,
            buffer: vec![0; READ],
            peer: stream,
            cold: Cold::map(cold, PAGES * 4096)?,
            page: PAGES,
        };
        stages.forget()?;
        Ok(stages)
    }

    /// Between requests: what was read by touching goes out of memory again.
    pub fn forget(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.page) > 0 {
            self.cold.forget()?;
        }
        Ok(())
    }

    /// Does one stage.
    pub fn stage(&mut self, order: Order) -> io::Result<Stage> {
        if matches!(
            order.kind,
            Kind::LockWorks | Kind::LockSyncs | Kind::LockStarves
        ) {
            self.lock.until_held();
        }
        let begun = self.account.now();
        let until = begun.at + u64::from(order.micros) * 1000;
        let mut other = None;
        match order.kind {
            Kind::Work => compute_until(until),
            Kind::Calls => self.call_until(until)?,
            Kind::LockWorks | Kind::LockSyncs | Kind::LockStarves => {
                other = Some(self.lock.wait_for(order))
            }
            Kind::Disk => self.file.write_until(until)?,
            Kind::Timer => std::thread::sleep(Duration::from_micros(u64::from(order.micros))),
            Kind::PeerSleeps | Kind::PeerWorks => self.ask(order)?,
            Kind::Memory => self.touch_until(until),
        }
        let ended = self.account.now();
        let (cpu, ready) = (ended.cpu - begun.cpu, ended.ready - begun.ready);
        let own = Stage {
            kind: order.kind,
            start: begun.at,
            end: ended.at,
            tid: own_tid(),
            cpu,
            ready,
            own_ready: 0,
            own_cpu: 0,
        };
        Ok(match other {
            None => own,
            Some((tid, used)) => Stage {
                tid,
                cpu: used.cpu,
                ready: used.ready,
                own_ready: ready,
                own_cpu: cpu,
                ..own
            },
        })
    }

    fn call_until(&mut self, until: u64) -> io::Result<()> {
        while monotonic_ns() < until {
            self.zeros.read_exact(&mut self.buffer)?;
        }
        Ok(())
    }

    fn ask(&mut self, order: Order) -> io::Result<()> {
        let mut message = order.micros.to_le_bytes().to_vec();
        message.push(u8::from(order.kind == Kind::PeerWorks));
        self.peer.write_all(&message)?;
        self.peer.read_exact(&mut [0; peer::ANSWER])
    }

    /// Each page is read from the disk, with no other beside it. A request that has touched all of the file does
    /// without the rest.
    fn touch_until(&mut self, until: u64) {
        while self.page < PAGES {
            self.cold.touch(self.page * 4096);
            self.page += STRIDE;
            if monotonic_ns() >= until {
                break;
            }
        }
    }
}
