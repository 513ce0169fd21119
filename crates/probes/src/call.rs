//! What the probes share around raw system calls.

use std::ffi::CString;
use std::io;
use std::path::Path;

use crate::session::Stop;

/// Turns a system call's negative answer into its error. Inlined into the loops; the branch is never taken there.
#[inline(always)]
pub fn check(rc: i64) -> io::Result<i64> {
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(rc) }
}

/// A path as the C library wants it.
pub fn c_path(path: &Path) -> Result<CString, Stop> {
    CString::new(path.as_os_str().as_encoded_bytes()).map_err(|_| Stop::Fail(format!("the name {} has a zero byte", path.display())))
}

/// Bytes in a page.
pub fn page_size() -> usize {
    // SAFETY: sysconf takes a number and returns one.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}
