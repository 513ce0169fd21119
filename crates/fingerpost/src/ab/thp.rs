//! The system's setting of transparent huge pages, switched between the sides and put back at the end.

use std::fs;
use std::path::PathBuf;

use fingerpost_undo::journal::Undo;
use fingerpost_undo::scratch::{Scratch, Ticket};

use super::setting::{Setting, Thp};
use crate::exit::usage;

const FILE: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// Switches the setting. Dropped or killed, the journal of the scratch directory restores it.
pub struct Switch {
    /// What each side wants of the system; nothing to leave it.
    wanted: [Option<Thp>; 2],
    /// What the system had at first.
    first: String,
    now: String,
    ticket: Option<Ticket>,
}

impl Switch {
    /// A switch for two settings; writes the present state to the journal when it will be changed.
    pub fn new(
        settings: &[Setting; 2],
        allowed: bool,
        scratch: &mut Scratch,
    ) -> anyhow::Result<Switch> {
        // `never` is a setting of the measured processes alone: nothing of the system changes for it.
        let of = |s: &Setting| s.thp.filter(|t| *t != Thp::Never);
        let wanted = [of(&settings[0]), of(&settings[1])];
        let mut switch = Switch {
            wanted,
            first: String::new(),
            now: String::new(),
            ticket: None,
        };
        if wanted == [None, None] {
            return Ok(switch);
        }
        let text = fs::read_to_string(FILE).unwrap_or_default();
        let Some(now) = chosen(&text) else {
            return usage(format!(
                "{FILE} does not tell the setting of huge pages: this kernel has none to switch"
            ));
        };
        (switch.first, switch.now) = (now.to_owned(), now.to_owned());
        if wanted.iter().flatten().all(|w| w.as_str() == now) {
            return Ok(switch);
        }
        if !allowed {
            return usage(
                "thp=always and thp=madvise change the system for everybody: add --allow-system-changes (thp=never \
                 does not)",
            );
        }
        switch.ticket = Some(scratch.record(Undo::WriteFile {
            path: PathBuf::from(FILE),
            content: now.to_owned(),
        })?);
        Ok(switch)
    }

    /// Sets what a side wants; one that wants nothing gets what was there at first.
    pub fn set(&mut self, side: usize) -> Result<(), String> {
        if self.ticket.is_none() {
            return Ok(());
        }
        let wanted = self.wanted[side].map_or(self.first.as_str(), |thp| thp.as_str());
        if wanted != self.now {
            fs::write(FILE, wanted)
                .map_err(|e| format!("cannot write {wanted} to {FILE}: {e}; this needs root"))?;
            wanted.clone_into(&mut self.now);
        }
        Ok(())
    }

    /// Whether the sides want different settings of the system, or one that it has not.
    pub fn is_needed(&self) -> bool {
        self.ticket.is_some()
    }

    /// Puts the first state back now.
    pub fn restore(&mut self, scratch: &mut Scratch) -> Result<(), String> {
        self.ticket
            .take()
            .map_or(Ok(()), |ticket| scratch.undo(ticket))
    }
}

/// The word in brackets: `always [madvise] never`.
fn chosen(text: &str) -> Option<&str> {
    text.split_once('[')?
        .1
        .split_once(']')
        .map(|(word, _)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_word_is_the_one_in_brackets() {
        assert_eq!(chosen("always [madvise] never\n"), Some("madvise"));
        assert_eq!(chosen(""), None);
    }

    #[test]
    fn the_system_is_changed_only_where_that_is_allowed_and_needed() {
        let base = tempfile::tempdir().unwrap();
        let mut scratch = Scratch::create_in(&base.path().join("root")).unwrap();
        let side = |thp| Setting {
            thp,
            ..Setting::default()
        };
        let never = [side(Some(Thp::Never)), side(None)];
        assert!(
            Switch::new(&never, false, &mut scratch)
                .unwrap()
                .ticket
                .is_none()
        );
        let Some(now) = fs::read_to_string(FILE)
            .ok()
            .and_then(|t| chosen(&t).map(str::to_owned))
        else {
            return;
        };
        let other = if now == "always" {
            Thp::Madvise
        } else {
            Thp::Always
        };
        let refused = Switch::new(&[side(None), side(Some(other))], false, &mut scratch)
            .err()
            .unwrap();
        assert!(refused.to_string().contains("--allow-system-changes"));
    }
}
