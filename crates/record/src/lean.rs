//! Reading run files for their figures alone.
//!
//! Nine tenths of a run file are raw samples and single requests, which a comparison of many runs does not look at.
//! They are cut out of the text before it is parsed, which is many times as fast as parsing them.

use std::borrow::Cow;
use std::path::Path;

use memchr::memmem::Finder;

use crate::load::{LoadError, bytes_of, from_slice};
use crate::run::Run;
use crate::text::shown;

/// Reads and validates a run file without its samples: every process has its value and its counters, `samples`,
/// `disturbed` and `slowest` are empty. What stands in their place is not looked at; everything else is checked as
/// [`crate::load::from_path`] does.
///
/// # Errors
/// As [`crate::load::from_path`].
pub fn figures_from_path(path: &Path) -> Result<Run, LoadError> {
    let text = bytes_of(path)?;
    from_slice(&without_samples(&text), &shown(path))
}

/// The text with every array called `samples`, `disturbed` or `slowest` emptied.
///
/// A quote within a JSON string is always escaped, so a name between two quotes and before a colon is a key, unless the
/// first quote is an escaped one near the end of a longer name.
pub fn without_samples(text: &[u8]) -> Cow<'_, [u8]> {
    let flat = |text: &[u8], open: usize| {
        memchr::memchr(b']', &text[open + 1..]).map(|length| open + 1 + length)
    };
    let once = without(Cow::Borrowed(text), b"samples\"", flat);
    let twice = without(once, b"disturbed\"", flat);
    without(twice, b"slowest\"", end_of_array)
}

fn without<'a>(
    text: Cow<'a, [u8]>,
    key: &[u8],
    end: impl Fn(&[u8], usize) -> Option<usize>,
) -> Cow<'a, [u8]> {
    emptied(&text, key, end).map_or(text, Cow::Owned)
}

/// The text with every array of this key emptied; nothing where it has none.
fn emptied(
    text: &[u8],
    key: &[u8],
    end: impl Fn(&[u8], usize) -> Option<usize>,
) -> Option<Vec<u8>> {
    let mut lean = Vec::new();
    let mut kept = 0;
    let mut from = 0;
    let finder = Finder::new(key);
    while let Some(at) = finder.find(&text[from..]).map(|i| from + i) {
        from = at + key.len();
        let whole = at > 0 && text[at - 1] == b'"' && (at < 2 || text[at - 2] != b'\\');
        let Some(open) = array_after(text, from).filter(|_| whole) else {
            continue;
        };
        let Some(close) = end(text, open) else { break };
        lean.extend_from_slice(&text[kept..=open]);
        kept = close;
        from = kept;
    }
    lean.extend_from_slice(text.get(kept..).filter(|_| kept > 0)?);
    Some(lean)
}

/// Where the array that this bracket opens is closed, whatever arrays and strings it holds.
fn end_of_array(text: &[u8], open: usize) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, open);
    while at < text.len() {
        match text[at] {
            b'[' => depth += 1,
            b']' if depth == 1 => return Some(at),
            b']' => depth -= 1,
            b'"' => {
                at += 1;
                while *text.get(at)? != b'"' {
                    at += if text[at] == b'\\' { 2 } else { 1 };
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// Where the bracket stands, when a colon and an array follow.
fn array_after(text: &[u8], at: usize) -> Option<usize> {
    let skip = |at: usize| {
        at + text[at..]
            .iter()
            .take_while(|b| b.is_ascii_whitespace())
            .count()
    };
    let colon = skip(at);
    (*text.get(colon)? == b':').then_some(())?;
    let open = skip(colon + 1);
    (*text.get(open)? == b'[').then_some(open)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lean(text: &str) -> String {
        String::from_utf8(without_samples(text.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn samples_are_emptied_and_nothing_else() {
        let full = r#"{"value":1,"samples":[1,2.5],"disturbed": [ 0 ],"batch":5}"#;
        assert_eq!(
            lean(full),
            r#"{"value":1,"samples":[],"disturbed": [],"batch":5}"#
        );
        assert_eq!(
            lean(r#"{"slowest": [{"chain":["a]\"]"]},[]], "x":[1]}"#),
            r#"{"slowest": [], "x":[1]}"#
        );
        for same in [
            "",
            "{}",
            r#"{"samples":"#,
            r#"{"samples":[1"#,
            r#"{"reason":"no \"samples\":[1]"}"#,
            r#"{"x\"samples":[1]}"#,
            r#"{"more samples":[1]}"#,
            r#"{"samples":3}"#,
            r#"{"slowest":[{"spans":[]}"#,
            r#"{"slowest":["]}"#,
        ] {
            assert_eq!(lean(same), same);
        }
    }

    #[test]
    fn a_run_keeps_all_but_its_samples() {
        let mut run = crate::fixture::with_everything();
        let mut file = tempfile::NamedTempFile::new().unwrap();
        std::io::Write::write_all(&mut file, &serde_json::to_vec_pretty(&run).unwrap()).unwrap();
        let loaded = figures_from_path(file.path()).unwrap();
        for p in run.measurements.iter_mut().flat_map(|m| &mut m.processes) {
            p.samples.clear();
            p.disturbed.clear();
        }
        assert!(!run.paths[0].slowest.is_empty());
        run.paths.iter_mut().for_each(|p| p.slowest.clear());
        assert_eq!(loaded, run);
    }

    #[test]
    fn a_damaged_file_is_refused_as_ever() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let text = serde_json::to_vec(&crate::fixture::run()).unwrap();
        std::io::Write::write_all(&mut file, &text[..text.len() / 2]).unwrap();
        assert!(figures_from_path(file.path()).is_err());
    }
}
