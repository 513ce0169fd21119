//! The object database against the file system.

use fingerpost_measure::estimate;
use fingerpost_record::{Estimate, Measurement, Params, Run, Unit};

use super::conclusion::{About, Conclusion, Document, Here};
use super::judged::Judged;
use super::source::{between, load, row};
use fingerpost_compare::verdict::Verdict;
use fingerpost_labs::site::analysis;

const SITE: About = About::new(Document::ObjectDatabase, &["site"]);

/// The conclusions about stores.
pub static LIST: &[Conclusion] = &[
    SITE.at("The introduction").conclusion(
        "storage_limits_web_servers",
        "How files are stored is one of the major limits of web servers: with another way to store them they would be \
         faster.",
        || Judged::not("communication and server were left out on purpose"),
        Here::By(served, "site --set parts=served"),
    ),
    SITE.at("Conclusions").conclusion(
        "up_to_seven_times",
        "The object database gets the same pages up to seven times faster than the file system.",
        || {
            let c = between("site-powermac-9500[store=files]", "site-powermac-9500[store=object-database]");
            let rounds = ratios();
            let (most, median) = (rounds.iter().copied().fold(0.0, f64::max), estimate::median(&rounds));
            let holds = row(&c, "site.round").verdict == Verdict::Faster && (7.0..7.1).contains(&most);
            Judged::by(holds, format!("{most:.2} times in the best of eleven rounds, {median:.2} in their median"))
        },
        Here::By(faster, "site"),
    ),
    SITE.at("Conclusions").conclusion(
        "faster_as_it_loads",
        "Its lead grows round by round, as more of its tables have been loaded into memory.",
        || {
            let r = ratios();
            let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
            let (first, last) = (mean(&r[..3]), mean(&r[8..]));
            Judged::by(
                last > 1.5 * first,
                format!("{first:.1} times in the first three rounds, {last:.1} in the last three"),
            )
        },
        Here::By(warming, "site --set state=warming"),
    ),
    SITE.at("Conclusions").conclusion(
        "less_with_less_cache",
        "The next version keeps less in memory: its lead will be smaller, and still four to five times.",
        || Judged::not("it is a forecast: the document has no figure of that version"),
        Here::By(
            less_cache,
            "site --set state=warming --set pages=4000 --set urls=400 --set memory=none,8M --allow-system-changes",
        ),
    ),
    SITE.at("Conclusions").conclusion(
        "native_and_no_legacy",
        "The lead is due to code without the past of several formats, and to native code where the file system's is \
         emulated.",
        || Judged::not("it is a belief: nothing in the table tells code from caching"),
        Here::Never("no file system of today is emulated"),
    ),
    SITE.at("The test case").conclusion(
        "script_costs_the_database",
        "The database's loop runs more script for each page, so its lead is larger than the table says.",
        || Judged::not("the time of the script alone was not taken"),
        Here::Never("nothing is interpreted here: both sides are the same machine code"),
    ),
    SITE.at("The test case").conclusion(
        "folders_favour_files",
        "Nested folders favour the file system, which gets slower with the number of files in a folder.",
        || Judged::not("one structure was measured"),
        Here::By(folders, "site"),
    ),
    SITE.at("The test case").conclusion(
        "load_affects_both",
        "What else ran on the machine slowed both sides alike.",
        || Judged::not("it is an assumption: nothing was measured without the load"),
        Here::Never("both sides read in the same rounds here, so that a load affects both"),
    ),
    SITE.at("The introduction").conclusion(
        "faster_even_with_a_message",
        "A web server gets text sooner from the database than from files, although each request goes there and back \
         between two programs.",
        || Judged::not("it is what others reported: nothing was measured"),
        Here::Never(
            "in the rows site.served the server reads the database itself, without a message between two programs",
        ),
    ),
];

/// The ratio of each of the source's rounds.
fn ratios() -> Vec<f64> {
    let run = load("site-powermac-9500");
    let rounds = |store: &str| {
        run.row("site.round", &Params::new().with("store", store))
            .map(|m| m.process_values())
            .expect("committed tables have the rounds")
    };
    rounds("files")
        .into_iter()
        .zip(rounds("object-database"))
        .map(|(f, o)| f / o)
        .collect()
}

fn faster(run: &Run) -> Option<Judged> {
    let store_ratios = analysis::store_ratios(run);
    let best = store_ratios
        .iter()
        .filter_map(|d| Some((d, d.ratio?)))
        .max_by(|a, b| a.1.value.total_cmp(&b.1.value))?;
    let (store_ratio, ratio) = best;
    let memory = store_ratio
        .params
        .int("memory")
        .map_or(String::new(), |bytes| {
            format!(" with {} of memory", Unit::Bytes.format(bytes as f64))
        });
    let rounds: Vec<f64> = store_ratio
        .rounds
        .iter()
        .take(analysis::TABLE_ROUNDS)
        .map(|round| round.ratio)
        .collect();
    let most = rounds.iter().copied().fold(0.0, f64::max);
    let of = format!(
        "{} is {:.2} times as fast as {}{memory}",
        store_ratio.odb, ratio.value, store_ratio.files
    );
    let figure = format!(
        "{of} ({:.2} to {:.2}), {most:.2} times in the best of {} rounds",
        ratio.low,
        ratio.high,
        rounds.len()
    );
    // “Up to” is the best of as many rounds as the source has: of more of them one might be as good by chance.
    Some(if (ratio.low..=ratio.high).contains(&1.0) {
        Judged::open(figure)
    } else {
        Judged::by(most >= SEVEN, figure)
    })
}

