//! What the memory laboratory derives, figure by figure.

use crate::memory::analysis::{Memory, staircase};
use fingerpost_record::descriptor::table;

use fingerpost_report::lab::derived::{BYTES, Derived, NS, Of};

/// What a load takes from each level, what the level holds, and how far translation reaches.
pub fn derived(memory: &Memory) -> Vec<Derived> {
    let of = Of(&table::MEMORY);
    let level =
        |names: [&'static str; 3], params: &[(&'static str, String)], level: &staircase::Level| {
            let bytes = |name, bytes: u64| of.exact(name, params.to_vec(), BYTES, bytes as f64);
            let mut found = vec![
                of.exact(names[0], params.to_vec(), NS, level.height),
                bytes(names[1], level.fits),
            ];
            found.extend(level.passed.map(|passed| bytes(names[2], passed)));
            found
        };
    let mut all = Vec::new();
    for (i, cache) in memory.levels.iter().enumerate() {
        let reported = cache.reported.as_ref();
        let name = reported.map_or(format!("level {}", i + 1), |(name, _)| name.clone());
        let params = [("level", name)];
        all.extend(level(
            [
                "memory.level_load",
                "memory.level_holds",
                "memory.level_no_longer_holds",
            ],
            &params,
            &cache.level,
        ));
        all.extend(
            reported
                .map(|(_, b)| of.exact("memory.level_reported", params.to_vec(), BYTES, *b as f64)),
        );
    }
    for reach in &memory.reaches {
        for (i, found) in reach.levels.iter().enumerate() {
            let params = [
                ("pages", reach.pages.clone()),
                ("level", (i + 1).to_string()),
            ];
            all.extend(level(
                [
                    "memory.translation_load",
                    "memory.translation_reach",
                    "memory.translation_no_longer_reaches",
                ],
                &params,
                found,
            ));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_has_what_tells_it_from_others() {
        let all = derived(&super::super::words::tests::example());
        let has = |name, params, value| crate::tests::has(&all, name, params, value);
        assert!(has("memory.level_holds", "level=L1d", 16_384.0));
        assert!(has("memory.level_reported", "level=L1d", 32_768.0));
        assert!(has(
            "memory.translation_reach",
            "pages=small;level=1",
            262_144.0
        ));
        assert!(
            all.iter()
                .all(|f| f.name != "memory.level_holds" || f.unit == BYTES)
        );
    }
}
