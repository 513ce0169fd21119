//! What the site laboratory says first.

use crate::site::analysis::{StoreRatio, times};
use fingerpost_record::{Run, Unit};

use crate::site::analysis::Found;
use fingerpost_report::untrusted::doubted;

/// How the fastest database compares with files, and what less memory makes of it.
pub fn answers(run: &Run, found: &Found) -> Vec<String> {
    // Where memory was limited in a part of the rounds, the answer is that of the others, and what the limit makes
    // of it comes after it.
    let store_ratio = found
        .store_ratios
        .iter()
        .min_by_key(|store_ratio| store_ratio.params.get("memory").is_some());
    let less = found
        .less
        .first()
        .map(|less| doubted(format!("{}.", less.sentence), run, "site."));
    store_ratio
        .and_then(contest)
        .into_iter()
        .chain(less)
        .collect()
}

/// The fastest database against files: how many times as fast, with the interval.
fn contest(store_ratio: &StoreRatio) -> Option<String> {
    let ratio = store_ratio.ratio?;
    // Which of several it is; the kind's own name says nothing more.
    let which = |name: &str, kind: &str| {
        if name == kind {
            String::new()
        } else {
            format!(" ({name})")
        }
    };
    let (files, odb) = (
        which(&store_ratio.files, "files"),
        which(&store_ratio.odb, "object-database"),
    );
    let limit = store_ratio
        .params
        .int("memory")
        .map(|bytes| Unit::Bytes.format(bytes as f64));
    let with = limit.map_or(String::new(), |limit| format!(" with {limit} of memory"));
    let doubt = if store_ratio.untrusted {
        " (untrusted)"
    } else {
        ""
    };
    Some(if ratio.low > 1.0 {
        let times = times(ratio.value, ratio.low, ratio.high);
        format!(
            "Pages come {times} as fast from the object database{odb} as from files{files}{with}{doubt}."
        )
    } else if ratio.high < 1.0 && ratio.low > 0.0 {
        let times = times(1.0 / ratio.value, 1.0 / ratio.high, 1.0 / ratio.low);
        format!(
            "Pages come {times} as fast from files{files} as from the fastest object database{odb}{with}{doubt}."
        )
    } else {
        let times = times(ratio.value, ratio.low, ratio.high);
        format!(
            "Files{files} and the fastest object database{odb}{with} do not differ for certain: {times}{doubt}."
        )
    })
}

#[cfg(test)]
mod tests {
    use fingerpost_record::{Estimate, Params};

    use super::*;
    use crate::site::shown::words::tests::source_run;
    use fingerpost_report::view::View;

    #[test]
    fn the_site_has_its_ratio_as_a_headline() {
        let answers = View::of(&source_run(), crate::views()).answers;
        assert!(!answers.iter().any(|a| a.contains('\u{1b}')), "{answers:?}");
        let store_ratio = |value: f64, low: f64, high: f64| StoreRatio {
            files: "files-open".into(),
            odb: "lmdb".into(),
            params: Params::new(),
            rounds: Vec::new(),
            ratio: Some(Estimate {
                value,
                low,
                high,
                confidence: 0.95,
            }),
            untrusted: false,
        };
        assert!(
            contest(&store_ratio(27.0, 25.0, 29.0))
                .unwrap()
                .starts_with(
                    "Pages come 27.00 times (25.00–29.00) as fast from the object database"
                )
        );
        assert!(
            contest(&store_ratio(0.5, 0.4, 0.6))
                .unwrap()
                .starts_with("Pages come 2.000 times (1.667–2.500) as fast from files")
        );
        assert!(
            contest(&store_ratio(1.0, 0.9, 1.1))
                .unwrap()
                .contains("do not differ for certain")
        );
        let doubted = contest(&StoreRatio {
            untrusted: true,
            ..store_ratio(0.5, 0.4, 0.6)
        });
        assert!(
            doubted
                .unwrap()
                .ends_with("object database (lmdb) (untrusted).")
        );
        let limited = StoreRatio {
            params: Params::new().with("memory", 8 << 20),
            ..store_ratio(1.0, 0.9, 1.1)
        };
        assert!(
            contest(&limited)
                .unwrap()
                .contains("(lmdb) with 8.000 MiB of memory do not differ"),
            "{:?}",
            contest(&limited)
        );
    }
}
