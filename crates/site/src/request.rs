//! What of a request matters here, and which requests are refused.

use fingerpost_odb::percent;
use hyper::body::{Body as _, Incoming};
use hyper::header::{self, HeaderName};
use hyper::{Method, StatusCode, Version};

/// A request, as far as it matters here.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Request {
    /// With percent signs resolved, without the query.
    pub path: Vec<u8>,
    /// From the question mark on.
    pub query: String,
    pub head_only: bool,
    pub range: Option<String>,
    pub if_none_match: Option<String>,
    pub if_modified_since: Option<String>,
    pub if_range: Option<String>,
}

/// Reads a request, or tells the status that it is refused with.
pub(crate) fn read(request: &hyper::Request<Incoming>) -> Result<Request, StatusCode> {
    let head_only = match *request.method() {
        Method::GET => false,
        Method::HEAD => true,
        _ => return Err(StatusCode::METHOD_NOT_ALLOWED),
    };
    let field = |name: HeaderName| {
        let value = request.headers().get(name)?;
        value.to_str().ok().map(|v| v.trim().to_owned())
    };
    let hosts = request.headers().get_all(header::HOST).iter().count();
    // A body would have to be read past; nothing that is served here takes one.
    if hosts > 1
        || hosts == 0 && request.version() != Version::HTTP_10
        || !request.body().is_end_stream()
    {
        return Err(StatusCode::BAD_REQUEST);
    }
    // Another site's page may not read this one through a name that it made lead here.
    let host = field(header::HOST).unwrap_or_default();
    let name = host
        .rsplit_once(':')
        .map_or(host.as_str(), |(name, _)| name);
    if !matches!(name, "127.0.0.1" | "localhost" | "") {
        return Err(StatusCode::MISDIRECTED_REQUEST);
    }
    let uri = request.uri();
    if uri.scheme().is_some() || uri.authority().is_some() {
        return Err(StatusCode::BAD_REQUEST);
    }
    Ok(Request {
        path: decode(uri.path()).ok_or(StatusCode::BAD_REQUEST)?,
        query: uri.query().map_or(String::new(), |q| format!("?{q}")),
        head_only,
        range: field(header::RANGE),
        if_none_match: field(header::IF_NONE_MATCH),
        if_modified_since: field(header::IF_MODIFIED_SINCE),
        if_range: field(header::IF_RANGE),
    })
}

/// A path with percent signs resolved; nothing where one has no two digits behind it.
fn decode(path: &str) -> Option<Vec<u8>> {
    percent::decode(path.as_bytes()).filter(|_| path.starts_with('/'))
}
