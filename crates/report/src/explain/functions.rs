//! Which functions had the CPU: the most of them as a table, and the first in words.

use fingerpost_record::Paths;
use fingerpost_record::stacks::{Function, RequestStacks, StackClass, StackKind, Stacks};

use crate::grid::{Align, Grid, Line};
use crate::words::{clean, percent};

/// Functions that a screen shows, and that a sentence names.
const SHOWN: usize = 6;
const NAMED: usize = 2;
/// A function with less than this share of the samples is not worth naming.
const WORTH_NAMING: f64 = 0.03;
/// With fewer samples a share says nothing: at 100 a tenth is off by 6 points at 95 %.
const LEAST_SAMPLES: u64 = 100;
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

/// The first of them in a sentence, of the kernel's or of the program's own.
pub fn named(paths: &Paths, of_kernel: bool) -> Option<String> {
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

/// Ends the names of the kernel's functions.
const KERNEL: &str = " (kernel)";

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
    grid.lines.push(Line::Note(
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
