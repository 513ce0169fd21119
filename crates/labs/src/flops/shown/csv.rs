//! What the floating-point laboratory derives, figure by figure.

use crate::flops::analysis::Flops;
use fingerpost_record::Unit;
use fingerpost_record::descriptor::table;

use fingerpost_report::lab::derived::{COUNT, Derived, Of, RATIO};

/// Averages, shares of the core's highest rate, and the core's units.
pub fn derived(flops: &Flops) -> Vec<Derived> {
    let of = Of(&table::FLOPS);
    let mut all = Vec::new();
    for column in &flops.columns {
        let params = |module: &str| {
            let flags = column.cflags.clone().map(|flags| ("cflags", flags));
            [
                ("compiler", column.compiler.clone()),
                ("module", module.to_owned()),
            ]
            .into_iter()
            .chain(flags)
            .collect::<Vec<_>>()
        };
        let modules = column
            .modules
            .iter()
            .enumerate()
            .map(|(i, m)| ((i + 1).to_string(), m.map(|e| e.value)));
        all.extend(column.average().map(|v| {
            of.exact(
                "flops.average",
                params("all"),
                Unit::FlopPerSecond.as_str(),
                v,
            )
        }));
        for (module, rate) in modules.chain([("all".to_owned(), column.average())]) {
            let share = rate.and_then(|rate| flops.share(rate));
            all.extend(
                share.map(|share| of.exact("flops.share_of_peak", params(&module), RATIO, share)),
            );
        }
    }
    for limit in &flops.limits {
        let kind = || vec![("kind", limit.kind.clone())];
        all.extend(
            limit
                .units()
                .map(|units| of.exact("flops.units", kind(), COUNT, units)),
        );
        all.extend(
            limit
                .deviation()
                .map(|off| of.exact("flops.off_formula", kind(), RATIO, off)),
        );
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
        assert!(has(
            "flops.average",
            "compiler=built-in;module=all",
            1_234_000_000.0
        ));
        assert!(has("flops.units", "kind=vector_fma", 2.0));
    }
}
