//! Room for a number of bytes, which is taken before they are read and given back when they are written.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The room.
pub(crate) struct Room {
    all: u64,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    free: u64,
    closed: bool,
}

/// Bytes that are taken until this is dropped.
pub(crate) struct Held<'r> {
    room: &'r Room,
    bytes: u64,
}

impl Room {
    pub(crate) fn new(all: u64) -> Room {
        Room {
            all,
            state: Mutex::new(State {
                free: all,
                closed: false,
            }),
            changed: Condvar::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room; what is larger than all of it waits for all of it. `None` once it is closed.
    pub(crate) fn take(&self, bytes: u64) -> Option<Held<'_>> {
        let bytes = bytes.min(self.all);
        let mut state = self
            .changed
            .wait_while(self.state(), |s| s.free < bytes && !s.closed)
            .unwrap_or_else(PoisonError::into_inner);
        if state.closed {
            return None;
        }
        state.free -= bytes;
        Some(Held { room: self, bytes })
    }

    /// Nobody gets room any more.
    pub(crate) fn close(&self) {
        self.state().closed = true;
        self.changed.notify_all();
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.room.state().free += self.bytes;
        self.room.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_held_than_there_is() {
        let room = Room::new(100);
        let first = room.take(60).unwrap();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| room.take(1000).map(|held| held.bytes));
            assert_eq!(room.state().free, 40);
            drop(first);
            assert_eq!(second.join().unwrap(), Some(100), "as much as there is");
        });
        assert_eq!(room.state().free, 100);
        let all = room.take(100).unwrap();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| room.take(1).is_none());
            room.close();
            assert!(waiting.join().unwrap());
        });
        drop(all);
    }
}
