//! What this process itself has in memory.

use std::fs::{self, File};
use std::io;

use rustix::fs::{MemfdFlags, memfd_create};

use crate::map::Mapping;
use crate::system::done;

/// Takes the pages of the program's own code and constants out of this process's page tables. The page cache keeps
/// them, so what is needed again comes back by a minor fault; everything that only starting up has touched stays out.
///
/// Without this the kernel's fault-around makes a process of this binary look, and in part be, a MiB larger than its
/// loop needs.
pub fn forget_program_text() {
    // Relocated constants (`r--p` after the loader has written to them) would lose their relocations, so only
    // executable mappings and, in a program that is not relocated, none else count.
    for (start, length) in program(|rights| rights == "r-xp").unwrap_or_default() {
        // SAFETY: the range is a private file mapping that cannot be written, so its pages hold what the file holds and
        // are read from it again when touched, the ones that are executing now included.
        unsafe { libc::madvise(start as *mut libc::c_void, length, libc::MADV_DONTNEED) };
    }
}

/// Brings the whole program into this process's page tables, its code, its constants and its data.
///
/// The kernel charges a page of a file to the control group whose process has it read, and with it all that is read
/// ahead around it, which at one fault may be several MiB (`read_ahead_kb` of the device). After this nothing of the
/// program is read any more, not even after the kernel's caches were dropped, as what a process has mapped stays in
/// them. A group that the process enters then is charged for what it works on, however large the program is.
///
/// # Errors
/// The kernel does not say what is mapped.
pub fn load_program() -> io::Result<()> {
    /// The smallest page of any architecture.
    const PAGE: usize = 4096;
    for (start, length) in program(|rights| rights.starts_with('r'))? {
        // Linux 5.14 has advice for this; a touch does it in every kernel.
        for at in (start..start + length).step_by(PAGE) {
            // SAFETY: the byte lies in a mapping of the program's own file that can be read. It is never unmapped, and
            // the kernel lets nobody cut off the file of a running program.
            unsafe { std::ptr::with_exposed_provenance::<u8>(at).read_volatile() };
        }
    }
    Ok(())
}

/// Start and length of each mapping of the program's file whose rights are among the wanted.
fn program(wanted: impl Fn(&str) -> bool) -> io::Result<Vec<(usize, usize)>> {
    let program = fs::read_link("/proc/self/exe")?;
    Ok(ranges(
        &fs::read_to_string("/proc/self/maps")?,
        &program.to_string_lossy(),
        wanted,
    ))
}

fn ranges(maps: &str, program: &str, wanted: impl Fn(&str) -> bool) -> Vec<(usize, usize)> {
    let parse = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (range, rights) = (words.next()?, words.next()?);
        // The path is the rest of the line, blanks included.
        if !wanted(rights) || line.find('/').is_none_or(|at| &line[at..] != program) {
            return None;
        }
        let (start, end) = range.split_once('-')?;
        let (start, end) = (
            usize::from_str_radix(start, 16).ok()?,
            usize::from_str_radix(end, 16).ok()?,
        );
        Some((start, end.checked_sub(start)?))
    };
    maps.lines().filter_map(parse).collect()
}

/// A file without a name, in memory: gone when its last descriptor is closed.
pub fn nameless_file() -> io::Result<File> {
    Ok(File::from(memfd_create("fingerpost", MemfdFlags::CLOEXEC)?))
}

/// Memory that is touched and cannot be paged out for as long as this lives.
#[derive(Debug)]
pub struct Pinned {
    _mapping: Mapping,
}

impl Pinned {
    /// Takes so many bytes. Needs `CAP_IPC_LOCK` or a limit (`ulimit -l`) that allows it.
    pub fn take(bytes: usize) -> io::Result<Self> {
        // Gigabytes are filled much faster in huge pages.
        let mapping = Mapping::nameless(bytes, true)?;
        // SAFETY: the range is the mapping just made; locking it also touches it.
        done(unsafe { libc::mlock(mapping.start.cast(), bytes) })?;
        Ok(Self { _mapping: mapping })
    }
}

