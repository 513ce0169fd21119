//! The connections of one worker, and who has to go when there are too many.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// One connection.
pub(crate) struct Member {
    /// When its client last asked for something or took a piece of an answer.
    last: Cell<Instant>,
    /// Told when it has to go.
    out: Notify,
}

impl Member {
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
pub(crate) struct Crowd {
    members: RefCell<Vec<Rc<Member>>>,
    most: usize,
}

impl Crowd {
    pub(crate) fn new(most: usize) -> Crowd {
        Crowd { members: RefCell::default(), most: most.max(1) }
    }

    /// Takes a connection in. Where there are too many, the one that did nothing for longest goes: whoever only holds
    /// connections loses them to those who ask for something.
    pub(crate) fn join(&self) -> Rc<Member> {
        let mut members = self.members.borrow_mut();
        if members.len() >= self.most
            && let Some(longest) = (0..members.len()).min_by_key(|&i| members[i].last.get())
        {
            members.swap_remove(longest).out.notify_one();
        }
        let member = Rc::new(Member { last: Cell::new(Instant::now()), out: Notify::new() });
        members.push(member.clone());
        member
    }

    /// It has ended.
    pub(crate) fn leave(&self, member: &Rc<Member>) {
        self.members.borrow_mut().retain(|m| !Rc::ptr_eq(m, member));
    }

    /// Ends those that did nothing for this long.
    pub(crate) fn sweep(&self, idle: Duration) {
        self.members.borrow_mut().retain(|member| {
            let stays = member.last.get().elapsed() < idle;
            if !stays {
                member.out.notify_one();
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
        let crowd = Crowd::new(2);
        let (first, second) = (crowd.join(), crowd.join());
        first.active();
        let third = crowd.join();
        let left: Vec<_> = crowd.members.borrow().iter().map(Rc::as_ptr).collect();
        assert!(
            left.contains(&Rc::as_ptr(&first))
                && left.contains(&Rc::as_ptr(&third))
                && !left.contains(&Rc::as_ptr(&second))
        );
        crowd.leave(&first);
        crowd.sweep(Duration::ZERO);
        assert!(crowd.members.borrow().is_empty());
    }
}
