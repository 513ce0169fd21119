//! Swap areas: their header, switching them on and off, and the switches around them.
//!
//! An area that we made carries [`LABEL`] and a random UUID in its header. Nothing here switches off an area whose UUID
//! is not the one that was asked for, so a path that has become somebody else's is left alone.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;

use crate::procfs::memory::{SwapArea, parse_swaps};
use crate::system::{c_path, done, page_bytes};

/// The volume label in the header of every area that we make.
pub const LABEL: &str = "fingerpost";

/// `swapon`'s flag that says that the low bits are a priority (linux/swap.h).
const SWAP_FLAG_PREFER: i32 = 0x8000;
/// The bits of a priority.
const SWAP_FLAG_PRIO_MASK: i32 = 0x7fff;
/// The highest priority there is: areas that have it are filled before all others, in turns.
pub const TOP_PRIORITY: i32 = SWAP_FLAG_PRIO_MASK;

/// Where the kernel expects the parts of the header (`union swap_header` in linux/swap.h): 1 KiB is left to boot
/// loaders.
const INFO: usize = 1024;
const UUID: usize = INFO + 12;
const VOLUME: usize = UUID + 16;
const MAGIC: &[u8] = b"SWAPSPACE2";

/// The areas that are switched on.
pub fn areas() -> Vec<SwapArea> {
    fs::read_to_string("/proc/swaps")
        .map(|text| parse_swaps(&text))
        .unwrap_or_default()
}

/// Whether an area is switched on. Links are followed, as the kernel shows the path that it found.
pub fn is_on(path: &Path) -> bool {
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    areas().iter().any(|area| Path::new(&area.path) == real)
}

/// A UUID for a new area.
pub fn new_uuid() -> io::Result<[u8; 16]> {
    let mut uuid = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut uuid)?;
    // The version and variant bits of RFC 9562, section 5.4.
    uuid[6] = uuid[6] & 0x0f | 0x40;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    Ok(uuid)
}

/// The header of an area of so many bytes, one page long, as `mkswap` writes it; `None` when there is no room for ten
/// pages.
pub fn header(bytes: u64, page: u64, uuid: [u8; 16]) -> Option<Vec<u8>> {
    let pages = u32::try_from(bytes / page).unwrap_or(u32::MAX);
    // The kernel takes less, `mkswap` does not.
    if pages < 10 {
        return None;
    }
    let mut block = vec![0; page as usize];
    block[INFO..INFO + 4].copy_from_slice(&1u32.to_ne_bytes());
    block[INFO + 4..INFO + 8].copy_from_slice(&(pages - 1).to_ne_bytes());
    block[UUID..UUID + 16].copy_from_slice(&uuid);
    block[VOLUME..VOLUME + LABEL.len()].copy_from_slice(LABEL.as_bytes());
    let end = block.len();
    block[end - MAGIC.len()..].copy_from_slice(MAGIC);
    Some(block)
}

/// Writes the header to a file or device of so many bytes.
pub fn format(path: &Path, bytes: u64, uuid: [u8; 16]) -> io::Result<()> {
    let block = header(bytes, page_bytes(), uuid).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            "a swap area has room for ten pages at least",
        )
    })?;
    let file = OpenOptions::new().write(true).open(path)?;
    file.write_all_at(&block, 0)?;
    file.sync_all()
}

/// The UUID of the area that a file or device holds; `None` when it holds none or cannot be read.
pub fn uuid_of(path: &Path) -> Option<[u8; 16]> {
    let mut block = vec![0; page_bytes() as usize];
    File::open(path).ok()?.read_exact_at(&mut block, 0).ok()?;
    block
        .ends_with(MAGIC)
        .then(|| block[UUID..UUID + 16].try_into().ok())?
}

/// Makes a file of so many bytes without holes, readable by its owner alone: what an area on a file system needs.
pub fn make_file(path: &Path, bytes: u64) -> io::Result<()> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    match fallocate(&file, FallocateFlags::empty(), 0, bytes) {
        // File systems that cannot reserve blocks must be written to.
        Err(Errno::OPNOTSUPP) => {
            let mut writer = io::BufWriter::with_capacity(1 << 20, file);
            io::copy(&mut io::repeat(0).take(bytes), &mut writer)?;
            writer
                .into_inner()
                .map_err(io::IntoInnerError::into_error)?
                .sync_all()
        }
        other => Ok(other?).and_then(|()| file.sync_all()),
    }
}

/// Switches an area on. A negative priority leaves the choice to the kernel, which then puts it below all others.
pub fn on(path: &Path, priority: i32) -> io::Result<()> {
    let flags = if priority < 0 {
        0
    } else {
        SWAP_FLAG_PREFER | (priority & SWAP_FLAG_PRIO_MASK)
    };
    let path = c_path(path)?;
    // SAFETY: the path ends in a zero byte and lives until the call returns.
    done(unsafe { libc::swapon(path.as_ptr(), flags) }).map(drop)
}

/// Switches an area off; what it holds goes back to memory. Blocks until that is done.
pub fn off(path: &Path) -> io::Result<()> {
    let path = c_path(path)?;
    // SAFETY: as above.
    done(unsafe { libc::swapoff(path.as_ptr()) }).map(drop)
}

/// Switches off an area that is on and carries this UUID. One that is off, gone or somebody else's is no error.
pub fn off_if_ours(path: &Path, uuid: [u8; 16]) -> io::Result<()> {
    if is_on(path) && uuid_of(path) == Some(uuid) {
        off(path)
    } else {
        Ok(())
    }
}

/// Writes everything dirty to the disks and has the kernel forget its clean caches. Needs root.
pub fn drop_caches() -> io::Result<()> {
    rustix::fs::sync();
    // 3: page cache, and dentries and inodes (Documentation/admin-guide/sysctl/vm.rst).
    fs::write("/proc/sys/vm/drop_caches", "3")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_what_mkswap_writes() {
        let uuid = [7; 16];
        let block = header(1 << 20, 4096, uuid).unwrap();
        assert_eq!(block.len(), 4096);
        assert_eq!(&block[4086..], b"SWAPSPACE2");
        assert_eq!(block[1024..1028], 1u32.to_ne_bytes());
        // 256 pages, the last of which is number 255.
        assert_eq!(block[1028..1032], 255u32.to_ne_bytes());
        assert_eq!(&block[1036..1052], &uuid);
        assert_eq!(&block[1052..1062], b"fingerpost");
        assert_eq!(header(9 * 4096, 4096, uuid), None);
    }

    #[test]
    fn the_uuid_is_read_back_and_a_plain_file_has_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("area");
        make_file(&path, 1 << 20).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), 1 << 20);
        assert_eq!(uuid_of(&path), None);
        let uuid = new_uuid().unwrap();
        format(&path, 1 << 20, uuid).unwrap();
        assert_eq!(uuid_of(&path), Some(uuid));
        assert_eq!(uuid_of(Path::new("/nonexistent")), None);
    }

    #[test]
    fn an_area_that_is_not_on_or_not_ours_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("area");
        make_file(&path, 1 << 20).unwrap();
        assert!(!is_on(&path));
        assert!(off_if_ours(&path, [0; 16]).is_ok());
        assert!(off_if_ours(Path::new("/nonexistent"), [0; 16]).is_ok());
        assert!(off(&path).is_err());
    }
}
