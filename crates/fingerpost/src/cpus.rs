//! Which CPUs to measure on: the first for the measuring process, the second for its partner.

use std::fs;

use crate::exit::usage;

/// Reads a CPU list as taskset and the kernel write it: `0`, `0,2`, `0-3`.
pub fn parse_list(text: &str) -> anyhow::Result<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        match (from.trim().parse::<usize>(), to.trim().parse::<usize>()) {
            (Ok(from), Ok(to)) if from <= to && to < 65_536 => cpus.extend(from..=to),
            _ => {
                return usage(format!(
                    "“{text}” is not a list of CPUs: write it as 0,2 or 0-3"
                ));
            }
        }
    }
    cpus.dedup();
    Ok(cpus)
}

/// The CPUs to use, in the order of use.
///
/// A list of the user's is taken as it stands. Else the allowed CPUs from the last one down, because most systems send
/// their interrupts to the first; and behind the first chosen one, CPUs of other cores before its own siblings, which
/// share its execution units.
pub fn choose(list: Option<&str>) -> anyhow::Result<Vec<usize>> {
    let allowed = fingerpost_sys::affinity::allowed_cpus()?;
    if let Some(list) = list {
        let wanted = parse_list(list)?;
        return match wanted.iter().find(|cpu| !allowed.contains(cpu)) {
            Some(cpu) => usage(format!(
                "this process may not use CPU {cpu}; it may use {allowed:?}"
            )),
            None => Ok(wanted),
        };
    }
    Ok(order(allowed, siblings))
}

fn order(mut allowed: Vec<usize>, siblings: impl Fn(usize) -> Vec<usize>) -> Vec<usize> {
    allowed.reverse();
    if let Some(&first) = allowed.first() {
        let shared = siblings(first);
        allowed[1..].sort_by_key(|cpu| shared.contains(cpu));
    }
    allowed
}

/// The CPUs that share a core with this one, itself included; empty where the system does not tell.
fn siblings(cpu: usize) -> Vec<usize> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    fs::read_to_string(path)
        .ok()
        .and_then(|text| parse_list(&text).ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_the_kernel_writes_them() {
        assert_eq!(parse_list("0-2,5\n").unwrap(), [0, 1, 2, 5]);
        assert!(
            parse_list("").is_err()
                && parse_list("3-1").is_err()
                && parse_list("a").is_err()
                && parse_list("0-99999999").is_err()
        );
    }

    #[test]
    fn a_partner_comes_from_another_core_where_there_is_one() {
        // Two cores of two threads, numbered 0 2 and 1 3.
        assert_eq!(
            order(vec![0, 1, 2, 3], |cpu| vec![cpu % 2, cpu % 2 + 2]),
            [3, 2, 0, 1]
        );
        assert_eq!(order(vec![0, 1], |_| vec![0, 1]), [1, 0]);
        assert_eq!(order(vec![4], |_| vec![]), [4]);
    }
}
