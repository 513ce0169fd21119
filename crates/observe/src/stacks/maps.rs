//! Which file is mapped where in a process: `/proc/PID/maps`.

/// Executable mappings that are kept of one process.
pub const MOST_MAPPINGS: usize = 5_000;

/// An executable mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address, and the one after the last.
    pub start: u64,
    pub end: u64,
    /// Where in the file it begins.
    pub offset: u64,
    /// Device, as the kernel writes it, and inode: 0 for memory without a file.
    pub file: (String, u64),
    /// What the kernel calls it: a path, `[vdso]`, or nothing.
    pub name: String,
}

/// The executable mappings of a process, in the order of addresses. Lines that are none are left out.
pub fn parse(text: &str) -> Vec<Mapping> {
    let mut found: Vec<Mapping> = text
        .lines()
        .filter_map(mapping)
        .take(MOST_MAPPINGS)
        .collect();
    found.sort_by_key(|m| m.start);
    found
}

fn mapping(line: &str) -> Option<Mapping> {
    // `7f01-7f02 r-xp 00001000 fd:01 1234     /usr/lib/x.so`
    let mut fields = line.splitn(6, ' ');
    let mut field = || fields.next().filter(|field| !field.is_empty());
    let (range, rights, offset, device, inode) = (field()?, field()?, field()?, field()?, field()?);
    let (start, end) = range.split_once('-')?;
    let hexadecimal = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = (hexadecimal(start)?, hexadecimal(end)?);
    (rights.contains('x') && start < end).then_some(())?;
    let file = (device.to_owned(), inode.parse().ok()?);
    Some(Mapping {
        start,
        end,
        offset: hexadecimal(offset)?,
        file,
        name: fields.next().unwrap_or_default().trim_start().to_owned(),
    })
}

/// The mapping that an address lies in.
pub fn at(mappings: &[Mapping], address: u64) -> Option<&Mapping> {
    mappings[..mappings.partition_point(|m| m.start <= address)]
        .last()
        .filter(|m| address < m.end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executable_mappings_are_found_by_address() {
        let text = "5581-5591 r--p 00000000 fd:01 77                         /usr/sbin/server\n\
                    5591-55a1 r-xp 00010000 fd:01 77                         /usr/sbin/server\n\
                    7f00-7f10 r-xp 00001000 fd:01 78                         /usr/lib/a b (deleted)\n\
                    7f20-7f30 rwxp 00000000 00:00 0 \n\
                    nonsense\n9-1 r-xp 0 0 0\n7ffd-7ffe r-xp 00000000 00:00 0                          [vdso]\n";
        let found = parse(text);
        let names: Vec<&str> = found.iter().map(|m| m.name.as_str()).collect();
        assert_eq!(
            names,
            ["/usr/sbin/server", "/usr/lib/a b (deleted)", "", "[vdso]"]
        );
        assert_eq!(at(&found, 0x5595).map(|m| m.offset), Some(0x10000));
        assert_eq!((at(&found, 0x55a1), at(&found, 0x10)), (None, None));
        assert_eq!(found[0].file, ("fd:01".to_owned(), 77));
    }
}
