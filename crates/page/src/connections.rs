//! The connections that are open, and which of them goes when there are too many: the one that has been idle for
//! longest.
//!
//! A connection costs memory and a descriptor whether anything is asked on it or not. If new ones waited until old ones
//! end, somebody who opens many and says nothing would keep everybody else out for as long as he likes.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::AbortHandle;

/// What is known of one connection, by who serves it.
#[derive(Debug, Default)]
pub struct Activity {
    /// Requests whose head has been read and whose answer has not been made.
    asked: AtomicUsize,
}

impl Activity {
    /// Counts a request until the value is dropped.
    pub fn begin(self: &Arc<Self>) -> Asked {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Asked(self.clone())
    }

    fn is_idle(&self) -> bool {
        self.asked.load(Ordering::Relaxed) == 0
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub struct Asked(Arc<Activity>);

impl Drop for Asked {
    fn drop(&mut self) {
        self.0.asked.fetch_sub(1, Ordering::Relaxed);
    }
}

struct Open {
    activity: Arc<Activity>,
    task: AbortHandle,
}

/// The connections that are open, the oldest first.
pub struct Connections {
    most: usize,
    open: Mutex<VecDeque<Open>>,
}

impl Connections {
    /// None yet, and never more than this.
    pub fn at_most(most: usize) -> Connections {
        Connections {
            most,
            open: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes room for one more: forgets those that have ended and, where that is not enough, ends the oldest that is
    /// idle. Whether there is room then; there is none where on every connection a request is being answered.
    pub fn make_room(&self) -> bool {
        let mut open = self.lock();
        if open.len() < self.most {
            return true;
        }
        open.retain(|o| !o.task.is_finished());
        if open.len() >= self.most
            && let Some(oldest) = open.iter().position(|o| o.activity.is_idle())
            && let Some(ended) = open.remove(oldest)
        {
            ended.task.abort();
        }
        open.len() < self.most
    }

    /// Takes note of a connection.
    pub fn add(&self, activity: Arc<Activity>, task: AbortHandle) {
        self.lock().push_back(Open { activity, task });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_oldest_idle_connection_goes_and_a_busy_one_stays() {
        let connections = Connections::at_most(2);
        let forever = || tokio::spawn(std::future::pending::<()>());
        let (busy, idle) = (forever(), forever());
        let activity = Arc::new(Activity::default());
        let asked = activity.begin();
        connections.add(activity, busy.abort_handle());
        connections.add(Arc::default(), idle.abort_handle());
        assert!(connections.make_room());
        assert!(idle.await.unwrap_err().is_cancelled());
        assert!(!busy.is_finished());
        let activity = Arc::new(Activity::default());
        let second = activity.begin();
        let other = forever();
        connections.add(activity, other.abort_handle());
        assert!(!connections.make_room(), "both are busy");
        drop(asked);
        assert!(connections.make_room());
        assert!(busy.await.unwrap_err().is_cancelled());
        drop(second);
        other.abort();
        let _ = other.await;
    }
}
