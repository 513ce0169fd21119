//! Which values a probe's parameters can have. A wrong one is told before anything is measured.

use std::collections::BTreeSet;

use fingerpost_probes::Probe;
use fingerpost_record::{Param, Params, suggest};

use super::parts::{LabRun, Settings};
use crate::exit::usage;

/// Whether a probe with these variants can have this value: a word must be one of theirs, a number may be any where
/// they have numbers.
pub fn can_be(variants: &[Params], key: &str, value: &Param) -> bool {
    let mut known = variants.iter().filter_map(|params| params.get(key));
    match value {
        Param::Int(_) => known.any(|one| matches!(one, Param::Int(_))),
        Param::Text(_) => known.any(|one| one == value),
    }
}

/// Refuses a value that none of the probes can have. What a lab takes as well is the lab's to check.
pub fn check(probes: &[&Probe], labs: &[LabRun], settings: &Settings) -> anyhow::Result<()> {
    for (key, values) in settings {
        let known: Vec<Params> = probes
            .iter()
            .flat_map(|probe| (probe.variants)())
            .filter(|params| params.get(key).is_some())
            .collect();
        if known.is_empty() || labs.iter().any(|run| run.settings.get(key).is_some()) {
            continue;
        }
        if let Some(wrong) = values.iter().find(|value| !can_be(&known, key, value)) {
            return usage(format!(
                "{key}={wrong} is not a valid value; {}",
                takes(&known, key, wrong)
            ));
        }
    }
    Ok(())
}

/// What can be in its place.
fn takes(known: &[Params], key: &str, wrong: &Param) -> String {
    let all = || known.iter().filter_map(|params| params.get(key));
    let words: BTreeSet<String> = all()
        .filter(|one| matches!(one, Param::Text(_)))
        .map(ToString::to_string)
        .collect();
    let number = all()
        .any(|one| matches!(one, Param::Int(_)))
        .then(|| "a whole number".to_owned());
    let kinds: Vec<String> = words.iter().cloned().chain(number).collect();
    let near = suggest::nearest(&wrong.to_string(), words.iter().map(String::as_str));
    let meant = near.map_or(String::new(), |near| format!("; did you mean “{near}”?"));
    // Rows of other compilers are built when the compiler is named.
    let built = if key == "compiler" {
        " (cc=NAME builds the kernels with another one)"
    } else {
        ""
    };
    format!("it takes {}{built}{meant}", kinds.join(", "))
}

#[cfg(test)]
mod tests {
    use crate::plan::{parse_settings, resolve};

    fn said(name: &str, setting: &str) -> Result<usize, String> {
        let settings = parse_settings(&[setting.to_owned()]).unwrap();
        resolve(&[name.to_owned()], &settings)
            .map(|plan| plan.rows.len())
            .map_err(|e| e.to_string())
    }

    #[test]
    fn a_word_that_no_row_has_is_refused_with_the_one_meant() {
        for (name, setting, says) in [
            ("zerofill", "api=mmp", "did you mean “mmap”?"),
            ("zerofill.touch", "api=heap", "it takes brk, "),
            ("ipc.pipe", "placement=crss", "did you mean “cross”?"),
            ("syscall.select", "fds=many", "it takes a whole number"),
            ("flops", "compiler=gcc", "cc=NAME"),
        ] {
            let sentence = said(name, setting).unwrap_err();
            assert!(
                sentence.contains(says) && sentence.starts_with(setting),
                "{name} {setting}: {sentence}"
            );
        }
    }

    #[test]
    fn rows_that_cannot_have_the_value_are_left_out() {
        // `zerofill.zeroing` knows none but `memfd`.
        let of = |setting| said("zerofill.zeroing", setting).is_ok();
        assert!(of("how=memfd") && !of("how=touch"));
        assert!(
            said("zerofill", "how=touch").unwrap() < said("zerofill", "how=touch,memfd").unwrap()
        );
        assert!(said("syscall.select", "fds=3,4").unwrap() == 2);
        assert!(said("ipc", "placement=same").unwrap() > 5);
    }
}
