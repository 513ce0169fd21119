//! Reading what a list of runs shows, without reading the runs.
//!
//! A run is written with its head first and its samples after it, so the head is nearly always in the first few KiB:
//! those are read and parsed up to the first row. A file whose fields stand in another order (sorted by another tool)
//! is read whole, its samples skipped.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};

use crate::load::{self, MAX_BYTES};
use crate::run::{Profile, SCHEMA, is_readable};
use crate::text::{clean, clean_short};
use crate::{bounds, name, open};

/// How much of a file is read at first. The head with a host's whole description is some 6 KiB.
const FIRST_READ: u64 = 16 << 10;

/// What a list shows of a run. Texts are as the file has them, not yet cleaned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Head {
    /// The run's id.
    pub id: String,
    /// When it started, RFC 3339 in UTC.
    pub started: String,
    /// How long it took.
    pub duration_s: f64,
    /// How much time it was allowed.
    pub profile: Profile,
    /// Whether it ran to its end.
    pub complete: bool,
    /// The command that made it.
    pub command: Vec<String>,
    /// What its user calls it.
    pub label: Option<String>,
    /// The host's name.
    pub hostname: String,
    /// The host's kernel.
    pub kernel: String,
    /// The host's processor.
    pub cpu_model: String,
}

impl Head {
    /// The user's label and what was measured, in a few words, cleaned; nothing where neither is known.
    pub fn name(&self) -> String {
        name::of(self.label.as_deref(), &self.command).unwrap_or_default()
    }
}

/// A run file of the archive, as [`super::Archive::list`] finds it.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The file.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// The run's head, or the sentence that says why there is none.
    pub head: Result<Head, String>,
}

/// Reads one file's head: what [`super::Archive::list`] does for each. What is wrong with it is in the entry.
pub fn entry(path: PathBuf) -> Entry {
    let (bytes, head) = match open::regular(&path) {
        Ok(opened) if opened.bytes > MAX_BYTES => (
            opened.bytes,
            Err(format!(
                "it is {} bytes, more than a run may have",
                opened.bytes
            )),
        ),
        Ok(opened) => (opened.bytes, read(opened.file)),
        Err(e) => (0, Err(e.to_string())),
    };
    Entry { path, bytes, head }
}

fn read(mut file: File) -> Result<Head, String> {
    let mut text = Vec::with_capacity(FIRST_READ as usize + 1);
    (&mut file)
        .take(FIRST_READ)
        .read_to_end(&mut text)
        .map_err(|e| e.to_string())?;
    match parse(&text) {
        Err(_) if text.len() as u64 == FIRST_READ => {
            file.take(MAX_BYTES)
                .read_to_end(&mut text)
                .map_err(|e| e.to_string())?;
            bounds::check(&text)?;
            parse(&text)
        }
        result => result,
    }
}

/// The head of a run in (the beginning of) its text.
fn parse(text: &[u8]) -> Result<Head, String> {
    let mut found = Found::default();
    let mut parser = serde_json::Deserializer::from_slice(text);
    let outcome = parser.deserialize_map(&mut found);
    if let Err(e) = outcome
        && !found.whole()
    {
        return Err(clean(&format!(
            "it is not a complete run: {}",
            clean_short(&e.to_string(), 200)
        ))
        .into_owned());
    }
    found.head()
}

/// The fields met so far.
#[derive(Default)]
struct Found {
    schema: Option<String>,
    id: Option<String>,
    started: Option<String>,
    duration_s: Option<f64>,
    profile: Option<Profile>,
    complete: bool,
    command: Vec<String>,
    label: Option<String>,
    host: Option<HostHead>,
}

#[derive(Deserialize)]
struct HostHead {
    hostname: String,
    kernel: String,
    cpu: CpuHead,
}

#[derive(Deserialize)]
struct CpuHead {
    model: String,
}

impl Found {
    fn whole(&self) -> bool {
        self.schema.is_some()
            && self.id.is_some()
            && self.started.is_some()
            && self.duration_s.is_some()
            && self.profile.is_some()
            && self.host.is_some()
    }

    fn head(self) -> Result<Head, String> {
        let lacks = |name: &str| format!("it is not a complete run: it has no “{name}” field");
        let schema = self.schema.ok_or_else(|| lacks("schema"))?;
        if !is_readable(&schema) {
            return Err(format!(
                "it has the format “{}”, this version reads “{SCHEMA}”",
                clean_short(&schema, 60)
            ));
        }
        let host = self.host.ok_or_else(|| lacks("host"))?;
        let id = self.id.ok_or_else(|| lacks("id"))?;
        load::valid_id(&id)?;
        Ok(Head {
            id,
            started: self.started.ok_or_else(|| lacks("started"))?,
            duration_s: self.duration_s.ok_or_else(|| lacks("duration_s"))?,
            profile: self.profile.ok_or_else(|| lacks("profile"))?,
            complete: self.complete,
            command: crate::secret::cut_words(self.command.iter().map(String::as_str)),
            label: self.label,
            hostname: host.hostname,
            kernel: host.kernel,
            cpu_model: host.cpu.model,
        })
    }
}

/// Takes the head's fields out of the run's map and stops at the first big field once it has them all.
impl<'de> Visitor<'de> for &mut Found {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a run")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "schema" => self.schema = Some(map.next_value()?),
                "id" => self.id = Some(map.next_value()?),
                "started" => self.started = Some(map.next_value()?),
                "duration_s" => self.duration_s = Some(map.next_value()?),
                "profile" => self.profile = Some(map.next_value()?),
                "complete" => self.complete = map.next_value()?,
                "command" => self.command = map.next_value()?,
                "label" => self.label = map.next_value()?,
                "host" => self.host = Some(map.next_value()?),
                // Reading ends with an error that the caller expects: there is no other way to leave a map early.
                "measurements" if self.whole() => return Err(A::Error::custom("enough")),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn the_head_is_in_the_first_kilobytes_of_a_run() {
        let text = serde_json::to_vec(&fixture::run()).unwrap();
        let head = parse(&text[..FIRST_READ as usize]).unwrap();
        assert_eq!(head, parse(&text).unwrap());
        assert_eq!(head.id, fixture::run().id);
        assert_eq!(head.hostname, "small-guest");
        assert!(head.complete);
    }

    #[test]
    fn a_file_with_its_fields_in_another_order_is_read_whole() {
        let sorted: serde_json::Value = serde_json::to_value(fixture::run()).unwrap();
        let mut fields: Vec<(String, serde_json::Value)> =
            sorted.as_object().unwrap().clone().into_iter().collect();
        fields.sort_by_key(|(name, _)| name != "measurements");
        let body: Vec<String> = fields.iter().map(|(k, v)| format!("\"{k}\":{v}")).collect();
        let text = format!("{{{}}}", body.join(","));
        assert!(text.starts_with("{\"measurements\""));
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.json");
        std::fs::write(&path, text).unwrap();
        assert_eq!(entry(path).head.unwrap().id, fixture::run().id);
    }

    #[test]
    fn what_is_no_run_gives_a_sentence() {
        for (text, expected) in [
            ("", "EOF"),
            ("[]", "expected a run"),
            ("{\"schema\":\"fingerpost/run/9\"}", "“host”|format"),
            ("{\"schema\":\"fingerpost/run/1\",\"id\":\"a", "EOF"),
            ("{\"schema\":\"fingerpost/run/1\"}", "has no"),
        ] {
            let message = parse(text.as_bytes()).unwrap_err();
            assert!(
                expected.split('|').any(|e| message.contains(e)),
                "{text}: {message}"
            );
        }
    }
}
