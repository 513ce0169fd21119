//! The figures that the site laboratory derives, for formats that programs read.

use crate::site::analysis::TABLE_ROUNDS;
use fingerpost_record::descriptor::table;

use crate::site::analysis::Found;
use fingerpost_report::lab::derived::{BYTES, Derived, NS, Of, RATIO, told};

const OF: Of = Of(&table::SITE);

/// The source's table of rounds, each database against files, the course from the start, what less memory makes of it,
/// and the sizes at which the faster one changes.
pub fn of(found: &Found) -> Vec<Derived> {
    [rounds(found), from_start(found), by_size(found)]
        .into_iter()
        .flatten()
        .collect()
}

fn rounds(found: &Found) -> Vec<Derived> {
    let mut all = Vec::new();
    for store_ratio in found.fastest() {
        for (i, round) in store_ratio.rounds.iter().take(TABLE_ROUNDS).enumerate() {
            let params = || {
                told(
                    &store_ratio.params,
                    [
                        ("files", &store_ratio.files),
                        ("odb", &store_ratio.odb),
                        ("round", &(i + 1)),
                    ],
                )
            };
            all.push(OF.exact("site.round_files", params(), NS, round.files_ns));
            all.push(OF.exact("site.round_odb", params(), NS, round.odb_ns));
            all.push(OF.exact("site.round_ratio", params(), RATIO, round.ratio));
        }
    }
    for store_ratio in &found.store_ratios {
        let params = told(
            &store_ratio.params,
            [("files", &store_ratio.files), ("odb", &store_ratio.odb)],
        );
        all.extend(
            store_ratio
                .ratio
                .map(|e| OF.estimated("site.ratio", params, RATIO, e)),
        );
    }
    all
}

fn from_start(found: &Found) -> Vec<Derived> {
    let mut all = Vec::new();
    for w in &found.warming {
        for (i, e) in w.rounds.iter().enumerate() {
            let params = told(
                &w.params,
                [("files", &w.files), ("odb", &w.odb), ("round", &(i + 1))],
            );
            all.push(OF.estimated("site.ratio_from_start", params, RATIO, *e));
        }
    }
    for less in &found.less {
        for (memory, e) in [
            ("all".to_owned(), less.all),
            (less.limit.to_string(), less.little),
        ] {
            let params = [
                ("files", less.files.clone()),
                ("odb", less.odb.clone()),
                ("memory", memory),
            ];
            all.push(OF.estimated("site.ratio_when_loaded", params, RATIO, e));
        }
    }
    all
}

fn by_size(found: &Found) -> Vec<Derived> {
    let mut all = Vec::new();
    for c in &found.crossings {
        for at in &c.sizes {
            let params = told(&c.params, [("odb", &c.odb), ("size", &at.size)]);
            all.push(OF.exact("site.ratio_by_size", params, RATIO, at.ratio));
        }
        all.extend(c.size.map(|size| {
            OF.exact(
                "site.faster_changes_at",
                told(&c.params, [("odb", &c.odb)]),
                BYTES,
                size,
            )
        }));
    }
    all
}
