//! Which functions a blocked thread is in: its stack is copied by `/proc`, and unwound and named when watching is over.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use fingerpost_sys::blocked::{self, Registers};
use fingerpost_sys::perf::stacks::{Registers as Frame, STACK_BYTES};

use super::code::Code;
use super::naming;
use super::unwind::Timed;
use crate::Limits;

/// CPU time that naming them may take, and time: there are few.
const CPU: Duration = Duration::from_millis(300);
const TIME: Duration = Duration::from_millis(600);

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
        self.code.turn();
    }
}

impl Blocked {
    /// The functions of each thread, innermost first.
    pub(crate) fn name(mut self) -> HashMap<i32, Vec<String>> {
        if self.samples.is_empty() {
            return HashMap::new();
        }
        self.code.finish();
        let limits = Limits {
            cpu: CPU,
            until: Instant::now() + TIME,
        };
        let tids: Vec<i32> = self.samples.iter().map(|s| s.tid).collect();
        let samples: Vec<&Timed> = self.samples.iter().collect();
        let naming::Named { frames, names, .. } = naming::name(self.code, &samples, limits);
        let functions = |numbers: Vec<u32>| {
            let all = numbers.into_iter().rev();
            all.filter_map(|n| names.get(n as usize).cloned()).collect()
        };
        tids.into_iter()
            .zip(frames)
            .map(|(tid, numbers)| (tid, functions(numbers)))
            .collect()
    }
}