/// Fresh memory of our own that is zero until it is touched. Dropping it gives it back to the kernel.
#[derive(Debug)]
pub struct Fresh(Mapping);

impl Fresh {
    /// Maps this much. `huge` asks for huge pages where the kernel gives them to those that ask.
    pub fn map(bytes: usize, huge: bool) -> io::Result<Self> {
        Mapping::nameless(bytes, huge).map(Fresh)
    }

    /// Adds one to a byte, which makes its page exist and dirty.
    ///
    /// # Panics
    /// When the byte lies outside.
    pub fn touch(&mut self, at: usize) {
        assert!(
            at < self.bytes(),
            "byte {at} lies outside of {} bytes",
            self.bytes()
        );
        // SAFETY: the byte lies within the mapping, which is ours alone and lives as long as we do.
        unsafe {
            let byte = self.0.start.add(at);
            byte.write_volatile(byte.read_volatile().wrapping_add(1));
        }
    }

    /// Reads a byte. A page that the kernel has swapped out comes back, and stays as it lies in the swap.
    ///
    /// # Panics
    /// When the byte lies outside.
    pub fn look(&self, at: usize) -> u8 {
        assert!(
            at < self.bytes(),
            "byte {at} lies outside of {} bytes",
            self.bytes()
        );
        // SAFETY: the byte lies within the mapping, which is ours alone and lives as long as we do.
        unsafe { self.0.start.add(at).read_volatile() }
    }

    /// Its size.
    pub fn bytes(&self) -> usize {
        self.0.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pinned_memory_is_locked_while_it_lives() {
        // One page: the usual limit for users allows 64 KiB at least.
        let pinned = Pinned::take(4096).unwrap();
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let locked = status
            .lines()
            .find_map(|l| l.strip_prefix("VmLck:"))
            .unwrap()
            .trim()
            .to_owned();
        assert_ne!(locked, "0 kB");
        drop(pinned);
        assert!(Pinned::take(usize::MAX / 2).is_err());
    }

    #[test]
    fn only_the_programs_own_code_is_taken() {
        let maps = "00400000-00500000 r--p 00000000 fe:00 11 /usr/bin/x\n\
                    00500000-00700000 r-xp 00100000 fe:00 11 /usr/bin/x\n\
                    00700000-00710000 rw-p 00300000 fe:00 11 /usr/bin/x\n\
                    7f0000000000-7f0000001000 r-xp 00000000 fe:00 12 /usr/lib/y\n\
                    7ffc00000000-7ffc00001000 r-xp 00000000 00:00 0 [vdso]\nnonsense\n";
        assert_eq!(
            ranges(maps, "/usr/bin/x", |rights| rights == "r-xp"),
            [(0x500000, 0x200000)]
        );
    }

    #[test]
    fn the_program_goes_on_without_its_text_until_it_is_loaded() {
        forget_program_text();
        assert_eq!((1..=10).sum::<i32>(), 55);
        let code = program(|rights| rights == "r-xp").unwrap();
        let bytes: usize = code.iter().map(|(_, length)| length).sum();
        let mapped = || -> usize {
            let smaps = fs::read_to_string("/proc/self/smaps").unwrap();
            let of = |start: &usize| {
                let from = smaps.find(&format!("{start:08x}-")).unwrap();
                let kb = smaps[from..]
                    .lines()
                    .find_map(|line| line.strip_prefix("Rss:")?.strip_suffix("kB"))
                    .unwrap();
                kb.trim().parse::<usize>().unwrap() << 10
            };
            code.iter().map(|(start, _)| of(start)).sum()
        };
        assert!(bytes > 0 && mapped() < bytes);
        load_program().unwrap();
        assert_eq!(mapped(), bytes);
    }
}
