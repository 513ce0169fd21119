//! What measures each published table here: names and settings for `run`.

/// What measures a table here.
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    /// The published table.
    pub table: &'static str,
    /// Names for `run`.
    pub names: &'static [&'static str],
    /// Settings for `run`.
    pub set: &'static [&'static str],
    /// Whether it takes a minute or less and needs neither rights nor an installed server.
    pub fits: bool,
    /// Whether it must be allowed to change the system.
    pub leave: bool,
}

const fn recipe(
    table: &'static str,
    names: &'static [&'static str],
    set: &'static [&'static str],
    fits: bool,
) -> Recipe {
    Recipe {
        table,
        names,
        set,
        fits,
        leave: false,
    }
}

/// One for each table.
const RECIPES: &[Recipe] = &[
    recipe(
        "lmbench-process",
        &[
            "process.fork",
            "process.exec_dynamic",
            "process.shell",
            "thread.create",
        ],
        &[],
        true,
    ),
    recipe(
        "lmbench-syscall-signal",
        &[
            "syscall.null",
            "syscall.read",
            "syscall.write",
            "syscall.stat",
            "syscall.open_close",
            "syscall.select",
            "signal.install",
            "signal.handle",
        ],
        &[],
        true,
    ),
    recipe(
        "lmbench-ipc",
        &[
            "ipc.pipe",
            "ipc.unix",
            "ipc.udp",
            "ipc.tcp",
            "ipc.tcp_connect",
        ],
        &[],
        true,
    ),
    recipe(
        "mysql-scaling",
        &["database", "ipc.tcp"],
        &[
            "engine=mariadb",
            "storage=myisam",
            "clients=1,2,5,10,20,35,50",
        ],
        false,
    ),
    recipe(
        "mysql-query-cache",
        &["database"],
        &[
            "engine=mariadb",
            "storage=myisam",
            "query_cache=on",
            "clients=1,2,5,10,20,35,50",
        ],
        false,
    ),
    recipe(
        "apache",
        &["web"],
        &["connections=100", "keepalive=off"],
        true,
    ),
    recipe("flops", &["flops"], &[], true),
    recipe(
        "zerofill-3",
        &[
            "zerofill.alloc",
            "zerofill.touch",
            "zerofill.phase",
            "zerofill.zeroing",
            "syscall.null",
        ],
        &["api=mmap"],
        true,
    ),
    recipe(
        "zerofill-4",
        &[
            "zerofill.alloc",
            "zerofill.touch",
            "zerofill.phase",
            "zerofill.zeroing",
            "syscall.null",
        ],
        &["api=mmap"],
        true,
    ),
    Recipe {
        leave: true,
        ..recipe(
            "launch",
            &["launch"],
            &["manifest=published", "placements=file,single,dual"],
            false,
        )
    },
    recipe("launch-pageins", &["launch"], &["state=after-boot"], false),
    recipe("site", &["site"], &[], true),
];

impl Recipe {
    /// The command that does it.
    pub fn command(&self) -> String {
        let set: String = self
            .set
            .iter()
            .map(|pair| format!(" --set {pair}"))
            .collect();
        let leave = if self.leave {
            " --allow-system-changes"
        } else {
            ""
        };
        format!("fingerpost run {}{set}{leave}", self.names.join(" "))
    }
}

/// What measures a table here.
pub fn recipe_of(table: &str) -> Option<&'static Recipe> {
    RECIPES.iter().find(|r| r.table == table)
}
