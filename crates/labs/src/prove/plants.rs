//! The table of plants: each fault by which a cause is validated, the rehearsal that it bites on, and what is changed.

use std::time::Duration;

use fingerpost_diagnose::cause::Fault;
use fingerpost_diagnose::causes::of_fault;
use fingerpost_record::Layer;
use fingerpost_record::cause::id;
use fingerpost_workloads::rehearsal::Recipe;

/// What holds for the server, or beside it, on one side.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// CPUs' worth of time that the server's group may use.
    pub quota: Option<f64>,
    /// Whether the server may use one CPU only.
    pub one_cpu: bool,
    /// The server's nice value.
    pub nice: i32,
    /// A neighbour that uses all CPUs.
    pub hog: bool,
    /// A neighbour that writes and syncs on the same disk.
    pub syncer: bool,
    /// Instructions of a filter before each system call.
    pub filter: usize,
    /// Whether the mitigation of Speculative Store Bypass is on for the server.
    pub store_bypass: bool,
    /// Whether huge pages are off for the server.
    pub no_huge_pages: bool,
    /// MiB of memory that the server's group may use; the rest goes to a swap file of ours.
    pub memory_mib: Option<u64>,
    /// Writes a second that the server's group may do.
    pub writes: Option<u64>,
    /// Bytes a second over the loopback interface of a network of our own.
    pub loopback: Option<u32>,
    /// Whether the load generator may use one CPU only.
    pub client_on_one_cpu: bool,
}

/// One plant.
pub struct Plant {
    /// The name: that of the cause, or `control.…` or `both.…`.
    pub name: &'static str,
    /// What is done, in words.
    pub what: &'static str,
    /// The faults: the verdict must name the causes that they are validated by. None for a control.
    pub faults: &'static [Fault],
    /// The rehearsal, without and with the plant.
    pub recipes: fn() -> [Recipe; 2],
    /// The surroundings, without and with the plant.
    pub changes: fn() -> [Change; 2],
    /// Whether it takes root.
    pub root: bool,
    /// CPUs that it takes at least.
    pub cpus: usize,
    /// The least length of a pass: some causes act in steps of their own.
    pub least: Duration,
}

/// A refused connection is tried again after a second.
const SECONDS: Duration = Duration::from_millis(1500);

/// A transaction of user code.
fn computing() -> Recipe {
    Recipe {
        work: 250_000,
        ..Recipe::default()
    }
}

/// A transaction that is committed to the disk.
fn committing() -> Recipe {
    Recipe {
        work: 20_000,
        sync_every: 1,
        clients: 1,
        ..Recipe::default()
    }
}

fn same(recipe: Recipe) -> [Recipe; 2] {
    [recipe.clone(), recipe]
}

fn planted(change: Change) -> [Change; 2] {
    [Change::default(), change]
}

/// What most have in common: a computing server whose surroundings stay. The least length is several periods of a CPU
/// quota.
const USUAL: Plant = Plant {
    name: "",
    what: "",
    faults: &[],
    recipes: || same(computing()),
    changes: || [Change::default(), Change::default()],
    root: false,
    cpus: 1,
    least: Duration::from_millis(300),
};

