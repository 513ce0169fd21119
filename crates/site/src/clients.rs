//! The connections of one worker, and who has to go when there are too many.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// One connection.
pub(crate) struct Client {
    /// When its client last asked for something or took a piece of an answer.
    last: Cell<Instant>,
    /// Told when it has to go.
    out: Notify,
}

impl Client {
    /// Its client did something.
    pub(crate) fn active(&self) {
        self.last.set(Instant::now());
    }

    /// Waits until it has to go.
    pub(crate) async fn told_to_go(&self) {
        self.out.notified().await;
    }
}

/// All of them.
pub(crate) struct Clients {
    all: RefCell<Vec<Rc<Client>>>,
    most: usize,
}

impl Clients {
    pub(crate) fn new(most: usize) -> Clients {
        Clients {
            all: RefCell::default(),
            most: most.max(1),
        }
    }

    /// Takes a connection in. Where there are too many, the one that did nothing for longest goes: whoever only holds
    /// connections loses them to those who ask for something.
    pub(crate) fn join(&self) -> Rc<Client> {
        let mut all = self.all.borrow_mut();
        if all.len() >= self.most
            && let Some(longest) = (0..all.len()).min_by_key(|&i| all[i].last.get())
        {
            all.swap_remove(longest).out.notify_one();
        }
        let client = Rc::new(Client {
            last: Cell::new(Instant::now()),
            out: Notify::new(),
        });
        all.push(client.clone());
        client
    }

    /// It has ended.
    pub(crate) fn leave(&self, client: &Rc<Client>) {
        self.all.borrow_mut().retain(|m| !Rc::ptr_eq(m, client));
    }

    /// Ends those that did nothing for this long.
    pub(crate) fn sweep(&self, idle: Duration) {
        self.all.borrow_mut().retain(|client| {
            let stays = client.last.get().elapsed() < idle;
            if !stays {
                client.out.notify_one();
            }
            stays
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::*;

    #[test]
    fn the_idlest_goes() {
        let clients = Clients::new(2);
        let (first, second) = (clients.join(), clients.join());
        first.active();
        let third = clients.join();
        let left: Vec<_> = clients.all.borrow().iter().map(Rc::as_ptr).collect();
        assert!(
            left.contains(&Rc::as_ptr(&first))
                && left.contains(&Rc::as_ptr(&third))
                && !left.contains(&Rc::as_ptr(&second))
        );
        clients.leave(&first);
        clients.sweep(Duration::ZERO);
        assert!(clients.all.borrow().is_empty());
    }
}
