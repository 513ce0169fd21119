//! What a user calls a kept run, and writes about it.

use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::Archive;
use super::error::ArchiveError;
use super::replace::{Readers, replaced};
use crate::load;
use crate::run::{LONGEST_LABEL, LONGEST_NOTE, Run};
use crate::text::{misleads, shown};

/// What is to be kept with a run. Nothing leaves it as it is; an empty text removes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// Its label.
    pub label: Option<String>,
    /// Its note.
    pub note: Option<String>,
}

/// A label as it is kept: one line, without spaces around it.
///
/// # Errors
/// The sentence that says what cannot be kept.
pub fn checked_label(text: &str) -> Result<String, String> {
    checked("label", text, LONGEST_LABEL, |_| false)
}

/// A note as it is kept: line ends stay, spaces around it do not.
///
/// # Errors
/// As [`checked_label`].
pub fn checked_note(text: &str) -> Result<String, String> {
    // What a form of a page sends ends its lines with both.
    checked("note", &text.replace("\r\n", "\n"), LONGEST_NOTE, |c| {
        c == '\n'
    })
}

fn checked(
    what: &str,
    text: &str,
    most: usize,
    also: impl Fn(char) -> bool,
) -> Result<String, String> {
    let text = text.trim();
    let length = text.chars().count();
    if length > most {
        return Err(format!(
            "a {what} has at most {most} characters, and this one has {length}"
        ));
    }
    match text.chars().find(|c| misleads(*c) && !also(*c)) {
        Some(c) => Err(format!(
            "a {what} is plain text, and this one has the control character U+{:04X}",
            c as u32
        )),
        None => Ok(text.to_owned()),
    }
}

impl Archive {
    /// Changes the label and the note of a kept run, named as [`Archive::resolve_to_remove`] takes it; its file is
    /// written anew in one step.
    ///
    /// # Errors
    /// When a text cannot be kept, there is no such run, or its file cannot be read or written.
    pub fn describe(&self, wanted: &str, words: &Words) -> Result<Run, ArchiveError> {
        let label = words
            .label
            .as_deref()
            .map(checked_label)
            .transpose()
            .map_err(ArchiveError::Words)?;
        let note = words
            .note
            .as_deref()
            .map(checked_note)
            .transpose()
            .map_err(ArchiveError::Words)?;
        let path = self.resolve_to_remove(wanted)?;
        let bytes = load::bytes_of(&path)?;
        load::from_slice(&bytes, &shown(&path))?;
        let text = rewritten(&bytes, [("label", label), ("note", note)])
            .map_err(|e| ArchiveError::Words(format!("{}: {e}", shown(&path))))?;
        let run = load::from_slice(&text, &shown(&path))?;
        replaced(&path, &text, true, Readers::Owner)?;
        Ok(run)
    }
}

/// The text of a run with these fields set anew, after its command, where a list finds them: nothing leaves a field as
/// it is, an empty text takes it out. All other fields stay as they are written, those too that this version does not
/// know.
fn rewritten(run: &[u8], words: [(&str, Option<String>); 2]) -> serde_json::Result<Vec<u8>> {
    let mut fields = serde_json::Deserializer::from_slice(run).deserialize_map(Fields)?;
    for (name, text) in words.into_iter().rev() {
        let Some(text) = text else { continue };
        fields.retain(|(n, _)| n != name);
        if !text.is_empty() {
            let at = fields
                .iter()
                .position(|(n, _)| n == "command")
                .map_or(fields.len(), |at| at + 1);
            fields.insert(
                at,
                (name.to_owned(), serde_json::value::to_raw_value(&text)?),
            );
        }
    }
    let mut out = b"{".to_vec();
    for (at, (name, value)) in fields.iter().enumerate() {
        out.extend_from_slice(if at > 0 { b"," } else { b"" });
        serde_json::to_writer(&mut out, name)?;
        out.push(b':');
        out.extend_from_slice(value.get().as_bytes());
    }
    out.extend_from_slice(b"}\n");
    Ok(out)
}

