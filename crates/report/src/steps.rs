//! Steps of a workload that are shown one below the other: what all of them have alike is told once, above them.

use fingerpost_record::Params;
use fingerpost_record::text::clean;

/// What several steps have alike.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    workload: String,
    shared: Params,
}

impl Steps {
    /// Of steps by their workload and parameters. Nothing is shared by one step alone, by steps of different workloads,
    /// and where one of the steps would be left without a name.
    pub fn of<'a>(steps: impl IntoIterator<Item = (&'a str, &'a Params)>) -> Steps {
        let steps: Vec<(&str, &Params)> = steps.into_iter().collect();
        let [(workload, first), others @ ..] = steps.as_slice() else {
            return Steps::default();
        };
        if others.is_empty() || others.iter().any(|(of, _)| of != workload) {
            return Steps::default();
        }
        let shared = first.only(|key, value| {
            others
                .iter()
                .all(|(_, params)| params.get(key) == Some(value))
        });
        let named = |params: &Params| params.iter().any(|(key, _)| shared.get(key).is_none());
        if steps.iter().all(|(_, params)| named(params)) {
            Steps {
                workload: (*workload).to_owned(),
                shared,
            }
        } else {
            Steps::default()
        }
    }

    /// The workload with what all steps have alike; nothing where each step is named in full.
    pub fn all(&self) -> Option<String> {
        (!self.shared.is_empty()).then(|| full_name(&self.workload, &self.shared))
    }

    /// A step by what tells it from the others.
    pub fn name(&self, workload: &str, params: &Params) -> String {
        if self.shared.is_empty() {
            return full_name(workload, params);
        }
        full_name(
            "",
            &params.only(|key, value| self.shared.get(key) != Some(value)),
        )
    }
}

/// A step by its workload and all of its parameters, cleaned.
pub fn full_name(workload: &str, params: &Params) -> String {
    clean(&format!("{workload} {params}")).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(clients: i64, engine: &str) -> Params {
        Params::new()
            .with("clients", clients)
            .with("engine", engine)
            .with("mix", "read")
    }

    #[test]
    fn what_all_steps_have_is_told_once() {
        let (one, five) = (step(1, "redis"), step(5, "redis"));
        let steps = Steps::of([("database", &one), ("database", &five)]);
        assert_eq!(
            steps.all().as_deref(),
            Some("database engine=redis mix=read")
        );
        assert_eq!(
            [&one, &five].map(|p| steps.name("database", p)),
            ["clients=1", "clients=5"]
        );
    }

    #[test]
    fn steps_with_nothing_to_tell_once_keep_their_names() {
        let (one, five, without) = (
            step(1, "redis"),
            step(5, "redis"),
            Params::new().with("mix", "read"),
        );
        let clients = [1, 5].map(|n| Params::new().with("clients", n));
        for steps in [
            Steps::of([]),
            Steps::of([("database", &one)]),
            Steps::of([("database", &one), ("web", &five)]),
            // The second would have no name.
            Steps::of([("database", &one), ("database", &without)]),
            Steps::of([("database", &clients[0]), ("database", &clients[1])]),
        ] {
            assert_eq!(steps.all(), None);
            assert_eq!(
                steps.name("database", &one),
                "database clients=1 engine=redis mix=read"
            );
        }
    }
}
