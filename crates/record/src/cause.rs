//! The registry of causes: what a finding may name, in which layer, and what is known of each.
//!
//! One entry per cause. Judges have a rule for each that they can judge, and take everything else from here: what
//! tables and headlines call it, which places and parts it moves, what its verdict needs, what it draws after itself,
//! and the thresholds with where each comes from.

pub mod id;
mod list;
pub mod thresholds;

pub use list::{CAUSES, Cause, Need};
pub use thresholds::{CONFIRMED, LIKELY, NOT_FOLLOWED, Threshold};

/// The cause of this name.
pub fn cause(name: &str) -> Option<&'static Cause> {
    CAUSES.iter().find(|c| c.name == name)
}

/// The cause that says of itself that this probe points to it.
pub fn of_probe(probe: &str) -> Option<&'static Cause> {
    let names = |name: &&str| {
        name.strip_suffix('*')
            .map_or(*name == probe, |family| probe.starts_with(family))
    };
    CAUSES.iter().find(|c| c.probes.iter().any(names))
}

/// What is said of a layer whose time grew where no cause was singled out (`LAYER.unknown`).
const UNKNOWN: &[(&str, &str)] = &[
    ("application.unknown", "unexplained time in the application"),
    ("kernel.unknown", "unexplained time in the kernel"),
    ("scheduler.unknown", "unexplained waiting for a CPU"),
    ("cpu.unknown", "unexplained time on the CPU"),
    ("memory.unknown", "unexplained waiting for memory"),
    ("storage.unknown", "unexplained waiting for the disk"),
    ("network.unknown", "unexplained waiting for the network"),
    ("client.unknown", "unexplained time in the load generator"),
    ("host.unknown", "unexplained time of the host"),
];

fn unknown(name: &str) -> Option<&'static str> {
    UNKNOWN
        .iter()
        .find(|(unknown, _)| *unknown == name)
        .map(|(_, words)| *words)
}

/// What a table of suspects calls a cause; its own name where it is none of the registry.
pub fn label(name: &str) -> &str {
    cause(name)
        .map(|c| c.label)
        .or_else(|| unknown(name))
        .unwrap_or(name)
}

/// What a headline calls a cause; its own name where it is none of the registry.
pub fn words(name: &str) -> &str {
    cause(name)
        .map(|c| c.words)
        .or_else(|| unknown(name))
        .unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_cause_explains_has_words_in_every_layer() {
        for (name, words) in UNKNOWN {
            let layer = name.strip_suffix(".unknown").unwrap();
            assert!(
                CAUSES.iter().any(|c| c.layer.as_str() == layer),
                "{layer} is no layer"
            );
            assert_eq!((label(name), super::words(name)), (*words, *words));
        }
        assert!(CAUSES.iter().all(|c| label(&format!("{}.unknown", c.layer.as_str())).starts_with("unexplained")));
        assert_eq!(label("else.unknown"), "else.unknown");
    }

    #[test]
    fn every_cause_is_there_once_and_is_whole() {
        for (i, c) in CAUSES.iter().enumerate() {
            assert!(
                CAUSES[..i].iter().all(|d| d.name != c.name),
                "{} is there twice",
                c.name
            );
            assert!(
                !c.label.is_empty() && !c.words.is_empty() && !c.tells.is_empty(),
                "{}",
                c.name
            );
            assert!(
                c.thresholds
                    .iter()
                    .all(|t| t.value.is_finite() && t.source.len() > 10),
                "{}: each threshold has a source",
                c.name
            );
            assert!(
                c.follows.iter().all(|f| cause(f).is_some() && *f != c.name),
                "{}: {:?}",
                c.name,
                c.follows
            );
        }
        assert_eq!(
            (label("cpu.quota"), words("nobody.knows")),
            ("CPU quota", "nobody.knows")
        );
    }

    #[test]
    fn every_cause_has_a_constant_and_every_constant_is_a_cause() {
        let sorted = |names: Vec<&'static str>| {
            let mut names = names;
            names.sort_unstable();
            names
        };
        let names = CAUSES.iter().map(|c| c.name).collect();
        assert_eq!(sorted(names), sorted(id::ALL.to_vec()));
    }

    #[test]
    fn no_chain_of_consequences_goes_in_a_circle() {
        fn depth(name: &str, left: u32) -> u32 {
            assert!(left > 0, "{name} follows from itself");
            cause(name).map_or(0, |c| {
                c.follows
                    .iter()
                    .map(|f| 1 + depth(f, left - 1))
                    .max()
                    .unwrap_or(0)
            })
        }
        CAUSES.iter().for_each(|c| assert!(depth(c.name, 6) < 6));
    }

    #[test]
    fn the_designs_causes_are_all_there() {
        for name in [
            "cpu.quota",
            "cpu.affinity",
            "cpu.contention",
            "cpu.priority",
            "syscall.entry",
            "cpu.mitigation",
            "cpu.speed",
            "memory.limit",
            "memory.page_size",
            "storage.throttle",
            "storage.latency",
            "storage.contention",
            "storage.durability",
            "network.shaping",
            "network.accept_queue",
            "network.delay",
            "app.lock",
            "app.work",
            "app.calls",
            "app.wait",
            "app.build",
            "app.setting",
            "peer.slow",
            "kernel.trace",
            "client.saturated",
            "host.steal",
        ] {
            assert!(cause(name).is_some(), "{name}");
        }
    }
}
