//! Segments of System V shared memory, which outlive the processes that made them.

use std::io;
use std::mem;

use crate::system::{done, unless};

/// Removes a segment if it still has this key and this user made it: a number alone may have become a stranger's. A
/// segment that is gone is no error.
///
/// Processes that are attached keep it until they detach.
pub fn remove_segment(key: i32, id: i32, user: u32) -> io::Result<()> {
    // SAFETY: shmid_ds is plain numbers, for which zero is valid, and the kernel writes at most its size.
    let (rc, segment) = unsafe {
        let mut segment: libc::shmid_ds = mem::zeroed();
        (libc::shmctl(id, libc::IPC_STAT, &mut segment), segment)
    };
    if rc < 0 {
        return unless(done(rc).map(drop), GONE);
    }
    if segment.shm_perm.__key != key || segment.shm_perm.cuid != user {
        return Ok(());
    }
    // SAFETY: IPC_RMID takes no buffer.
    unless(
        done(unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) }).map(drop),
        GONE,
    )
}

/// What the kernel says of a segment that is not there.
const GONE: &[i32] = &[libc::EINVAL, libc::EIDRM];

#[cfg(test)]
mod tests {
    use super::*;

    fn exists(id: i32) -> bool {
        // SAFETY: as in `remove_segment`.
        unsafe { libc::shmctl(id, libc::IPC_STAT, &mut mem::zeroed()) == 0 }
    }

    #[test]
    fn only_the_segment_with_the_key_is_removed() {
        let key = 0x4650_0000 | (std::process::id() as i32 & 0xffff);
        // SAFETY: shmget takes plain numbers.
        let id = unsafe { libc::shmget(key, 4096, libc::IPC_CREAT | libc::IPC_EXCL | 0o600) };
        assert!(id >= 0, "{}", io::Error::last_os_error());
        let user = crate::system::uid();
        remove_segment(key + 1, id, user).unwrap();
        remove_segment(key, id, user + 1).unwrap();
        assert!(exists(id));
        remove_segment(key, id, user).unwrap();
        assert!(!exists(id));
        remove_segment(key, id, user).unwrap();
    }
}
