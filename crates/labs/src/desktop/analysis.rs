//! How promptly a machine answers beside its loaded server, and beside the same server idle: of the rows of
//! `*.desktop`.

use fingerpost_record::{Measurement, Outcome, Params, Run};

/// The rows' tasks of one server.
#[derive(Clone, Debug, PartialEq)]
pub struct Desktop {
    /// The probe of its rows: `database.desktop`.
    pub probe: String,
    /// What the loaded server's rows have in common, without the task.
    pub params: Params,
    /// Each task that was measured on both sides, in the order of the names.
    pub tasks: Vec<Task>,
}

/// One task on both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// Its name: `waker`, `exec`, `read`.
    pub name: String,
    /// Beside the server without clients.
    pub idle: Turns,
    /// Beside it with the most.
    pub loaded: Turns,
    /// How many times as long the middle turn takes beside the load: value, least, most by the two intervals. Nothing
    /// where idle may be none.
    pub times: Option<(f64, f64, f64)>,
}

/// The turns of a task, in nanoseconds from when they were due.
#[derive(Clone, Debug, PartialEq)]
pub struct Turns {
    /// The middle one.
    pub p50: f64,
    /// What 99 of 100 did not exceed.
    pub p99: f64,
    /// The longest of all rounds.
    pub worst: f64,
    /// Turns that were not done when the next one was due.
    pub missed: f64,
    /// All that were due.
    pub all: u64,
    /// Whether something speaks against the figures.
    pub doubtful: bool,
}

/// What idle rows cannot have, and the task: servers are told apart by the rest.
const NOT_OF_THE_SERVER: [&str; 7] = [
    "clients",
    "mix",
    "connections",
    "keepalive",
    "rate",
    "load",
    "task",
];

/// Every server whose desktop was measured on both sides.
pub fn analyse(run: &Run) -> Vec<Desktop> {
    let rows: Vec<&Measurement> = run
        .measurements
        .iter()
        .filter(|m| m.probe.ends_with(".desktop"))
        .collect();
    let mut found: Vec<Desktop> = Vec::new();
    for loaded in rows
        .iter()
        .filter(|m| m.params.text("load") == Some("most"))
    {
        let is_same = |m: &&&Measurement| {
            m.probe == loaded.probe
                && m.params.text("load") == Some("idle")
                && m.params.text("task") == loaded.params.text("task")
                && m.params.without(&NOT_OF_THE_SERVER) == loaded.params.without(&NOT_OF_THE_SERVER)
        };
        let Some(task) = rows
            .iter()
            .find(is_same)
            .and_then(|idle| task(idle, loaded))
        else {
            continue;
        };
        let params = loaded.params.without(&["load", "task"]);
        match found
            .iter_mut()
            .find(|d| d.probe == loaded.probe && d.params == params)
        {
            Some(desktop) => desktop.tasks.push(task),
            None => found.push(Desktop {
                probe: loaded.probe.clone(),
                params,
                tasks: vec![task],
            }),
        }
    }
    found
        .iter_mut()
        .for_each(|d| d.tasks.sort_by(|a, b| a.name.cmp(&b.name)));
    found
}

fn task(idle: &Measurement, loaded: &Measurement) -> Option<Task> {
    let (i, l) = (idle.estimate?, loaded.estimate?);
    let times = (i.low > 0.0).then(|| (l.value / i.value, l.low / i.high, l.high / i.low));
    Some(Task {
        name: loaded.params.text("task")?.to_owned(),
        idle: turns(idle)?,
        loaded: turns(loaded)?,
        times,
    })
}

fn turns(row: &Measurement) -> Option<Turns> {
    let percentiles = row.percentiles?;
    let counters = |name: &str| {
        row.processes
            .iter()
            .filter_map(|p| p.counters.get(name).copied())
            .collect::<Vec<f64>>()
    };
    Some(Turns {
        p50: percentiles.p50,
        p99: percentiles.p99,
        worst: counters("max").into_iter().reduce(f64::max)?,
        missed: counters("missed").iter().sum(),
        all: row
            .processes
            .iter()
            .fold(0, |sum, p| sum.saturating_add(p.batch)),
        doubtful: row.outcome != Outcome::Measured,
    })
}

