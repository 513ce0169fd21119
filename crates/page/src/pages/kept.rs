//! What a user does with a kept run: label it, write about it, remove it.

use axum::http::StatusCode;
use fingerpost_record::Run;
use fingerpost_record::archive::{ArchiveError, Words};
use fingerpost_record::run::{LONGEST_LABEL, LONGEST_NOTE};
use maud::{Markup, html};
use serde::Deserialize;

use super::{Wrong, bad, path};
use crate::site::Site;

/// The form of [`forms`] for words.
#[derive(Debug, Deserialize)]
pub struct Wanted {
    label: String,
    note: String,
}

/// Keeps the words with the run.
///
/// # Errors
/// When there is no such run, or a text cannot be kept.
pub fn describe(site: &Site, id: &str, wanted: Wanted) -> Result<(), Wrong> {
    path(site, id)?;
    let words = Words {
        label: Some(wanted.label),
        note: Some(wanted.note),
    };
    site.index
        .archive
        .describe(id, &words)
        .map(drop)
        .map_err(wrong)
}

/// Removes the run from the archive.
///
/// # Errors
/// When there is no such run, or its file cannot be removed.
pub fn remove(site: &Site, id: &str) -> Result<(), Wrong> {
    path(site, id)?;
    site.index
        .archive
        .remove(&[id.to_owned()])
        .map(drop)
        .map_err(wrong)
}

fn wrong(error: ArchiveError) -> Wrong {
    match error {
        ArchiveError::Words(sentence) => bad(format!("This cannot be kept: {sentence}.")),
        ArchiveError::Load(e) => Wrong::unreadable(e),
        other => Wrong::new(StatusCode::INTERNAL_SERVER_ERROR, other),
    }
}

/// The forms, closed until they are wanted. Removing asks once more, also without script.
pub fn forms(site: &Site, run: &Run) -> Markup {
    let at = |what: &str| format!("{}/run/{}/{what}", site.base, run.id);
    html! {
        details class="keep" {
            summary { "Label, note, remove" }
            form class="card" method="post" action=(at("words")) {
                p {
                    label for="label" { "Label" }
                    input id="label" name="label" maxlength=(LONGEST_LABEL)
                        value=(run.label.as_deref().unwrap_or_default()) autocomplete="off";
                }
                p {
                    label for="note" { "Note" }
                    textarea id="note" name="note" rows="3" maxlength=(LONGEST_NOTE) {
                        (run.note.as_deref().unwrap_or_default())
                    }
                }
                p class="buttons" { button { "Keep" } }
            }
            details { summary { "Remove this run" }
                form method="post" action=(at("remove")) {
                    p class="buttons" { "This deletes its file. " button { "Remove it" } }
                }
            }
        }
    }
}
