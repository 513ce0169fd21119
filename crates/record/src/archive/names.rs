//! Ids and instants as the record writes them.

use jiff::Timestamp;

/// A run's id: its start as `YYYYMMDDTHHMMSSZ`, a dash, and eight hexadecimal digits that tell runs of one second
/// apart.
pub fn new_id(started: Timestamp, random: u32) -> String {
    format!("{}-{random:08x}", started.strftime("%Y%m%dT%H%M%SZ"))
}

/// An instant as the record's `started` field has it: RFC 3339 in UTC, in whole seconds.
pub fn rfc3339(instant: Timestamp) -> String {
    instant.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The instant that a `started` field names; runs that name none are the oldest.
pub(super) fn instant(started: &str) -> Timestamp {
    started.parse().unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_valid_and_sorts_by_its_start() {
        let early = new_id("2026-01-02T03:04:05Z".parse().unwrap(), 0xbad);
        assert_eq!(early, "20260102T030405Z-00000bad");
        assert_eq!(crate::load::valid_id(&early), Ok(()));
        assert!(early < new_id("2026-01-02T03:04:06Z".parse().unwrap(), 0));
        assert_eq!(rfc3339("2026-01-02T05:04:05.75+02:00".parse().unwrap()), "2026-01-02T03:04:05Z");
    }
}