/// Every plant, then the controls.
pub static PLANTS: &[Plant] = &[
    Plant {
        name: id::CPU_QUOTA,
        faults: &[Fault::CpuQuota],
        what: "the server's group gets half a CPU",
        changes: || {
            planted(Change {
                quota: Some(0.5),
                ..Change::default()
            })
        },
        root: true,
        ..USUAL
    },
    Plant {
        name: id::CPU_AFFINITY,
        faults: &[Fault::OneCpu],
        what: "the server may use one CPU",
        changes: || {
            planted(Change {
                one_cpu: true,
                ..Change::default()
            })
        },
        cpus: 2,
        ..USUAL
    },
    Plant {
        name: id::CPU_CONTENTION,
        faults: &[Fault::BusyNeighbour],
        what: "another process uses all CPUs",
        changes: || {
            planted(Change {
                hog: true,
                ..Change::default()
            })
        },
        ..USUAL
    },
    Plant {
        name: id::CPU_PRIORITY,
        faults: &[Fault::Niced],
        what: "the server is niced, beside a process that uses all CPUs on both sides",
        changes: || {
            [
                Change {
                    hog: true,
                    ..Change::default()
                },
                Change {
                    hog: true,
                    nice: 10,
                    ..Change::default()
                },
            ]
        },
        ..USUAL
    },
    Plant {
        name: id::SYSCALL_ENTRY,
        faults: &[Fault::CallFilter],
        what: "a filter of 2000 instructions before each system call of the server",
        recipes: || {
            same(Recipe {
                calls: 1500,
                clients: 1,
                ..Recipe::default()
            })
        },
        changes: || {
            planted(Change {
                filter: 2000,
                ..Change::default()
            })
        },
        ..USUAL
    },
    Plant {
        name: id::CPU_MITIGATION,
        faults: &[Fault::NoStoreBypass],
        what: "no speculative store bypass for the server",
        recipes: || {
            same(Recipe {
                stores: 60_000,
                clients: 1,
                ..Recipe::default()
            })
        },
        changes: || {
            planted(Change {
                store_bypass: true,
                ..Change::default()
            })
        },
        ..USUAL
    },
    Plant {
        name: id::MEMORY_LIMIT,
        faults: &[Fault::LittleMemory],
        what: "the server's group gets two thirds of the memory that it holds, and a swap file",
        recipes: || {
            same(Recipe {
                held_mib: 48,
                touches: 20,
                clients: 1,
                ..Recipe::default()
            })
        },
        changes: || {
            planted(Change {
                memory_mib: Some(34),
                ..Change::default()
            })
        },
        root: true,
        ..USUAL
    },
    Plant {
        name: id::MEMORY_PAGE_SIZE,
        faults: &[Fault::NoHugePages],
        what: "no huge pages for the server",
        recipes: || {
            same(Recipe {
                fresh_kib: 8192,
                clients: 1,
                ..Recipe::default()
            })
        },
        changes: || {
            planted(Change {
                no_huge_pages: true,
                ..Change::default()
            })
        },
        ..USUAL
    },
    Plant {
        name: id::STORAGE_THROTTLE,
        faults: &[Fault::WriteLimit],
        what: "the server's group may write 600 times a second",
        recipes: || same(committing()),
        changes: || {
            planted(Change {
                writes: Some(600),
                ..Change::default()
            })
        },
        root: true,
        ..USUAL
    },
    Plant {
        name: id::STORAGE_DURABILITY,
        faults: &[Fault::SyncEach],
        what: "each transaction is synced instead of one in fifty",
        recipes: || {
            [
                Recipe {
                    sync_every: 50,
                    ..committing()
                },
                committing(),
            ]
        },
        ..USUAL
    },
    Plant {
        name: id::STORAGE_CONTENTION,
        faults: &[Fault::SyncingNeighbour],
        what: "another process writes and syncs on the same disk",
        recipes: || same(committing()),
        changes: || {
            planted(Change {
                syncer: true,
                ..Change::default()
            })
        },
        ..USUAL
    },
    Plant {
        name: id::NETWORK_SHAPING,
        faults: &[Fault::SlowLoopback],
        what: "4 MB/s over the loopback interface of a network of our own",
        recipes: || {
            same(Recipe {
                answer: 16 << 10,
                ..Recipe::default()
            })
        },
        changes: || {
            planted(Change {
                loopback: Some(4_000_000),
                ..Change::default()
            })
        },
        root: true,
        ..USUAL
    },
    Plant {
        name: id::NETWORK_ACCEPT_QUEUE,
        faults: &[Fault::ShortListenQueue],
        what: "a listen queue of one, with a connection for each transaction",
        recipes: || {
            let open = Recipe {
                connects: true,
                clients: 16,
                work: 50_000,
                think_us: 3000,
                ..Recipe::default()
            };
            // The kernel admits one more than it is told.
            [open.clone(), Recipe { backlog: 0, ..open }]
        },
        least: SECONDS,
        ..USUAL
    },
    Plant {
        name: id::NETWORK_DELAY,
        faults: &[Fault::Nagle],
        what: "answers in two small writes, held back by Nagle's algorithm and delayed acknowledgements",
        recipes: || {
            [
                Recipe::default(),
                Recipe {
                    split: true,
                    ..Recipe::default()
                },
            ]
        },
        ..USUAL
    },
    Plant {
        name: id::APP_LOCK,
        faults: &[Fault::OneLock],
        what: "one lock around the server's work, which waits a millisecond for something",
        recipes: || {
            let waiting = Recipe {
                work: 20_000,
                pause_us: 1000,
                ..Recipe::default()
            };
            [
                waiting.clone(),
                Recipe {
                    lock: true,
                    ..waiting
                },
            ]
        },
        ..USUAL
    },
    Plant {
        name: id::CLIENT_SATURATED,
        faults: &[Fault::BusyClient],
        what: "a load generator that works hard, on one CPU",
        recipes: || {
            [
                Recipe::default(),
                Recipe {
                    client_work: 300_000,
                    ..Recipe::default()
                },
            ]
        },
        changes: || {
            planted(Change {
                client_on_one_cpu: true,
                ..Change::default()
            })
        },
        ..USUAL
    },
    Plant {
        name: "both.calls_and_syncs",
        what: "a filter before each system call, and each transaction synced",
        faults: &[Fault::CallFilter, Fault::SyncEach],
        recipes: || {
            let calls = Recipe {
                calls: 1500,
                sync_every: 50,
                clients: 1,
                ..Recipe::default()
            };
            [
                calls.clone(),
                Recipe {
                    sync_every: 1,
                    ..calls
                },
            ]
        },
        changes: || {
            planted(Change {
                filter: 2000,
                ..Change::default()
            })
        },
        ..USUAL
    },
    Plant {
        name: "control.nothing",
        what: "nothing is planted",
        ..USUAL
    },
    Plant {
        name: "control.disk_unused",
        what: "a limit on the disk, for a server that does not use it",
        changes: || {
            planted(Change {
                writes: Some(40),
                ..Change::default()
            })
        },
        root: true,
        ..USUAL
    },
    Plant {
        name: "control.memory_unused",
        what: "no huge pages, for a server that hardly uses memory",
        recipes: || {
            same(Recipe {
                calls: 1500,
                clients: 1,
                ..Recipe::default()
            })
        },
        changes: || {
            planted(Change {
                no_huge_pages: true,
                ..Change::default()
            })
        },
        ..USUAL
    },
];

