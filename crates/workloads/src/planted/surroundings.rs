//! What holds for a private server's processes from their first instruction on.

use std::process::Command;

use fingerpost_sys::task;

/// Settings that a command starts with and hands down to its children.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Surroundings {
    /// The CPUs that it may use; all when there are none.
    pub cpus: Vec<usize>,
    /// The nice value, 0 to 19.
    pub nice: i32,
    /// Lengths, in instructions, of filters before each system call.
    pub filters: Vec<usize>,
    /// Whether the mitigation of Speculative Store Bypass is on.
    pub store_bypass: bool,
    /// Whether it does without huge pages.
    pub no_huge_pages: bool,
}

impl Surroundings {
    /// Has the command start so.
    pub fn apply(&self, command: &mut Command) {
        if !self.cpus.is_empty() {
            task::on_cpus(command, &self.cpus);
        }
        if self.nice > 0 {
            task::nice(command, self.nice);
        }
        if self.no_huge_pages {
            task::no_huge_pages(command);
        }
        if self.store_bypass {
            task::no_store_bypass(command);
        }
        // Last: a filter is also before the calls that make the other settings.
        for &length in &self.filters {
            task::seccomp_filter(command, length);
        }
    }
}
