//! Which functions had the CPU: the most of them as a table, and the first in words.

use fingerpost_diagnose::code_path::{Call, CodePath, code_path};
use fingerpost_record::stacks::{Function, KERNEL, RequestStacks, StackClass, StackKind, Stacks};
use fingerpost_record::{Component, Paths};

use crate::grid::{Align, Grid, Line};
use crate::words::{clean, percent};

/// Functions that a screen shows, and that a sentence names.
const SHOWN: usize = 6;
const NAMED: usize = 2;
/// A function with less than this share of the samples is not worth naming.
const WORTH_NAMING: f64 = 0.03;
/// With fewer samples a share says nothing: at 100 a tenth is off by 6 points at 95 %.
const LEAST_SAMPLES: u64 = 100;
/// Calls of a path that a sentence names.
const CALLS: usize = 4;
/// Characters of a name on a screen.
const LONGEST: usize = 60;

/// The functions that had the CPU themselves, the most first, and how many samples that is of; none where too few were
/// taken.
pub fn most(paths: &Paths) -> Option<(Vec<Function>, u64)> {
    let stacks = paths
        .stacks
        .as_ref()
        .filter(|s| s.counted() >= LEAST_SAMPLES)?;
    let found = stacks
        .own()
        .into_iter()
        .filter(|f| f.own >= WORTH_NAMING)
        .take(SHOWN)
        .collect::<Vec<_>>();
    (!found.is_empty()).then(|| (found, stacks.counted()))
}

/// What the time of requests goes to, as far as their stacks tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spent {
    /// On a CPU, in code of the program's own.
    Own,
    /// On a CPU, in the kernel.
    Kernel,
    /// Off the CPU, where a thread waits for something.
    Waiting,
}

impl Spent {
    /// What a part of a budget is; nothing where stacks tell nothing of it: a thread that is ready to run waits for no
    /// function, and others' time is not in a service's stacks.
    pub fn of(component: &Component) -> Option<Spent> {
        match component {
            Component::UserCode => Some(Spent::Own),
            call if call.is_call() => Some(Spent::Kernel),
            Component::Lock
            | Component::Sleeping
            | Component::Pipe
            | Component::Child
            | Component::Memory
            | Component::Peer
            | Component::Disk
            | Component::DiskHeld
            | Component::DiskQueue
            | Component::DiskDevice
            | Component::DiskFileSystem
            | Component::OtherCode
            | Component::OtherSleeping
            | Component::OtherLock => Some(Spent::Waiting),
            _ => None,
        }
    }
}

/// Where in its code a service spends such time, in a sentence: the path of calls that carries most of it, else the
/// functions with most of it.
pub fn where_in_code(paths: &Paths, spent: Spent) -> Option<String> {
    let told = path_of(paths, spent, &[StackClass::Requests, StackClass::Service])
        .and_then(|path| last_calls(&path))
        .map(|(calls, share)| match spent {
            Spent::Waiting => format!("Threads wait in {calls}: {share} of the waiting."),
            Spent::Own | Spent::Kernel => format!("Its CPU time goes to {calls}: {share}."),
        });
    match spent {
        Spent::Waiting => told,
        Spent::Own => told.or_else(|| named(paths, false)),
        Spent::Kernel => named(paths, true).or(told),
    }
}

/// The same of the slowest requests, where that is another path than that of all.
pub fn where_slow(paths: &Paths, spent: Spent) -> Option<String> {
    let calls = |of| path_of(paths, spent, &[of]).and_then(|path| last_calls(&path));
    let (slow, share) = calls(StackClass::SlowRequests)?;
    let others = calls(StackClass::Requests).map(|(calls, _)| calls);
    (others.as_ref() != Some(&slow)).then(|| match spent {
        Spent::Waiting => {
            format!("In the slowest 1 % threads wait in {slow}: {share} of the waiting.")
        }
        Spent::Own | Spent::Kernel => {
            format!("In the slowest 1 % its CPU time goes to {slow}: {share}.")
        }
    })
}

