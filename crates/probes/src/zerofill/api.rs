//! Every way to get memory that this system has.

use std::io;

use crate::call::{ANONYMOUS, READ_WRITE, map, unmap};

/// A way to get memory and to give it back. What it returns has not been touched, unless the way itself reuses memory.
pub trait Memory {
    /// Gets `bytes` and returns their address.
    fn get(&mut self, bytes: usize) -> io::Result<usize>;
    /// Gives back what [`Memory::get`] returned for the same number of bytes.
    fn give_back(&mut self, at: usize, bytes: usize) -> io::Result<()>;
}

/// Fails with the error of the last system call unless its answer is good.
#[inline(always)]
fn good(yes: bool) -> io::Result<()> {
    if yes {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// `mmap` of private anonymous memory, with further flags.
pub struct Mmap {
    flags: i32,
    granule: usize,
}

impl Mmap {
    /// The ordinary mapping.
    pub fn plain() -> Mmap {
        Mmap {
            flags: ANONYMOUS,
            granule: 1,
        }
    }

    /// A mapping of reserved huge pages; lengths are rounded up to them.
    pub fn huge(granule: usize) -> Mmap {
        Mmap {
            flags: ANONYMOUS | libc::MAP_HUGETLB,
            granule,
        }
    }
}

impl Memory for Mmap {
    #[inline(always)]
    fn get(&mut self, bytes: usize) -> io::Result<usize> {
        map(
            0,
            bytes.next_multiple_of(self.granule),
            READ_WRITE,
            self.flags,
            -1,
        )
    }

    #[inline(always)]
    fn give_back(&mut self, at: usize, bytes: usize) -> io::Result<()> {
        unmap(at, bytes.next_multiple_of(self.granule))
    }
}

/// Moving the end of the data segment. Nothing else may move it between the two calls, so the loop must not allocate.
pub struct Brk;

impl Memory for Brk {
    #[inline(always)]
    fn get(&mut self, bytes: usize) -> io::Result<usize> {
        // SAFETY: the heap only grows; what lies in it stays.
        let old = unsafe { libc::sbrk(bytes as libc::intptr_t) };
        good(old as isize != -1)?;
        Ok(old as usize)
    }

    #[inline(always)]
    fn give_back(&mut self, _at: usize, bytes: usize) -> io::Result<()> {
        // SAFETY: the last `bytes` of the heap are those that `get` added, since nothing allocated in between.
        good(unsafe { libc::sbrk(-(bytes as libc::intptr_t)) } as isize != -1)
    }
}

/// The C library's malloc and free.
pub struct Malloc;

impl Memory for Malloc {
    #[inline(always)]
    fn get(&mut self, bytes: usize) -> io::Result<usize> {
        // SAFETY: malloc takes a number. The compiler knows malloc and would drop a pair that it can see through.
        let at = std::hint::black_box(unsafe { libc::malloc(bytes) });
        good(!at.is_null())?;
        Ok(at as usize)
    }

    #[inline(always)]
    fn give_back(&mut self, at: usize, _bytes: usize) -> io::Result<()> {
        // SAFETY: `at` came from malloc and is freed once.
        unsafe { libc::free(std::hint::black_box(at as *mut libc::c_void)) };
        Ok(())
    }
}

/// The size from which malloc maps memory of its own instead of taking it from the heap: glibc's default, which is
/// fixed here because glibc otherwise raises it with every large block that is freed.
pub const MMAP_THRESHOLD: usize = 128 << 10;

/// Fixes malloc's threshold. False where the C library has no such setting.
pub fn fix_malloc_threshold() -> bool {
    #[cfg(target_env = "gnu")]
    // SAFETY: mallopt takes numbers.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD as i32) == 1
    }
    #[cfg(not(target_env = "gnu"))]
    false
}

/// Growing a mapping by `mremap` and shrinking it again.
pub struct Mremap {
    stem: usize,
    page: usize,
}

impl Mremap {
    /// A mapping of one page with room to grow by `bytes` in its place.
    pub fn new(bytes: usize, page: usize) -> io::Result<Mremap> {
        let stem = map(0, page + bytes, READ_WRITE, ANONYMOUS, -1)?;
        unmap(stem + page, bytes)?;
        Ok(Mremap { stem, page })
    }

    #[inline(always)]
    fn resize(&self, from: usize, to: usize) -> io::Result<()> {
        // SAFETY: the mapping is ours; without MREMAP_MAYMOVE it grows where it lies, into the room kept for it, or not
        // at all.
        good(
            unsafe { libc::mremap(self.stem as *mut libc::c_void, from, to, 0) }
                != libc::MAP_FAILED,
        )
    }
}

impl Memory for Mremap {
    #[inline(always)]
    fn get(&mut self, bytes: usize) -> io::Result<usize> {
        self.resize(self.page, self.page + bytes)?;
        Ok(self.stem + self.page)
    }

    #[inline(always)]
    fn give_back(&mut self, _at: usize, bytes: usize) -> io::Result<()> {
        self.resize(self.page + bytes, self.page)
    }
}

/// A new anonymous file in memory, mapped shared.
pub struct Memfd;

impl Memory for Memfd {
    #[inline(always)]
    fn get(&mut self, bytes: usize) -> io::Result<usize> {
        // SAFETY: the name is a string with its end; the other calls take numbers, and the descriptor is closed here,
        // once. The mapping keeps the file.
        unsafe {
            let fd = libc::memfd_create(c"zerofill".as_ptr(), libc::MFD_CLOEXEC);
            good(fd >= 0)?;
            let mapped = good(libc::ftruncate(fd, bytes as libc::off_t) == 0)
                .and_then(|()| map(0, bytes, READ_WRITE, libc::MAP_SHARED, fd));
            libc::close(fd);
            mapped
        }
    }

    #[inline(always)]
    fn give_back(&mut self, at: usize, bytes: usize) -> io::Result<()> {
        unmap(at, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gets, writes, checks that fresh memory is zero, and gives back, twice.
    fn exercise(memory: &mut impl Memory, bytes: usize, zeroed: bool) -> io::Result<()> {
        for _ in 0..2 {
            let at = memory.get(bytes)?;
            // SAFETY: the memory is ours and as long.
            let slice = unsafe { std::slice::from_raw_parts_mut(at as *mut u8, bytes) };
            assert!(!zeroed || slice.iter().all(|b| *b == 0));
            slice.fill(7);
            memory.give_back(at, bytes)?;
        }
        Ok(())
    }

    #[test]
    fn mapped_memory_is_usable_and_zero_each_time() {
        let page = crate::call::page_size();
        exercise(&mut Mmap::plain(), 3 * page, true).unwrap();
        exercise(&mut Malloc, 3 * page, false).unwrap();
        exercise(&mut Memfd, 3 * page, true).unwrap();
        // Another test's thread may map something into the room that a probe's process has for itself.
        let grows = |_| {
            Mremap::new(3 * page, page)
                .and_then(|mut memory| exercise(&mut memory, 3 * page, true))
                .is_ok()
        };
        assert!((0..50).any(grows));
    }
}
