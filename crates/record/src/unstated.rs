//! Settings that records of before did not state with their rows, and that rows are aligned by today.
//!
//! A record that is read states them afterwards, so that old figures of a setting lie in one row with new ones of it: what its server said of
//! itself is on record with the load generator's account, and where it did not say, nothing but the default could be set.

use crate::measurement::Measurement;
use crate::params::Params;
use crate::run::Run;

/// A setting that rows of an engine have.
struct Unstated {
    workload: &'static str,
    engine: &'static str,
    key: &'static str,
    default: &'static str,
}

/// All of them. Versions of before let `synchronous=off` and `full` be one row.
const UNSTATED: [Unstated; 1] = [Unstated { workload: "database", engine: "sqlite", key: "synchronous", default: "full" }];

/// Beginning of what the load generator's account says of the server, as in `the load generator; SQLite 3.50, synchronous=full`.
pub const DESCRIBED: &str = "the load generator; ";

/// States them wherever a run has parameters of a step.
pub fn state(run: &mut Run) {
    for unstated in &UNSTATED {
        let value = unstated.told_by(run).unwrap_or_else(|| unstated.default.to_owned());
        let rows = run.measurements.iter_mut().filter(|m| unstated.is_of(m)).map(|m| &mut m.params);
        let is = |workload: &String| workload == unstated.workload;
        let observed = run.observations.iter_mut().filter(|o| is(&o.workload)).map(|o| &mut o.params);
        let budgets = run.budgets.iter_mut().filter(|b| is(&b.workload)).map(|b| &mut b.params);
        let paths = run.paths.iter_mut().filter(|p| is(&p.workload)).map(|p| &mut p.params);
        rows.chain(observed).chain(budgets).chain(paths).for_each(|params| unstated.add_to(params, &value));
    }
}

impl Unstated {
    fn is_of(&self, m: &Measurement) -> bool {
        m.probe.split('.').next() == Some(self.workload)
    }

    fn add_to(&self, params: &mut Params, value: &str) {
        if params.text("engine") == Some(self.engine) && params.get(self.key).is_none() {
            params.0.insert(self.key.to_owned(), value.into());
        }
    }

    /// What the server said; of accounts that disagree the first.
    fn told_by(&self, run: &Run) -> Option<String> {
        let accounts = run.observations.iter().filter(|o| o.workload == self.workload && o.params.text("engine") == Some(self.engine));
        let mut settings = accounts.filter_map(|o| o.source.strip_prefix(DESCRIBED)).flat_map(|text| text.split(", "));
        settings.find_map(|part| part.strip_prefix(self.key)?.strip_prefix('=')).map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Budget, Observation, Param, fixture, load};

    fn run_of(engine: &str, server: Option<&str>) -> Run {
        let mut run = fixture::run();
        let params = Params::new().with("engine", engine).with("clients", 5);
        for m in &mut run.measurements {
            m.probe = "database.throughput".into();
            m.params = params.clone();
        }
        run.budgets = vec![Budget {
            workload: "database".into(),
            params: params.clone(),
            transactions: 10,
            seconds_per_transaction: 1e-3,
            parts: Vec::new(),
            unexplained: 0.0,
        }];
        run.observations = server
            .map(|text| Observation {
                workload: "database".into(),
                params: params.clone(),
                observer: "client".into(),
                source: format!("{DESCRIBED}{text}"),
                totals: std::collections::BTreeMap::new(),
                ..Observation::default()
            })
            .into_iter()
            .collect();
        run
    }

    fn read(run: &Run) -> Run {
        load::from_slice(&serde_json::to_vec(run).unwrap(), "old").unwrap()
    }

    #[test]
    fn an_old_record_states_what_its_server_said_and_else_the_default() {
        let synchronous = |run: &Run| run.measurements[0].params.text("synchronous").map(str::to_owned);
        for (told, value) in [
            (Some("SQLite 3.50, journal_mode=wal, synchronous=off, page_size=4096"), "off"),
            (Some("SQLite 3.50, journal_mode=wal"), "full"),
            (None, "full"),
        ] {
            let run = read(&run_of("sqlite", told));
            assert_eq!(synchronous(&run).as_deref(), Some(value), "{told:?}");
            let stated = |params: &Params| params.get("synchronous") == Some(&Param::from(value));
            assert!(run.measurements.iter().all(|m| stated(&m.params)));
            assert!(!run.budgets.is_empty() && run.budgets.iter().all(|b| stated(&b.params)));
            assert!(run.observations.iter().all(|o| stated(&o.params)));
            assert_eq!(read(&run), run, "and once");
        }
    }

    #[test]
    fn what_is_stated_stays_and_other_engines_have_no_such_setting() {
        let mut stated = run_of("sqlite", Some("SQLite 3.50, synchronous=full"));
        stated.measurements[0].params = stated.measurements[0].params.clone().with("synchronous", "normal");
        assert_eq!(read(&stated).measurements[0].params.text("synchronous"), Some("normal"));
        let other = run_of("postgresql", Some("PostgreSQL 17, synchronous_commit=off"));
        assert_eq!(read(&other), other);
    }
}
