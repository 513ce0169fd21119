//! A lock, and a thread that holds it for as long as it is told while it computes, syncs, or waits for a CPU.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use fingerpost_sys::affinity;
use fingerpost_sys::trace::monotonic_ns;

use super::basic::{Post, SyncedFile, compute_until};
use super::log::{Account, own_tid};
use super::{Kind, Order};

/// The nice value of a holder that is to wait for its CPU: the thread beside it then gets all of it but a 69th.
const LOWEST_PRIORITY: i32 = 19;

/// Nanoseconds of a holder: on a CPU, and ready for one.
#[derive(Clone, Copy, Debug, Default)]
pub struct Used {
    /// On a CPU.
    pub cpu: u64,
    /// Waiting for one.
    pub ready: u64,
}

/// What the lock's owner, its holder and the thread that takes the holder's CPU share.
#[derive(Debug, Default)]
struct Shared {
    /// What is waited for; within it, what the holder has used since it was asked.
    lock: Mutex<Used>,
    orders: Post<Order>,
    /// The holder has the lock, and waits for an order.
    held: Post<()>,
    /// The lock's owner had it and has given it back.
    returned: Post<()>,
    burn: Post<u64>,
    burning: AtomicBool,
}

/// A lock with its holder. Threads of it live as long as the process.
#[derive(Debug)]
pub struct Lock {
    shared: Arc<Shared>,
    holder: i32,
}

impl Lock {
    /// Starts the holder, whose file is in this directory, and the thread that may take its CPU.
    pub fn new(dir: &Path) -> io::Result<Lock> {
        let shared = Arc::<Shared>::default();
        let (for_holder, for_burner, dir) =
            (Arc::clone(&shared), Arc::clone(&shared), dir.to_owned());
        let who = Arc::new(Post::default());
        let tell = Arc::clone(&who);
        thread::Builder::new()
            .name("lock-holder".to_owned())
            .spawn(move || hold(&for_holder, &dir, &tell))?;
        thread::Builder::new()
            .name("cpu-taker".to_owned())
            .spawn(move || take_cpu(&for_burner))?;
        Ok(Lock {
            shared,
            holder: who.take()?,
        })
    }

    /// Until the holder has the lock: before a stage, not in it.
    pub fn until_held(&self) {
        self.shared.held.take();
    }

    /// Tells the holder, which has the lock, what to do with it, and waits for it. Gives the holder's thread and what
    /// it used.
    ///
    /// The caller sleeps once, from the order until the lock is free: were it woken in between to be told that the lock
    /// is taken, it would wait for a CPU while the holder works, and the two accounts of one moment could not be told
    /// apart afterwards.
    pub fn wait_for(&self, order: Order) -> (i32, Used) {
        self.shared.orders.leave(order);
        let used = *self
            .shared
            .lock
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        self.shared.returned.leave(());
        (self.holder, used)
    }
}

/// The last CPU that this process may use.
fn last_cpu() -> Option<usize> {
    affinity::allowed_cpus().ok()?.last().copied()
}

fn hold(shared: &Shared, dir: &Path, tell: &Post<io::Result<i32>>) {
    let mut file = match SyncedFile::new(dir) {
        Ok(file) => file,
        Err(e) => return tell.leave(Err(e)),
    };
    tell.leave(Ok(own_tid()));
    let all = affinity::allowed_cpus().unwrap_or_default();
    let account = Account::own();
    loop {
        let mut used = shared.lock.lock().unwrap_or_else(PoisonError::into_inner);
        shared.held.leave(());
        // From before it sleeps: that it waits for a CPU when it is asked is part of what the lock's owner waits for.
        let asleep = account.now();
        let order = shared.orders.take();
        let until = monotonic_ns() + u64::from(order.micros) * 1000;
        if order.kind == Kind::LockStarves {
            // Where pinning is refused, nobody starves, and the log says so: it has what was used.
            let _ = last_cpu().map(|cpu| affinity::pin(&[cpu]));
            let _ = rustix::process::setpriority_process(None, LOWEST_PRIORITY);
        }
        match order.kind {
            Kind::LockSyncs => drop(file.write_until(until)),
            Kind::LockStarves => {
                shared.burning.store(true, Ordering::Release);
                shared.burn.leave(until);
                while shared.burning.load(Ordering::Acquire) {
                    std::hint::spin_loop();
                }
            }
            _ => compute_until(until),
        }
        let now = account.now();
        *used = Used {
            cpu: now.cpu - asleep.cpu,
            ready: now.ready - asleep.ready,
        };
        drop(used);
        if order.kind == Kind::LockStarves {
            let _ = affinity::pin(&all);
            let _ = rustix::process::setpriority_process(None, 0);
        }
        shared.returned.take();
    }
}

/// Computes on the holder's CPU until the time that it is told. It begins only once it has the CPU, so that the holder
/// has not.
fn take_cpu(shared: &Shared) {
    if let Some(cpu) = last_cpu() {
        let _ = affinity::pin(&[cpu]);
    }
    loop {
        let until = shared.burn.take();
        // At least a little, for a wake-up that came late.
        compute_until(until.max(monotonic_ns() + 1000));
        shared.burning.store(false, Ordering::Release);
    }
}
