//! The plants on which rules may be worked.

use std::time::Duration;

use fingerpost_workloads::planted::servers::Engine::{
    self, Apache, MariaDb, Nginx, PostgreSql, Proxy, Redis, Sqlite,
};

use super::around::Neighbour;
use super::kind::{Kind, Need, USUAL, adjustable};
use super::scene::{
    self, Pair, Scene, change, computing, little, reading_and_writing, share_but_first, sleeping,
};

/// CPUs' worth of time that a server under [`computing`] uses, about.
const DEMAND: f64 = 1.6;

/// Every plant, then the controls.
pub static PLANTS: &[Kind] = &[
    Kind {
        name: "cpu.quota/own",
        what: "the server's control group gets less CPU time than it uses",
        engines: &[MariaDb, PostgreSql, Nginx, Apache, Redis],
        plant: |pair, m| pair.new.around.quota = Some(DEMAND / (1.0 + m)),
        joins: true,
        ..adjustable(0.2, 3.0)
    },
    Kind {
        name: "cpu.affinity/one",
        what: "the server may use one CPU",
        engines: &[MariaDb, PostgreSql, Nginx, Sqlite],
        plant: |pair, _| {
            pair.new.plan.surroundings.cpus = pair.cpus[..1.min(pair.cpus.len())].to_vec()
        },
        needs: &[Need::TwoCpus],
        ..USUAL
    },
    Kind {
        name: "cpu.contention/beside",
        what: "threads of another process use CPU time",
        engines: &[MariaDb, PostgreSql, Nginx, Apache, Redis, Sqlite],
        plant: |pair, m| pair.new.around.beside(Neighbour::Burns(m.round() as usize)),
        joins: true,
        ..adjustable(1.0, 6.0)
    },
    Kind {
        name: "cpu.contention/group",
        what: "a process in a control group of its own uses CPU time, with a high weight",
        engines: &[MariaDb, PostgreSql, Nginx],
        plant: |pair, m| {
            pair.new
                .around
                .beside(Neighbour::BurnsApart(2, (m * 100.0) as u64))
        },
        ..adjustable(1.0, 20.0)
    },
    Kind {
        name: "cpu.contention/shells",
        what: "shells that count, each in a process group of its own",
        engines: &[MariaDb, PostgreSql, Nginx, Apache, Redis],
        plant: |pair, m| {
            pair.new
                .around
                .beside(Neighbour::Shells(m.round() as usize))
        },
        joins: true,
        ..adjustable(1.0, 6.0)
    },
    Kind {
        name: "cpu.priority/nice",
        what: "the server is niced, beside a process that uses CPU time on both sides",
        engines: &[MariaDb, PostgreSql, Nginx, Redis],
        plant: |pair, m| {
            pair.both(|scene| scene.around.beside(Neighbour::Burns(2)));
            pair.new.plan.surroundings.nice = m.round() as i32;
        },
        range: (3.0, 9.0),
        ..USUAL
    },
    Kind {
        name: "syscall.entry/filter",
        what: "a long filter before each system call of the server",
        engines: &[MariaDb, PostgreSql, Nginx, Redis],
        scene: little,
        plant: |pair, m| pair.new.plan.surroundings.filters = vec![m as usize],
        range: (800.0, 4000.0),
        ..USUAL
    },
    Kind {
        name: "cpu.mitigation/store_bypass",
        what: "no speculative store bypass for the server",
        engines: &[MariaDb, PostgreSql, Sqlite, Nginx],
        plant: |pair, _| pair.new.plan.surroundings.store_bypass = true,
        needs: &[Need::StoreBypass],
        ..USUAL
    },
    Kind {
        name: "memory.page_size/small",
        what: "no huge pages for the server",
        engines: &[MariaDb, Redis, Sqlite],
        plant: |pair, _| pair.new.plan.surroundings.no_huge_pages = true,
        needs: &[Need::HugePages],
        ..USUAL
    },
    Kind {
        name: "memory.limit/swap",
        what: "the server's control group gets less memory than it holds, and a swap file",
        engines: &[Redis],
        scene: scene::large_values,
        plant: |pair, m| pair.new.around.memory_short = Some(m),
        ..adjustable(0.02, 0.35)
    },
    Kind {
        name: "storage.throttle/writes",
        what: "the server's control group may do fewer writes a second than it wants",
        engines: &[MariaDb, PostgreSql, Sqlite, Redis],
        scene: scene::committing,
        plant: |pair, m| pair.new.around.writes = Some((2.0 * pair.rate / (1.0 + m)) as u64),
        ..adjustable(0.3, 6.0)
    },
    Kind {
        name: "storage.contention/syncer",
        what: "another process writes and syncs on the same disk",
        engines: &[MariaDb, PostgreSql, Sqlite, Redis],
        scene: scene::committing,
        plant: |pair, m| {
            pair.new
                .around
                .beside(Neighbour::Syncs((10_000.0 / m) as u64))
        },
        ..adjustable(0.5, 20.0)
    },
    Kind {
        name: "storage.durability/sync",
        what: "each commit is on the disk before it is answered, and was not",
        engines: &[MariaDb, PostgreSql, Sqlite, Redis],
        scene: reading_and_writing,
        plant: |pair, m| {
            pair.both(|scene| scene::write_share(scene, m));
            let (name, off, on) = match pair.base.plan.engine {
                MariaDb => ("innodb-flush-log-at-trx-commit", "0", "1"),
                PostgreSql => ("synchronous_commit", "off", "on"),
                Sqlite => ("synchronous", "normal", "full"),
                _ => ("appendfsync", "no", "always"),
            };
            pair.base.plan.set(name, off);
            pair.new.plan.set(name, on);
        },
        ..adjustable(0.002, 1.0)
    },
    Kind {
        name: "storage.durability/journal",
        what: "the database syncs its journal and itself at each commit instead of a log now and then",
        engines: &[Sqlite],
        scene: reading_and_writing,
        plant: |pair, m| {
            pair.both(|scene| scene::write_share(scene, m));
            pair.base.plan.set("journal_mode", "wal");
            pair.new.plan.set("journal_mode", "truncate");
            pair.both(|scene| scene.script.clients = 1);
        },
        ..adjustable(0.005, 0.3)
    },
    Kind {
        name: "storage.durability/binlog",
        what: "the log for replicas is synced at each commit",
        engines: &[MariaDb],
        scene: reading_and_writing,
        plant: |pair, m| {
            pair.both(|scene| {
                scene::write_share(scene, m);
                scene.plan.set("innodb-flush-log-at-trx-commit", "0");
                scene.plan.set("log-bin", "for-replicas");
                scene.plan.set("sync-binlog", "0");
            });
            pair.new.plan.set("sync-binlog", "1");
        },
        ..adjustable(0.002, 1.0)
    },
    Kind {
        name: "storage.durability/each",
        what: "each of eight rows is committed by itself, instead of all together",
        engines: &[MariaDb, PostgreSql],
        scene: scene::logging,
        plant: |pair, m| {
            pair.one_by_one(
                m,
                8,
                "INSERT INTO written VALUES ({r})",
                ["BEGIN", "COMMIT"],
            )
        },
        ..adjustable(0.002, 1.0)
    },
    Kind {
        name: "storage.durability/apart",
        what: "each of several changes is on the disk before the next is asked for, instead of all with the last",
        engines: &[Sqlite, Redis],
        scene: scene::reading_alone,
        plant: |pair, m| match pair.base.plan.engine {
            Sqlite => pair.one_by_one(
                m,
                5,
                "UPDATE item SET val = val + 1 WHERE id = {r}",
                ["BEGIN", "COMMIT"],
            ),
            _ => pair.one_by_one(m, 5, "SET k{r} changed", ["MULTI", "EXEC"]),
        },
        ..adjustable(0.002, 1.0)
    },
    Kind {
        name: "network.shaping/tbf",
        what: "a token bucket on the loopback interface of a network of our own",
        engines: &[Nginx, Redis, Apache],
        scene: scene::large_answers,
        plant: |pair, m| {
            pair.new.around.loopback =
                Some((pair.rate * scene::ANSWER / (1.0 + m)).clamp(1e5, 4e9) as u32)
        },
        needs: &[Need::OwnNetwork],
        ..adjustable(0.3, 2.5)
    },
    Kind {
        name: "network.accept_queue/nginx",
        what: "a listen queue of one, with a connection for each request",
        engines: &[Nginx],
        scene: |engine| {
            scene::connecting(engine).with(|scene| scene.plan.set("main", "worker_processes 1;"))
        },
        plant: |pair, m| {
            pair.both(|scene| scene.script.clients = m.round() as usize);
            pair.new.plan.settings.retain(|(name, _)| name != "listen");
            pair.new.plan.set("listen", "backlog=1");
        },
        pass: Duration::from_millis(600),
        ..adjustable(4.0, 24.0)
    },
    Kind {
        name: "network.delay/nagle",
        what: "some answers in two small writes, held back by Nagle's algorithm and delayed acknowledgements",
        engines: &[Nginx],
        scene: |engine| {
            let mut scene = little(engine).asking("/word");
            scene.plan.set("http", "sendfile on; tcp_nopush off;");
            scene
                .plan
                .set("server", "location = /word { return 200 \"word\"; }");
            scene.script.think_us = 300;
            scene
        },
        plant: |pair, m| {
            pair.both(|scene| scene.share(m, &["/small".to_owned()]));
            pair.new
                .plan
                .settings
                .retain(|(_, line)| !line.starts_with("tcp_nodelay"));
            pair.new.plan.set("http", "tcp_nodelay off;");
        },
        ..adjustable(0.003, 0.1)
    },
    Kind {
        name: "app.lock/row",
        what: "many clients change the same row, which each holds for a while",
        engines: &[MariaDb, PostgreSql],
        scene: |engine| {
            let (name, off) = if engine == MariaDb {
                ("innodb-flush-log-at-trx-commit", "0")
            } else {
                ("synchronous_commit", "off")
            };
            little(engine)
                .asking_all(scene::held_row(engine, "{r}"))
                .with(|scene| scene.plan.set(name, off))
        },
        plant: |pair, m| pair.all_the_same(m, scene::held_row),
        ..adjustable(0.3, 1.0)
    },
    Kind {
        name: "app.lock/table",
        what: "changes of the table that others read, which locks it as a whole, instead of another table",
        engines: &[MariaDb],
        // Of a row that is found by its whole key MariaDB gives the table free before the statement's functions run.
        scene: |_| {
            scene::with_storage("MyISAM")
                .asking("SELECT val, SLEEP(0.0015) FROM item WHERE id >= {r} LIMIT 1")
        },
        plant: |pair, m| {
            pair.base.share(
                m,
                &["UPDATE other SET val = val + 1 WHERE id = {s}".to_owned()],
            );
            pair.new.share(
                m,
                &["UPDATE item SET val = val + 1 WHERE id = {s}".to_owned()],
            );
        },
        ..adjustable(0.05, 1.0)
    },
    Kind {
        name: "peer.slow/backend",
        what: "the service behind the proxy waits longer before it answers",
        engines: &[Proxy],
        scene: little,
        plant: |pair, m| pair.new.backend = vec![format!("delay {}", 200 + (m * 1000.0) as u32)],
        ..adjustable(0.1, 2.0)
    },
    Kind {
        name: "app.wait/sleep",
        what: "some queries sleep on the server",
        engines: &[MariaDb, PostgreSql],
        scene: little,
        plant: |pair, m| pair.new.share(m, &[sleeping(pair.base.plan.engine, 0.005)]),
        joins: true,
        ..adjustable(0.005, 0.2)
    },
    Kind {
        name: "app.work/index",
        what: "some queries do without their index, which was dropped",
        engines: &[MariaDb, PostgreSql, Sqlite],
        scene: little,
        plant: |pair, m| {
            pair.both(|scene| {
                scene.share(
                    m,
                    &["SELECT COUNT(*), SUM(val) FROM item WHERE grp = {s} % 200".to_owned()],
                )
            });
            let drop = if pair.new.plan.engine == MariaDb {
                "DROP INDEX item_grp ON item"
            } else {
                "DROP INDEX item_grp"
            };
            if pair.new.prepare.last().map(String::as_str) != Some(drop) {
                pair.new.prepare.push(drop.to_owned());
            }
        },
        ..adjustable(0.01, 0.6)
    },
    Kind {
        name: "app.work/gzip",
        what: "pages are compressed harder",
        engines: &[Nginx, Apache],
        scene: |engine| {
            let compresses =
                |line: &str| line.contains("gzip") || line.contains("CompressionLevel");
            computing(engine)
                .with(|scene| scene.plan.settings.retain(|(_, line)| !compresses(line)))
        },
        plant: |pair, m| {
            let level = m.round() as u32;
            for (scene, level) in [(&mut pair.base, 1), (&mut pair.new, level)] {
                match scene.plan.engine {
                    Apache => scene
                        .plan
                        .set("", &format!("DeflateCompressionLevel {level}")),
                    _ => scene.plan.set(
                        "http",
                        &format!("gzip on; gzip_types *; gzip_comp_level {level};"),
                    ),
                }
            }
        },
        range: (4.0, 9.0),
        ..USUAL
    },
    Kind {
        name: "app.calls/buffers",
        what: "files are read and sent in smaller pieces",
        engines: &[Nginx],
        scene: |engine| little(engine).asking("/large"),
        plant: |pair, m| {
            pair.base.plan.set("http", "output_buffers 2 32k;");
            pair.new.plan.set(
                "http",
                &format!("output_buffers 1 {};", (32768.0 / m) as u32),
            );
        },
        range: (2.0, 8.0),
        ..USUAL
    },
    Kind {
        name: "client.saturated/work",
        what: "a load generator on one CPU that works hard with each answer",
        engines: &[MariaDb, PostgreSql, Redis, Nginx, Apache],
        scene: little,
        plant: |pair, m| {
            let cpu = pair.cpus.last().copied();
            pair.both(|scene| scene.around.client.cpus = cpu.into_iter().collect());
            pair.new.script.client_work = (m * 1000.0) as u32;
        },
        ..adjustable(3.0, 150.0)
    },
    Kind {
        name: "cpu.contention/pinned",
        what: "threads of another process use CPU time, all on one of the CPUs",
        engines: &[MariaDb, PostgreSql, Nginx, Apache, Sqlite],
        plant: |pair, m| {
            let cpu = pair.cpus.last().copied().unwrap_or(0);
            pair.new
                .around
                .beside(Neighbour::BurnsOn(m.round() as usize, cpu));
        },
        joins: true,
        needs: &[Need::TwoCpus],
        ..adjustable(1.0, 8.0)
    },
    Kind {
        name: "storage.durability/session",
        what: "some transactions ask for themselves that their commit is on the disk before it is answered, and asked \
            for the contrary",
        engines: &[PostgreSql, Sqlite],
        scene: scene::reading_and_writing,
        plant: |pair, m| {
            let asks = |kept: bool| match pair.base.plan.engine {
                PostgreSql => {
                    let word = if kept { "on" } else { "off" };
                    vec![
                        "BEGIN".to_owned(),
                        format!("SET LOCAL synchronous_commit TO {word}"),
                        change("item"),
                        "COMMIT".to_owned(),
                    ]
                }
                _ => vec![
                    format!(
                        "PRAGMA synchronous = {}",
                        if kept { "full" } else { "normal" }
                    ),
                    change("item"),
                ],
            };
            let (loose, kept) = (asks(false), asks(true));
            share_but_first(&mut pair.base, m, loose);
            share_but_first(&mut pair.new, m, kept);
        },
        ..adjustable(0.002, 1.0)
    },
    control("control/nothing", "nothing is planted", |_, _| ()),
    control(
        "control/names",
        "the clients call themselves otherwise",
        |pair, _| {
            pair.base.script.name = "first".into();
            pair.new.script.name = "second".into();
        },
    ),
    control(
        "control/setting",
        "a setting that nothing uses",
        |pair, _| {
            let (name, value) = match pair.new.plan.engine {
                MariaDb => ("max-connections", "90"),
                PostgreSql => ("max_locks_per_transaction", "80"),
                Sqlite => ("user_version", "7"),
                Redis => ("maxclients", "900"),
                Apache => ("", "LimitRequestFields 90"),
                Nginx | Proxy => ("http", "client_max_body_size 3m;"),
            };
            pair.new.plan.set(name, value);
        },
    ),
    control(
        "control/elsewhere",
        "another process writes a little to memory",
        |pair, _| {
            pair.new.around.beside(Neighbour::Scribbles);
        },
    ),
    Kind {
        engines: &[MariaDb, PostgreSql, Redis, Nginx, Apache],
        ..control(
            "control/disk_unused",
            "a limit on the disk, for a server that does not use it",
            |pair, _| {
                pair.new.around.writes = Some(60);
            },
        )
    },
    Kind {
        engines: &[MariaDb, PostgreSql, Redis, Nginx, Apache],
        ..control(
            "control/quota_ample",
            "a quota of more CPUs than there are",
            |pair, _| {
                pair.new.around.quota = Some(pair.cpus.len() as f64 + 2.0);
            },
        )
    },
];

/// A control on any server.
const fn control(name: &'static str, what: &'static str, plant: fn(&mut Pair, f64)) -> Kind {
    Kind {
        name,
        what,
        engines: &Engine::ALL,
        scene: any_load,
        plant,
        ..USUAL
    }
}

/// The load of controls: one that computes where that costs much, else one that asks little.
fn any_load(engine: Engine) -> Scene {
    if matches!(engine, MariaDb | Apache | Sqlite) {
        computing(engine)
    } else {
        little(engine)
    }
}
