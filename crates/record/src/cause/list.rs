//! What an entry of the registry is, and every cause, in the order of the article's search: network, disks, code, run
//! queue, locks, calls, memory, client, host.

use self::Need::{Followed, Reading};
use super::id;
use super::thresholds::*;
use crate::component::Component;
use crate::findings::Layer;
use crate::place::Place::*;
use crate::place::{Kind, Place};
use crate::reading::{Name, name};

/// A cause.
#[derive(Debug)]
pub struct Cause {
    /// Its name, as findings have it.
    pub name: &'static str,
    /// The layer.
    pub layer: Layer,
    /// What a table of suspects calls it.
    pub label: &'static str,
    /// What a headline calls it on the slower side.
    pub words: &'static str,
    /// The places of followed requests where it acts.
    pub places: &'static [Place],
    /// The probes whose rows point to it and to nothing else, by name; `random.*` is all of a family.
    pub probes: &'static [&'static str],
    /// The parts of a budget that it moves.
    pub moves: &'static [Kind],
    /// What tells it from its neighbours, in words.
    pub tells: &'static str,
    /// What a verdict needs.
    pub needs: &'static [Need],
    /// The causes that this one may be no more than a consequence of: more work for the same CPUs makes threads wait
    /// for them.
    pub follows: &'static [&'static str],
    /// The figures that its verdict turns on.
    pub thresholds: &'static [Threshold],
}

/// What a verdict cannot do without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Followed requests.
    Followed,
    /// A reading.
    Reading(Name),
}

/// A cause by its name, its layer, what a table of suspects calls it and what a headline does, with what is said of
/// most.
const fn named(
    name: &'static str,
    layer: Layer,
    label: &'static str,
    words: &'static str,
) -> Cause {
    let needs = &[Need::Followed];
    Cause {
        name,
        layer,
        label,
        words,
        places: &[],
        probes: &[],
        moves: &[],
        tells: "",
        needs,
        follows: &[],
        thresholds: &[],
    }
}

/// A cause that the rows of a family of probes point to: its `probes`, or a group that `fingerpost-diagnose` has a rule
/// for.
const fn of_probes(name: &'static str, layer: Layer, words: &'static str) -> Cause {
    Cause {
        tells: "the rows of its probes change, and others do not",
        needs: &[],
        thresholds: &[WORTH_NAMING, MOST_OF_GROUP],
        ..named(name, layer, words, words)
    }
}

impl Cause {
    /// Whether it moves a part of a budget.
    pub fn moves(&self, layer: Layer, component: &Component) -> bool {
        self.moves.contains(&Kind::of(layer, component))
    }
}

/// Ready to run, where others had the CPUs: what they have the load generator lacks as well. Of older records who had
/// them is not known.
const BESIDE_OTHERS: &[Kind] = &[
    Kind::Scheduler,
    Kind::ServerQueue,
    Kind::ClientCpu,
    Kind::CpuOthers,
    Kind::ClientCpuOthers,
];
/// Ready to run, where the server had the CPUs.
const BEHIND_SERVER: &[Kind] = &[
    Kind::Scheduler,
    Kind::ServerQueue,
    Kind::ClientCpu,
    Kind::CpuServer,
    Kind::ClientCpuServer,
];
/// The server's threads, ready to run, where any other has the CPUs before them.
const COME_LATER: &[Kind] = &[
    Kind::Scheduler,
    Kind::ServerQueue,
    Kind::CpuOthers,
    Kind::CpuClient,
];
/// The server's threads, ready to run, whoever has the CPUs: what holds the server back alone leaves the load generator
/// its own.
const HELD_BACK: &[Kind] = &[
    Kind::Scheduler,
    Kind::ServerQueue,
    Kind::CpuOthers,
    Kind::CpuServer,
    Kind::CpuClient,
    Kind::CpuFree,
];
/// The load generator, and what it has of the CPUs while the server or it itself waits for one.
const OF_CLIENT: &[Kind] = &[
    Kind::Client,
    Kind::ClientCpu,
    Kind::ClientCpuClient,
    Kind::ClientCpuFree,
    Kind::CpuClient,
];
/// All that a CPU does for a request.
const ON_CPU: &[Kind] = &[
    Kind::UserCode,
    Kind::Kernel,
    Kind::Faults,
    Kind::Syncs,
    Kind::Host,
];
/// The kernel on the server's behalf.
const KERNEL: &[Kind] = &[Kind::Kernel, Kind::Faults, Kind::Syncs];
/// Disks, and the kernel's work on the way to them.
const DISKS: &[Kind] = &[Kind::Storage, Kind::Syncs];

