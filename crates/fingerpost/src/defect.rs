//! A panic is a defect of this program. It is told in one sentence, and ends the process that it happened in.
//!
//! Nothing is unwound: release builds have no tables for it (`panic = "abort"`), a fifth of the binary. What a process
//! had changed or made is undone as after `kill -9`: by its guardian, or by the sweep at the next start.

use std::any::Any;
use std::panic::{self, PanicHookInfo};

use fingerpost_record::text::clean_short;
use fingerpost_sys::child;

use crate::exit;

/// The exit status of a command that a panic ended.
pub const STATUS: i32 = 3;
/// That of a process whose parent must tell a panic from a command that failed and said so.
pub const BROKE_OFF: i32 = 101;

/// Has every panic of this process told in one sentence and end it with this status.
pub fn ends_with(status: i32) {
    panic::set_hook(Box::new(move |info| {
        exit::say(&sentence(info));
        child::leave(status)
    }));
}

/// The same without a word: the parent says what it means.
pub fn ends_silently_with(status: i32) {
    panic::set_hook(Box::new(move |_| child::leave(status)));
}

fn sentence(info: &PanicHookInfo) -> String {
    let place = info
        .location()
        .map_or(String::new(), |l| format!(" at {}:{}", l.file(), l.line()));
    told(&place, info.payload())
}

fn told(place: &str, payload: &dyn Any) -> String {
    let text = payload
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned());
    let what = clean_short(text.as_deref().unwrap_or("no reason"), 300);
    format!(
        "this is a defect of fingerpost {}{place} ({what}); please report it, with the command, at {}/issues",
        env!("CARGO_PKG_VERSION"),
        env!("CARGO_PKG_REPOSITORY")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_sentence_with_what_a_report_needs() {
        let sentence = told(" at a.rs:3", &"index\n\u{1b}[2J".to_owned());
        assert!(
            sentence.contains("at a.rs:3 (index ")
                && sentence.contains("/issues")
                && !sentence.contains('\u{1b}'),
            "{sentence}"
        );
    }

    /// Set for the process that panics: this test started again.
    const PANICS: &str = "FINGERPOST_TEST_PANICS";

    #[test]
    fn a_panic_of_any_thread_ends_the_process_with_a_sentence() {
        if std::env::var_os(PANICS).is_some() {
            ends_with(BROKE_OFF);
            let _ = std::thread::spawn(|| panic!("for a test")).join();
            unreachable!("the process has ended");
        }
        let mut again = std::process::Command::new(std::env::current_exe().unwrap());
        again
            .args(["a_panic_of_any_thread", "--nocapture"])
            .env(PANICS, "1");
        let ended = again.output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(BROKE_OFF), "{said}");
        assert!(
            said.contains("this is a defect of fingerpost") && said.contains("(for a test)"),
            "{said}"
        );
    }
}
