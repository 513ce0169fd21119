//! What tracepoints tell.

pub use crate::follow::event::Left;

/// Something that happened.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// A thread entered a system call.
    Enter {
        /// The call's number.
        number: i64,
        /// Its first two arguments.
        args: [u64; 2],
    },
    /// A thread left a system call.
    Exit {
        /// The call's number.
        number: i64,
        /// What it returned.
        result: i64,
    },
    /// A CPU changed from one thread to another.
    Switch {
        /// What became of the thread that left.
        left: Left,
        /// The thread that came; 0 is the idle task.
        next: i32,
    },
    /// A thread woke another one.
    Waking {
        /// The one that was woken.
        who: i32,
    },
    /// A thread made a thread or process.
    Fork {
        /// The new one.
        child: i32,
    },
}

/// An event with its time, CPU, and the thread that was current.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stamped {
    /// Nanoseconds.
    pub time: u64,
    /// The CPU.
    pub cpu: usize,
    /// The current thread's process.
    pub pid: i32,
    /// The current thread.
    pub tid: i32,
    /// What happened.
    pub event: Event,
}
