//! How soon programs touched the memory that they asked for, in words.

use fingerpost_record::{Readings, Unit};

/// Fewer mappings than this tell nothing.
const LEAST: f64 = 30.0;

/// Anonymous mappings of a workload's processes, and when they were touched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mapped {
    /// Mappings of which it is known; those that the end of a window cut are left out.
    pub count: f64,
    /// The share of them whose first page was touched within 100 µs, 0 to 1: some hundred times what the fault itself costs.
    pub at_once: f64,
    /// The share of which another page than the first was touched first.
    pub elsewhere: f64,
    /// The share that was given back untouched, or stayed so.
    pub untouched: f64,
    /// The median time until the first touch of those that were touched, in seconds.
    pub median_s: f64,
}

/// From the totals of the observer `mappings`; nothing where there were none, or too few.
pub fn mapped(readings: &Readings) -> Option<Mapped> {
    let total = |name: &str| readings.known(name);
    let count = total("mappings.anonymous")? - total("mappings.cut")?;
    if count < LEAST {
        return None;
    }
    let untouched = total("mappings.freed_untouched")? + total("mappings.never_touched")?;
    Some(Mapped {
        count,
        at_once: (total("mappings.touched.within.100us")? / count).min(1.0),
        elsewhere: (total("mappings.touched.other_page")? / count).min(1.0),
        untouched: (untouched / count).min(1.0),
        median_s: total("mappings.touched.after.median.seconds")?,
    })
}

impl Mapped {
    /// As one sentence.
    pub fn sentence(&self) -> String {
        format!(
            "of {:.0} anonymous mappings {:.0} % had their first page touched within 100 µs, {:.0} % another page first, {:.0} % none; half of \
             those that were touched were within {}",
            self.count,
            self.at_once * 100.0,
            self.elsewhere * 100.0,
            self.untouched * 100.0,
            Unit::Nanoseconds.format(self.median_s * 1e9)
        )
    }
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
        mapped(&Readings::by("mappings", "made up", totals.map(|(name, value)| (name.to_owned(), value))))
    }

    #[test]
    fn shares_are_of_the_mappings_of_which_it_is_known() {
        let found = of(110.0, 10.0).unwrap();
        assert_eq!((found.count, found.at_once, found.elsewhere, found.untouched), (100.0, 0.8, 0.1, 0.1));
        assert!(
            found.sentence().contains("of 100 anonymous mappings 80 %") && found.sentence().contains("2.000 µs"),
            "{}",
            found.sentence()
        );
    }

    #[test]
    fn too_few_or_none_tell_nothing() {
        assert_eq!(of(35.0, 10.0), None);
        assert_eq!(mapped(&Readings::default()), None);
    }
}
