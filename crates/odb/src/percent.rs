//! Names of cells in addresses: percent signs, as every web server of ours has them.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode, percent_encode};

/// What stands in a path as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'/')
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// Resolves `%41`; nothing where a percent sign has no two digits behind it.
pub fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let digits = |rest: &[u8]| {
        rest.first_chunk::<2>()
            .is_some_and(|d| d.iter().all(u8::is_ascii_hexdigit))
    };
    let whole = text.split(|&b| b == b'%').skip(1).all(digits);
    whole.then(|| Cow::from(percent_decode(text)).into_owned())
}

/// A path as it stands in an address.
pub fn encode(path: &[u8]) -> String {
    percent_encode(path, PLAIN).to_string()
}
