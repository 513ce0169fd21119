//! What a run found, in words: the sentences that a person reads first, before any table.

use fingerpost_diagnose::causes::cause;
use fingerpost_diagnose::label;
use fingerpost_record::client::{THROUGHPUT, TURN, TURNS};
use fingerpost_record::text::{capitalised, clean, counted};
use fingerpost_record::{Better, Finding, Run, Status, Unit};

use crate::explain::{Explanation, of_run, speaking};
use crate::key_figures;
use crate::lab::{self, Labs};
use crate::scaling::words::server;
use crate::untrusted::doubt;
use crate::view::{Group, Row};

/// More sentences of one kind than these are no answer.
const MOST: usize = 3;
/// Key figures of the sentence for a run of primitives.
const KEYS: usize = 5;

/// The answers of a run, whose rows are in these groups, cleaned; none where it has no figure.
pub fn of(run: &Run, groups: &[Group], labs: Labs, analysed: &[lab::Found]) -> Vec<String> {
    let (mut found, explained) = (Vec::new(), speaking(of_run(run)));
    found.extend(explained.iter().filter_map(of_step).take(MOST));
    if found.is_empty() {
        found.extend(explained.iter().filter_map(unaccused).take(1));
    }
    if found.is_empty() {
        // A record of before requests were followed has findings, and nothing to explain them by.
        found.extend(
            run.findings
                .iter()
                .filter(|f| f.status == Status::Confirmed)
                .take(1)
                .map(|f| blame(f, "the server", "")),
        );
    }
    let mut analysed: Vec<&lab::Found> = analysed.iter().collect();
    analysed.sort_by_key(|(analysis, _)| analysis.rank);
    for (_, lab) in &analysed {
        let alone = lab
            .alone
            .iter()
            .filter(|_| found.is_empty() && lab.answers.is_empty());
        found.extend(lab.answers.iter().chain(alone).cloned().collect::<Vec<_>>());
    }
    if found.is_empty() {
        found.extend(analysed.iter().find_map(|(_, lab)| lab.otherwise.clone()));
    }
    if found.is_empty() {
        found.extend(answered(run));
    }
    if found.is_empty() {
        found.extend(primitives(groups, labs));
    }
    found
        .iter()
        .map(|sentence| clean(sentence).into_owned())
        .collect()
}

/// The cause of the time of one step: confirmed, or likely where none is.
fn of_step(e: &Explanation) -> Option<String> {
    let of = |status: Status| {
        e.findings
            .iter()
            .filter(|f| f.status == status)
            .max_by(|a, b| a.share.total_cmp(&b.share))
    };
    let finding = of(Status::Confirmed).or_else(|| of(Status::Likely))?;
    let at = e.params.asking().map_or(String::new(), |(n, who)| {
        format!(" at {}", counted(n, who.one))
    });
    Some(blame(finding, server(&e.workload, &e.params), &at))
}

/// `The cause at 50 clients: locks inside MariaDB, 62 % of the time.`
fn blame(f: &Finding, server: &str, at: &str) -> String {
    let takes = cause(&f.cause).and_then(|c| c.words.takes);
    let what = takes.map_or_else(
        || label(&f.cause).to_owned(),
        |takes| takes.replace("{server}", server),
    );
    let share = if f.share > 0.0 {
        format!(", {:.0} % of the time", f.share * 100.0)
    } else {
        String::new()
    };
    let verdict = if f.status == Status::Confirmed {
        "The cause"
    } else {
        "Likely"
    };
    format!("{verdict}{at}: {what}{share}.")
}

/// Where most of the time of one step went, where no cause is accused.
fn unaccused(e: &Explanation) -> Option<String> {
    let most = e
        .budget
        .parts
        .iter()
        .max_by(|a, b| a.share.total_cmp(&b.share))?;
    let name = server(&e.workload, &e.params);
    Some(format!(
        "No cause stands out: {:.0} % of the time of {name} is {}.",
        most.share * 100.0,
        most.component
    ))
}

/// What a run of primitives is to a person: its key figures, else its first ones.
fn primitives(groups: &[Group], labs: Labs) -> Option<String> {
    let takes = |what: &str, row: &Row| {
        let figure = row.figure?.told();
        Some(format!(
            "{what} {} {figure}",
            if row.better == Better::Lower {
                "takes"
            } else {
                "reaches"
            }
        ))
    };
    let article = |name: &str| {
        format!(
            "{} {name}",
            if name.starts_with(['a', 'e', 'i', 'o', 'u']) {
                "an"
            } else {
                "a"
            }
        )
    };
    let keys = key_figures::of(groups, labs)
        .into_iter()
        .filter_map(|(name, row)| takes(&article(name), row));
    let mut told: Vec<String> = keys.take(KEYS).collect();
    if told.is_empty() {
        told = key_figures::measured(groups)
            .filter_map(|row| takes(&row.name(), row))
            .take(MOST)
            .collect();
        return Some(format!("{}.", told.join("; "))).filter(|_| !told.is_empty());
    }
    let last = told.pop().unwrap_or_default();
    let all = if told.is_empty() {
        last
    } else {
        format!("{} and {last}", told.join(", "))
    };
    Some(format!("{}.", capitalised(&all)))
}