#[cfg(test)]
mod tests {
    use fingerpost_record::{Better, Estimate, Percentiles, Process, Unit};

    use super::*;

    /// A row of a task; `mix` and clients are those of the loaded side.
    fn row(load: &str, task: &str, value: f64, engine: &str) -> Measurement {
        let params = Params::new()
            .with("engine", engine)
            .with("load", load)
            .with("task", task);
        let params = if load == "most" {
            params.with("clients", 50).with("mix", "read")
        } else {
            params
        };
        let process = |max: f64, missed: f64| Process {
            value: Some(value),
            batch: 100,
            counters: [("max".to_owned(), max), ("missed".to_owned(), missed)].into(),
            ..Process::default()
        };
        let none = fingerpost_record::fixture::row(
            "database.desktop",
            params,
            Unit::Nanoseconds,
            Better::Lower,
        );
        Measurement {
            estimate: Some(Estimate {
                value,
                low: value * 0.9,
                high: value * 1.2,
                confidence: 0.95,
            }),
            percentiles: Some(Percentiles {
                p50: value,
                p90: 2.0 * value,
                p99: 3.0 * value,
            }),
            processes: vec![process(4.0 * value, 1.0), process(9.0 * value, 2.0)],
            ..none
        }
    }

    #[test]
    fn each_task_beside_the_load_has_the_same_beside_the_idle_server() {
        let measurements = vec![
            row("idle", "waker", 100.0, "sqlite"),
            row("idle", "exec", 1000.0, "sqlite"),
            row("most", "waker", 200.0, "sqlite"),
            row("most", "exec", 5000.0, "sqlite"),
            row("most", "read", 300.0, "sqlite"),
            row("idle", "read", 300.0, "mariadb"),
        ];
        let found = analyse(&Run {
            measurements,
            ..Run::default()
        });
        assert_eq!(
            found.len(),
            1,
            "what was measured on one side, or of two servers, is compared with nothing"
        );
        let names: Vec<&str> = found[0].tasks.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(
            (names, found[0].params.int("clients")),
            (vec!["exec", "waker"], Some(50))
        );
        let waker = &found[0].tasks[1];
        assert_eq!(
            (waker.loaded.worst, waker.loaded.missed, waker.loaded.all),
            (1800.0, 3.0, 200)
        );
        let (value, least, most) = waker.times.unwrap();
        assert!(
            (value - 2.0).abs() < 1e-9
                && (least - 180.0 / 120.0).abs() < 1e-9
                && (most - 240.0 / 90.0).abs() < 1e-9
        );
    }

    #[test]
    fn a_web_server_is_the_same_idle_whatever_its_load_is() {
        let idle = Params::new()
            .with("server", "nginx")
            .with("load", "idle")
            .with("task", "exec");
        let loaded = idle
            .clone()
            .with("load", "most")
            .with("connections", 1000)
            .with("keepalive", "on")
            .with("rate", 500);
        let of = |params: Params, value: f64| Measurement {
            probe: "web.desktop".into(),
            params,
            ..row("idle", "exec", value, "")
        };
        let found = analyse(&Run {
            measurements: vec![of(idle, 100.0), of(loaded, 300.0)],
            ..Run::default()
        });
        assert_eq!(found.len(), 1);
        assert_eq!(
            (
                found[0].params.int("connections"),
                found[0].tasks[0].loaded.p50
            ),
            (Some(1000), 300.0)
        );
    }

    #[test]
    fn a_row_without_a_figure_or_a_worst_turn_tells_nothing() {
        let mut idle = row("idle", "waker", 100.0, "sqlite");
        let loaded = row("most", "waker", 200.0, "sqlite");
        idle.processes.clear();
        assert!(
            analyse(&Run {
                measurements: vec![idle, loaded.clone()],
                ..Run::default()
            })
            .is_empty()
        );
        let mut never = row("idle", "waker", 0.0, "sqlite");
        never.estimate = Some(Estimate {
            value: 0.0,
            low: 0.0,
            high: 0.0,
            confidence: 0.95,
        });
        assert_eq!(
            analyse(&Run {
                measurements: vec![never, loaded],
                ..Run::default()
            })[0]
                .tasks[0]
                .times,
            None
        );
    }
}
