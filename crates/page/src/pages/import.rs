//! Taking a run file from elsewhere into the archive.

use axum::http::StatusCode;
use fingerpost_record::load::MAX_BYTES;
use fingerpost_record::text::clean_short;
use maud::html;

use super::{Body, body};
use crate::site::Site;

/// Takes the file in; gives the run's id.
///
/// # Errors
/// Why it is not taken, as a sentence.
pub fn take(site: &Site, name: &str, bytes: &[u8]) -> Result<String, String> {
    let name = clean_short(name.rsplit(['/', '\\']).next().unwrap_or_default(), 80);
    site.index
        .archive
        .import_bytes(bytes, &name)
        .map(|(run, _)| run.id)
        .map_err(|e| e.to_string())
}

/// The form, with what was wrong with the last file.
pub fn page(site: &Site, wrong: Option<String>) -> Body {
    let main = html! {
        h1 { "Import a run" }
        @if let Some(sentence) = &wrong { p class="error" role="alert" { (sentence) } }
        form class="card" method="post" action={ (site.base) "/import" } enctype="multipart/form-data" {
            p {
                label for="file" { "Run file (JSON)" }
                input id="file" name="file" type="file" accept=".json,application/json" required
                    aria-describedby="file-help";
                span class="note" id="file-help" {
                    "A file that “fingerpost run -o” or “archive export” wrote, at most "
                    (MAX_BYTES >> 20)
                    " MiB. It is checked before it is kept."
                }
            }
            p class="buttons" { button { "Import" } }
        }
    };
    Body {
        status: if wrong.is_some() {
            StatusCode::BAD_REQUEST
        } else {
            StatusCode::OK
        },
        ..body("Import", "/import", main)
    }
}