/// Every cause.
pub const CAUSES: &[Cause] = &[
    Cause {
        places: &[OnTheWay],
        moves: &[Kind::Network],
        tells: "data on the way, with drops or a backlog, and no late acknowledgements; CPUs idle",
        needs: &[
            Followed,
            Reading(name::NET_DROPS),
            Reading(name::TCP_DELAYED_ACKS),
        ],
        thresholds: &[SEGMENTS_AGAIN, MORE_OF_A_COUNT, GOOD_PART, SENT_AGAIN],
        ..named(
            id::NETWORK_SHAPING,
            Layer::Network,
            "network bandwidth",
            "a shaped or full network",
        )
    },
    Cause {
        places: &[Peer, PeerProcess],
        moves: &[Kind::Peer],
        tells: "the path leaves by a connection of the server's own",
        thresholds: &[LONGER_WAIT, GOOD_PART],
        ..named(
            id::PEER_SLOW,
            Layer::Network,
            "another service",
            "another service",
        )
    },
    Cause {
        places: &[DiskOwn, DiskBesideOthers, DiskDevice],
        moves: DISKS,
        tells: "time in the device and in its queue behind the server's own I/O",
        needs: &[Followed, Reading(name::DISK_BUSY_SECONDS)],
        follows: &[id::STORAGE_DURABILITY],
        thresholds: &[DISK_BUSY, DISK_IDLE, LONGER_WAIT, GOOD_PART],
        ..named(
            id::STORAGE_LATENCY,
            Layer::Storage,
            "disk latency",
            "a slower disk",
        )
    },
    Cause {
        places: &[DiskHeld],
        moves: DISKS,
        tells: "I/O held back before it comes to the device's queue; a limit on the group",
        needs: &[Followed, Reading(name::CGROUP_DISK_LIMITS)],
        thresholds: &[DEARER_SYNC, DISK_BUSY],
        ..named(
            id::STORAGE_THROTTLE,
            Layer::Storage,
            "a limit on disk I/O",
            "a throttled disk",
        )
    },
    Cause {
        places: &[DiskBehindOthers, DiskBesideOthers],
        moves: DISKS,
        tells: "waiting in the queue behind another's I/O, or in a device that others keep busy",
        needs: &[Followed, Reading(name::OTHER_DISK_BYTES)],
        thresholds: &[
            OTHERS_RATE,
            OTHERS_BESIDE_OURS,
            DISK_IN_USE,
            TWICE,
            OTHERS_BYTES,
            LONGER_WAIT,
            MORE_BESIDE,
            LESSER_PART,
        ],
        ..named(
            id::STORAGE_CONTENTION,
            Layer::Storage,
            "others' disk I/O",
            "other processes on the disk",
        )
    },
    Cause {
        places: &[
            DiskHeld,
            DiskBehindOthers,
            DiskOwn,
            DiskBesideOthers,
            DiskDevice,
        ],
        moves: DISKS,
        tells: "more syncs per transaction at the same cost each",
        needs: &[Followed, Reading(name::SERVER_CALL_FSYNC_COUNT)],
        follows: &[id::APP_SETTING],
        thresholds: &[
            MORE_OF_A_COUNT,
            FLUSHES_MATTER,
            MANY_SYNCS,
            SAME_COST,
            FEW_FLUSHES,
            MOST_OF_COMMITS,
            NO_FLUSHES,
        ],
        ..named(
            id::STORAGE_DURABILITY,
            Layer::Application,
            "how often it syncs",
            "more flushes per transaction",
        )
    },
    Cause {
        places: &[User],
        moves: &[Kind::UserCode],
        tells: "more user time per request, with as many calls",
        follows: &[id::APP_BUILD, id::APP_SETTING],
        thresholds: &[SLOWER_CODE, MORE_THAN_KERNEL, MUCH_WORK, MOST_OF_CPU],
        ..named(
            id::APP_WORK,
            Layer::Application,
            "CPU: the server's own code",
            "more work in the application",
        )
    },
    Cause {
        places: &[Kernel, Making],
        moves: KERNEL,
        tells: "more system calls per request at the same cost each",
        needs: &[Followed, Reading(name::SERVER_CALL_READ_COUNT)],
        // A socket that takes little at a time is written to more often.
        follows: &[id::APP_BUILD, id::APP_SETTING, id::NETWORK_SHAPING],
        thresholds: &[MORE_CALLS, MORE_ROUND_TRIPS, MOST_BY_NUMBER],
        ..named(
            id::APP_CALLS,
            Layer::Application,
            "how many system calls it makes",
            "more system calls per transaction",
        )
    },
    Cause {
        moves: &[Kind::UserCode],
        tells: "the same machine, and a program of another compiler, flag or version",
        needs: &[],
        ..named(
            id::APP_BUILD,
            Layer::Application,
            "compiler, flags or version",
            "another build",
        )
    },
    Cause {
        tells: "a parameter or variable that differs between the sides and moves the part that grew",
        needs: &[],
        ..named(
            id::APP_SETTING,
            Layer::Application,
            "a setting",
            "another setting",
        )
    },
    Cause {
        places: &[CpuServer],
        moves: BEHIND_SERVER,
        tells: "waiting for a CPU that the server itself had, with the server's CPUs busy",
        needs: &[
            Followed,
            Reading(name::SERVER_USER_SECONDS),
            Reading(name::SERVER_CPUS_ALLOWED),
        ],
        follows: &[
            id::CPU_AFFINITY,
            id::APP_WORK,
            id::APP_CALLS,
            id::SYSCALL_ENTRY,
            id::CPU_MITIGATION,
            id::MEMORY_PAGE_SIZE,
            id::CPU_SPEED,
            id::HOST_STEAL,
            id::KERNEL_TRACE,
        ],
        thresholds: &[SERVER_BUSY, LONGER_WAIT, GOOD_PART, LESS_BUSY],
        ..named(
            id::CPU_SATURATED,
            Layer::Scheduler,
            "run queue: more threads than CPUs",
            "more threads than CPUs",
        )
    },
    Cause {
        places: &[CpuOther],
        moves: BESIDE_OTHERS,
        tells: "waiting for a CPU that a named process had, at the usual weight and nice value",
        needs: &[Followed, Reading(name::OTHER_CPU_SECONDS)],
        thresholds: &[
            MUCH_OF_CPUS,
            LITTLE_OF_CPUS,
            CPUS_IDLE,
            LONGER_WAIT,
            GOOD_PART,
            OTHERS_CAME,
            OTHERS_CAME_TIMES,
            SAME_NEIGHBOURS,
            SAME_WORK,
            BEYOND_WORK,
        ],
        ..named(
            id::CPU_CONTENTION,
            Layer::Scheduler,
            "run queue: other processes",
            "other processes on the CPUs",
        )
    },
    Cause {
        places: &[CpuOther],
        moves: COME_LATER,
        tells: "as contention, with a lower weight or a higher nice value",
        needs: &[Followed, Reading(name::SERVER_NICE)],
        thresholds: &[LOW_WEIGHT],
        ..named(
            id::CPU_PRIORITY,
            Layer::Scheduler,
            "priority",
            "a low priority",
        )
    },
    Cause {
        places: &[CpuIdle, CpuServer, CpuClient, CpuUnknown],
        moves: HELD_BACK,
        tells: "waiting for a CPU while the group is throttled",
        needs: &[Followed, Reading(name::THROTTLE_SECONDS)],
        thresholds: &[PERIODS_CUT, TWICE, MOST_OF_OUTSIDE, MOST_OF_WAITING],
        ..named(id::CPU_QUOTA, Layer::Scheduler, "CPU quota", "a CPU quota")
    },
    Cause {
        places: &[CpuIdle],
        moves: HELD_BACK,
        tells: "waiting for a CPU while one idles that the server may not use; no throttling",
        needs: &[Followed, Reading(name::SERVER_CPUS_ALLOWED)],
        thresholds: &[CPUS_FULL, CPUS_IDLE],
        ..named(
            id::CPU_AFFINITY,
            Layer::Scheduler,
            "CPU affinity",
            "too few CPUs allowed",
        )
    },
    Cause {
        places: &[Lock],
        moves: &[Kind::Lock],
        tells: "waiting for a lock whose holder works or sleeps",
        follows: &[id::APP_SETTING],
        thresholds: &[LONGER_WAIT, GOOD_PART, FILE_LOCKS],
        ..named(
            id::APP_LOCK,
            Layer::Application,
            "locks",
            "a lock in the application",
        )
    },
    Cause {
        places: &[Sleeping],
        moves: &[Kind::Sleeping],
        tells: "a timer in the path",
        thresholds: &[LONGER_WAIT, GOOD_PART],
        ..named(
            id::APP_WAIT,
            Layer::Application,
            "sleeps and timers",
            "sleeps and timers",
        )
    },
    Cause {
        places: &[Lock],
        moves: &[Kind::Lock],
        tells: "the lock goes when the cache is switched off",
        needs: &[],
        ..named(
            id::APP_QUERY_CACHE,
            Layer::Application,
            "query cache",
            "the query cache's lock",
        )
    },
    Cause {
        places: &[Kernel, Making],
        moves: KERNEL,
        tells: "every call slower by the same amount of time, user code unchanged; seccomp, mitigations",
        needs: &[Followed, Reading(name::SERVER_CALL_READ_COUNT)],
        follows: &[id::KERNEL_TRACE],
        thresholds: &[
            SLOWER_CODE,
            AS_MANY_CALLS,
            MORE_OF_A_COUNT,
            FEW_FAULTS,
            MUCH_WORK,
            MOST_EXPENSIVE_ENTRY,
            LIKE_AMOUNTS,
            TOLD_BY_TICKS,
            LIKE_ENTRIES,
            MOST_OF_ROWS,
        ],
        ..named(
            id::SYSCALL_ENTRY,
            Layer::Kernel,
            "system call and signal cost",
            "the cost of entering the kernel",
        )
    },
    Cause {
        places: &[Kernel, Making],
        moves: KERNEL,
        tells: "a tracer is attached to the server, audit rules are loaded, trace events or tracers are on, or others' \
            programs trace",
        needs: &[
            Reading(name::SERVER_TRACED),
            Reading(name::AUDIT_RULES),
            Reading(name::TRACING_EVENTS),
            Reading(name::TRACING_PROGRAMS),
        ],
        ..named(
            id::KERNEL_TRACE,
            Layer::Kernel,
            "tracing and auditing",
            "somebody who traces or audits the server",
        )
    },
    Cause {
        places: &[Making],
        moves: KERNEL,
        tells: "clone, fork and exec in the path",
        ..named(
            id::PROCESS_CREATION,
            Layer::Kernel,
            "process and thread creation",
            "making processes and threads",
        )
    },
    Cause {
        places: &[User, Kernel, Making],
        moves: ON_CPU,
        tells: "user code takes longer too, and the speculation status of the tasks or the host differs",
        needs: &[Reading(name::SERVER_STORE_BYPASS_MITIGATED)],
        thresholds: &[SLOWER_CODE],
        ..named(
            id::CPU_MITIGATION,
            Layer::Cpu,
            "speculation mitigations",
            "a CPU mitigation",
        )
    },
    Cause {
        moves: ON_CPU,
        tells: "user code and the kernel take longer in proportion, with as much to do",
        thresholds: &[
            SLOWER_CODE,
            IN_PROPORTION,
            CLIENT_TOO,
            MORE_TO_DO,
            FEW_CALLS,
            FEW_FAULTS,
            MOST_OF_ROWS,
            PART_OF_WORK,
            SAME_COUNTERS,
        ],
        ..named(id::CPU_SPEED, Layer::Cpu, "the CPU's speed", "a slower CPU")
    },
    Cause {
        places: &[OnTheWay, Peer],
        moves: &[Kind::Network],
        tells: "steps of 40 ms with late acknowledgements, no drops",
        needs: &[Followed, Reading(name::TCP_DELAYED_ACKS)],
        thresholds: &[MANY_DELAYED, TWICE, DELAYED_ACK, MOST_OF_CHANGE],
        ..named(
            id::NETWORK_DELAY,
            Layer::Network,
            "TCP latency",
            "delayed acknowledgements",
        )
    },
    Cause {
        places: &[OnTheWay],
        moves: &[Kind::Network],
        tells: "the listen queue overflows; a handshake is repeated after a second",
        needs: &[Followed, Reading(name::TCP_LISTEN_OVERFLOWS)],
        thresholds: &[
            MORE_OF_A_COUNT,
            HANDSHAKE_AGAIN,
            MANY_OVERFLOWS,
            MOST_OF_CHANGE,
        ],
        ..named(
            id::NETWORK_ACCEPT_QUEUE,
            Layer::Network,
            "accept queue",
            "a full listen queue",
        )
    },
    Cause {
        places: &[Memory],
        moves: &[Kind::Memory, Kind::Faults],
        tells: "pages swapped in, reclaim, major faults, memory pressure",
        needs: &[Followed, Reading(name::MEMORY_SWAP_IN_PAGES)],
        thresholds: &[
            MORE_OF_A_COUNT,
            PAGES_SWAPPED,
            MAJOR_FAULTS,
            MEMORY_PRESSURE,
        ],
        ..named(
            id::MEMORY_LIMIT,
            Layer::Memory,
            "memory and paging",
            "too little memory",
        )
    },
    Cause {
        moves: &[Kind::Memory, Kind::UserCode, Kind::Faults],
        tells: "huge pages on one side only, and more faults on the other",
        needs: &[Reading(name::SERVER_FAULTS_MINOR)],
        thresholds: &[MORE_OF_A_COUNT],
        ..named(
            id::MEMORY_PAGE_SIZE,
            Layer::Memory,
            "page size",
            "small pages",
        )
    },
    Cause {
        places: &[Client, CpuClient],
        moves: OF_CLIENT,
        tells: "the client says that it was the limit, or used its CPUs up",
        needs: &[Followed, Reading(name::CLIENT_CPU_SECONDS)],
        thresholds: &[CLIENT_FULL, MOST_PASSES, MUCH_WORK, CLIENT_DOES_MORE],
        ..named(
            id::CLIENT_SATURATED,
            Layer::Client,
            "the client itself",
            "the load generator",
        )
    },
    Cause {
        moves: ON_CPU,
        tells: "steal time, alike for all",
        needs: &[Reading(name::CPU_STEAL_SECONDS)],
        thresholds: &[MORE_STOLEN, MORE_STOLEN_SECONDS, GOOD_PART],
        ..named(
            id::HOST_STEAL,
            Layer::Host,
            "host steal",
            "the host under this guest",
        )
    },
    of_probes(id::KERNEL_CLOCK, Layer::Kernel, "reading the clock"),
    of_probes(
        id::KERNEL_WORK,
        Layer::Kernel,
        "the kernel's work inside system calls",
    ),
    of_probes(id::KERNEL_SIGNAL, Layer::Kernel, "signal handling"),
    of_probes(id::KERNEL_PROCESS, Layer::Kernel, "process creation"),
    of_probes(id::KERNEL_THREAD, Layer::Kernel, "thread creation"),
    of_probes(
        id::SCHEDULER_SWITCH,
        Layer::Scheduler,
        "switching between tasks",
    ),
    of_probes(
        id::KERNEL_IPC,
        Layer::Kernel,
        "local communication between processes",
    ),
    of_probes(id::NETWORK_STACK, Layer::Network, "the network stack"),
    of_probes(
        id::MEMORY_FAULT,
        Layer::Memory,
        "memory mapping and page faults",
    ),
    of_probes(
        id::MEMORY_MAPPING,
        Layer::Memory,
        "the call that maps memory",
    ),
    of_probes(
        id::MEMORY_FIRST_TOUCH,
        Layer::Memory,
        "page faults with their zero-filling",
    ),
    of_probes(
        id::MEMORY_BANDWIDTH,
        Layer::Memory,
        "memory latency and bandwidth",
    ),
    Cause {
        probes: &["sync.*"],
        ..of_probes(id::KERNEL_FUTEX, Layer::Kernel, "locks between threads")
    },
    Cause {
        probes: &["parallel.*"],
        ..of_probes(
            id::KERNEL_LOCKING,
            Layer::Kernel,
            "the kernel's own locking",
        )
    },
    of_probes(
        id::KERNEL_SCALING,
        Layer::Kernel,
        "locks or threads below the program",
    ),
    Cause {
        tells: "the same applications launched with swap in another place",
        needs: &[],
        ..named(
            id::MEMORY_SWAP_PLACE,
            Layer::Memory,
            "placement of swap",
            "another placement of swap",
        )
    },
    of_probes(id::MEMORY_PAGING, Layer::Memory, "paging"),
];