impl Plant {
    /// The causes that the verdict must name.
    pub fn causes(&self) -> Vec<&'static str> {
        let causes = self.faults.iter().filter_map(|fault| of_fault(*fault));
        causes.map(|cause| cause.name).collect()
    }

    /// The layer of its cause, where it has one alone.
    pub fn layer(&self) -> Option<Layer> {
        let [fault] = self.faults else { return None };
        of_fault(*fault).map(|c| c.layer)
    }

    /// Whether it needs a network of its own.
    pub fn own_network(&self) -> bool {
        (self.changes)().iter().any(|c| c.loopback.is_some())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use fingerpost_diagnose::causes;

    use super::*;

    #[test]
    fn every_fault_of_a_cause_is_planted_once_alone_under_its_name() {
        let alone = |fault: Fault| PLANTS.iter().filter(move |p| p.faults == [fault]);
        for cause in causes::all() {
            let Some(fault) = cause.fault else { continue };
            let names: Vec<&str> = alone(fault).map(|p| p.name).collect();
            assert_eq!(names, [cause.name], "{fault:?}");
        }
        let causes: BTreeSet<&str> = PLANTS.iter().flat_map(Plant::causes).collect();
        assert_eq!(
            causes.len(),
            causes::all().filter(|c| c.fault.is_some()).count()
        );
        assert!(
            PLANTS.iter().all(|p| p.causes().len() == p.faults.len()),
            "a fault is of no cause"
        );
    }

    #[test]
    fn every_plant_changes_something() {
        for plant in PLANTS {
            let ([base, new], [before, after]) = ((plant.recipes)(), (plant.changes)());
            assert_eq!(
                base == new && before == after,
                plant.name == "control.nothing",
                "{}",
                plant.name
            );
        }
        assert_eq!(PLANTS.iter().filter(|p| p.causes().len() == 1).count(), 16);
    }
}