/// The fields of an object in their order, each value as its text.
struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Vec<(String, Box<RawValue>)>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a run")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        std::iter::from_fn(|| map.next_entry().transpose()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::{Imported, without};
    use crate::fixture;

    fn words(label: Option<&str>, note: Option<&str>) -> Words {
        Words {
            label: label.map(str::to_owned),
            note: note.map(str::to_owned),
        }
    }

    fn archive(dir: &tempfile::TempDir) -> (Archive, String) {
        let archive = Archive::open(Some(dir.path().join("runs"))).unwrap();
        let run = fixture::with_everything();
        archive
            .import_bytes(&serde_json::to_vec(&run).unwrap(), "made up")
            .unwrap();
        (archive, run.id)
    }

    #[test]
    fn a_label_stands_before_what_was_measured_and_all_else_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (archive, id) = archive(&dir);
        archive
            .describe(
                &id,
                &words(Some("  before the roll-out "), Some("one\r\ntwo")),
            )
            .unwrap();
        let kept = load::from_path(&archive.path_of(&id)).unwrap();
        assert_eq!(
            (kept.label.as_deref(), kept.note.as_deref()),
            (Some("before the roll-out"), Some("one\ntwo"))
        );
        assert_eq!(without(kept), fixture::with_everything());
        assert_eq!(
            archive.list().unwrap()[0].head.as_ref().unwrap().name(),
            "before the roll-out: all primitives"
        );
        archive.describe(&id, &words(Some(""), None)).unwrap();
        let kept = load::from_path(&archive.path_of(&id)).unwrap();
        assert_eq!((kept.label, kept.note.as_deref()), (None, Some("one\ntwo")));
    }

    #[test]
    fn a_run_with_other_words_is_the_same_run() {
        let dir = tempfile::tempdir().unwrap();
        let (archive, id) = archive(&dir);
        archive.describe(&id, &words(Some("mine"), None)).unwrap();
        let again = serde_json::to_vec(&fixture::with_everything()).unwrap();
        assert_eq!(
            archive.import_bytes(&again, "made up").unwrap().1,
            Imported::AlreadyThere
        );
        assert_eq!(
            load::from_path(&archive.path_of(&id))
                .unwrap()
                .label
                .as_deref(),
            Some("mine")
        );
    }

    #[test]
    fn what_a_later_version_wrote_stays_as_it_is() {
        let run =
            r#"{"schema":"fingerpost/run/1","command":["a"],"note":"old","later":{"b": 1.50}}"#;
        let new = rewritten(
            run.as_bytes(),
            [("label", Some("x".into())), ("note", Some("new".into()))],
        )
        .unwrap();
        let expected = r#"{"schema":"fingerpost/run/1","command":["a"],"label":"x","note":"new","later":{"b": 1.50}}"#;
        assert_eq!(String::from_utf8(new).unwrap(), format!("{expected}\n"));
        let gone = rewritten(
            run.as_bytes(),
            [("label", None), ("note", Some(String::new()))],
        )
        .unwrap();
        assert_eq!(
            String::from_utf8(gone).unwrap(),
            "{\"schema\":\"fingerpost/run/1\",\"command\":[\"a\"],\"later\":{\"b\": 1.50}}\n"
        );
    }

    #[test]
    fn what_cannot_be_kept_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let (archive, id) = archive(&dir);
        let before = std::fs::read(archive.path_of(&id)).unwrap();
        for (words, says) in [
            (
                words(Some(&"x".repeat(LONGEST_LABEL + 1)), None),
                "at most 60",
            ),
            (words(Some("two\nlines"), None), "U+000A"),
            (words(Some("good"), Some("\u{1b}[31m")), "U+001B"),
            (words(Some("\u{202e}turned"), None), "U+202E"),
        ] {
            let sentence = archive.describe(&id, &words).unwrap_err().to_string();
            assert!(sentence.contains(says), "{sentence}");
        }
        assert!(
            archive
                .describe("2026", &words(Some("a"), None))
                .unwrap_err()
                .to_string()
                .contains("whole id")
        );
        assert_eq!(std::fs::read(archive.path_of(&id)).unwrap(), before);
    }
}
