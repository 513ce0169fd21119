//! What a run found, in words: the sentences that a person reads first, before any table.

use fingerpost_compare::flops::Flops;
use fingerpost_compare::memory::Memory;
use fingerpost_compare::scaling::{Table, tables};
use fingerpost_compare::{launch, site, zerofill};
use fingerpost_diagnose::label;
use fingerpost_record::client::{THROUGHPUT, TURN, TURNS};
use fingerpost_record::name::product;
use fingerpost_record::params::named;
use fingerpost_record::text::{capitalised, clean, counted};
use fingerpost_record::unit::significant;
use fingerpost_record::{Better, Finding, Measurement, Outcome, Params, Profile, Run, Status, Unit};

use crate::explain::{Explanation, of_run, speaking};
use crate::view::{Group, Row};
use crate::{flops, key_figures, memory};

/// More sentences of one kind than these are no answer.
const MOST: usize = 3;
/// Key figures of the sentence for a run of primitives.
const KEYS: usize = 5;

/// The answers of a run, whose rows are in these groups, cleaned; none where it has no figure.
pub fn of(run: &Run, groups: &[Group]) -> Vec<String> {
    let (mut found, explained) = (Vec::new(), speaking(of_run(run)));
    found.extend(explained.iter().filter_map(of_step).take(MOST));
    if found.is_empty() {
        found.extend(explained.iter().filter_map(unaccused).take(1));
    }
    if found.is_empty() {
        // A record of before requests were followed has findings, and nothing to explain them by.
        found.extend(
            run.findings.iter().filter(|f| f.status == Status::Guilty).take(1).map(|f| blame(f, "the server", "")),
        );
    }
    let tables = tables(run);
    found.extend(tables.iter().take(MOST).map(|table| scaling(table, tables.len() > 1)));
    let doubted = |of: &'static str| move |sentence: String| doubted(sentence, run, of);
    found.extend(zerofill::analyse(run).and_then(|analysis| zerofill::headline(&analysis)).map(doubted("zerofill.")));
    // Where memory was limited in a part of the rounds, the answer is that of the others, and what the limit makes of
    // it comes after it.
    found.extend(site::duels(run).iter().min_by_key(|duel| duel.params.get("memory").is_some()).and_then(contest));
    found.extend(site::less(run).first().map(|less| format!("{}.", less.sentence)).map(doubted("site.")));
    found.extend(since_boot(run));
    // With one placement there is nothing to say but that, where something else was asked.
    let launched = launch::analyse(run).filter(|launch| found.is_empty() || launch.placements.len() > 1);
    found.extend(launched.map(|launch| launch.sentence));
    found.extend(Flops::of(&run.measurements).and_then(|found| flops::answer(&found)).map(doubted("cpu.")));
    found.extend(Memory::of(run).and_then(|found| memory::answer(&found)).map(doubted("memory.")));
    if found.is_empty() {
        found.extend(pageins(run));
    }
    if found.is_empty() {
        found.extend(answered(run));
    }
    if found.is_empty() {
        found.extend(primitives(groups));
    }
    found.iter().map(|sentence| clean(sentence).into_owned()).collect()
}

/// A sentence that rests on the rows of these probes, with how many of them are not to be trusted.
fn doubted(sentence: String, run: &Run, of: &str) -> String {
    let rows = || run.measurements.iter().filter(|m| m.estimate.is_some() && m.probe.starts_with(of));
    let untrusted = rows().filter(|m| m.outcome == Outcome::Untrusted).count();
    if untrusted == 0 {
        return sentence;
    }
    let is = if untrusted == 1 { "is" } else { "are" };
    format!(
        "{} ({untrusted} of {} {is} untrusted).",
        sentence.trim_end_matches('.'),
        counted(rows().count() as u64, "row")
    )
}

/// What the server is called: by its engine, its program, else by the workload.
fn server<'a>(workload: &'a str, params: &'a Params) -> &'a str {
    product(params.text("engine").or(params.text("server")).unwrap_or(workload))
}

