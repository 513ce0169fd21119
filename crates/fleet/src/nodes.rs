//! Lists of nodes as Slurm and clush write them: `node[001-512]`, `r[1-2]n[01-16/2],login1`.
//!
//! Zeros in front are kept (`[08-10]` is 08, 09, 10), brackets multiply, `/2` takes every second. `,` and blanks unite,
//! `!` takes away and `&` keeps what both have, from left to right, as ClusterShell's extended patterns do. `@GROUP` is
//! refused: only the site's own `nodeset` knows its groups. A name is what OpenSSH and Slurm take for a host and
//! nothing else, so that none can be taken for an option or a path.

use std::collections::{BTreeMap, BTreeSet};

/// The most nodes that one list may name.
pub const MOST_NODES: usize = 200_000;
/// The longest name of a node: that of a host name (RFC 1035, 2.3.4).
const LONGEST: usize = 253;

/// Whether a name can be that of a node: letters, digits, `-`, `_` and `.`, beginning with a letter or digit.
pub fn is_name(name: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.len() <= LONGEST
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(inner)
        && !name.contains("..")
}

/// The names in the order of the list, each once.
///
/// # Errors
/// A sentence that says which part is no list, or that it names nobody or too many.
pub fn parse(list: &str) -> Result<Vec<String>, String> {
    let mut names: Vec<String> = Vec::new();
    for (operator, pattern) in parts(list)? {
        let expanded = expand(pattern)?;
        match operator {
            ',' => names.extend(expanded),
            other => {
                let second: BTreeSet<String> = expanded.into_iter().collect();
                names.retain(|name| second.contains(name) == (other == '&'));
            }
        }
        if names.len() > MOST_NODES {
            return Err(too_many());
        }
    }
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    if names.is_empty() {
        Err(format!("“{}” names no node", short(list)))
    } else {
        Ok(names)
    }
}

fn too_many() -> String {
    format!("the list names more than {MOST_NODES} nodes; take it apart")
}

fn short(text: &str) -> String {
    fingerpost_record::text::clean_short(text, 60)
}

/// Patterns with the operator before each; an operator within brackets is part of the pattern.
fn parts(list: &str) -> Result<Vec<(char, &str)>, String> {
    let (mut parts, mut operator, mut from, mut inside) = (Vec::new(), ',', 0, false);
    for (at, c) in list.char_indices().chain([(list.len(), ',')]) {
        match c {
            '[' => inside = true,
            ']' => inside = false,
            _ => {}
        }
        if inside || !(matches!(c, ',' | '!' | '&') || c.is_ascii_whitespace()) {
            continue;
        }
        if at > from {
            parts.push((operator, &list[from..at]));
            operator = ',';
        }
        // A blank beside another operator adds nothing to it.
        if matches!(c, '!' | '&') {
            operator = c;
        }
        from = at + c.len_utf8();
    }
    match operator {
        _ if inside => Err(format!(
            "“{}” has a bracket that is not closed",
            short(list)
        )),
        ',' => Ok(parts),
        operator => Err(format!(
            "“{}” ends with “{operator}”, and a list must follow it",
            short(list)
        )),
    }
}

/// The names of one pattern: text and brackets in turns.
fn expand(pattern: &str) -> Result<Vec<String>, String> {
    if pattern.starts_with('@') {
        let group = short(pattern);
        return Err(format!(
            "“{group}” is a group of nodes, which only the site knows: give `$(nodeset -e {group})`"
        ));
    }
    let mut names = vec![String::new()];
    let mut rest = pattern;
    while let Some((text, after)) = rest.split_once('[') {
        let Some((ranges, tail)) = after.split_once(']') else {
            return Err(format!(
                "“{}” has a bracket that is not closed",
                short(pattern)
            ));
        };
        let numbers =
            numbers(ranges, names.len()).map_err(|why| format!("“{}”: {why}", short(pattern)))?;
        names = names
            .iter()
            .flat_map(|name| numbers.iter().map(move |n| format!("{name}{text}{n}")))
            .collect();
        rest = tail;
    }
    names.iter_mut().for_each(|name| name.push_str(rest));
    match names.iter().find(|name| !is_name(name)) {
        Some(name) => Err(format!("“{}” cannot be the name of a node", short(name))),
        None => Ok(names),
    }
}

