//! Known answers: every plant as it was once recorded, without a clock and without a load. `bench/prove-record` makes
//! the records.

use std::path::{Path, PathBuf};

use fingerpost_labs::prove::trial::judged;
use fingerpost_labs::prove::{PLANTS, Plant, Proof, Result as Verdict};
use fingerpost_record::{Budget, Finding, Measurement, Observation, Run, SCHEMA, Status};
use serde::Deserialize;

/// One side of a plant: the throughput of each pass, and the mean of what was seen of them.
#[derive(Clone, Deserialize)]
struct Side {
    throughput: Measurement,
    observations: Vec<Observation>,
    budget: Budget,
    findings: Vec<Finding>,
}

#[derive(Clone, Deserialize)]
struct Recorded {
    base: Side,
    new: Side,
}

impl Side {
    fn into_run(self) -> Run {
        let Side {
            throughput,
            observations,
            budget,
            findings,
        } = self;
        let measurements = vec![throughput];
        Run {
            schema: SCHEMA.into(),
            measurements,
            observations,
            budgets: vec![budget],
            findings,
            complete: true,
            ..Run::default()
        }
    }
}

fn path(plant: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/recorded")
        .join(format!("{plant}.json"))
}

fn recorded(plant: &str) -> Recorded {
    let text = std::fs::read_to_string(path(plant))
        .unwrap_or_else(|e| panic!("{plant} is not recorded: {e}"));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{plant}: {e}"))
}

fn verdict(plant: &Plant, base: Side, new: Side) -> Proof {
    judged(plant, [base.into_run(), new.into_run()]).proof
}

fn plant(name: &str) -> &'static Plant {
    PLANTS.iter().find(|p| p.name == name).unwrap()
}

#[test]
fn every_recorded_plant_is_named_first_and_no_control_is_accused() {
    for plant in PLANTS {
        let Recorded { base, new } = recorded(plant.name);
        let proof = verdict(plant, base, new);
        assert_eq!(
            proof.result,
            Verdict::Right,
            "{}: {:#?}",
            plant.name,
            proof.accused
        );
        assert!(
            plant.causes().len() != 1 || proof.layer_is_right(),
            "{}: {:#?}",
            plant.name,
            proof.accused
        );
        assert!(
            proof.unexplained < 0.25,
            "{}: {} of the change is unexplained",
            plant.name,
            proof.unexplained
        );
    }
}

#[test]
fn the_same_cause_is_named_when_it_goes_away() {
    for plant in PLANTS {
        let Recorded { base, new } = recorded(plant.name);
        let proof = verdict(plant, new, base);
        assert_eq!(
            proof.result,
            Verdict::Right,
            "{}: {:#?}",
            plant.name,
            proof.accused
        );
    }
}

#[test]
fn a_side_compared_with_itself_accuses_nobody() {
    for plant in PLANTS {
        let Recorded { new, .. } = recorded(plant.name);
        let proof = verdict(plant, new.clone(), new);
        assert_eq!(proof.accused, [], "{}", plant.name);
    }
}

/// The fact by which a cause is known, taken away from both sides: nobody may be found confirmed of it any more.
#[test]
fn without_its_discriminator_a_cause_is_not_confirmed() {
    for (cause, facts) in [
        ("cpu.quota", &["throttle.", "cgroup.cpu_quota"][..]),
        ("cpu.affinity", &["server.cpus_allowed"]),
        ("cpu.contention", &["other.cpu."]),
        ("cpu.priority", &["server.nice"]),
        (
            "cpu.mitigation",
            &["server.store_bypass", "server.indirect_branch"],
        ),
        (
            "memory.limit",
            &["memory.", "server.faults.", "psi.memory."],
        ),
        ("memory.page_size", &["server.thp_disabled", "thp."]),
        (
            "storage.throttle",
            &["cgroup.disk_limits", "server.call.", "disk."],
        ),
        ("storage.durability", &["server.call.", "disk."]),
        ("storage.contention", &["other.disk."]),
        ("network.accept_queue", &["tcp.listen"]),
        ("network.delay", &["tcp.delayed_acks"]),
        ("app.lock", &["server.blocked.lock"]),
        (
            "client.saturated",
            &["client.saturated", "step.client", "client.cpu"],
        ),
    ] {
        let Recorded { mut base, mut new } = recorded(cause);
        for side in [&mut base, &mut new] {
            side.findings.clear();
            side.observations.iter_mut().for_each(|o| {
                o.totals
                    .retain(|name, _| !facts.iter().any(|f| name.starts_with(f)))
            });
        }
        let proof = verdict(plant(cause), base, new);
        assert!(
            proof
                .accused
                .iter()
                .all(|f| f.cause != cause || f.status != Status::Confirmed),
            "{cause}: {:#?}",
            proof.accused
        );
    }
}

#[test]
fn records_are_small_and_there_is_none_of_a_plant_that_is_gone() {
    let mut bytes = 0;
    for entry in std::fs::read_dir(path("x").parent().unwrap())
        .unwrap()
        .flatten()
    {
        bytes += entry.metadata().unwrap().len();
        let name = entry
            .path()
            .file_stem()
            .unwrap()
            .to_string_lossy()
            .into_owned();
        assert!(PLANTS.iter().any(|p| p.name == name), "{name}");
    }
    assert!(bytes < 1 << 20, "{bytes} bytes");
}