/// What a load from a client machine had answered.
fn answered(run: &Run) -> Option<String> {
    let figure = |probe: &str, percentile: Option<i64>| {
        let mut rows = run
            .measurements
            .iter()
            .filter(|m| m.probe == probe && m.params.int("percentile") == percentile);
        rows.find_map(|m| Some((m, m.estimate?.value)))
    };
    let (row, rate) = figure(THROUGHPUT, None)?;
    let who = row.params.asking().map(|(n, who)| counted(n, who.one));
    let server = row.params.text("server").unwrap_or("The server");
    let mut sentence = format!("{server} answers {rate:.0} requests a second");
    if let Some(who) = who {
        sentence += &format!(" of {who}");
    }
    // A transaction may be several round trips.
    if let Some((_, turns)) =
        figure(TURNS, None).filter(|(_, turns)| (turns / rate - 1.0).abs() > 0.01)
    {
        sentence += &format!(", in {turns:.0} round trips a second");
    }
    if let (Some((_, half)), Some((_, most))) = (figure(TURN, Some(50)), figure(TURN, Some(99))) {
        let time = |ns: f64| Unit::Nanoseconds.format(ns);
        sentence += &format!(
            ": half of the round trips are done in {}, 99 % in {}",
            time(half),
            time(most)
        );
    }
    Some(sentence + &doubt(row) + ".")
}

#[cfg(test)]
mod tests {
    use fingerpost_record::fixture::followed;
    use fingerpost_record::name::product;
    use fingerpost_record::{Estimate, Layer, Measurement, Params};

    use super::*;
    use crate::view::View;

    fn of(run: &Run) -> Vec<String> {
        View::of(run, &[]).answers
    }

    #[test]
    fn primitives_are_told_by_their_key_figures_and_single_rows_by_their_names() {
        let mut run = fingerpost_record::fixture::run();
        let all = of(&run);
        assert!(
            all.len() == 1
                && all[0].starts_with("A system call takes 41.30 ns, a context switch takes "),
            "{all:?}"
        );
        run.measurements.retain(|m| m.probe == "syscall.stat");
        let one = of(&run);
        assert!(
            one.len() == 1 && one[0].starts_with("syscall.stat takes "),
            "{one:?}"
        );
        run.measurements.clear();
        assert!(of(&run).is_empty());
    }

    #[test]
    fn locks_are_said_in_words_and_with_the_servers_name() {
        let answers = of(&followed::slow_locks());
        assert!(
            answers
                .iter()
                .any(|a| a.starts_with("The cause at 8 clients: ")),
            "{answers:?}"
        );
        assert!(
            answers
                .iter()
                .all(|a| !a.contains("app.") && a.ends_with('.')),
            "{answers:?}"
        );
        let finding = Finding {
            cause: "app.lock".into(),
            layer: Layer::Application,
            status: Status::Confirmed,
            share: 0.62,
            evidence: vec![],
            step: None,
            relation: None,
        };
        assert_eq!(
            blame(&finding, product("mariadb"), " at 50 clients"),
            "The cause at 50 clients: locks inside MariaDB, 62 % of the time."
        );
    }

    #[test]
    fn a_load_is_told_in_one_sentence() {
        let row = |probe: &str, percentile: Option<i64>, value: f64| {
            let params = Params::new()
                .with("clients", 4)
                .with("server", "mysql://db-1/x");
            let params = percentile.map_or(params.clone(), |p| params.with("percentile", p));
            let none =
                fingerpost_record::fixture::row(probe, params, Unit::Nanoseconds, Better::Lower);
            Measurement {
                estimate: Some(Estimate {
                    value,
                    low: value,
                    high: value,
                    confidence: 0.95,
                }),
                ..none
            }
        };
        let of = |turns: f64| {
            let rows = [
                (THROUGHPUT, None, 1000.0),
                (TURNS, None, turns),
                (TURN, Some(50), 80_000.0),
                (TURN, Some(99), 150_000.0),
            ];
            let measurements = rows
                .into_iter()
                .map(|(probe, percentile, value)| row(probe, percentile, value))
                .collect();
            answered(&Run {
                measurements,
                ..Run::default()
            })
        };
        let told = |what: &str| {
            format!(
                "mysql://db-1/x answers 1000 requests a second of 4 clients{what}: half of the round trips are done in \
                 80.00 µs, 99 % in 150.0 µs."
            )
        };
        assert_eq!(of(1000.0), Some(told("")));
        assert_eq!(of(3000.0), Some(told(", in 3000 round trips a second")));
        assert_eq!(answered(&Run::default()), None);
    }
}