/// What stands in one pair of brackets, with its zeros; `times` is how many names each makes.
fn numbers(ranges: &str, times: usize) -> Result<Vec<String>, String> {
    let mut all = Vec::new();
    for range in ranges.split(',') {
        let wrong = || format!("“{}” is no range such as 1-8 or 001-512/2", short(range));
        let (bounds, step) = range.split_once('/').unwrap_or((range, "1"));
        let (first, last) = bounds.split_once('-').unwrap_or((bounds, bounds));
        let number = |text: &str| {
            if text.len() <= 12 && text.bytes().all(|b| b.is_ascii_digit()) {
                text.parse::<u64>().ok()
            } else {
                None
            }
        };
        let (Some(low), Some(high), Some(step)) = (number(first), number(last), number(step))
        else {
            return Err(wrong());
        };
        if low > high || step == 0 {
            return Err(wrong());
        }
        if ((high - low) / step + 1)
            .saturating_add(all.len() as u64)
            .saturating_mul(times as u64)
            > MOST_NODES as u64
        {
            return Err(too_many());
        }
        let width = if first.starts_with('0') {
            first.len()
        } else {
            0
        };
        all.extend(
            (low..=high)
                .step_by(usize::try_from(step).map_err(|_| wrong())?)
                .map(|n| format!("{n:0width$}")),
        );
    }
    Ok(all)
}

/// The names as one list, numbers as ranges: what [`parse`] takes apart again, in the order of the names. The number is
/// what a host's own name ends with, before its domain: `n[1-3].example`; where that ends with none, what the whole
/// name ends with.
pub fn fold(names: &[String]) -> String {
    let mut numbered: BTreeMap<(&str, &str, usize), BTreeSet<u64>> = BTreeMap::new();
    let mut plain: BTreeSet<&str> = BTreeSet::new();
    for name in names {
        let (stem, digits, domain) = numbered_part(name);
        match digits.parse::<u64>() {
            Ok(number) if digits.len() <= 12 => {
                // Zeros in front: a nought alone has none.
                let width = if digits.len() > 1 && digits.starts_with('0') {
                    digits.len()
                } else {
                    0
                };
                numbered
                    .entry((stem, domain, width))
                    .or_default()
                    .insert(number);
            }
            _ => drop(plain.insert(name)),
        }
    }
    let numbered = numbered
        .into_iter()
        .map(|((stem, domain, width), numbers)| {
            let ranges = ranges(&numbers, width);
            if numbers.len() == 1 {
                format!("{stem}{ranges}{domain}")
            } else {
                format!("{stem}[{ranges}]{domain}")
            }
        });
    let all: Vec<String> = plain
        .into_iter()
        .map(str::to_owned)
        .chain(numbered)
        .collect();
    all.join(",")
}

/// What stands before the number by which names are folded, the number, and what stands behind it.
fn numbered_part(name: &str) -> (&str, &str, &str) {
    let parted = |text: &str| text.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    let own = name.find('.').unwrap_or(name.len());
    let (end, stem) = match parted(&name[..own]) {
        stem if stem < own => (own, stem),
        _ => (name.len(), parted(name)),
    };
    (&name[..stem], &name[stem..end], &name[end..])
}

/// The names without their domains where they can still be told apart, else as they are: for labels that have little
/// room.
pub fn short_names<'a>(names: &[&'a str]) -> Vec<&'a str> {
    let short: Vec<&str> = names
        .iter()
        .map(|name| name.split('.').next().unwrap_or(name))
        .collect();
    let distinct = short.iter().collect::<BTreeSet<_>>().len();
    if distinct == names.iter().collect::<BTreeSet<_>>().len() {
        short
    } else {
        names.to_vec()
    }
}