/// The cause of the time of one step: guilty, or suspected where none is.
fn of_step(e: &Explanation) -> Option<String> {
    let of =
        |status: Status| e.findings.iter().filter(|f| f.status == status).max_by(|a, b| a.share.total_cmp(&b.share));
    let finding = of(Status::Guilty).or_else(|| of(Status::Suspected))?;
    let asking = ["clients", "connections"].iter().find_map(|by| Some((e.params.int(by)?, by.trim_end_matches('s'))));
    let at = asking.map_or(String::new(), |(n, by)| format!(" at {}", counted(n.unsigned_abs(), by)));
    Some(blame(finding, server(&e.workload, &e.params), &at))
}

/// `The cause at 50 clients: locks inside MariaDB, 62 % of the time.`
fn blame(f: &Finding, server: &str, at: &str) -> String {
    let what = match f.cause.as_str() {
        "app.lock" => format!("locks inside {server}"),
        "app.work" => format!("the code of {server} itself"),
        "app.wait" => format!("sleeps and timers of {server}"),
        "cpu.saturated" => "waiting for a CPU (more threads than CPUs)".to_owned(),
        "cpu.contention" => "waiting for a CPU that other processes have".to_owned(),
        other => label(other).to_owned(),
    };
    let share = if f.share > 0.0 { format!(", {:.0} % of the time", f.share * 100.0) } else { String::new() };
    let verdict = if f.status == Status::Guilty { "The cause" } else { "Suspected" };
    format!("{verdict}{at}: {what}{share}.")
}

/// Where most of the time of one step went, where no cause is accused.
fn unaccused(e: &Explanation) -> Option<String> {
    let most = e.budget.parts.iter().max_by(|a, b| a.share.total_cmp(&b.share))?;
    let name = server(&e.workload, &e.params);
    Some(format!("No cause stands out: {:.0} % of the time of {name} is {}.", most.share * 100.0, most.component))
}

