//! How soon programs touched the memory that they asked for, in words.

use fingerpost_record::reading::{Name, name};
use fingerpost_record::{Readings, Unit};

/// Fewer mappings than this tell nothing.
const LEAST: f64 = 30.0;

/// How soon anonymous mappings of a workload's processes were touched. Those that the end of a window cut are left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapped {
    /// The share of them whose first page was touched within 100 µs, 0 to 1: some hundred times what the fault itself
    /// costs.
    pub at_once: f64,
    /// All that is known, as one sentence.
    pub sentence: String,
}

/// From the totals of the observer `mappings`; nothing where there were none, or too few.
pub fn mapped(readings: &Readings) -> Option<Mapped> {
    let total = |name: Name| readings.known(name);
    let count = total(name::MAPPINGS_ANONYMOUS)? - total(name::MAPPINGS_CUT)?;
    if count < LEAST {
        return None;
    }
    let untouched = total(name::MAPPINGS_FREED_UNTOUCHED)? + total(name::MAPPINGS_NEVER_TOUCHED)?;
    let (at_once, other) = (
        total(name::MAPPINGS_TOUCHED_WITHIN_100US)?,
        total(name::MAPPINGS_TOUCHED_OTHER_PAGE)?,
    );
    let [at_once, other, none] = [at_once, other, untouched].map(|of| (of / count).min(1.0));
    let half = Unit::Nanoseconds.format(total(name::MAPPINGS_TOUCHED_AFTER_MEDIAN_SECONDS)? * 1e9);
    let [first, second, third] = [at_once, other, none].map(|share| share * 100.0);
    let sentence = format!(
        "of {count:.0} anonymous mappings {first:.0} % had their first page touched within 100 µs, {second:.0} % \
         another page first, {third:.0} % none; half of those that were touched were within {half}"
    );
    Some(Mapped { at_once, sentence })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(anonymous: f64, cut: f64) -> Option<Mapped> {
        let totals = [
            ("mappings.anonymous", anonymous),
            ("mappings.cut", cut),
            ("mappings.touched.within.100us", 80.0),
            ("mappings.touched.other_page", 10.0),
            ("mappings.freed_untouched", 5.0),
            ("mappings.never_touched", 5.0),
            ("mappings.touched.after.median.seconds", 2e-6),
        ];
        mapped(&Readings::by(
            "mappings",
            "made up",
            totals.map(|(name, value)| (name.to_owned(), value)),
        ))
    }

    #[test]
    fn shares_are_of_the_mappings_of_which_it_is_known() {
        let found = of(110.0, 10.0).unwrap();
        assert_eq!(found.at_once, 0.8);
        for told in [
            "of 100 anonymous mappings 80 %",
            "10 % another page first, 10 % none",
            "2.000 µs",
        ] {
            assert!(found.sentence.contains(told), "{}", found.sentence);
        }
    }

    #[test]
    fn too_few_or_none_tell_nothing() {
        assert_eq!(of(35.0, 10.0), None);
        assert_eq!(mapped(&Readings::default()), None);
    }
}
