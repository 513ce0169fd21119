//! One side of a trial: a server, what it holds, what its clients do, and what goes on beside it; and the loads that
//! plants start from.

use std::time::Duration;

use fingerpost_workloads::planted::script::{Script, Share};
use fingerpost_workloads::planted::servers::{Engine, Plan};

use super::around::Around;

/// One side.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    /// The server.
    pub plan: Plan,
    /// What it is told before there is a load.
    pub prepare: Vec<String>,
    /// What the clients do.
    pub script: Script,
    /// What the service behind a proxy is told.
    pub backend: Vec<String>,
    /// What is around the server.
    pub around: Around,
}

/// Both sides, and what plants need to know.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// Without the plant.
    pub base: Scene,
    /// With it.
    pub new: Scene,
    /// CPUs that may be used.
    pub cpus: Vec<usize>,
    /// Transactions a second of the base, as they were last measured; a guess before.
    pub rate: f64,
}

impl Pair {
    /// Two sides that are alike.
    pub fn alike(scene: Scene, cpus: &[usize]) -> Pair {
        Pair {
            base: scene.clone(),
            new: scene,
            cpus: cpus.to_vec(),
            rate: 10_000.0,
        }
    }

    /// Changes both sides alike.
    pub fn both(&mut self, change: impl Fn(&mut Scene)) {
        change(&mut self.base);
        change(&mut self.new);
    }

    /// So many changes in one transaction on the base side, between what begins and ends it, and each by itself on the
    /// other.
    pub fn one_by_one(&mut self, weight: f64, times: usize, change: &str, [begin, end]: [&str; 2]) {
        let changes = vec![change.to_owned(); times];
        self.base.share(
            weight,
            &[&[begin.to_owned()], &changes[..], &[end.to_owned()]].concat(),
        );
        self.new.share(weight, &changes);
    }

    /// With the plant, transactions of this weight are about the same one of what they are about, and the others about
    /// any.
    pub fn all_the_same(&mut self, weight: f64, asks: fn(Engine, &str) -> Vec<String>) {
        let engine = self.new.plan.engine;
        let share = |weight, about| Share {
            weight,
            asks: asks(engine, about),
        };
        self.new.script.shares = vec![share((1.0 - weight).max(1e-6), "{r}"), share(weight, "1")];
    }
}

impl Scene {
    /// A server as it is installed, and clients with nothing to ask.
    pub fn of(engine: Engine) -> Scene {
        Scene {
            plan: Plan::of(engine),
            prepare: Vec::new(),
            script: Script::default(),
            backend: Vec::new(),
            around: Around::default(),
        }
    }

    /// With requests of this kind besides, so often beside those that come with weight 1; in place of those that begin
    /// alike.
    pub fn share(&mut self, weight: f64, asks: &[String]) {
        self.script
            .shares
            .retain(|s| s.asks.first() != asks.first() || s.asks.len() != asks.len());
        self.script.shares.push(Share {
            weight,
            asks: asks.to_vec(),
        });
    }

    /// With this request alone.
    pub fn asking(self, ask: &str) -> Scene {
        self.asking_all(vec![ask.to_owned()])
    }

    /// With transactions of these requests alone.
    pub fn asking_all(self, asks: Vec<String>) -> Scene {
        self.with(|scene| scene.script.shares = vec![Share { weight: 1.0, asks }])
    }

    /// With a change.
    pub fn with(mut self, change: impl FnOnce(&mut Scene)) -> Scene {
        change(&mut self);
        self
    }
}

/// Rows of a table.
pub const ROWS: u32 = 4000;
/// The length of a group's list of rows: `grp` is a row's number modulo this.
pub const GROUPS: u32 = 200;
/// Keys of Redis.
const KEYS: u32 = 2000;

