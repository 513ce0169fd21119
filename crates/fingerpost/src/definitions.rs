//! What the names in tables mean, for pages and reports: the texts of `list NAME`.

use fingerpost_compare::counterparts;

/// What a probe or a lab's row is; nothing where no one here knows the name.
pub fn of(name: &str) -> Option<String> {
    if let Some(probe) = fingerpost_probes::all().find(|probe| probe.name == name) {
        let timed = if probe.timed.is_empty() {
            String::new()
        } else {
            format!(" Timed: {}.", probe.timed.trim_end_matches('.'))
        };
        return Some(format!("{}.{timed}", probe.summary.trim_end_matches('.')));
    }
    if let Some(figure) = counterparts::published(name) {
        return Some(format!(
            "{}. Set beside it: {}.",
            figure.summary, figure.beside
        ));
    }
    fingerpost_labs::meaning(name).map(|meaning| format!("{meaning}."))
}

#[cfg(test)]
mod tests {
    use fingerpost_diagnose::causes::{self, of_probe};

    use super::*;

    #[test]
    fn every_probe_and_every_row_of_a_lab_has_a_meaning() {
        let of_labs = fingerpost_labs::courses()
            .flat_map(|lab| lab.rows)
            .map(|(of, _)| of.probe);
        let published = counterparts::PUBLISHED.iter().map(|figure| figure.name);
        for name in fingerpost_probes::all()
            .map(|probe| probe.name)
            .chain(of_labs)
            .chain(published)
        {
            let meaning = of(name).unwrap_or_else(|| panic!("{name}"));
            assert!(
                meaning.len() > 15 && meaning.ends_with('.') && !meaning.contains(".."),
                "{name}: {meaning}"
            );
        }
        assert_eq!(of("nothing"), None);
    }

    #[test]
    fn a_cause_that_names_probes_names_some_that_there_are() {
        let pointed_at: Vec<&str> = fingerpost_probes::all()
            .filter_map(|probe| of_probe(probe.name))
            .map(|cause| cause.name)
            .collect();
        let named = causes::all().filter(|cause| !cause.probes.is_empty());
        named.for_each(|cause| {
            assert!(
                pointed_at.contains(&cause.name),
                "{}: {:?}",
                cause.name,
                cause.probes
            )
        });
    }
}
