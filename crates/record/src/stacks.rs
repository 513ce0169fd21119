//! Which functions had the CPU: samples of a service's threads, by stack.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::range::{amounts, no_more};

/// Samples with their stacks, those with the same stack together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Stacks {
    /// How they were had, in words.
    pub source: String,
    /// Samples of the service that were taken.
    pub samples: u64,
    /// Samples that the kernel could not deliver.
    pub lost: u64,
    /// CPU seconds that taking and unwinding took.
    pub self_cost: f64,
    /// Names of functions, which stacks have by their place in this list.
    pub functions: Vec<String>,
    /// The stacks, the most frequent first.
    pub stacks: Vec<Stack>,
    /// Samples with other stacks, which are too many to be kept.
    #[serde(default)]
    pub others: u64,
}

/// Samples of one stack.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Stack {
    /// Functions by their places in [`Stacks::functions`], the outermost first.
    pub frames: Vec<u32>,
    /// How many samples had it.
    pub samples: u64,
}

/// Whether stacks are those of threads on a CPU or off it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StackKind {
    /// On a CPU: a stack counts samples.
    #[default]
    OnCpu,
    /// Off the CPU, waiting for anything: a stack counts microseconds.
    OffCpu,
}

/// Whose time stacks are of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StackClass {
    /// All threads of a service that nobody asked anything.
    #[default]
    Service,
    /// Threads while they had a request.
    Requests,
    /// Threads while they had one of the slowest 1 % of the requests.
    SlowRequests,
}

/// Stacks of threads while they had requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct RequestStacks {
    /// On a CPU or off it.
    pub kind: StackKind,
    /// Whose.
    pub of: StackClass,
    /// The stacks. Off the CPU [`Stack::samples`] and [`Stacks::others`] are microseconds.
    pub stacks: Stacks,
}

/// The graphs of requests that a record keeps of one step: two kinds of each class.
pub const MOST_GRAPHS: usize = 6;

/// Stacks that a record keeps of one step, frames of one of them, and functions.
pub const MOST_STACKS: usize = 1_000;
/// See [`MOST_STACKS`].
pub const MOST_FRAMES: usize = 100;
/// See [`MOST_STACKS`].
pub const MOST_FUNCTIONS: usize = 20_000;

/// What the names of the kernel's functions end with.
pub const KERNEL: &str = " (kernel)";

/// A function with its shares of the samples.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The share of the samples, 0 to 1, in which it had the CPU itself.
    pub own: f64,
    /// The share in which it, or what it called, had the CPU.
    pub whole: f64,
}

impl Stacks {
    /// Samples whose stack is known or counted.
    pub fn counted(&self) -> u64 {
        self.stacks
            .iter()
            .map(|s| s.samples)
            .fold(self.others, u64::saturating_add)
    }

    /// The functions that had the CPU themselves, the most first.
    pub fn own(&self) -> Vec<Function> {
        let all = self.counted().max(1) as f64;
        let mut found: Vec<Function> = self
            .functions
            .iter()
            .map(|name| Function {
                name: name.clone(),
                own: 0.0,
                whole: 0.0,
            })
            .collect();
        for stack in &self.stacks {
            let share = stack.samples as f64 / all;
            if let Some(function) = stack
                .frames
                .last()
                .and_then(|last| found.get_mut(*last as usize))
            {
                function.own += share;
            }
            let mut once = stack.frames.clone();
            once.sort_unstable();
            once.dedup();
            for number in once {
                if let Some(function) = found.get_mut(number as usize) {
                    function.whole += share;
                }
            }
        }
        found.sort_by(|a, b| b.own.total_cmp(&a.own).then(b.whole.total_cmp(&a.whole)));
        found
    }
}

/// Says what in the stacks of one step cannot be, if anything.
pub(crate) fn valid(s: &Stacks) -> Result<(), String> {
    amounts("the stacks", [s.self_cost])?;
    no_more("functions", s.functions.len(), MOST_FUNCTIONS)?;
    no_more("stacks", s.stacks.len(), MOST_STACKS)?;
    for stack in &s.stacks {
        no_more("frames in a stack", stack.frames.len(), MOST_FRAMES)?;
        if let Some(none) = stack
            .frames
            .iter()
            .find(|f| **f as usize >= s.functions.len())
        {
            return Err(format!(
                "a stack has function {none} of {}",
                s.functions.len()
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stacks() -> Stacks {
        let stack = |frames: &[u32], samples| Stack {
            frames: frames.to_vec(),
            samples,
        };
        Stacks {
            functions: ["main", "work", "sort"].map(str::to_owned).to_vec(),
            stacks: vec![stack(&[0, 1, 2, 1], 6), stack(&[0, 2], 3)],
            others: 1,
            ..Stacks::default()
        }
    }

    #[test]
    fn a_function_that_calls_itself_counts_once() {
        let told: Vec<(String, f64, f64)> = stacks()
            .own()
            .into_iter()
            .map(|f| (f.name, f.own, f.whole))
            .collect();
        assert_eq!(told[0], ("work".into(), 0.6, 0.6));
        assert_eq!((told[1].0.as_str(), told[1].1), ("sort", 0.3));
        assert!(
            (told[1].2 - 0.9).abs() < 1e-9 && (told[2].2 - 0.9).abs() < 1e-9 && told[2].1 == 0.0,
            "{told:?}"
        );
    }

    #[test]
    fn a_function_that_is_not_there_is_refused() {
        assert_eq!(valid(&stacks()), Ok(()));
        let mut bad = stacks();
        bad.stacks[1].frames[0] = 3;
        assert!(valid(&bad).unwrap_err().contains("function 3 of 3"));
        assert!(
            valid(&Stacks {
                stacks: vec![Stack::default(); MOST_STACKS + 1],
                ..Stacks::default()
            })
            .is_err()
        );
        let deep = Stack {
            frames: vec![0; MOST_FRAMES + 1],
            samples: 1,
        };
        assert!(
            valid(&Stacks {
                stacks: vec![deep],
                ..stacks()
            })
            .is_err()
        );
        assert!(
            valid(&Stacks {
                self_cost: -1.0,
                ..stacks()
            })
            .is_err()
        );
    }
}
