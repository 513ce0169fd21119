//! The kernel's audit: whether it is on, and how many rules it holds each system call against.

use std::io;

use rustix::net::netlink;

use crate::netlink::{Netlink, REQUEST, REQUEST_DUMP, u32_at};
use crate::system::unless;

const GET: u16 = 1000;
const LIST_RULES: u16 = 1013;
/// A rule with its strings is 1 to 9 KiB (`struct audit_rule_data` with paths of up to 4 KiB).
const LARGEST_ANSWER: usize = 16 << 10;
/// The kernel answers at once; who waits longer asks something that is no audit.
const PATIENCE_S: u64 = 2;

/// The rules that are loaded; 0 where the audit is off, whatever is loaded, and where the kernel has none.
///
/// # Errors
/// What the kernel said: it needs `CAP_AUDIT_CONTROL` in the first name spaces.
pub fn rules() -> io::Result<usize> {
    let audit = Netlink::open(Some(netlink::AUDIT), LARGEST_ANSWER).map(Some);
    let Some(mut audit) = unless(audit, &[libc::EPROTONOSUPPORT])? else {
        return Ok(0);
    };
    audit.give_up_after(PATIENCE_S)?;
    let mut on = None;
    audit.ask(GET, REQUEST, &[], &mut |status| on = enabled(status))?;
    if !on.ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "the kernel's audit told no status",
        )
    })? {
        return Ok(0);
    }
    let mut rules = 0;
    audit.ask(LIST_RULES, REQUEST_DUMP, &[], &mut |_| rules += 1)?;
    Ok(rules)
}

/// Whether the audit is on, by `struct audit_status`: a mask, then 0 (off), 1 (on) or 2 (on, and locked).
fn enabled(status: &[u8]) -> Option<bool> {
    u32_at(status, 4).map(|enabled| enabled != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_tells_whether_it_is_on() {
        let status = |enabled: u32| [0u32.to_ne_bytes(), enabled.to_ne_bytes()].concat();
        assert_eq!(
            (
                enabled(&status(0)),
                enabled(&status(1)),
                enabled(&status(2)),
                enabled(&[0; 4])
            ),
            (Some(false), Some(true), Some(true), None)
        );
    }

    #[test]
    fn the_kernel_answers_or_refuses() {
        match rules() {
            Ok(n) => assert!(n < 100_000),
            Err(e) => assert!(
                matches!(e.raw_os_error(), Some(libc::EPERM | libc::ECONNREFUSED)),
                "{e}"
            ),
        }
    }
}
