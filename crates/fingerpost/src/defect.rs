//! A panic is a defect of this program. It is told in one sentence, and ends what it happened in with exit status 3.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::process::ExitCode;

use fingerpost_record::text::clean_short;

use crate::exit;

/// Has every panic of this process told in one sentence instead of several lines, some of which would be of no use to users.
pub fn tell_in_one_sentence() {
    panic::set_hook(Box::new(|info| exit::say(&sentence(info))));
}

/// Does something, and makes of a panic in it exit status 3. What is on the stack is dropped, so that directories are removed and
/// changes to the system undone as at any other end.
pub fn guard(work: impl FnOnce() -> ExitCode) -> ExitCode {
    // Nothing that the work has touched is looked at afterwards.
    panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or(ExitCode::from(3))
}

fn sentence(info: &PanicHookInfo) -> String {
    let place = info.location().map_or(String::new(), |l| format!(" at {}:{}", l.file(), l.line()));
    told(&place, info.payload())
}

fn told(place: &str, payload: &dyn Any) -> String {
    let text = payload.downcast_ref::<&str>().map(|s| (*s).to_owned()).or_else(|| payload.downcast_ref::<String>().cloned());
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
        assert!(sentence.contains("at a.rs:3 (index ") && sentence.contains("/issues") && !sentence.contains('\u{1b}'), "{sentence}");
    }

    #[test]
    fn a_panic_drops_what_is_on_the_stack_and_gives_status_3() {
        struct Undone<'a>(&'a std::cell::Cell<bool>);
        impl Drop for Undone<'_> {
            fn drop(&mut self) {
                self.0.set(true);
            }
        }
        let undone = std::cell::Cell::new(false);
        let status = guard(|| {
            let _change = Undone(&undone);
            panic!("for a test");
        });
        assert!(undone.get());
        assert_eq!(format!("{status:?}"), format!("{:?}", ExitCode::from(3)));
    }
}
