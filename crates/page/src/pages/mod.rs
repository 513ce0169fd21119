//! The pages, one file each, and the frame that they stand in.

pub mod calculator;
pub mod compare;
pub mod docs;
pub mod history;
pub mod import;
pub mod kept;
pub mod list;
pub mod measure;
pub mod reference;
pub mod run;
pub mod services;
pub mod sweeps;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use fingerpost_record::{guard, load};
use fingerpost_report::html::{Content, style, term};
use maud::{DOCTYPE, Markup, html};

use crate::index::Item;
use crate::jobs::Phase;
use crate::site::Site;

/// A page without its frame.
pub struct Body {
    /// The status of the answer.
    pub status: StatusCode,
    /// The title.
    pub title: String,
    /// Which entry of the menu it belongs to.
    pub menu: &'static str,
    /// Whether a browser without script should load it again and again, because it shows something that goes on.
    pub goes_on: bool,
    /// What it shows.
    pub main: Markup,
}

/// What went wrong, as a page.
#[derive(Debug)]
pub struct Wrong {
    /// The status of the answer.
    pub status: StatusCode,
    /// The sentence for the reader.
    pub sentence: String,
}

impl Wrong {
    /// Of this status, in this sentence.
    pub fn new(status: StatusCode, sentence: impl ToString) -> Wrong {
        Wrong {
            status,
            sentence: sentence.to_string(),
        }
    }

    /// What is asked for is not there.
    pub fn none(sentence: impl ToString) -> Wrong {
        Wrong::new(StatusCode::NOT_FOUND, sentence)
    }

    /// What is there cannot be read.
    pub fn unreadable(why: impl ToString) -> Wrong {
        Wrong::new(StatusCode::UNPROCESSABLE_ENTITY, why)
    }
}

/// A page, or what went wrong.
pub type Answer = Result<Body, Wrong>;

/// The menu: address and name.
const MENU: [(&str, &str); 9] = [
    ("/", "Runs"),
    ("/measure", "Measure"),
    ("/services", "Services"),
    ("/sweeps", "Sweeps"),
    ("/zerofill", "Zero-fill calculator"),
    ("/history", "History"),
    ("/references", "Published figures"),
    ("/import", "Import"),
    ("/docs", "Documents"),
];

/// A page that is there.
pub fn body(title: &str, menu: &'static str, main: Markup) -> Body {
    Body {
        status: StatusCode::OK,
        title: title.to_owned(),
        menu,
        goes_on: false,
        main,
    }
}

/// A request that cannot be answered as it is.
pub fn bad(sentence: impl ToString) -> Wrong {
    Wrong::new(StatusCode::BAD_REQUEST, sentence)
}

/// Every run of the archive, the newest first.
///
/// # Errors
/// When the archive cannot be read.
pub fn items(site: &Site) -> Result<Vec<Arc<Item>>, Wrong> {
    site.index
        .items()
        .map_err(|e| Wrong::new(StatusCode::INTERNAL_SERVER_ERROR, e))
}

/// The page of what goes on, or of why it does not: with the status of that, and renewed until it is over.
pub fn of_job(
    site: &Site,
    wrong: Option<&Wrong>,
    title: &str,
    menu: &'static str,
    main: Markup,
) -> Body {
    let goes_on = site.jobs.state().is_some_and(|s| s.phase != Phase::Ended);
    Body {
        goes_on,
        status: wrong.map_or(StatusCode::OK, |wrong| wrong.status),
        ..body(title, menu, main)
    }
}

/// The file of a run; the id is from an address, so it must be one.
///
/// # Errors
/// When it is no id, or there is no such run.
pub fn path(site: &Site, id: &str) -> Result<PathBuf, Wrong> {
    let none = || Wrong::none("There is no such run in the archive.");
    load::valid_id(id).map_err(|_| none())?;
    let path = site.index.archive.path_of(id);
    if path.is_file() {
        Ok(path)
    } else {
        Err(none())
    }
}

