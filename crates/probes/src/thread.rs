//! Threads: making one and waiting for its end.

use std::ffi::c_void;
use std::io;
use std::mem::MaybeUninit;
use std::ptr;

use crate::probe::{Exercises, Nature, Probe, latency, table};
use crate::process::HANDOVER_BATCH_NS;
use crate::session::{Session, Stop};
use crate::sync::done;

extern "C" fn nothing(argument: *mut c_void) -> *mut c_void {
    argument
}

fn create(s: &mut Session) -> Result<(), Stop> {
    s.batch_target_ns(HANDOVER_BATCH_NS);
    let mark = ptr::without_provenance_mut::<c_void>(42);
    s.repeat(|| {
        let mut thread = MaybeUninit::uninit();
        let mut answer = ptr::null_mut();
        // SAFETY: the thread's function only returns its argument; the id that is joined is the one just written.
        unsafe {
            done(libc::pthread_create(
                thread.as_mut_ptr(),
                ptr::null(),
                nothing,
                mark,
            ))?;
            done(libc::pthread_join(thread.assume_init(), &mut answer))?;
        }
        if answer != mark {
            return Err(io::Error::other(
                "a thread ended without running its function",
            ));
        }
        Ok(())
    })
}

/// The probes of this file.
pub static PROBES: &[Probe] = &[Probe {
    name: "thread.create",
    bounds: [1e3, 1e7],
    calls: &["clone"],
    summary: "create a thread and join it",
    timed: "pthread_create with default attributes of a thread that returns at once, on the same CPU, and \
        pthread_join.",
    pitfalls: "the C library keeps the stack of an ended thread for the next one, so that mapping a stack is not in \
        the figure.",
    nature: Nature::Blocks,
    run: create,
    ..latency(&table::PROCESSES, Exercises::Thread)
}];
