//! The lists of kinds.

use super::kind::Kind;

/// A list of kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Set {
    /// On which rules may be worked.
    Plants,
    /// Kept apart from that.
    Apart,
}

impl Set {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Set::Plants => "plants",
            Set::Apart => "apart",
        }
    }

    /// Its kinds.
    pub fn kinds(self) -> &'static [Kind] {
        match self {
            Set::Plants => super::plants::PLANTS,
            Set::Apart => super::apart::APART,
        }
    }

    /// The kind of this name, in any set.
    pub fn find(name: &str) -> Option<&'static Kind> {
        [Set::Plants, Set::Apart]
            .into_iter()
            .flat_map(|s| s.kinds())
            .find(|k| k.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::super::scene::Pair;
    use super::*;
    use std::collections::BTreeSet;

    fn all() -> impl Iterator<Item = &'static Kind> {
        [Set::Plants, Set::Apart]
            .into_iter()
            .flat_map(|s| s.kinds())
    }

    #[test]
    fn kinds_are_whole_and_their_names_are_their_own() {
        let mut names = BTreeSet::new();
        for kind in all() {
            assert!(names.insert(kind.name), "{} is there twice", kind.name);
            assert!(
                !kind.engines.is_empty() && !kind.what.is_empty(),
                "{}",
                kind.name
            );
            assert_eq!(
                kind.is_control(),
                kind.name.starts_with("control/"),
                "{}",
                kind.name
            );
            assert_eq!(kind.is_control(), kind.layer().is_none(), "{}", kind.name);
            assert!(
                kind.range.0 > 0.0 && kind.range.0 <= kind.range.1,
                "{}",
                kind.name
            );
        }
    }

    #[test]
    fn every_plant_changes_something_and_never_the_base_alone() {
        for kind in all() {
            for &engine in kind.engines {
                for magnitude in [kind.range.0, kind.range.1] {
                    let mut pair = Pair::alike((kind.scene)(engine), &[0, 1]);
                    assert!(
                        !pair.base.script.shares.is_empty()
                            || kind.name.contains("lock")
                            || kind.name.contains("wait"),
                        "{}",
                        kind.name
                    );
                    (kind.plant)(&mut pair, magnitude);
                    assert!(
                        pair.base != pair.new || kind.name == "control/nothing",
                        "{} on {}",
                        kind.name,
                        engine.name()
                    );
                    assert!(
                        !pair.base.script.shares.is_empty() && !pair.new.script.shares.is_empty(),
                        "{}",
                        kind.name
                    );
                }
            }
        }
    }

    #[test]
    fn planting_again_with_another_magnitude_leaves_nothing_of_the_first() {
        for kind in all().filter(|k| k.adjustable) {
            let mut twice = Pair::alike((kind.scene)(kind.engines[0]), &[0, 1]);
            let mut once = twice.clone();
            (kind.plant)(&mut twice, kind.range.0);
            (kind.plant)(&mut twice, kind.range.1);
            (kind.plant)(&mut once, kind.range.1);
            assert_eq!(twice, once, "{}", kind.name);
        }
    }

    #[test]
    fn a_third_of_all_is_kept_apart() {
        let (plants, apart) = (Set::Plants.kinds().len(), Set::Apart.kinds().len());
        assert!(apart * 3 >= plants + apart - 2, "{plants} and {apart}");
    }
}
