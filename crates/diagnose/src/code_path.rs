//! The code that samples were taken in, as the path of calls that carries most of them.
//!
//! A function's own share says little of code that calls much: a server that waits for an interpreter's lock, a timer or
//! an answer is in the same few functions of the C library each time, and a compiler that is called for each request
//! spreads over hundreds of its own. What a reader wants is the last function of the program's that most of the samples
//! have in common.

use std::borrow::Cow;
use std::collections::HashMap;

use fingerpost_record::stacks::{KERNEL, StackKind, Stacks};

/// A function is on the path where this share of the samples that are in the one before it are in it, too.
const MOST: f64 = 0.5;
/// The path ends where fewer of all samples are left.
const LEAST: f64 = 0.25;
/// With fewer samples a share says nothing.
const LEAST_SAMPLES: u64 = 20;

/// A path of calls, and how much goes that way.
#[derive(Clone, Debug, PartialEq)]
pub struct CodePath {
    /// Functions, or files whose functions have no names, each with the share of all samples (off the CPU: of their
    /// time) in which it was, the outermost first.
    pub calls: Vec<Call>,
}

/// One function of a path.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Its name.
    pub name: String,
    /// The share, 0 to 1.
    pub share: f64,
}

/// The way that most samples have in common, to the function behind which they part; nothing where they have none, or
/// were few.
///
/// The functions that at least half of the samples are in make the first stretch, in the order in which they call each
/// other; from the last of them on the same is asked of the samples that are in it, as long as a quarter of all are.
/// Functions of a file that has no names count as one. Off the CPU the kernel's functions are left out: all end where a
/// thread gives up its CPU.
pub fn code_path(stacks: &Stacks, kind: StackKind) -> Option<CodePath> {
    if stacks.samples < LEAST_SAMPLES {
        return None;
    }
    let all = stacks.counted();
    let mut left: Vec<(Vec<Cow<str>>, u64)> = stacks
        .stacks
        .iter()
        .map(|stack| (names(stacks, &stack.frames, kind), stack.samples))
        .collect();
    let mut calls = Vec::new();
    // Each turn is behind at least one function more.
    loop {
        let weight: u64 = left.iter().map(|(_, samples)| samples).sum();
        if (weight as f64) < LEAST * all as f64 {
            break;
        }
        let stretch = common(&left, weight);
        let Some((last, _)) = stretch.last() else {
            break;
        };
        let last = last.clone();
        let share = |samples: u64| samples as f64 / all.max(1) as f64;
        calls.extend(
            stretch
                .into_iter()
                .filter(|(_, samples)| share(*samples) >= LEAST)
                .map(|(name, samples)| Call {
                    name: name.into_owned(),
                    share: share(samples),
                }),
        );
        left.retain_mut(
            |(names, _)| match names.iter().position(|name| *name == last) {
                Some(at) => {
                    names.drain(..=at);
                    true
                }
                None => false,
            },
        );
    }
    (!calls.is_empty()).then_some(CodePath { calls })
}

/// The functions that most of the samples are in, and how many are; in the order of how deep they lie in the mean.
fn common<'a>(left: &[(Vec<Cow<'a, str>>, u64)], weight: u64) -> Vec<(Cow<'a, str>, u64)> {
    let mut found: HashMap<&Cow<str>, (u64, f64)> = HashMap::new();
    for (names, samples) in left {
        for (depth, name) in names.iter().enumerate() {
            let one = found.entry(name).or_default();
            one.0 += samples;
            one.1 += depth as f64 * *samples as f64;
        }
    }
    let mut stretch: Vec<(&Cow<str>, u64, f64)> = found
        .into_iter()
        .filter(|(_, (samples, _))| *samples > 0 && *samples as f64 >= MOST * weight as f64)
        .map(|(name, (samples, depth))| (name, samples, depth / samples as f64))
        .collect();
    stretch.sort_by(|a, b| a.2.total_cmp(&b.2).then_with(|| a.0.cmp(b.0)));
    stretch
        .into_iter()
        .map(|(name, samples, _)| (name.clone(), samples))
        .collect()
}

