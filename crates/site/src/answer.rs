//! What is answered: the fields of the head, conditions and ranges.

use std::io;
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fingerpost_odb::{media_type, percent};
use hyper::body::Bytes;
use hyper::header::{self, HeaderValue};
use hyper::{Response, StatusCode};

use crate::body::{Body, Place};
use crate::clients::Client;
use crate::find::{Content, Finder, Found, Way};
use crate::request::Request;

/// An answer of one line, for what cannot be given.
pub(crate) fn plain(status: StatusCode) -> Response<Body> {
    let text = format!(
        "{} {}\n",
        status.as_u16(),
        status.canonical_reason().unwrap_or("Error")
    );
    let mut response = with_status(status, Body::whole(Bytes::from(text)));
    set(
        &mut response,
        header::CONTENT_TYPE,
        "text/plain; charset=utf-8",
    );
    protect(&mut response);
    if !matches!(
        status,
        StatusCode::NOT_FOUND | StatusCode::MOVED_PERMANENTLY | StatusCode::RANGE_NOT_SATISFIABLE
    ) {
        set(&mut response, header::CONNECTION, "close");
    }
    response
}

/// Sets a field whose value is made here.
fn set(response: &mut Response<Body>, name: header::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// Answers a request.
pub(crate) async fn answer(
    finder: &Rc<Finder>,
    request: &Request,
    client: &Rc<Client>,
) -> io::Result<Response<Body>> {
    if hidden(&request.path) {
        return Ok(plain(StatusCode::NOT_FOUND));
    }
    let found = match finder.find(&request.path, client).await? {
        Way::Found(found) => found,
        Way::Nothing => return Ok(plain(StatusCode::NOT_FOUND)),
        Way::Folder => {
            let mut response = plain(StatusCode::MOVED_PERMANENTLY);
            set(
                &mut response,
                header::LOCATION,
                &format!("{}/{}", encode(&request.path), request.query),
            );
            return Ok(response);
        }
    };
    let modified = UNIX_EPOCH + Duration::from_secs(found.modified.clamp(0, LATEST) as u64);
    let (tag, size) = (found.tag.clone(), found.size);
    let mut response = if unchanged(request, &tag, modified) {
        with_status(StatusCode::NOT_MODIFIED, Body::whole(Bytes::new()))
    } else {
        match wanted_range(request, &tag, modified, size) {
            None => given(StatusCode::OK, found, 0, size, request, finder, client),
            Some(None) => {
                let mut response = plain(StatusCode::RANGE_NOT_SATISFIABLE);
                set(
                    &mut response,
                    header::CONTENT_RANGE,
                    &format!("bytes */{size}"),
                );
                return Ok(response);
            }
            Some(Some((from, to))) => {
                let mut response = given(
                    StatusCode::PARTIAL_CONTENT,
                    found,
                    from,
                    to + 1,
                    request,
                    finder,
                    client,
                );
                set(
                    &mut response,
                    header::CONTENT_RANGE,
                    &format!("bytes {from}-{to}/{size}"),
                );
                response
            }
        }
    };
    set(&mut response, header::ETAG, &tag);
    set(
        &mut response,
        header::LAST_MODIFIED,
        &httpdate::fmt_http_date(modified),
    );
    set(&mut response, header::ACCEPT_RANGES, "bytes");
    protect(&mut response);
    Ok(response)
}

/// A page of another server in the same browser can ask this one, too: it may neither read the answer nor show it as a
/// picture or run it as a script of its own.
fn protect(response: &mut Response<Body>) {
    set(response, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(
        response,
        header::HeaderName::from_static("cross-origin-resource-policy"),
        "same-origin",
    );
}

/// The latest time that a date of HTTP can tell: the end of the year 9999.
const LATEST: i64 = 253_402_300_799;

fn with_status(status: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response
}

/// The bytes from one offset up to another of what was found.
fn given(
    code: StatusCode,
    found: Found,
    from: u64,
    to: u64,
    request: &Request,
    finder: &Rc<Finder>,
    client: &Rc<Client>,
) -> Response<Body> {
    let name: &[u8] = if request.path.ends_with(b"/") {
        b"index.html"
    } else {
        &request.path
    };
    let kind = media_type(name, found.kind);
    let Found { modified, size, .. } = found;
    let body = match found.content {
        _ if request.head_only => Body::whole(Bytes::new()),
        Content::Whole(bytes) => Body::whole(bytes.slice(from as usize..to as usize)),
        Content::File(file) => Body::parts(Place::File(file), from, to, None, client.clone()),
        Content::Cell(path, sum) => {
            // A part of a cell cannot be held against the sum of the whole.
            let sum = (from == 0 && to == size).then_some(sum);
            let place = Place::Cell {
                finder: finder.clone(),
                path,
                modified,
                size,
            };
            Body::parts(place, from, to, sum, client.clone())
        }
    };
    let mut response = with_status(code, body);
    response
        .headers_mut()
        .insert(header::CONTENT_LENGTH, HeaderValue::from(to - from));
    set(&mut response, header::CONTENT_TYPE, kind);
    response
}

/// Names that begin with a dot are no part of a site (`.git`, `.htpasswd`), but for the one that the Web itself has
/// given a meaning.
fn hidden(path: &[u8]) -> bool {
    path.split(|&b| b == b'/')
        .any(|name| name.first() == Some(&b'.') && name != b".well-known")
}

/// Whether the client has it already. A tag counts more than a time (RFC 9110, 13.2.2).
fn unchanged(request: &Request, tag: &str, modified: SystemTime) -> bool {
    match (&request.if_none_match, &request.if_modified_since) {
        (Some(tags), _) => tags
            .split(',')
            .map(str::trim)
            .any(|t| t == "*" || t.strip_prefix("W/").unwrap_or(t) == tag),
        (None, Some(since)) => {
            httpdate::parse_http_date(since).is_ok_and(|since| modified <= since)
        }
        (None, None) => false,
    }
}

/// The one range that is wanted: nothing for all, `Some(None)` for one that there is not. Several ranges are answered
/// with all, as a server may.
fn wanted_range(
    request: &Request,
    tag: &str,
    modified: SystemTime,
    length: u64,
) -> Option<Option<(u64, u64)>> {
    let spec = request.range.as_deref()?.strip_prefix("bytes=")?;
    if let Some(condition) = &request.if_range
        && condition != tag
        && httpdate::parse_http_date(condition).ok() != Some(modified)
    {
        return None;
    }
    let (from, to) = spec.split_once('-').filter(|_| !spec.contains(','))?;
    let (from, to) = match (from.trim().parse::<u64>(), to.trim()) {
        (Ok(from), "") => (from, length.saturating_sub(1)),
        (Ok(from), to) => (
            from,
            to.parse::<u64>()
                .ok()
                .filter(|to| *to >= from)?
                .min(length.saturating_sub(1)),
        ),
        // The last so many bytes.
        (Err(_), to) if from.trim().is_empty() => match to.parse::<u64>().ok()? {
            0 => return Some(None),
            last => (length.saturating_sub(last), length.saturating_sub(1)),
        },
        _ => return None,
    };
    Some((from < length).then_some((from, to)))
}

/// A path as it stands in a URL.
fn encode(path: &[u8]) -> String {
    // Two slashes at the beginning would name another host.
    let start = path
        .iter()
        .take_while(|&&b| b == b'/')
        .count()
        .saturating_sub(1);
    percent::encode(&path[start..])
}