/// What a run of primitives is to a person: its key figures, else its first ones.
fn primitives(groups: &[Group]) -> Option<String> {
    let takes = |what: &str, row: &Row| {
        let figure = row.figure?.told();
        Some(format!("{what} {} {figure}", if row.better == Better::Lower { "takes" } else { "reaches" }))
    };
    let article =
        |name: &str| format!("{} {name}", if name.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" });
    let keys = key_figures::of(groups).into_iter().filter_map(|(name, row)| takes(&article(name), row));
    let mut told: Vec<String> = keys.take(KEYS).collect();
    if told.is_empty() {
        told = key_figures::measured(groups).filter_map(|row| takes(&row.name(), row)).take(MOST).collect();
        return Some(format!("{}.", told.join("; "))).filter(|_| !told.is_empty());
    }
    let last = told.pop().unwrap_or_default();
    let all = if told.is_empty() { last } else { format!("{} and {last}", told.join(", ")) };
    Some(format!("{}.", capitalised(&all)))
}

fn scaling(table: &Table, many: bool) -> String {
    let others: Vec<String> = table
        .params
        .iter()
        .filter(|(key, _)| !matches!(*key, "engine" | "server"))
        .map(|(key, value)| named(key, value))
        .collect();
    let which = if many && !others.is_empty() { format!(" ({})", others.join(" ")) } else { String::new() };
    let rests = doubtful_steps(table);
    let name = server(&table.workload, &table.params);
    // A product is written as it is.
    let name = if name.starts_with("the ") { capitalised(name) } else { name.to_owned() };
    format!("{name}{which} {}{rests}.", table.scaling.sentence(table.who))
}

/// Which steps of a table are not to be trusted, behind what is said of it.
fn doubtful_steps(table: &Table) -> String {
    match table.untrusted.as_slice() {
        [] => String::new(),
        all if all.len() == table.scaling.rows.len() => " (untrusted: all of its rows)".to_owned(),
        [one] => format!(" (untrusted: the row of {})", counted(*one, table.who)),
        several => {
            let numbers: Vec<String> = several.iter().map(u64::to_string).collect();
            format!(" (untrusted: the rows of {} {}s)", numbers.join(", "), table.who)
        }
    }
}

/// What a load from a client machine had answered.
fn answered(run: &Run) -> Option<String> {
    let figure = |probe: &str, percentile: Option<i64>| {
        let mut rows = run.measurements.iter().filter(|m| m.probe == probe && m.params.int("percentile") == percentile);
        rows.find_map(|m| Some((m, m.estimate?.value)))
    };
    let (row, rate) = figure(THROUGHPUT, None)?;
    let who = ["connections", "clients"]
        .iter()
        .find_map(|key| Some(counted(row.params.int(key)?.unsigned_abs(), key.strip_suffix('s')?)));
    let server = row.params.text("server").unwrap_or("The server");
    let mut sentence = format!("{server} answers {rate:.0} requests a second");
    if let Some(who) = who {
        sentence += &format!(" of {who}");
    }
    // A transaction may be several round trips.
    if let Some((_, turns)) = figure(TURNS, None).filter(|(_, turns)| (turns / rate - 1.0).abs() > 0.01) {
        sentence += &format!(", in {turns:.0} round trips a second");
    }
    if let (Some((_, half)), Some((_, most))) = (figure(TURN, Some(50)), figure(TURN, Some(99))) {
        let time = |ns: f64| Unit::Nanoseconds.format(ns);
        sentence += &format!(": half of the round trips are done in {}, 99 % in {}", time(half), time(most));
    }
    Some(sentence + &doubt(row) + ".")
}

/// Page-ins since boot where that was the question: what `state=after-boot` counts.
fn since_boot(run: &Run) -> Option<String> {
    let asked = |m: &&Measurement| m.probe == "launch.pageins" && m.params.text("state") == Some("after-boot");
    let own = run.profile != Profile::Imported;
    let (row, since) = run.measurements.iter().filter(asked).find_map(|m| Some((m, m.estimate?))).filter(|_| own)?;
    Some(format!("{:.0} page-ins since boot{}.", since.value, doubt(row)))
}

/// Page-ins since boot, by days of uptime.
fn pageins(run: &Run) -> Option<String> {
    let rows = run.measurements.iter().filter(|m| m.probe == "launch.pageins");
    let mut days: Vec<(i64, f64, &Measurement)> =
        rows.filter_map(|m| Some((m.params.int("days")?, m.estimate?.value, m))).collect();
    days.sort_by_key(|(days, ..)| *days);
    let (last, count, row) = *days.last()?;
    let after = match last {
        0 => "in less than a day".to_owned(),
        n => format!("in {}", counted(n.unsigned_abs(), "day")),
    };
    let more = days.first().filter(|(first, ..)| *first < last).map_or(String::new(), |(first, before, _)| {
        format!(", {:.0} a day since the first that was seen", (count - before) / (last - first) as f64)
    });
    Some(format!("{count:.0} page-ins since boot, {after} of uptime{more}{}.", doubt(row)))
}

/// What stands behind a figure where its row is not to be trusted.
fn doubt(row: &Measurement) -> String {
    match &row.reason {
        Some(reason) if row.outcome == Outcome::Untrusted => format!(" (untrusted: {reason})"),
        _ if row.outcome == Outcome::Untrusted => " (untrusted)".to_owned(),
        _ => String::new(),
    }
}

/// The fastest database against files: how many times as fast, with the interval.
fn contest(duel: &site::Duel) -> Option<String> {
    let ratio = duel.ratio?;
    let told = |value: f64, low: f64, high: f64| {
        format!("{} times ({}–{})", significant(value), significant(low), significant(high))
    };
    // Which of several it is; the kind's own name says nothing more.
    let which = |name: &str, kind: &str| if name == kind { String::new() } else { format!(" ({name})") };
    let (files, odb) = (which(&duel.files, "files"), which(&duel.odb, "object-database"));
    let limit = duel.params.int("memory").map(|bytes| Unit::Bytes.format(bytes as f64));
    let with = limit.map_or(String::new(), |limit| format!(" with {limit} of memory"));
    let doubt = if duel.untrusted { " (untrusted)" } else { "" };
    Some(if ratio.low > 1.0 {
        let times = told(ratio.value, ratio.low, ratio.high);
        format!("Pages come {times} as fast from the object database{odb} as from files{files}{with}{doubt}.")
    } else if ratio.high < 1.0 && ratio.low > 0.0 {
        let times = told(1.0 / ratio.value, 1.0 / ratio.high, 1.0 / ratio.low);
        format!("Pages come {times} as fast from files{files} as from the fastest object database{odb}{with}{doubt}.")
    } else {
        let times = told(ratio.value, ratio.low, ratio.high);
        format!("Files{files} and the fastest object database{odb}{with} do not differ for certain: {times}{doubt}.")
    })
}

#[cfg(test)]
mod tests {
    use fingerpost_record::fixture::{followed, loaded};
    use fingerpost_record::{Estimate, Layer};

    use super::*;
    use crate::view::View;

    fn of(run: &Run) -> Vec<String> {
        View::of(run).answers
    }

    #[test]
    fn primitives_are_told_by_their_key_figures_and_single_rows_by_their_names() {
        let mut run = fingerpost_record::fixture::run();
        let all = of(&run);
        assert!(
            all.len() == 1 && all[0].starts_with("A system call takes 41.30 ns, a context switch takes "),
            "{all:?}"
        );
        run.measurements.retain(|m| m.probe == "syscall.stat");
        let one = of(&run);
        assert!(one.len() == 1 && one[0].starts_with("syscall.stat takes "), "{one:?}");
        run.measurements.clear();
        assert!(of(&run).is_empty());
    }

    #[test]
    fn locks_are_said_in_words_and_with_the_servers_name() {
        let answers = of(&followed::slow_locks());
        assert!(answers.iter().any(|a| a.starts_with("The cause at 8 clients: ")), "{answers:?}");
        assert!(answers.iter().all(|a| !a.contains("app.") && a.ends_with('.')), "{answers:?}");
        let finding = Finding {
            cause: "app.lock".into(),
            layer: Layer::Application,
            status: Status::Guilty,
            share: 0.62,
            evidence: vec![],
            relation: None,
        };
        assert_eq!(
            blame(&finding, product("mariadb"), " at 50 clients"),
            "The cause at 50 clients: locks inside MariaDB, 62 % of the time."
        );
    }

    #[test]
    fn a_collapse_is_told_first_and_a_run_without_conclusions_tells_nothing() {
        let mut run = loaded::collapsed();
        let scaling = |run: &Run| of(run).into_iter().find(|a| a.contains("collapses from")).unwrap();
        assert!(!scaling(&run).contains("untrusted"), "{}", scaling(&run));
        run.measurements.iter_mut().for_each(|m| m.outcome = Outcome::Untrusted);
        assert!(scaling(&run).ends_with(" (untrusted: all of its rows)."), "{}", scaling(&run));
        assert!(of(&Run::default()).is_empty());
    }

    #[test]
    fn a_load_is_told_in_one_sentence() {
        let row = |probe: &str, percentile: Option<i64>, value: f64| {
            let params = Params::new().with("clients", 4).with("server", "mysql://db-1/x");
            let params = percentile.map_or(params.clone(), |p| params.with("percentile", p));
            let none = Measurement::without_figure(
                probe,
                1,
                params,
                Unit::Nanoseconds,
                Better::Lower,
                Outcome::Measured,
                String::new(),
            );
            Measurement { estimate: Some(Estimate { value, low: value, high: value, confidence: 0.95 }), ..none }
        };
        let of = |turns: f64| {
            let rows = [
                (THROUGHPUT, None, 1000.0),
                (TURNS, None, turns),
                (TURN, Some(50), 80_000.0),
                (TURN, Some(99), 150_000.0),
            ];
            let measurements =
                rows.into_iter().map(|(probe, percentile, value)| row(probe, percentile, value)).collect();
            answered(&Run { measurements, ..Run::default() })
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

    #[test]
    fn page_ins_are_told_by_days() {
        let row = |days: i64, count: f64| {
            let params = Params::new().with("state", "uptime").with("days", days);
            let none = Measurement::without_figure(
                "launch.pageins",
                1,
                params,
                Unit::Count,
                Better::Lower,
                Outcome::Measured,
                String::new(),
            );
            Measurement { estimate: Some(Estimate { value: count, low: count, high: count, confidence: 0.95 }), ..none }
        };
        let of = |rows: Vec<Measurement>| pageins(&Run { measurements: rows, ..Run::default() });
        assert_eq!(of(vec![row(0, 571.0)]).unwrap(), "571 page-ins since boot, in less than a day of uptime.");
        let course = of(vec![row(3, 13_000.0), row(1, 11_000.0)]).unwrap();
        assert_eq!(course, "13000 page-ins since boot, in 3 days of uptime, 1000 a day since the first that was seen.");
        assert_eq!(of(Vec::new()), None);
    }

    #[test]
    fn who_asked_for_the_page_ins_since_boot_is_told_them_and_not_that_nothing_was_compared() {
        let mut run = fingerpost_compare::references::load("launch-10.1").unwrap();
        run.profile = Profile::Quick;
        run.measurements.retain(|m| m.probe == "launch.pageins" || m.params.text("placement") == Some("default"));
        let told = of(&run);
        assert_eq!(told[0], "2304 page-ins since boot.", "{told:?}");
        let mut late = run.clone();
        late.measurements
            .iter_mut()
            .for_each(|m| (m.outcome, m.reason) = (Outcome::Untrusted, Some("up for 120 minutes".into())));
        assert_eq!(of(&late)[0], "2304 page-ins since boot (untrusted: up for 120 minutes).");
        assert!(told.iter().all(|sentence| !sentence.contains("One placement")), "{told:?}");
    }

    #[test]
    fn the_site_has_its_ratio_as_a_headline() {
        let answers = of(&crate::site::tests::source_run());
        assert!(!answers.iter().any(|a| a.contains('\u{1b}')), "{answers:?}");
        let duel = |value: f64, low: f64, high: f64| site::Duel {
            files: "files-open".into(),
            odb: "lmdb".into(),
            params: Params::new(),
            rounds: Vec::new(),
            ratio: Some(Estimate { value, low, high, confidence: 0.95 }),
            untrusted: false,
        };
        assert!(
            contest(&duel(27.0, 25.0, 29.0))
                .unwrap()
                .starts_with("Pages come 27.00 times (25.00–29.00) as fast from the object database")
        );
        assert!(
            contest(&duel(0.5, 0.4, 0.6))
                .unwrap()
                .starts_with("Pages come 2.000 times (1.667–2.500) as fast from files")
        );
        assert!(contest(&duel(1.0, 0.9, 1.1)).unwrap().contains("do not differ for certain"));
        let doubted = contest(&site::Duel { untrusted: true, ..duel(0.5, 0.4, 0.6) });
        assert!(doubted.unwrap().ends_with("object database (lmdb) (untrusted)."));
        let limited = site::Duel { params: Params::new().with("memory", 8 << 20), ..duel(1.0, 0.9, 1.1) };
        assert!(
            contest(&limited).unwrap().contains("(lmdb) with 8.000 MiB of memory do not differ"),
            "{:?}",
            contest(&limited)
        );
    }

    #[test]
    fn an_answer_says_how_many_of_its_rows_are_untrusted() {
        let mut run = fingerpost_compare::references::load("flops-g5-2.7-gcc-3.3").unwrap();
        let told = |run: &Run| super::of(run, &[]).join(" ");
        assert!(told(&run).contains("FLOPS") && !told(&run).contains("untrusted"), "{}", told(&run));
        run.measurements[0].outcome = Outcome::Untrusted;
        assert!(
            told(&run).contains(&format!(" (1 of {} rows is untrusted).", run.measurements.len())),
            "{}",
            told(&run)
        );
        run.measurements[1].outcome = Outcome::Untrusted;
        assert!(
            told(&run).contains(&format!(" (2 of {} rows are untrusted).", run.measurements.len())),
            "{}",
            told(&run)
        );
    }
}