/// The path of the first of these classes of which there are stacks; on the CPU at last of all samples.
fn path_of(paths: &Paths, spent: Spent, classes: &[StackClass]) -> Option<CodePath> {
    let kind = match spent {
        Spent::Waiting => StackKind::OffCpu,
        Spent::Own | Spent::Kernel => StackKind::OnCpu,
    };
    let graph = classes
        .iter()
        .find_map(|of| paths.graphs.iter().find(|g| g.kind == kind && g.of == *of))
        .map(|graph| &graph.stacks);
    let all = paths
        .stacks
        .as_ref()
        .filter(|_| kind == StackKind::OnCpu && classes.contains(&StackClass::Service));
    graph
        .into_iter()
        .chain(all)
        .find_map(|stacks| code_path(stacks, kind))
}

/// The last calls of a path, and the share of the last; nothing where all that is known is where threads begin.
fn last_calls(path: &CodePath) -> Option<(String, String)> {
    let calls: Vec<&Call> = path
        .calls
        .iter()
        .filter(|call| !is_beginning(&call.name))
        .collect();
    let names: Vec<String> = calls[calls.len().saturating_sub(CALLS)..]
        .iter()
        .map(|call| short(&call.name))
        .collect();
    Some((names.join(" → "), percent(calls.last()?.share)))
}

/// Whether a function is where a program or a thread begins, or code of which nothing is known.
fn is_beginning(name: &str) -> bool {
    [
        "main",
        "_start",
        "start_thread",
        "clone",
        "clone3",
        "__clone3",
        "__libc_start_main",
        "__libc_start_main_impl",
        "libc.so.6",
        "unknown code",
    ]
    .contains(&name)
}

/// The first of them in a sentence, of the kernel's or of the program's own.
fn named(paths: &Paths, of_kernel: bool) -> Option<String> {
    let (found, _) = most(paths)?;
    let wanted = found
        .iter()
        .filter(|f| f.name.ends_with(KERNEL) == of_kernel)
        .take(NAMED);
    let told: Vec<String> = wanted
        .map(|f| format!("{} ({})", short(&f.name), percent(f.own)))
        .collect();
    (!told.is_empty()).then(|| format!("Its CPU time goes mostly to {}.", told.join(" and ")))
}

/// The table of a screen.
pub fn grid(paths: &Paths) -> Grid {
    let Some((found, samples)) = most(paths) else {
        return Grid::default();
    };
    let mut grid = Grid::titled([
        ("on a CPU in", Align::Left, 0),
        ("itself", Align::Right, 0),
        ("with what it calls", Align::Right, 2),
    ]);
    for f in found {
        grid.lines.push(Line::Cells(
            vec![short(&f.name), percent(f.own), percent(f.whole)],
            crate::style::Tone::Plain,
        ));
    }
    grid.lines.push(Line::Labelled(
        String::new(),
        format!("of {samples} samples of its threads on a CPU"),
        crate::style::Tone::Faint,
    ));
    grid
}

/// The functions that a table in Markdown has.
pub fn worth_naming(stacks: &Stacks) -> impl Iterator<Item = Function> {
    stacks
        .own()
        .into_iter()
        .filter(|f| f.own >= WORTH_NAMING / 3.0)
        .take(4 * SHOWN)
}

/// What stacks of requests are of, as the head of a column.
pub fn title(graph: &RequestStacks) -> &'static str {
    match (graph.kind, graph.of) {
        (StackKind::OnCpu, StackClass::Service) => "while events were taken, on a CPU in",
        (StackKind::OnCpu, StackClass::Requests) => "with a request, on a CPU in",
        (StackKind::OnCpu, StackClass::SlowRequests) => "with one of the slowest 1 %, on a CPU in",
        (StackKind::OffCpu, StackClass::Service) => "waiting, off the CPU, in",
        (StackKind::OffCpu, StackClass::Requests) => "with a request, waiting in",
        (StackKind::OffCpu, StackClass::SlowRequests) => "with one of the slowest 1 %, waiting in",
    }
}

