//! What the endings of names stand for: the one table of it, for cells and for web servers.

use crate::value::Kind::{self, Binary, Outline, Script, Text};

/// Text without a format of its own, and formats of text that a browser may store instead of showing them.
const PLAIN: &str = "text/plain; charset=utf-8";
const OPML: &str = "text/x-opml";

/// Endings, what a cell of such a name holds, and the media type that a web server tells.
const ENDINGS: [(&[&str], Kind, &str); 27] = [
    (&["html", "htm"], Text, "text/html; charset=utf-8"),
    (&["css"], Text, "text/css; charset=utf-8"),
    (&["js", "mjs"], Script, "text/javascript; charset=utf-8"),
    (&["png"], Binary, "image/png"),
    (&["jpg", "jpeg"], Binary, "image/jpeg"),
    (&["gif"], Binary, "image/gif"),
    (&["webp"], Binary, "image/webp"),
    (&["avif"], Binary, "image/avif"),
    (&["svg"], Text, "image/svg+xml"),
    (&["ico"], Binary, "image/vnd.microsoft.icon"),
    (&["txt", "md", "csv"], Text, PLAIN),
    (&["json"], Text, "application/json"),
    (&["xml"], Text, "application/xml"),
    (&["opml"], Outline, OPML),
    (&["woff"], Binary, "font/woff"),
    (&["woff2"], Binary, "font/woff2"),
    (&["ttf"], Binary, "font/ttf"),
    (&["wasm"], Binary, "application/wasm"),
    (&["pdf"], Binary, "application/pdf"),
    (&["zip"], Binary, "application/zip"),
    (&["gz"], Binary, "application/gzip"),
    (&["mp3"], Binary, "audio/mpeg"),
    (&["ogg"], Binary, "audio/ogg"),
    (&["wav"], Binary, "audio/wav"),
    (&["mp4"], Binary, "video/mp4"),
    (&["webm"], Binary, "video/webm"),
    (
        &["py", "sh", "pl", "rb", "php", "cgi", "lua", "fscript"],
        Script,
        PLAIN,
    ),
];

fn known(path: &[u8]) -> Option<(Kind, &'static str)> {
    let name = path.rsplit(|&b| b == b'/').next()?;
    let ending = &name[name.iter().rposition(|&b| b == b'.')? + 1..];
    let has = |known: &[&str]| {
        known
            .iter()
            .any(|known| known.as_bytes().eq_ignore_ascii_case(ending))
    };
    ENDINGS
        .iter()
        .find(|(known, ..)| has(known))
        .map(|(_, kind, media)| (*kind, *media))
}

/// What a cell of this name and content holds: by the name's ending, else by whether the content is text.
pub fn kind_of(name: &[u8], body: &[u8]) -> Kind {
    match known(name) {
        Some((kind, _)) => kind,
        None if body.starts_with(b"#!") => Script,
        None if !body.contains(&0) && std::str::from_utf8(body).is_ok() => Text,
        None => Binary,
    }
}

/// The media type of what lies at a path, as a web server tells it: by the name's ending, else by what the cell is
/// known to hold.
pub fn media_type(path: &[u8], kind: Option<Kind>) -> &'static str {
    match (known(path), kind) {
        (Some((_, media)), _) => media,
        (None, Some(Text | Script)) => PLAIN,
        (None, Some(Outline)) => OPML,
        (None, Some(Binary) | None) => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_follows_from_the_name_then_from_the_content() {
        assert_eq!(kind_of(b"a.HTML", b"\0"), Kind::Text);
        assert_eq!(kind_of(b"x.opml", b""), Kind::Outline);
        assert_eq!(kind_of(b"run", b"#!/bin/sh\n"), Kind::Script);
        assert_eq!(kind_of(b"noending", "Grüße".as_bytes()), Kind::Text);
        assert_eq!(kind_of(b"noending", b"\xff\xfe"), Kind::Binary);
        assert_eq!(kind_of(b"html", b"a\0"), Kind::Binary);
    }

    #[test]
    fn a_type_follows_from_the_ending_else_from_the_kind() {
        assert_eq!(
            media_type(b"/a.b/index.html", None),
            "text/html; charset=utf-8"
        );
        assert_eq!(media_type(b"PHOTO.JPG", Some(Text)), "image/jpeg");
        assert_eq!(media_type(b"/a.b/html", None), "application/octet-stream");
        assert_eq!(media_type(b"", None), "application/octet-stream");
        assert_eq!(media_type(b"notes", Some(Text)), PLAIN);
        assert_eq!(media_type(b"notes", Some(Outline)), OPML);
    }
}
