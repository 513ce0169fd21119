//! Wakes the event loop at a time, to the microsecond: `epoll` itself sleeps in milliseconds on older kernels, and up
//! to the timer slack (50 µs) too long on all.

use std::os::fd::OwnedFd;

use rustix::event::epoll::{self, EventFlags};
use rustix::io::Errno;
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};

/// A timer within an epoll set. It goes off once for each time that it is set to. A periodic one would not do without
/// being read each time: the kernel starts the next period when the last is read.
#[derive(Debug)]
pub struct Alarm {
    timer: OwnedFd,
    set_to: u64,
}

impl Alarm {
    /// An alarm that is told in `epoll` by this token, and not set yet.
    pub fn new(epoll: &OwnedFd, token: u64) -> Result<Alarm, Errno> {
        let timer = rustix::time::timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )?;
        // Setting it again takes an unread expiry away, so that it is never read.
        epoll::add(
            epoll,
            &timer,
            epoll::EventData::new_u64(token),
            EventFlags::IN | EventFlags::ET,
        )?;
        Ok(Alarm { timer, set_to: 0 })
    }

    /// Sets it to a time of the monotonic clock in nanoseconds. In the past, it goes off at once.
    pub fn set(&mut self, at: u64) -> Result<(), Errno> {
        if at == self.set_to {
            return Ok(());
        }
        self.set_to = at;
        let once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let at = Timespec {
            tv_sec: (at / 1_000_000_000) as i64,
            tv_nsec: (at % 1_000_000_000) as i64,
        };
        rustix::time::timerfd_settime(
            &self.timer,
            TimerfdTimerFlags::ABSTIME,
            &Itimerspec {
                it_interval: once,
                it_value: at,
            },
        )
        .map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::protocol::now_ns;

    /// The token of the next event, waited for long enough that only an alarm that never goes off fails.
    fn next(epoll: &OwnedFd) -> Option<u64> {
        let mut events = Vec::with_capacity(4);
        let patience = Timespec {
            tv_sec: 10,
            tv_nsec: 0,
        };
        epoll::wait(
            epoll,
            rustix::buffer::spare_capacity(&mut events),
            Some(&patience),
        )
        .unwrap();
        events.first().map(|e: &epoll::Event| e.data.u64())
    }

    #[test]
    fn it_goes_off_each_time_it_is_set_and_not_before() {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let mut alarm = Alarm::new(&epoll, 42).unwrap();
        for after in [2_000_000, 0, 3_000_000, 1_000_000] {
            let at = now_ns() + after;
            alarm.set(at).unwrap();
            assert_eq!(next(&epoll), Some(42), "set to {after} ns from then");
            assert!(now_ns() >= at);
        }
        alarm.set(now_ns() - 1_000_000).unwrap();
        assert_eq!(next(&epoll), Some(42));
    }
}
