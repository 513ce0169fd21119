//! Which functions a blocked thread is in: its stack is copied by `/proc`, and unwound and named when watching is over.

use std::collections::HashMap;

use fingerpost_sys::blocked::{self, Registers};
use fingerpost_sys::perf::stacks::{Registers as Frame, STACK_BYTES};

use super::code::Code;
use super::unwind::{Namer, Timed};

/// Stacks of blocked threads, still to be unwound.
#[derive(Default)]
pub(crate) struct Blocked {
    samples: Vec<Timed>,
    code: Code,
}

/// Copies the stack of a blocked thread; nothing where it is not permitted.
pub(crate) fn copied(pid: i32, tid: i32, at: Registers) -> Option<Timed> {
    let stack = blocked::memory(pid, at.stack, STACK_BYTES as usize)?;
    Some(Timed {
        pid,
        tid,
        time: 0,
        one_in: 1,
        kernel: Vec::new(),
        user: Some(Frame {
            instruction: at.instruction,
            stack: at.stack,
            ..Frame::default()
        }),
        stack,
    })
}

impl Extend<Timed> for Blocked {
    fn extend<T: IntoIterator<Item = Timed>>(&mut self, samples: T) {
        for sample in samples {
            if let Some(at) = &sample.user {
                self.code.learn(sample.pid, at.instruction);
            }
            self.samples.push(sample);
        }
    }
}

impl Blocked {
    /// The functions of each thread, innermost first.
    pub(crate) fn name(mut self) -> HashMap<i32, Vec<String>> {
        if self.samples.is_empty() {
            return HashMap::new();
        }
        self.code.finish();
        let mut namer = Namer::new(self.code.read(), self.samples.iter());
        let frames: Vec<(i32, Vec<u32>)> = self
            .samples
            .iter()
            .map(|s| (s.tid, namer.frames(s)))
            .collect();
        let names = |numbers: Vec<u32>| {
            let all = numbers.into_iter().rev();
            all.map(|n| namer.names[n as usize].clone()).collect()
        };
        frames
            .into_iter()
            .map(|(tid, numbers)| (tid, names(numbers)))
            .collect()
    }
}
