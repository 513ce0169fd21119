//! Plants that are kept apart from tuning: other mechanisms for the same causes. Rules are not to be worked on with
//! these; `--apart` runs them for the figure alone, and `bench/RESULTS.md` says when each was first run.
//!
//! Written on 2026-11-22, before the rules of the one engine of diagnosis, without knowledge of the rules of that time.
//! On 2026-11-25 rules were changed after misses of `shells` and `pinned` of `cpu.contention` and of `journal`,
//! `binlog`, `each`, `apart` and `session` of `storage.durability`, which are among [`super::plants`] since; before the
//! first of these changes `app.lock/named`, `app.work/hash` and `app.calls/cache` were written, and
//! `storage.durability/engine` before the last two (`session`, `pinned`).

use fingerpost_workloads::planted::script::Script;
use fingerpost_workloads::planted::servers::Engine::{
    self, Apache, MariaDb, Nginx, PostgreSql, Proxy, Redis, Sqlite,
};

use super::around::Neighbour;
use super::kind::{Kind, Need, USUAL, adjustable};
use super::scene::{self, Pair, Scene, change, computing, little, share_but_first};

/// Every plant that is kept apart, then the controls.
pub static APART: &[Kind] = &[
    Kind {
        name: "cpu.quota/above",
        what: "the group above the server's gets less CPU time than the server uses",
        engines: &[MariaDb, PostgreSql, Nginx, Redis],
        plant: |pair, m| pair.new.around.parent_quota = Some(1.6 / (1.0 + m)),
        ..adjustable(0.2, 3.0)
    },
    Kind {
        name: "cpu.affinity/workers",
        what: "the server's workers are confined to one CPU while they run, and the process that started them is not",
        engines: &[Nginx, Apache],
        plant: |pair, _| pair.new.around.children_on = pair.cpus[..1.min(pair.cpus.len())].to_vec(),
        needs: &[Need::TwoCpus],
        ..USUAL
    },
    Kind {
        name: "syscall.entry/chain",
        what: "several filters, one after another, before each system call of the server",
        engines: &[Redis, Nginx, MariaDb],
        scene: little,
        plant: |pair, m| pair.new.plan.surroundings.filters = vec![400; m.round() as usize],
        range: (3.0, 10.0),
        ..USUAL
    },
    Kind {
        name: "storage.contention/reader",
        what: "another process reads much from the same disk, past the page cache",
        engines: &[MariaDb, PostgreSql, Sqlite],
        scene: scene::committing,
        plant: |pair, m| pair.new.around.beside(Neighbour::Reads(m.round() as usize)),
        ..adjustable(1.0, 16.0)
    },
    Kind {
        name: "network.accept_queue/redis",
        what: "a listen queue of one before a busy single thread, with a connection for each request",
        engines: &[Redis],
        scene: scene::connecting,
        plant: |pair, m| {
            pair.both(|scene| scene.script.clients = m.round() as usize);
            pair.new.plan.set("tcp-backlog", "1");
        },
        pass: std::time::Duration::from_millis(600),
        ..adjustable(4.0, 32.0)
    },
    Kind {
        name: "network.delay/request",
        what: "requests in two small writes, held back by Nagle's algorithm and delayed acknowledgements",
        engines: &[Redis, Nginx],
        // Long enough between requests that forty milliseconds are not all that a transaction takes.
        scene: |engine| little(engine).with(|scene| scene.script.think_us = 15_000),
        plant: |pair, _| pair.new.script.split = true,
        ..USUAL
    },
    Kind {
        name: "app.lock/session",
        what: "another session locks the table again and again, for a while each time",
        engines: &[MariaDb, PostgreSql],
        scene: |engine| little(engine).with(|scene| scene.script.clients = 6),
        plant: |pair, m| {
            let engine = pair.new.plan.engine;
            pair.new
                .around
                .beside(Neighbour::Session(locking(engine, (m * 4000.0) as u32)));
        },
        ..adjustable(0.1, 4.0)
    },
    Kind {
        name: "app.wait/limited",
        what: "the server delays requests beyond a rate that it was told",
        engines: &[Nginx],
        scene: |engine| little(engine).with(|scene| scene.script.think_us = 1000),
        plant: |pair, m| {
            pair.new.plan.set(
                "http",
                &format!(
                    "limit_req_zone $server_name zone=all:1m rate={}r/s;",
                    (4000.0 / (1.0 + m)) as u32
                ),
            );
            pair.new.plan.set("files", "limit_req zone=all burst=1000;");
        },
        range: (0.5, 3.0),
        ..USUAL
    },
    Kind {
        name: "peer.slow/trickle",
        what: "the service behind the proxy sends the second half of each answer later",
        engines: &[Proxy],
        scene: little,
        plant: |pair, m| {
            pair.new.backend = vec!["delay 200".into(), format!("gap {}", (m * 1000.0) as u32)]
        },
        ..adjustable(0.1, 2.0)
    },
    Kind {
        name: "app.work/plan",
        what: "the planner is told not to use indexes",
        engines: &[PostgreSql],
        scene: |engine| little(engine).asking("SELECT 1"),
        plant: |pair, m| {
            pair.both(|scene| {
                scene.share(m, &["SELECT val, pad FROM item WHERE id = {r}".to_owned()])
            });
            for name in [
                "enable_indexscan",
                "enable_bitmapscan",
                "enable_indexonlyscan",
            ] {
                pair.new.plan.set(name, "off");
            }
        },
        ..adjustable(0.02, 1.0)
    },
    Kind {
        name: "app.calls/chatty",
        what: "each transaction asks for its rows one by one instead of a few",
        engines: &[MariaDb, PostgreSql, Redis],
        scene: little,
        plant: |pair, m| {
            let one = pair.base.script.shares[0].asks[0].clone();
            pair.base.script.shares[0].asks = vec![one.clone(); 4];
            pair.new.script.shares[0].asks = vec![one; 4 + m.round() as usize];
        },
        ..adjustable(1.0, 9.0)
    },
    Kind {
        name: "client.saturated/quota",
        what: "the load generator's control group gets less CPU time than it uses",
        engines: &[MariaDb, PostgreSql, Redis, Nginx],
        scene: |engine| little(engine).with(|scene| scene.script.client_work = 50_000),
        plant: |pair, m| pair.new.around.client_quota = Some(1.2 / (1.0 + m)),
        ..adjustable(0.3, 4.0)
    },
    Kind {
        name: "app.lock/named",
        what: "all transactions take the same lock of their own naming, in place of one each",
        engines: &[MariaDb, PostgreSql],
        scene: |engine| {
            little(engine)
                .asking_all(named_lock(engine, "{r}"))
                .with(|scene| scene.script.clients = 6)
        },
        plant: |pair, m| pair.all_the_same(m, named_lock),
        ..adjustable(0.3, 1.0)
    },
    Kind {
        name: "app.work/hash",
        what: "some transactions hash a longer text",
        engines: &[MariaDb, PostgreSql],
        scene: little,
        plant: |pair, m| {
            let sum = |length: u32| match pair.base.plan.engine {
                MariaDb => format!("SELECT SHA2(REPEAT('fp{{r}}', {length}), 512)"),
                _ => format!("SELECT sha512(repeat('fp{{r}}', {length})::bytea)"),
            };
            let (short, long) = (sum(2), sum(20_000));
            pair.base.share(m, &[short]);
            share_but_first(&mut pair.new, m, vec![long]);
        },
        ..adjustable(0.01, 0.6)
    },
    Kind {
        name: "storage.durability/engine",
        what: "the table that is changed is of a storage engine that flushes at each commit, instead of one that never \
            does",
        engines: &[MariaDb],
        scene: |engine| {
            let mut scene = scene::reading_and_writing(engine);
            scene.prepare.push(
                "CREATE TABLE loose (id INT PRIMARY KEY, val INT, pad VARCHAR(200)) ENGINE=MyISAM"
                    .into(),
            );
            scene
                .prepare
                .push("INSERT INTO loose SELECT id, val, pad FROM item".into());
            scene
        },
        plant: |pair, m| {
            share_but_first(&mut pair.base, m, vec![change("loose")]);
            share_but_first(&mut pair.new, m, vec![change("item")]);
        },
        ..adjustable(0.002, 1.0)
    },
    Kind {
        name: "app.calls/cache",
        what: "the database keeps a few pages in its own cache and reads the others from the system's again and again",
        engines: &[Sqlite],
        plant: |pair, m| {
            pair.new
                .plan
                .set("cache_size", &(m.round() as u32).to_string())
        },
        range: (1.0, 6.0),
        ..USUAL
    },
    control("control/idle", "another process that sleeps", |pair, _| {
        pair.new.around.beside(Neighbour::Idles)
    }),
    control(
        "control/small_pages",
        "no huge pages, for a server that hardly uses memory",
        |pair, _| {
            pair.new.plan.surroundings.no_huge_pages = true;
        },
    ),
    Kind {
        engines: &[MariaDb, PostgreSql],
        ..control(
            "control/other_table",
            "another session locks a table that nobody reads",
            |pair, _| {
                let engine = pair.new.plan.engine;
                let mut script = locking(engine, 2000);
                for share in &mut script.shares {
                    for ask in &mut share.asks {
                        *ask = ask.replace("item", "other");
                    }
                }
                script.think_us = 50_000;
                pair.new.around.beside(Neighbour::Session(script));
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

fn any_load(engine: Engine) -> Scene {
    if matches!(engine, PostgreSql | Nginx | Redis) {
        computing(engine)
    } else {
        little(engine)
    }
}

/// What a transaction does that takes a lock by this name for a third of a millisecond.
fn named_lock(engine: Engine, name: &str) -> Vec<String> {
    let held = scene::sleeping(engine, 0.0003);
    match engine {
        MariaDb => vec![
            format!("SELECT GET_LOCK('fp{name}', 20)"),
            held,
            format!("SELECT RELEASE_LOCK('fp{name}')"),
        ],
        _ => vec![
            format!("SELECT pg_advisory_lock({name})"),
            held,
            format!("SELECT pg_advisory_unlock({name})"),
        ],
    }
}

/// A session that locks the table for so many microseconds, and leaves it alone for four thousand.
fn locking(engine: Engine, held_us: u32) -> Script {
    let held = scene::sleeping(engine, f64::from(held_us) * 1e-6);
    let asks: [String; 3] = match engine {
        MariaDb => [
            "LOCK TABLES item WRITE".into(),
            held,
            "UNLOCK TABLES".into(),
        ],
        _ => [
            "BEGIN; LOCK TABLE item IN ACCESS EXCLUSIVE MODE".into(),
            held,
            "COMMIT".into(),
        ],
    };
    let mut script = Script {
        clients: 1,
        think_us: 4000,
        ..Script::asking("")
    };
    script.shares[0].asks = asks.to_vec();
    script
}
