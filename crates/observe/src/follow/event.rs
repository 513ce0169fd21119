//! The vocabulary of what the kernel tells: one event, whatever source it came from.
//!
//! Times are nanoseconds on the monotonic clock. Threads are named by the kernel's thread id (`tid`) and their process
//! (`pid`). Sockets are named by the kernel's address of them, which is the same in every process and needs no
//! descriptor to be looked up.

/// An event with its time, its CPU and the thread that was current.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    /// Nanoseconds on the monotonic clock.
    pub time: u64,
    pub cpu: u16,
    /// Whether the CPU was in an interrupt (hard or soft) that had interrupted the current thread, or runs at the end
    /// of its call.
    pub interrupt: bool,
    /// Process of the current thread.
    pub pid: i32,
    /// The current thread; 0 is an idle CPU.
    pub tid: i32,
    pub what: What,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum What {
    /// The current thread entered a system call. Of its arguments these are the first two; of `mmap` its flags with its
    /// protection in the upper half, and its length: the address is a wish.
    Enter { call: i32, args: [u64; 2] },
    /// The current thread left a system call.
    Exit { call: i32, result: i64 },
    /// The CPU went from the current thread to another one; 0 is the idle task.
    Switch { left: Left, next: i32 },
    /// The current thread, or an interrupt, began to wake a thread, which is put on the queue of the CPU `target`.
    Waking { who: i32, target: u16 },
    /// The current thread made a thread or process.
    Fork { child: i32 },
    /// The current thread gave bytes to a socket; an error is negative.
    Sent { socket: u64, bytes: i32 },
    /// The current thread took bytes from a socket; 0 is the end of the stream, an error is negative.
    Received { socket: u64, bytes: i32 },
    /// Bytes, or a connection, arrived in a socket's queue.
    Arrived { socket: u64 },
    /// A TCP socket changed its state: to this one, as the kernel numbers it (1 established, 2 SYN sent, 7 closed). The
    /// ports are those of this end and of the other. `pair` is a number that both ends share, and that connections of
    /// other addresses or name spaces with the same ports have not; 0 where it is not known.
    State {
        socket: u64,
        state: u8,
        local: u16,
        remote: u16,
        pair: u32,
    },
    /// Bytes came for a TCP socket, whose ports are these.
    Ports {
        socket: u64,
        local: u16,
        remote: u16,
        pair: u32,
    },
    /// A request to a block device went one step further.
    Disk { step: DiskStep, io: Io },
    /// The current thread began, or ended, to free or move memory on its own behalf.
    Memory { work: MemoryWork, begin: bool },
    /// The current thread touched a page that was not there, or not for this: its own code did, or the kernel on its
    /// behalf.
    Fault { address: u64 },
    /// The CPU began, or ended, to serve an interrupt.
    Interrupt { kind: InterruptKind, begin: bool },
}

/// In what state a thread left its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// It could have gone on: preempted, or throttled.
    Ready,
    /// It waits for something that a signal may interrupt.
    Blocked,
    /// It waits for something that no signal may interrupt: a device, a page.
    Uninterruptible,
    Ended,
}

/// The steps of a block request, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiskStep {
    /// It was given to the block layer, after anything that holds it back.
    Submitted,
    /// It waits in the scheduler's queue.
    Queued,
    /// The device has it.
    Issued,
    /// The device has done it.
    Completed,
}

/// A block request. Packed, as an [`Event`] would be half as long again for the padding: a window holds half a million.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C, packed(4))]
pub struct Io {
    /// Major and minor number, as the kernel packs them (`major << 20 | minor`).
    pub device: u32,
    /// The first sector; all ones for a flush.
    pub sector: u64,
    pub sectors: u32,
    /// Whether it writes or flushes.
    pub write: bool,
}

/// Work on memory that a thread must do for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryWork {
    /// Freeing pages before it gets one.
    Reclaim,
    /// Moving pages before it gets many in a row.
    Compaction,
}

/// Kinds of interrupts that are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InterruptKind {
    Timer,
    Device,
    /// A deferred one that is not the network's (the network's is seen by what it does).
    Soft,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_small_as_a_window_holds_many() {
        assert_eq!(size_of::<What>(), 24);
        assert!(size_of::<Event>() <= 48);
    }
}
