//! What would tell rows apart that a comparison could not.

use fingerpost_compare::{Comparison, Verdict};

/// What [`surer`] is called.
pub(crate) const SURER: &str = "More precise";

/// What makes the intervals narrower, where half of the rows or more are too wide to tell; nothing where the sides cannot be measured again.
pub(crate) fn surer(c: &Comparison) -> Option<&'static str> {
    let unresolved = c.rows.iter().filter(|row| row.verdict == Verdict::Unresolved).count();
    let published = [&c.base, &c.new].iter().any(|side| side.source.is_some());
    if published || unresolved == 0 || 2 * unresolved < c.rows.len() {
        return None;
    }
    Some(match in_turns(&c.base.ids, &c.new.ids) {
        true => "measure for longer: fingerpost ab … --budget SECONDS",
        false => {
            "take several runs a side (fingerpost compare A1,A2 B1,B2), or measure two settings of one machine in turns (fingerpost ab)"
        }
    })
}

/// Whether the sides are the two of one `ab`: their ids differ in the last letter alone.
fn in_turns(base: &[String], new: &[String]) -> bool {
    let ([base], [new]) = (base, new) else { return false };
    base.strip_suffix('a').zip(new.strip_suffix('b')).is_some_and(|(base, new)| base == new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fingerpost_compare::{Options, compare, references};

    #[test]
    fn the_two_sides_of_one_ab_are_known_by_their_ids() {
        let of = |base: &str, new: &str| in_turns(&[base.to_owned()], &[new.to_owned()]);
        assert!(of("20260101T000000Z-0123456a", "20260101T000000Z-0123456b"));
        assert!(!of("20260101T000000Z-0123456a", "20260102T000000Z-0123456b"));
        assert!(!of("20260101T000000Z-0123456a", "20260101T000000Z-0123456a"));
        assert!(!in_turns(&[], &[]));
    }

    #[test]
    fn what_makes_intervals_narrower_is_told_where_most_are_too_wide() {
        let load = |name| references::load(name).unwrap();
        let mut comparison = compare(&[load("g5-2.5-linux")], &[load("g5-2.7-darwin")], &Options::default());
        assert_eq!(surer(&comparison), None, "most of its rows are told apart");
        comparison.rows.iter_mut().for_each(|row| row.verdict = Verdict::Unresolved);
        assert_eq!(surer(&comparison), None, "a published system cannot be measured again");
        (comparison.base.source, comparison.new.source) = (None, None);
        assert!(surer(&comparison).is_some_and(|text| text.contains("A1,A2")));
        comparison.rows.iter_mut().for_each(|row| row.verdict = Verdict::Same);
        assert_eq!(surer(&comparison), None);
    }
}
