//! The figures that the zero-fill laboratory derives, for formats that programs read.

use crate::zerofill::analysis::solve::FIELDS;
use crate::zerofill::analysis::{self, Analysis};
use fingerpost_record::descriptor::table;

use super::words::{fit_fields, given_fields};
use fingerpost_report::lab::derived::{COUNT, Derived, NS, Of, RATIO};

/// The four timings, what they come to, the fit, the shares, guesses and rankings.
pub fn of(a: &Analysis) -> Vec<Derived> {
    let of = Of(&table::ZEROFILL);
    let what = |name: &str| vec![("api", a.api.clone()), ("what", name.to_owned())];
    let estimated = |name, params, e| of.estimated(name, params, NS, e);
    let mut all: Vec<Derived> = a
        .given
        .iter()
        .flat_map(given_fields)
        .map(|(name, e)| estimated("zerofill.given", what(name), e))
        .collect();
    if let Some(costs) = &a.derived {
        let fields = FIELDS.iter().zip(costs.values());
        all.extend(
            fields.map(|((key, ..), value)| of.exact("zerofill.derived", what(key), NS, value)),
        );
    }
    all.extend(
        fit_fields(a)
            .into_iter()
            .map(|(name, e)| estimated("zerofill.fit", what(name), e)),
    );
    all.extend(a.zeroing.iter().map(|r| {
        estimated(
            "zerofill.zeroing_by_route",
            vec![("route", r.key.to_owned()), ("pages", r.pages.to_string())],
            r.per_page,
        )
    }));
    for s in &a.shares {
        for (part, share) in [
            ("allocation", s.allocation),
            ("fault", s.fault),
            ("zero", s.zero),
        ] {
            let params = vec![("pages", s.pages.to_string()), ("part", part.to_owned())];
            all.push(of.exact("zerofill.share", params, RATIO, share));
        }
    }
    let guess = |g: &analysis::guesses::Guess| {
        of.estimated(
            "zerofill.guess",
            vec![("what", g.key.to_owned())],
            RATIO,
            g.measured,
        )
    };
    all.extend(a.guesses.iter().map(guess));
    all.extend(a.agreement.iter().map(|g| {
        of.exact(
            "zerofill.agreement",
            vec![("what", g.what.to_owned())],
            RATIO,
            g.ratio,
        )
    }));
    for (name, rankings) in [
        ("zerofill.rank_prefault", &a.prefault),
        ("zerofill.rank_touched", &a.apis),
        ("zerofill.rank_untouched", &a.apis_untouched),
    ] {
        for (ranking, (place, at)) in rankings
            .iter()
            .flat_map(|r| r.places.iter().enumerate().map(move |p| (r, p)))
        {
            let params = vec![
                ("pages", ranking.pages.to_string()),
                ("name", at.name.clone()),
                ("place", (place + 1).to_string()),
            ];
            all.push(of.exact(name, params, RATIO, at.times));
        }
    }
    all.extend(a.crossovers.iter().filter_map(|c| {
        let params = vec![("name", c.name.clone()), ("against", c.against.clone())];
        Some(of.exact(
            "zerofill.wins_from_pages",
            params,
            COUNT,
            c.from_pages? as f64,
        ))
    }));
    all
}
