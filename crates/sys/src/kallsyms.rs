//! The kernel's functions by address: `/proc/kallsyms`, or what the kernel itself says of an address.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader};

use crate::bpf;

const PATH: &str = "/proc/kallsyms";

/// The kernel's functions in the order of their addresses.
#[derive(Clone, Debug, Default)]
pub struct Symbols {
    text: String,
    /// Address, and where in the text the name lies.
    functions: Vec<(u64, u32, u32)>,
}

impl Symbols {
    /// Reads the running kernel's.
    pub fn read() -> io::Result<Symbols> {
        Ok(Symbols::parse(std::fs::read_to_string(PATH)?))
    }

    /// Parses the file's text. Data symbols, and lines that are none, are left out.
    pub fn parse(text: String) -> Symbols {
        let function = |line: &str| {
            let mut words = line.split_ascii_whitespace();
            let address = u64::from_str_radix(words.next()?, 16).ok()?;
            let name = words
                .next()
                .filter(|kind| matches!(*kind, "t" | "T" | "w" | "W"))
                .and(words.next())?;
            Some((
                address,
                (name.as_ptr() as usize - text.as_ptr() as usize) as u32,
                name.len() as u32,
            ))
        };
        let mut functions: Vec<_> = text.lines().filter_map(function).collect();
        functions.sort_by_key(|f| f.0);
        Symbols { text, functions }
    }

    /// The function that an address lies in; nothing below the first.
    pub fn name(&self, address: u64) -> Option<&str> {
        let after = self.functions.partition_point(|f| f.0 <= address);
        let (_, start, length) = self.functions[after.checked_sub(1)?];
        self.text.get(start as usize..(start + length) as usize)
    }
}

/// The names of the functions that these addresses lie in, those that the kernel tells: asked for one by one where a
/// program may be loaded into it ([`bpf::names`]), else by its list.
pub fn names(addresses: impl IntoIterator<Item = u64>) -> HashMap<u64, String> {
    let addresses: HashSet<u64> = addresses.into_iter().collect();
    if addresses.is_empty() || hidden() {
        return HashMap::new();
    }
    let addresses: Vec<u64> = addresses.into_iter().collect();
    bpf::names::of(&addresses).unwrap_or_else(|_| {
        let symbols = Symbols::read().unwrap_or_default();
        addresses
            .iter()
            .filter_map(|&a| Some((a, symbols.name(a)?.to_owned())))
            .collect()
    })
}

/// Whether the kernel shows no addresses to this process, or no symbols at all.
pub fn hidden() -> bool {
    let Ok(file) = File::open(PATH) else {
        return true;
    };
    // A few symbols may truly lie at zero (per-CPU data on older kernels), so more than the first line is looked at.
    let shown = |line: io::Result<String>| {
        line.is_ok_and(|l| {
            l.split_ascii_whitespace()
                .next()
                .is_some_and(|a| a.bytes().any(|b| b != b'0'))
        })
    };
    !BufReader::new(file).lines().take(2000).any(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_belongs_to_the_function_that_begins_below_it() {
        let text = "ffff20 t clear_page_erms\nffff00 T asm_exc_page_fault\nnonsense\nffff10 d some_data\nffff40 t \
            last\t[module]\n";
        let symbols = Symbols::parse(text.to_owned());
        assert_eq!(symbols.name(0xffff00), Some("asm_exc_page_fault"));
        assert_eq!(symbols.name(0xffff1f), Some("asm_exc_page_fault"));
        assert_eq!(symbols.name(0xffff3f), Some("clear_page_erms"));
        assert_eq!(symbols.name(u64::MAX), Some("last"));
        assert_eq!(symbols.name(1), None);
        assert_eq!(Symbols::default().name(1), None);
    }

    #[test]
    fn addresses_of_the_running_kernel_are_named_as_in_its_list() {
        assert!(names([]).is_empty());
        let symbols = Symbols::read().unwrap_or_default();
        let Some(inside) = symbols
            .functions
            .iter()
            .map(|f| f.0)
            .filter(|a| *a > 0)
            .nth(100)
            .map(|a| a + 1)
            .filter(|_| !hidden())
        else {
            return;
        };
        let named = names([inside, 8]);
        let here = symbols.functions.iter().filter(|f| f.0 == inside - 1);
        let known: Vec<&str> = here
            .map(|&(_, start, length)| &symbols.text[start as usize..(start + length) as usize])
            .collect();
        assert!(
            named
                .get(&inside)
                .is_some_and(|n| known.contains(&n.as_str())),
            "{named:?} {known:?}"
        );
    }
}