/// A page in its frame.
pub fn respond(base: &str, answer: Answer) -> Response {
    let body = answer.unwrap_or_else(|w| {
        let main = html! {
            h1 { "That did not work" }
            p class="error" role="alert" { (w.sentence) }
            p { a href={ (base) "/" } { "To the runs" } }
        };
        Body {
            status: w.status,
            ..body("That did not work", "", main)
        }
    });
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (body.title) " – Fingerpost" }
                link rel="stylesheet" href={ (base) "/static/style.css" };
                link rel="icon" href={ (base) "/static/icon.svg" };
                @if body.goes_on { noscript { meta http-equiv="refresh" content="2"; } }
                script src={ (base) "/static/save.js" } defer {}
                script src={ (base) "/static/page.js" } defer {}
            }
            body data-base=(base) {
                a class="skip" href="#main" { "To the content" }
                header class="bar" {
                    p class="mark" { span aria-hidden="true" { "☞ " } "Fingerpost" }
                    nav aria-label="Pages" { ul { @for (path, name) in MENU {
                        li { a href={ (base) (path) } aria-current=[(path == body.menu).then_some("page")] { (name) } }
                    } } }
                }
                main id="main" { (body.main) }
            }
        }
    };
    // What is asked for stands in the page too, as the value of a field.
    let page = guard::text(markup.into_string().as_bytes());
    (
        body.status,
        [(header::CONTENT_TYPE, "text/html; charset=utf-8")],
        page,
    )
        .into_response()
}

/// A report's content within a page: title, what is read first, what can be done with it, sections.
pub fn content(content: &Content, actions: Markup) -> Markup {
    html! {
        h1 { (content.title) }
        (actions)
        (content.lead)
        nav class="sections" aria-label="Sections" {
            ul { @for s in &content.sections { li { a href={ "#" (s.key) } { (s.title) } } } }
        }
        @for s in &content.sections {
            section class="card" id=(s.key) aria-labelledby={ (s.key) "-title" } {
                h2 id={ (s.key) "-title" } { (term::options_whole(&s.title)) }
                (s.body)
            }
        }
    }
}

/// A sentence without a frame, for who is not let in.
pub fn plain(status: StatusCode, sentence: &'static str) -> Response {
    (
        status,
        [(header::CONTENT_TYPE, "text/plain; charset=utf-8")],
        format!("{sentence}\n"),
    )
        .into_response()
}

/// The style, the script and the icon, which the binary carries.
pub fn file(name: &str) -> Response {
    let (kind, text) = match name {
        "style.css" => (
            "text/css; charset=utf-8",
            format!("{}{}", style::SHEET, include_str!("../static/page.css")),
        ),
        "page.js" => (
            "text/javascript; charset=utf-8",
            include_str!("../static/page.js").to_owned(),
        ),
        "save.js" => (
            "text/javascript; charset=utf-8",
            include_str!("../static/save.js").to_owned(),
        ),
        "icon.svg" => (
            "image/svg+xml",
            include_str!("../static/icon.svg").to_owned(),
        ),
        _ => return plain(StatusCode::NOT_FOUND, "There is no such file."),
    };
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

/// A value in the query of an address.
pub fn encoded(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-_.~".contains(&b);
    text.bytes()
        .map(|b| {
            if plain(b) {
                char::from(b).to_string()
            } else {
                format!("%{b:02X}")
            }
        })
        .collect()
}

/// When runs started, as a person reads it: `2026-01-02 03:04`, with seconds where several are of that minute.
pub fn moments<'a>(started: impl Iterator<Item = &'a str>) -> Vec<String> {
    let started: Vec<&str> = started.collect();
    let mut of_minute: HashMap<String, usize> = HashMap::new();
    started
        .iter()
        .for_each(|s| *of_minute.entry(moment(s, TO_THE_MINUTE)).or_default() += 1);
    let length = |s: &str| {
        if of_minute[&moment(s, TO_THE_MINUTE)] == 1 {
            TO_THE_MINUTE
        } else {
            TO_THE_SECOND
        }
    };
    started.iter().map(|s| moment(s, length(s))).collect()
}

/// Characters of a moment down to its minute.
const TO_THE_MINUTE: usize = 16;
/// Characters of a moment down to its second.
pub const TO_THE_SECOND: usize = 19;

/// When a run started, as a person reads it, in so many characters.
pub fn moment(started: &str, length: usize) -> String {
    started
        .chars()
        .take(length)
        .collect::<String>()
        .replace('T', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_in_addresses_are_encoded() {
        assert_eq!(
            encoded("fds=100 placement=same&x"),
            "fds%3D100%20placement%3Dsame%26x"
        );
    }

    #[test]
    fn runs_of_one_minute_are_told_apart_by_the_second() {
        let started = [
            "2026-01-02T03:04:05Z",
            "2026-01-02T03:04:06Z",
            "2026-01-02T03:05:06Z",
            "é",
        ];
        let expected = [
            "2026-01-02 03:04:05",
            "2026-01-02 03:04:06",
            "2026-01-02 03:05",
            "é",
        ];
        assert_eq!(moments(started.into_iter()), expected);
    }
}