/// Numbers as ranges, with zeros up to this width. A number that outgrew the width keeps its own, so ranges end there.
fn ranges(numbers: &BTreeSet<u64>, width: usize) -> String {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for &number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let said = |(first, last): &(u64, u64)| match first == last {
        true => format!("{first:0width$}"),
        false => format!("{first:0width$}-{last:0width$}"),
    };
    ranges.iter().map(said).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(list: &str) -> String {
        parse(list).map_or_else(|e| format!("error: {e}"), |names| names.join(" "))
    }

    #[test]
    fn lists_of_slurm_and_clush_name_their_nodes() {
        assert_eq!(all("node[008-011]"), "node008 node009 node010 node011");
        assert_eq!(all("n[1-3,7],login"), "n1 n2 n3 n7 login");
        assert_eq!(all("r[1-2]n[1-2]-ib"), "r1n1-ib r1n2-ib r2n1-ib r2n2-ib");
        assert_eq!(all("n[1-7/3] m1"), "n1 n4 n7 m1");
        assert_eq!(all("n[1-4]!n[2-3]"), "n1 n4");
        assert_eq!(all("n[1-4] ! n2 , n9"), "n1 n3 n4 n9");
        assert_eq!(all("n[1-4]&n[3-9]"), "n3 n4");
        assert_eq!(all("n1,n1,n01"), "n1 n01");
        assert_eq!(all("[1-2].rack"), "1.rack 2.rack");
    }

    #[test]
    fn what_is_no_list_is_told() {
        for (list, why) in [
            ("", "names no node"),
            ("n[1-3", "not closed"),
            ("n[3-1]", "no range"),
            ("n[1-3/0]", "no range"),
            ("n[a-b]", "no range"),
            ("n[-3]", "no range"),
            ("-oProxyCommand=x", "cannot be the name"),
            ("../etc", "cannot be the name"),
            ("a/b", "cannot be the name"),
            ("n[1-2]$(x)", "cannot be the name"),
            ("@racks", "nodeset -e"),
            ("n1!", "must follow"),
            ("n1!n1", "names no node"),
            ("n[1-999999999999]", "more than"),
            ("n[1-999][1-999]", "more than"),
        ] {
            assert!(
                all(list).starts_with("error") && all(list).contains(why),
                "{list}: {}",
                all(list)
            );
        }
    }

    #[test]
    fn names_fold_into_ranges() {
        let folded = |list: &str| fold(&parse(list).unwrap());
        assert_eq!(
            folded("n3,n1,n2,n10,login,m07,m08"),
            "login,m[07-08],n[1-3,10]"
        );
        assert_eq!(folded("n1"), "n1");
        assert_eq!(folded("n[0-3]"), "n[0-3]");
        assert_eq!(folded("n[098-101]"), "n[100-101],n[098-099]");
        assert_eq!(
            folded("ip-10-7.eu.example,ip-10-8.eu.example,ip-10-8.us.example"),
            "ip-10-[7-8].eu.example,ip-10-8.us.example"
        );
        assert_eq!(
            folded("web.r1,web.r2,1.rack,2.rack"),
            "[1-2].rack,web.r[1-2]"
        );
    }

    #[test]
    fn names_are_shortened_where_they_stay_different() {
        assert_eq!(
            short_names(&["a.x.example", "b.x.example", "c"]),
            ["a", "b", "c"]
        );
        assert_eq!(
            short_names(&["a.x.example", "a.y.example"]),
            ["a.x.example", "a.y.example"]
        );
        assert_eq!(short_names(&["a.x.example", "a.x.example"]), ["a", "a"]);
    }

    proptest! {
        #[test]
        fn what_is_folded_is_taken_apart_to_the_same_names(
            names in prop::collection::btree_set("[a-z]{1,3}-?[0-9]{0,4}(\\.[a-z]{1,2}[0-9]{0,2}){0,2}", 1..60)
        ) {
            let names: Vec<String> = names.into_iter().collect();
            let mut again = parse(&fold(&names)).unwrap();
            again.sort();
            prop_assert_eq!(again, names);
        }

        #[test]
        fn no_text_makes_a_name_that_is_none(list in r"[a-c0-9\[\]\-/,!&@ ./$]{0,30}") {
            if let Ok(names) = parse(&list) {
                prop_assert!(names.iter().all(|name| is_name(name)) && names.len() <= MOST_NODES);
            }
        }

        /// A list with one character changed, added or left out never panics, and never takes long.
        #[test]
        fn mutated_lists_are_answered(at in 0_usize..24, c in any::<char>(), how in 0..3) {
            let mut list: Vec<char> = "r[01-12/2]n[1-8,11],m!n&x".chars().collect();
            match how { 0 => list[at] = c, 1 => list.insert(at, c), _ => drop(list.remove(at)) }
            let _ = parse(&list.into_iter().collect::<String>());
        }
    }
}