/// The statements that make and fill the tables `item` and `other`; `engine` of MariaDB's tables where one is named.
fn tables(engine: Engine, storage: &str) -> Vec<String> {
    let mut all = Vec::new();
    for table in ["item", "other"] {
        let with = if storage.is_empty() {
            String::new()
        } else {
            format!(" ENGINE={storage}")
        };
        all.push(format!(
            "CREATE TABLE {table} (id INT PRIMARY KEY, grp INT, val INT, pad VARCHAR(200)){with}"
        ));
        let row = format!("n, n % {GROUPS}, n % 97");
        all.push(match engine {
            Engine::MariaDb => {
                format!(
                    "INSERT INTO {table} SELECT seq, seq % {GROUPS}, seq % 97, REPEAT('p', 180) FROM seq_1_to_{ROWS}"
                )
            }
            Engine::PostgreSql => {
                format!("INSERT INTO {table} SELECT {row}, repeat('p', 180) FROM generate_series(1, {ROWS}) n")
            }
            _ => format!(
                "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {ROWS}) INSERT INTO {table} \
                 SELECT {row}, \
                 'pppppppppppppppppppppppppppppppppppppppp' FROM s"
            ),
        });
        all.push(format!("CREATE INDEX {table}_grp ON {table} (grp)"));
    }
    if engine == Engine::PostgreSql {
        all.push("VACUUM ANALYZE".to_owned());
    }
    all
}

/// The server with its data, and no requests.
fn filled(engine: Engine) -> Scene {
    let mut scene = Scene::of(engine);
    scene.script.keys = ROWS - 300;
    match engine {
        Engine::MariaDb | Engine::PostgreSql => scene.prepare = tables(engine, ""),
        Engine::Sqlite => {
            scene.plan.set("journal_mode", "wal");
            scene.plan.set("synchronous", "normal");
            scene.prepare = tables(engine, "");
        }
        Engine::Redis => {
            scene.script.keys = KEYS;
            scene.prepare = vec![
                format!("@{KEYS} SET k{{r}} value-of-{{r}}"),
                format!(
                    "RPUSH list {}",
                    (0..400u32)
                        .map(|n| (n.wrapping_mul(7919) % 1000).to_string())
                        .collect::<Vec<_>>()
                        .join(" ")
                ),
            ];
        }
        Engine::Proxy => scene.backend = vec!["delay 200".into()],
        Engine::Nginx | Engine::Apache => {}
    }
    scene
}

/// Requests that cost the server little but its system calls.
pub fn little(engine: Engine) -> Scene {
    let ask = match engine {
        Engine::MariaDb | Engine::PostgreSql | Engine::Sqlite => {
            "SELECT val, pad FROM item WHERE id = {r}"
        }
        Engine::Redis => "GET k{r}",
        Engine::Nginx | Engine::Proxy | Engine::Apache => "/small",
    };
    filled(engine).asking(ask)
}

/// Requests that cost the server CPU time.
pub fn computing(engine: Engine) -> Scene {
    let sum = "SELECT SUM(val * id % 7), MAX(pad) FROM item WHERE id BETWEEN {r} AND {r} + 250";
    let mut scene = filled(engine).asking(match engine {
        Engine::MariaDb | Engine::PostgreSql | Engine::Sqlite => sum,
        Engine::Redis => "SORT list LIMIT 0 1",
        Engine::Nginx | Engine::Proxy | Engine::Apache => "/page",
    });
    match engine {
        Engine::Nginx | Engine::Proxy => scene
            .plan
            .set("http", "gzip on; gzip_types *; gzip_comp_level 2;"),
        Engine::Apache => {
            scene.plan.set("", "SetOutputFilter DEFLATE");
            scene.plan.set("", "DeflateCompressionLevel 2");
        }
        _ => {}
    }
    scene
}