/// What the source's “up to seven times” is at the least.
const SEVEN: f64 = 7.0;

/// The lead in the rounds from the start: the last third against the first, for the database that keeps what it has
/// walked through as the source's did, else for the fastest.
fn warming(run: &Run) -> Option<Judged> {
    let found = analysis::warming(run);
    // Where memory was limited in a part of the rounds, it is that of the others.
    let unlimited = || found.iter().filter(|w| w.params.get("memory").is_none());
    let Some(course) = unlimited()
        .find(|w| w.odb == analysis::LOADED)
        .or(unlimited().next())
        .or(found.first())
    else {
        let loaded = "the rounds here begin when everything that is read has been loaded; `--set state=warming` \
            measures from the start";
        return (!analysis::store_ratios(run).is_empty()).then(|| Judged::not(loaded));
    };
    let (first, last) = (
        analysis::mean(&course.rounds[..course.rounds.len() / 3]),
        course.last(),
    );
    let (before, after) = (first.value, last.value);
    let figure = format!(
        "{}: {before:.2} times in the first third of the rounds, {after:.2} in the last",
        course.odb
    );
    Some(Judged::larger(&last, &first, figure))
}

/// The lead when all has been loaded that is kept, with all memory and with little of it, as the version that the
/// source foresees has: true where it is less then, and still four times at the least. A limit that nobody came to says
/// nothing.
fn less_cache(run: &Run) -> Option<Judged> {
    let less = analysis::less(&analysis::warming(run)).into_iter().next()?;
    Some(match less.smaller().filter(|_| less.met != Some(false)) {
        Some(smaller) => Judged::by(smaller && less.little.value >= 4.0, less.sentence),
        None => Judged::open(less.sentence),
    })
}

/// The web server of this program reading from files and from the fastest of the databases.
fn served(run: &Run) -> Option<Judged> {
    let rows = || {
        run.measurements
            .iter()
            .filter(|m| m.probe == "site.served")
            .filter_map(|m| Some((m.params.text("store")?, m.estimate?)))
    };
    let best = |files: bool| {
        rows()
            .filter(|(store, _)| store.starts_with("files") == files)
            .max_by(|a, b| a.1.value.total_cmp(&b.1.value))
    };
    let ((file, from_files), (database, from_database)) = (best(true)?, best(false)?);
    let figure = format!(
        "{:.0}/s from {database}, {:.0}/s from {file}",
        from_database.value, from_files.value
    );
    Some(Judged::larger(&from_database, &from_files, figure))
}

/// What the files of one folder cost more when there are many of them: true where the largest folder is slower than the
/// smallest by more than the threshold of any comparison, interval against interval.
fn folders(run: &Run) -> Option<Judged> {
    let of_files =
        |m: &&Measurement| m.probe == "site.folder" && m.params.text("store") == Some("files-open");
    let mut rows: Vec<(i64, Estimate)> = run
        .measurements
        .iter()
        .filter(of_files)
        .filter_map(|m| Some((m.params.int("entries")?, m.estimate?)))
        .collect();
    rows.sort_by_key(|r| r.0);
    let (few, many) = (
        rows.first()?,
        rows.last().filter(|last| last.0 > rows[0].0)?,
    );
    let time = |e: &Estimate| Unit::Nanoseconds.format(e.value);
    let figure = format!(
        "{} with {} files in the folder, {} with {}",
        time(&few.1),
        few.0,
        time(&many.1),
        many.0
    );
    let slower = many.1.low > few.1.high * 1.03;
    Some(if !slower && many.1.high > few.1.low * 1.03 {
        Judged::open(figure)
    } else {
        Judged::by(slower, figure)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conclusions::{Answer, all};
    use fingerpost_labs::site::analysis::fixture::loaded;

    #[test]
    fn what_the_source_foresees_of_less_memory_is_judged_by_both() {
        let of = |run: &Run| {
            all()
                .find(|c| c.key == "less_with_less_cache")
                .map(|c| c.by_run(run).answer)
        };
        assert_eq!(
            of(&loaded(1.5, 15.0, 2 << 20, 900.0)),
            Some(Answer::True),
            "less, and four times still"
        );
        assert_eq!(
            of(&loaded(1.5, 30.0, 2 << 20, 900.0)),
            Some(Answer::False),
            "less than four times"
        );
        assert_eq!(
            of(&loaded(10.0, 2.0, 2 << 20, 900.0)),
            Some(Answer::False),
            "no less"
        );
        assert_eq!(
            of(&loaded(1.5, 1.5, 64 << 20, 0.0)),
            Some(Answer::NotResolved),
            "nobody came to the limit"
        );
        assert_eq!(of(&Run::default()), Some(Answer::NotMeasured));
        // A ratio whose interval holds one says neither that the database is faster nor that it is not.
        let faster = |run: &Run| {
            all()
                .find(|c| c.key == "up_to_seven_times")
                .map(|c| c.by_run(run))
                .unwrap()
        };
        let mut only = loaded(1.5, 15.0, 2 << 20, 900.0);
        only.measurements
            .retain(|m| m.params.get("memory").is_some());
        assert!(
            faster(&only).figure.contains(" with 2.000 MiB of memory"),
            "{}",
            faster(&only).figure
        );
        only.measurements[1].processes[0].samples = vec![30.0; 6];
        only.measurements[1].processes[1].samples = vec![120.0; 6];
        assert_eq!(
            faster(&only).answer,
            Answer::NotResolved,
            "{}",
            faster(&only).figure
        );
    }
}
