//! Who else uses the machine while a service is watched: other control groups, with their CPU, block I/O and memory.

use std::collections::{BTreeMap, HashSet};

use fingerpost_sys::cgroup::members;
use fingerpost_sys::cgroup::usage::{self, Usage};
use fingerpost_sys::procfs::Paths;

use crate::follow::source::first_pid_namespace;
use crate::machine::{Totals, add_by_name};

/// Groups as they are at one moment, by path.
type Groups = BTreeMap<String, Usage>;

/// The neighbours of a service, from the moment when it is watched.
pub struct Neighbours {
    before: Groups,
    of_service: HashSet<String>,
}

impl Neighbours {
    /// Those of a service of these processes; their groups are looked up while they live.
    pub fn begin(paths: &Paths, pids: impl IntoIterator<Item = i32>) -> Neighbours {
        Neighbours {
            before: usage::all(paths),
            of_service: pids.into_iter().flat_map(members::groups_of).collect(),
        }
    }

    /// How they were seen, or why not, and what they used meanwhile.
    pub fn finish(self, paths: &Paths) -> (&'static str, Totals) {
        let now = usage::all(paths);
        if first_pid_namespace().is_err() {
            let inside = "none: this is inside a container, from which only its own processes and groups are seen; who \
                          else on the host has the CPU, the disk or the memory is seen from the host";
            (inside, Totals::new())
        } else if now.is_empty() {
            ("none: no control groups are mounted here", Totals::new())
        } else {
            ("control groups' counters", self.since(&now))
        }
    }

    /// What groups but the service's used since: in all, and the largest by path. What is in no group is told by
    /// process.
    fn since(&self, now: &Groups) -> Totals {
        let mut t = Totals::new();
        let others = || {
            now.iter()
                .filter(|(path, _)| path.as_str() != "/" && !self.of_service.contains(*path))
        };
        let mut add = |names: (&str, &str), of: fn(&Usage) -> Option<f64>| {
            let then = |path| self.before.get(path).and_then(of).unwrap_or(0.0);
            let grown = others().filter_map(|(path, now)| {
                Some((path.as_str(), Some((of(now)? - then(path)).max(0.0))))
            });
            let all: Vec<_> = grown.collect();
            // Where no other group is told apart, theirs is in the root's: that is not nothing.
            if !all.is_empty() {
                add_by_name(&mut t, names, all.into_iter());
            }
        };
        add(("group.cpu", "seconds"), |u| u.cpu_s);
        add(("group.disk", "bytes"), |u| u.disk_bytes);
        add(("group.memory", "bytes"), |u| u.memory_bytes);
        t
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(of: &[(&str, f64, f64)]) -> Groups {
        let usage = |cpu, disk| Usage {
            cpu_s: Some(cpu),
            disk_bytes: Some(disk),
            memory_bytes: None,
        };
        of.iter()
            .map(|(path, cpu, disk)| ((*path).to_owned(), usage(*cpu, *disk)))
            .collect()
    }

    #[test]
    fn what_others_used_is_told_and_the_services_own_is_not() {
        let before = groups(&[
            ("/", 9.0, 9.0),
            ("/shop", 1.0, 0.0),
            ("/backup", 1.0, 100.0),
        ]);
        let after = groups(&[
            ("/", 99.0, 99.0),
            ("/shop", 5.0, 0.0),
            ("/backup", 3.5, 4196.0),
            ("/new", 0.5, 0.0),
        ]);
        let neighbours = Neighbours {
            before,
            of_service: HashSet::from(["/shop".to_owned()]),
        };
        let told = neighbours.since(&after);
        let expected = [
            ("group.cpu./backup.seconds", 2.5),
            ("group.cpu./new.seconds", 0.5),
            ("group.cpu.seconds", 3.0),
            ("group.disk./backup.bytes", 4096.0),
            ("group.disk.bytes", 4096.0),
        ];
        assert_eq!(
            told,
            expected
                .map(|(name, value)| (name.to_owned(), value))
                .into()
        );
        let alone = groups(&[("/", 99.0, 99.0), ("/shop", 5.0, 0.0)]);
        assert_eq!(
            neighbours.since(&alone),
            Totals::new(),
            "what is in no group is not nothing"
        );
    }

    #[test]
    fn a_group_is_told_however_long_its_path_is() {
        let pod = format!(
            "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{}.slice/cri-containerd-{}.scope",
            "0".repeat(36),
            "a".repeat(64)
        );
        let hidden = format!("/user.slice{}", "/é".repeat(1300));
        assert!(pod.len() > 150 && hidden.len() > 3900);
        let neighbours = Neighbours {
            before: Groups::new(),
            of_service: HashSet::new(),
        };
        let told = neighbours.since(&groups(&[(&pod, 2.0, 0.0), (&hidden, 3.0, 0.0)]));
        assert_eq!(told[&format!("group.cpu.{pod}.seconds")], 2.0);
        let long = told
            .iter()
            .find(|(name, _)| name.contains('…'))
            .expect("the other, shortened");
        assert!(long.0.starts_with("group.cpu./user.slice/é") && *long.1 == 3.0);
        assert!(long.0.len() < 330, "{}", long.0.len());
    }

    #[test]
    fn the_machine_is_read_without_a_negative() {
        let paths = Paths::system();
        let (source, totals) = Neighbours::begin(&paths, []).finish(&paths);
        assert!(totals.values().all(|v| *v >= 0.0) && !source.is_empty());
    }
}