fn short(name: &str) -> String {
    let name = clean(name);
    if name.chars().count() <= LONGEST {
        name
    } else {
        name.chars().take(LONGEST - 1).chain(['…']).collect()
    }
}

#[cfg(test)]
mod tests {
    use fingerpost_record::stacks::Stack;

    use super::*;

    fn paths(samples: u64) -> Paths {
        let functions = ["main", "sort_rows", "copy_page (kernel)"]
            .map(str::to_owned)
            .to_vec();
        let stack = |frames: &[u32], samples| Stack {
            frames: frames.to_vec(),
            samples,
        };
        let stacks = vec![
            stack(&[0, 1], samples * 6 / 10),
            stack(&[0, 1, 2], samples * 4 / 10),
        ];
        Paths {
            stacks: Some(Stacks {
                functions,
                stacks,
                samples,
                ..Stacks::default()
            }),
            ..Paths::default()
        }
    }

    #[test]
    fn the_functions_with_most_samples_are_named_and_few_samples_name_none() {
        assert_eq!(
            named(&paths(1000), false).as_deref(),
            Some("Its CPU time goes mostly to sort_rows (60.0 %).")
        );
        assert_eq!(
            named(&paths(1000), true).as_deref(),
            Some("Its CPU time goes mostly to copy_page (kernel) (40.0 %).")
        );
        assert_eq!(named(&paths(50), false), None);
        assert_eq!(
            grid(&paths(1000)).lines.len(),
            4,
            "the titles, two functions that were seen on a CPU, and the note"
        );
    }

    /// Stacks off the CPU, written as names with blanks between them and microseconds.
    fn waiting(of: StackClass, stacks: &[(&str, u64)]) -> RequestStacks {
        let mut found = Stacks {
            samples: 400,
            ..Stacks::default()
        };
        for (names, samples) in stacks {
            let first = found.functions.len() as u32;
            found.functions.extend(names.split(' ').map(str::to_owned));
            found.stacks.push(Stack {
                frames: (first..found.functions.len() as u32).collect(),
                samples: *samples,
            });
        }
        RequestStacks {
            kind: StackKind::OffCpu,
            of,
            stacks: found,
        }
    }

    #[test]
    fn a_wait_is_told_with_the_code_that_waits() {
        let all = waiting(
            StackClass::Requests,
            &[
                ("main serve query take_lock wait", 9_800),
                ("main accept poll", 200),
            ],
        );
        let paths = |slow: RequestStacks| Paths {
            graphs: vec![all.clone(), slow],
            ..paths(1000)
        };
        let same = paths(RequestStacks {
            of: StackClass::SlowRequests,
            ..all.clone()
        });
        assert_eq!(
            where_in_code(&same, Spent::Waiting).as_deref(),
            Some("Threads wait in serve → query → take_lock → wait: 98.0 % of the waiting.")
        );
        assert_eq!(where_slow(&same, Spent::Waiting), None, "it is the same");
        let other = paths(waiting(
            StackClass::SlowRequests,
            &[("main serve look_up poll", 7_000)],
        ));
        assert_eq!(
            where_slow(&other, Spent::Waiting).as_deref(),
            Some(
                "In the slowest 1 % threads wait in serve → look_up → poll: 100.0 % of the waiting."
            )
        );
        let begun = paths(RequestStacks::default());
        assert_eq!(
            where_in_code(&begun, Spent::Own).as_deref(),
            Some("Its CPU time goes to sort_rows: 100.0 %.")
        );
        assert_eq!(Spent::of(&Component::CpuOthers), None);
    }

    #[test]
    fn a_long_name_is_cut_and_a_hostile_one_cleaned() {
        let mut paths = paths(1000);
        paths.stacks.as_mut().unwrap().functions[1] = format!("\u{1b}[2J{}", "x".repeat(500));
        let told = named(&paths, false).unwrap();
        assert!(
            told.len() < 200 && !told.contains('\u{1b}') && told.contains('…'),
            "{told}"
        );
    }
}