/// Transactions that are on the disk before they are answered.
pub fn committing(engine: Engine) -> Scene {
    let mut scene = filled(engine).asking_all(vec![if engine == Engine::Redis {
        "SET k{r} {x}".into()
    } else {
        change("item")
    }]);
    match engine {
        Engine::Redis => {
            scene.plan.set("appendonly", "yes");
            scene.plan.set("appendfsync", "always");
            scene.script.payload = 100;
        }
        Engine::Sqlite => scene.plan.set("synchronous", "full"),
        _ => {}
    }
    scene.script.clients = 2;
    scene
}

/// As [`little`], with some transactions that write; how they get to the disk is the plant's.
pub fn reading_and_writing(engine: Engine) -> Scene {
    let mut scene = little(engine);
    if engine == Engine::Redis {
        scene.plan.set("appendonly", "yes");
    }
    scene.script.clients = 2;
    scene
}

/// As [`reading_and_writing`], with a table that rows are added to.
pub fn logging(engine: Engine) -> Scene {
    reading_and_writing(engine)
        .with(|scene| scene.prepare.push("CREATE TABLE written (n INT)".into()))
}

/// As [`committing`], by one client that reads.
pub fn reading_alone(engine: Engine) -> Scene {
    committing(engine).with(|scene| {
        (scene.script.clients, scene.script.shares) = (1, little(engine).script.shares)
    })
}

/// The weight of a write in [`reading_and_writing`].
pub fn write_share(scene: &mut Scene, weight: f64) {
    let ask = if scene.plan.engine == Engine::Redis {
        "SET k{r} changed".to_owned()
    } else {
        change("item")
    };
    scene.share(weight, &[ask]);
}

/// MariaDB with tables of another storage engine.
pub fn with_storage(storage: &str) -> Scene {
    Scene {
        prepare: tables(Engine::MariaDb, storage),
        ..filled(Engine::MariaDb)
    }
}

/// A statement that does nothing for so long on the server.
pub fn sleeping(engine: Engine, seconds: f64) -> String {
    match engine {
        Engine::MariaDb => format!("SELECT SLEEP({seconds:.6})"),
        _ => format!("SELECT pg_sleep({seconds:.6})"),
    }
}

/// Redis with some fifty megabytes.
pub fn large_values(engine: Engine) -> Scene {
    let scene = Scene {
        prepare: vec!["@12000 SET k{r} {x}".to_owned()],
        ..Scene::of(engine)
    };
    scene
        .asking("GET k{r}")
        .with(|scene| scene.script.keys = 12_000)
}

/// Bytes of an answer of [`large_answers`] with its head.
pub const ANSWER: f64 = 66_000.0;

/// Answers of 64 KiB.
pub fn large_answers(engine: Engine) -> Scene {
    if engine == Engine::Redis {
        return Scene {
            prepare: vec!["SETRANGE large 65535 x".to_owned()],
            ..Scene::of(engine)
        }
        .asking("GET large");
    }
    Scene::of(engine).asking("/large")
}

/// As [`computing`], with a connection for each request and some time between two.
pub fn connecting(engine: Engine) -> Scene {
    computing(engine).with(|scene| (scene.script.connects, scene.script.think_us) = (true, 4000))
}

/// A transaction that changes a row and holds it for a millisecond.
pub fn held_row(engine: Engine, id: &str) -> Vec<String> {
    let change = format!("UPDATE item SET val = val + 1 WHERE id = {id}");
    vec![
        "BEGIN".into(),
        change,
        sleeping(engine, 0.001),
        "COMMIT".into(),
    ]
}

/// The usual length of a pass: several periods of a CPU quota.
pub const PASS: Duration = Duration::from_millis(320);

/// A change of one row of a table.
pub(super) fn change(table: &str) -> String {
    format!("UPDATE {table} SET val = val + 1 WHERE id = {{r}}")
}

/// Gives the scene these requests beside its first ones, in place of what was beside them.
pub(super) fn share_but_first(scene: &mut Scene, weight: f64, asks: Vec<String>) {
    scene.script.shares.truncate(1);
    scene.script.shares.push(Share { weight, asks });
}