/// The names on a stack, each where it comes first: code that calls itself is on it once.
fn names<'a>(stacks: &'a Stacks, frames: &[u32], kind: StackKind) -> Vec<Cow<'a, str>> {
    let mut found: Vec<Cow<str>> = Vec::new();
    for name in frames
        .iter()
        .filter_map(|frame| stacks.functions.get(*frame as usize))
    {
        let of_kernel = name.ends_with(KERNEL);
        if of_kernel && (kind == StackKind::OffCpu || is_entry(name)) {
            continue;
        }
        let name = file_of(name).map_or(Cow::Borrowed(name.as_str()), Cow::Borrowed);
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// The file of a function without a name, which is written as the file's with an address behind it.
fn file_of(name: &str) -> Option<&str> {
    let (file, address) = name.rsplit_once("+0x")?;
    let hexadecimal = !address.is_empty() && address.bytes().all(|b| b.is_ascii_hexdigit());
    (hexadecimal && !file.is_empty()).then_some(file)
}

/// Whether a function is the kernel's way from a system call's number to what does it, which every call has.
fn is_entry(name: &str) -> bool {
    let name = name.trim_end_matches(KERNEL);
    name.starts_with("entry_SYSCALL")
        || ["do_syscall_64", "x64_sys_call", "el0_svc"].contains(&name)
}

#[cfg(test)]
mod tests {
    use fingerpost_record::stacks::Stack;

    use super::*;

    fn stacks(of: &[(&str, u64)]) -> Stacks {
        let mut found = Stacks {
            samples: 1_000,
            ..Stacks::default()
        };
        for (names, samples) in of {
            let frames = names
                .split(' ')
                .map(|name| {
                    let name = name.replace('/', " ");
                    let known = found.functions.iter().position(|f| *f == name);
                    known.unwrap_or_else(|| {
                        found.functions.push(name);
                        found.functions.len() - 1
                    }) as u32
                })
                .collect();
            found.stacks.push(Stack {
                frames,
                samples: *samples,
            });
        }
        found
    }

    fn told(of: &[(&str, u64)], kind: StackKind) -> Vec<(String, u64)> {
        let path = code_path(&stacks(of), kind);
        let calls = path.map_or(Vec::new(), |path| path.calls);
        calls
            .into_iter()
            .map(|c| (c.name, (c.share * 100.0).round() as u64))
            .collect()
    }

    #[test]
    fn threads_that_wait_by_many_ways_for_one_thing_have_its_function_in_common() {
        let of = [
            (
                "main eval call eval read restore take_lock wait schedule/(kernel)",
                500,
            ),
            (
                "main eval send restore take_lock wait schedule/(kernel)",
                480,
            ),
            ("main accept poll schedule/(kernel)", 20),
        ];
        let found = told(&of, StackKind::OffCpu);
        assert_eq!(found.last(), Some(&("wait".to_owned(), 98)));
        assert_eq!(found[found.len() - 2], ("take_lock".to_owned(), 98));
        assert!(!found.iter().any(|(name, _)| name.contains("kernel")));
    }

    #[test]
    fn what_calls_much_is_found_where_no_function_has_much_itself() {
        let of = [
            ("main loop command run eval script a", 130),
            ("main loop command run eval script b", 130),
            ("main loop command run eval script c", 120),
            ("main loop command run get", 120),
            ("main loop write", 300),
            ("main loop read", 200),
        ];
        let found = told(&of, StackKind::OnCpu);
        assert_eq!(found.last(), Some(&("script".to_owned(), 38)));
        assert!(found.contains(&("eval".to_owned(), 38)));
    }

    #[test]
    fn functions_without_names_count_as_their_file() {
        let of = [
            (
                "main run compile libLLVM-14.so.1+0x10 libLLVM-14.so.1+0x20",
                400,
            ),
            ("main run compile libLLVM-14.so.1+0x30", 550),
            ("main other", 50),
        ];
        let found = told(&of, StackKind::OnCpu);
        assert_eq!(found.last(), Some(&("libLLVM-14.so.1".to_owned(), 95)));
        assert_eq!(file_of("name+0xzz"), None);
        assert_eq!(file_of("+0x10"), None);
    }

    #[test]
    fn few_samples_and_samples_with_nothing_in_common_have_no_path() {
        let mut few = stacks(&[("main work", 1_000)]);
        few.samples = LEAST_SAMPLES - 1;
        assert_eq!(code_path(&few, StackKind::OnCpu), None);
        let apart: Vec<(String, u64)> = (0..10).map(|n| (format!("f{n} g{n}"), 100)).collect();
        let apart: Vec<(&str, u64)> = apart.iter().map(|(s, n)| (s.as_str(), *n)).collect();
        assert_eq!(told(&apart, StackKind::OnCpu), []);
        assert_eq!(code_path(&Stacks::default(), StackKind::OffCpu), None);
    }

    #[test]
    fn a_path_is_in_the_order_of_calls_and_ends_whatever_calls_itself() {
        let found = told(&[("a b a b a b c", 100)], StackKind::OnCpu);
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
    }
}
