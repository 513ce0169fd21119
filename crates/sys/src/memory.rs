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
    let Ok(maps) = fs::read_to_string("/proc/self/maps") else { return };
    let Some(program) = fs::read_link("/proc/self/exe").ok().and_then(|p| p.to_str().map(str::to_owned)) else {
        return;
    };
    for (start, length) in read_only_ranges(&maps, &program) {
        // SAFETY: the range is a private file mapping that cannot be written, so its pages hold what the file holds and
        // are read from it again when touched, the ones that are executing now included.
        unsafe { libc::madvise(start as *mut libc::c_void, length, libc::MADV_DONTNEED) };
    }
}

/// The mappings of a file that cannot have been written: start and length of each. Relocated constants (`r--p` after
/// the loader has written to them) would lose their relocations, so only executable mappings and, in a program that is
/// not relocated, none else count.
fn read_only_ranges(maps: &str, program: &str) -> Vec<(usize, usize)> {
    let parse = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (range, rights) = (words.next()?, words.next()?);
        if rights != "r-xp" || !line.ends_with(program) {
            return None;
        }
        let (start, end) = range.split_once('-')?;
        let (start, end) = (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
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
        assert!(at < self.bytes(), "byte {at} lies outside of {} bytes", self.bytes());
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
        assert!(at < self.bytes(), "byte {at} lies outside of {} bytes", self.bytes());
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
        let locked = status.lines().find_map(|l| l.strip_prefix("VmLck:")).unwrap().trim().to_owned();
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
        assert_eq!(read_only_ranges(maps, "/usr/bin/x"), [(0x500000, 0x200000)]);
    }

    #[test]
    fn the_program_goes_on_without_its_text() {
        forget_program_text();
        assert_eq!((1..=10).sum::<i32>(), 55);
    }
}
