//! Swap on a partition of its own.

use fingerpost_record::cause::id;
use fingerpost_record::text::counted;
use fingerpost_record::{Outcome, Params, Run, Status};

use super::conclusion::{About, Conclusion, Document, Here};
use super::judged::Judged;
use super::source::{between, count, mean, mean_of, ratio, row, status, total};
use fingerpost_compare::verdict::Verdict;
use fingerpost_labs::launch::analysis::{self, Answer};

const LAUNCH: About = About::new(Document::Swapfile, &["launch"]);
const PAGEINS: About = About::new(Document::Swapfile, &["launch-pageins"]);
const BOTH: About = About::new(Document::Swapfile, &["launch", "launch-pageins"]);
const TWO_SYSTEMS: &str = "it is about two versions of one system";

/// The conclusions about launching.
pub static LIST: &[Conclusion] = &[
    LAUNCH.at("Determination").conclusion(
        "swap_partition_helps_much",
        "Under 10.0.4 a place of its own for swap makes a large difference to how fast applications start.",
        || {
            let both = ["single", "dual"].map(|p| placements("10.0.4", p));
            let [one, two] = both.each_ref().map(|c| count(c, "launch.time", Verdict::Faster));
            let [single, dual] = both.each_ref().map(|c| mean(c, "launch.time"));
            let times = format!("{single:.2} and {dual:.2} times the time (each application weighing the same)");
            Judged::by(
                one >= 9 && two == 10 && dual < 0.7,
                format!("on one drive {one} and on two {two} of 10 faster, {times}"),
            )
        },
        Here::By(helps, "launch --set placements=file,single,dual --allow-system-changes"),
    ),
    LAUNCH.at("Conclusions").conclusion(
        "helps_less_in_ten_one",
        "Under 10.1 it still helps, and helps less than before.",
        || {
            let times = |system: &str| ["single", "dual"].map(|p| mean(&placements(system, p), "launch.time"));
            let ([old_single, old_dual], [single, dual]) = (times("10.0.4"), times("10.1"));
            let holds = single < 1.0 && single > old_single && dual < 1.0 && dual > old_dual;
            let on_one = format!("single drive {single:.2} instead of {old_single:.2}");
            Judged::by(holds, format!("dual drive {dual:.2} times the time instead of {old_dual:.2}, {on_one}"))
        },
        Here::Never(TWO_SYSTEMS),
    ),
    LAUNCH.at("The Benchmarks").conclusion(
        "second_drive_best",
        "Swap on a second drive beats swap on another partition of the drive that the system is on, for every \
         application.",
        || {
            let c = ["10.0.4", "10.1"]
                .map(|s| between(&format!("launch-{s}[placement=single]"), &format!("launch-{s}[placement=dual]")));
            let less = c.iter().map(|c| c.rows.iter().filter(|r| r.new.value < r.base.value).count()).sum::<usize>();
            Judged::by(less == 20, format!("{less} of 20 times are shorter"))
        },
        Here::By(second_drive, "launch --set placements=file,single,dual --allow-system-changes"),
    ),
    LAUNCH.at("Preface").conclusion(
        "ten_one_faster",
        "Version 10.1 starts applications much faster than 10.0.4.",
        || {
            let c = between("launch-10.0.4", "launch-10.1");
            let [faster, slower] = [Verdict::Faster, Verdict::Slower].map(|v| count(&c, "launch.time", v));
            let figure =
                format!("{faster} of 30 faster, {slower} slower, {:.2} times the time", mean(&c, "launch.time"));
            Judged::by(faster > 20 && slower <= 1, figure)
        },
        Here::Never(TWO_SYSTEMS),
    ),
    LAUNCH.at("Determination").conclusion(
        "apple_applications_gain_most",
        "Several of the vendor's own applications are faster by default in 10.1 than they were with a second drive in \
         10.0.4.",
        || {
            let c = between("launch-10.0.4[placement=dual]", "launch-10.1[placement=default]");
            let apps = ["iTunes", "Mail", "System Preferences", "QuickTime Pro"];
            let verdict = |app: &str| c.rows.iter().find(|r| r.params.text("app") == Some(app)).map(|r| r.verdict);
            let faster = apps.iter().filter(|a| verdict(a) == Some(Verdict::Faster)).count();
            let figure = format!("{faster} of the four that are named; Mail is not: 2.9 s became 3.3 s");
            Judged::by(faster == 3 && verdict("Mail") == Some(Verdict::Slower), figure)
        },
        Here::Never(TWO_SYSTEMS),
    ),
    PAGEINS.at("Determination").conclusion(
        "far_fewer_pageins",
        "Version 10.1 pages in far less until it has started: some two thousand times against eight to ten thousand.",
        || {
            let c = between("launch-10.0.4", "launch-10.1");
            let r = row(&c, "launch.pageins");
            let figure =
                format!("{:.0} against {:.0}, {:.2} times", r.new.value, r.base.value, ratio(&c, "launch.pageins"));
            Judged::by(r.verdict == Verdict::Faster && ratio(&c, "launch.pageins") < 0.3, figure)
        },
        Here::Never(
            "it is about two versions of one system; `--set state=after-boot` records the page-ins of this one",
        ),
    ),
    PAGEINS.at("Determination").conclusion(
        "pageins_grow_with_uptime",
        "Page-ins go on with the days that the system is up, much more slowly in 10.1.",
        || {
            let days = |system: &str, days: i64| {
                let run = super::source::load(system);
                let at = |wanted: Option<i64>| {
                    let mut rows = run.measurements.iter().filter(|m| m.probe == "launch.pageins");
                    rows.find(|m| m.params.int("days") == wanted).and_then(|m| m.estimate).map_or(f64::NAN, |e| e.value)
                };
                (at(Some(days)) - at(None)) / days as f64
            };
            let (old, new) = (days("launch-10.0.4", 3), days("launch-10.1", 4));
            Judged::by(new > 0.0 && new < old, format!("{old:.0} a day under 10.0.4, {new:.0} under 10.1"))
        },
        Here::By(grow, "launch --watch 4d"),
    ),
    BOTH.at("Determination").conclusion(
        "paging_explains_a_part",
        "Part of the gain of 10.1 comes from paging less; how much is not known.",
        || {
            let suspected =
                status(&between("launch-10.0.4", "launch-10.1"), id::MEMORY_PAGING) == Some(Status::Likely);
            Judged::by(suspected, "memory.paging is likely, with no share of its own".into())
        },
        Here::Never(TWO_SYSTEMS),
    ),
    PAGEINS.at("Conclusions").conclusion(
        "memory_avoids_pageouts",
        "Enough memory keeps the system from paging out, which is slow because it goes to the disk.",
        || {
            let [old, new] = ["launch-10.0.4", "launch-10.1"].map(|system| total(system, "pageouts"));
            Judged::not(&format!("nothing was paged out in either block of top ({old:.0} and {new:.0})"))
        },
        Here::By(pageouts, "launch --allow-system-changes"),
    ),
    LAUNCH.at("Determination").conclusion(
        "libraries_or_allocation",
        "The vendor's applications may gain by libraries that are in memory already, or by another way to allocate \
         memory.",
        || Judged::not("it is called speculation there: nothing was measured"),
        Here::Never(TWO_SYSTEMS),
    ),
    PAGEINS.at("Determination").conclusion(
        "pageins_are_libraries",
        "The page-ins until the system has started are libraries that come into memory by way of the swap file.",
        || Judged::not("top counts page-ins without where they come from"),
        Here::By(from_swap, "launch --set state=after-boot"),
    ),
    LAUNCH.at("Technical Reference Note").conclusion(
        "three_were_newer",
        "OmniWeb, iTunes and QuickTime Pro were newer versions under 10.1; whether that makes them faster is not \
         known.",
        || {
            let c = between("launch-10.0.4", "launch-10.1");
            let [newer, same] = [true, false].map(|newer| {
                let of = |app: &str| ["OmniWeb", "iTunes", "QuickTime Pro"].contains(&app) == newer;
                mean_of(c.rows.iter().filter(|r| r.params.text("app").is_some_and(of)))
            });
            Judged::not(&format!(
                "the same versions were not tried; the three take {newer:.2} times the time that they did, the seven \
                 others {same:.2}"
            ))
        },
        Here::Never(TWO_SYSTEMS),
    ),
];

/// Page-ins since boot: how many of them, at the most, were for a page in swap. What was read long after the boot does
/// not tell of it.
fn from_swap(run: &Run) -> Option<Judged> {
    let after_boot = |params: &Params| params.text("state") == Some("after-boot");
    let since_boot = run
        .observations
        .iter()
        .filter(|o| o.workload == "launch" && o.observer == "since-boot" && after_boot(&o.params));
    let (pageins, swap) = since_boot
        .filter_map(|o| {
            Some((
                *o.totals.get("major_faults")?,
                *o.totals.get("swap_in.pages")?,
            ))
        })
        .next()?;
    let figure = format!("{pageins:.0} page-ins since boot, and {swap:.0} pages came from swap");
    let row = run
        .measurements
        .iter()
        .find(|m| m.probe == "launch.pageins" && after_boot(&m.params))?;
    if row.outcome != Outcome::Measured {
        return Some(Judged::open(figure));
    }
    (pageins > 0.0).then(|| Judged::by(swap >= pageins / 2.0, figure))
}

/// Whether a second drive beats another partition of the system's, application by application.
fn second_drive(run: &Run) -> Option<Judged> {
    let at = |placement: &str| {
        let rows = run.measurements.iter().filter(move |m| {
            m.probe == "launch.time" && m.params.text("placement") == Some(placement)
        });
        rows.filter_map(|m| Some((m.params.text("app")?.to_owned(), m.estimate?)))
            .collect::<Vec<_>>()
    };
    let (single, dual) = (at("single"), at("dual"));
    let pairs: Vec<_> = single
        .iter()
        .filter_map(|(app, s)| Some((s, dual.iter().find(|(other, _)| other == app)?.1)))
        .collect();
    let shorter = pairs.iter().filter(|(s, d)| d.high < s.low).count();
    let longer = pairs.iter().filter(|(s, d)| d.low > s.high).count();
    let are = |count: usize| format!("{count} {}", if count == 1 { "is" } else { "are" });
    let figure = format!(
        "of {} {} shorter and {} longer for certain",
        counted(pairs.len() as u64, "time"),
        are(shorter),
        are(longer)
    );
    (!pairs.is_empty()).then(|| match (shorter == pairs.len(), longer > 0) {
        (false, false) => Judged::open(figure),
        (all, _) => Judged::by(all, figure),
    })
}

/// Page-ins by days of uptime: whether they go on.
fn grow(run: &Run) -> Option<Judged> {
    let rows = run
        .measurements
        .iter()
        .filter(|m| m.probe == "launch.pageins" && m.params.text("state") == Some("uptime"));
    let mut days: Vec<(i64, f64)> = rows
        .filter_map(|m| Some((m.params.int("days")?, m.estimate?.value)))
        .collect();
    days.sort_by_key(|d| d.0);
    let (first, last) = (
        days.first()?,
        days.last().filter(|last| last.0 > days[0].0)?,
    );
    let each = (last.1 - first.1) / (last.0 - first.0) as f64;
    Some(Judged::by(
        each > 0.0,
        format!(
            "{:.0} after {} days, {:.0} after {}: {each:.0} a day",
            first.1, first.0, last.1, last.0
        ),
    ))
}

fn placements(system: &str, placement: &str) -> fingerpost_compare::Comparison {
    between(
        &format!("launch-{system}[placement=default]"),
        &format!("launch-{system}[placement={placement}]"),
    )
}

/// Placements of swap on a disk: the usual ones, and those of its own. A loop device over a file is a partition's way
/// through the kernel.
const DISKS: [&str; 6] = ["default", "none", "file", "single", "dual", "loop"];
/// What the time is of that under the default, at the most, where the difference is large: the author calls 0.65 and
/// 0.79 times so.
const LARGE: f64 = 0.85;

fn helps(run: &Run) -> Option<Judged> {
    // Memory that is compressed is no place on a disk, and one that is throttled is no gain.
    let on_disk = |params: &Params| {
        params
            .text("placement")
            .is_none_or(|p| DISKS.contains(&p.split(':').next().unwrap_or(p)))
    };
    let own = Run {
        measurements: run
            .measurements
            .iter()
            .filter(|m| on_disk(&m.params))
            .cloned()
            .collect(),
        observations: run
            .observations
            .iter()
            .filter(|o| on_disk(&o.params))
            .cloned()
            .collect(),
        command: run.command.clone(),
        ..Run::default()
    };
    let found = analysis::analyse(&own)?;
    // Which rows are not to be trusted is told of every conclusion in the same words.
    let sentence = found
        .sentence
        .replace(&analysis::doubt(&found), "")
        .trim_end_matches('.')
        .to_owned();
    match found.answer {
        Answer::Helps => Some(Judged::by(
            analysis::gain(&found).is_some_and(|times| times < LARGE),
            sentence,
        )),
        Answer::Hurts | Answer::Same => Some(Judged::by(false, sentence)),
        // The answer stands before it already.
        Answer::Unresolved => Some(Judged::open(
            sentence.trim_start_matches(analysis::OPEN).to_owned(),
        )),
        Answer::NothingToCompare => None,
    }
}

/// Whether a placement without pages swapped out is no slower than those with: only the count is known, so only that is
/// told.
fn pageouts(run: &Run) -> Option<Judged> {
    let found = analysis::analyse(run)?;
    let outs: Vec<f64> = found
        .paging
        .iter()
        .filter_map(|p| p.totals.get("swap_out.pages").copied())
        .collect();
    let most = outs.iter().copied().max_by(f64::total_cmp)?;
    Some(Judged::not(&format!(
        "{most:.0} pages were swapped out at most in a sequence; what that cost is not told apart from the rest"
    )))
}

#[cfg(test)]
mod tests {
    use fingerpost_record::{Better, Estimate, Measurement, Observation, Unit};

    use super::super::Answer as Said;
    use super::*;

    #[test]
    fn a_large_gain_is_asked_of_a_place_on_a_disk() {
        let judged = |run: &Run| {
            LIST.iter()
                .find(|c| c.key == "swap_partition_helps_much")
                .unwrap()
                .by_run(run)
        };
        // The source's own: 0.65 times under 10.0.4, 0.69 under 10.1.
        let mut run = fingerpost_compare::references::load("launch-10.0.4").unwrap();
        assert_eq!(judged(&run).answer, Said::True, "{}", judged(&run).figure);
        let of = |run: &mut Run, from: &str, to: &str| {
            let rows = run
                .measurements
                .iter_mut()
                .filter(|m| m.params.text("placement") == Some(from));
            rows.for_each(|m| m.params = m.params.clone().with("placement", to));
        };
        // The same times, of which each might be a third or three times as much.
        let mut noisy = run.clone();
        noisy
            .measurements
            .iter_mut()
            .filter_map(|m| m.estimate.as_mut())
            .for_each(|e| (e.low, e.high) = (e.value / 3.0, e.value * 3.0));
        let open = judged(&noisy);
        assert!(
            open.answer == Said::NotResolved && open.figure.starts_with("under "),
            "{open:?}"
        );
        // Compressed memory as fast as that: no place of its own on a disk.
        of(&mut run, "dual", "zram");
        of(&mut run, "single", "zswap");
        assert_eq!(
            judged(&run).answer,
            Said::NotMeasured,
            "{}",
            judged(&run).figure
        );
        // A tenth is a gain, and not a large one.
        let mut tenth = fingerpost_compare::references::load("launch-10.0.4").unwrap();
        tenth
            .measurements
            .retain(|m| m.params.text("placement") == Some("default"));
        let mut faster = tenth.measurements.clone();
        for m in &mut faster {
            m.params = m.params.clone().with("placement", "dual");
            let e = m.estimate.as_mut().unwrap();
            (e.value, e.low, e.high) = (e.value * 0.9, e.low * 0.9, e.high * 0.9);
        }
        tenth.measurements.extend(faster);
        let small = judged(&tenth);
        assert!(
            small.answer == Said::False && small.figure.contains("helps here"),
            "{small:?}"
        );
    }

    #[test]
    fn one_application_that_is_slower_contradicts_all() {
        let judged = |run: &Run| {
            LIST.iter()
                .find(|c| c.key == "second_drive_best")
                .unwrap()
                .by_run(run)
        };
        let mut run = fingerpost_compare::references::load("launch-10.1").unwrap();
        assert_eq!(judged(&run).answer, Said::True, "{}", judged(&run).figure);
        let mail = |m: &&mut Measurement| {
            m.params.text("app") == Some("Mail") && m.params.text("placement") == Some("dual")
        };
        run.measurements
            .iter_mut()
            .filter(mail)
            .filter_map(|m| m.estimate.as_mut())
            .for_each(|e| (e.value, e.low, e.high) = (9e9, 8.9e9, 9.1e9));
        let slower = judged(&run);
        assert_eq!(
            (slower.answer, slower.figure.as_str()),
            (
                Said::False,
                "of 10 times 9 are shorter and 1 is longer for certain"
            )
        );
    }

    #[test]
    fn page_ins_that_were_read_long_after_the_boot_judge_nothing() {
        let params = Params::new()
            .with("state", "after-boot")
            .with("placement", "file");
        let row = |outcome: Outcome| {
            let none = Measurement::without_figure(
                "launch.pageins",
                1,
                params.clone(),
                Unit::Count,
                Better::Lower,
                outcome,
                "up for days".into(),
            );
            Measurement {
                estimate: Some(Estimate {
                    value: 900.0,
                    low: 900.0,
                    high: 900.0,
                    confidence: 0.95,
                }),
                ..none
            }
        };
        let seen = Observation {
            workload: "launch".into(),
            params: params.clone(),
            observer: "since-boot".into(),
            totals: [
                ("major_faults".to_owned(), 900.0),
                ("swap_in.pages".to_owned(), 10.0),
            ]
            .into(),
            ..Observation::default()
        };
        let run = |outcome| Run {
            measurements: vec![row(outcome)],
            observations: vec![seen.clone()],
            ..Run::default()
        };
        let judged = |run: &Run| {
            LIST.iter()
                .find(|c| c.key == "pageins_are_libraries")
                .unwrap()
                .by_run(run)
        };
        assert_eq!(judged(&run(Outcome::Measured)).answer, Said::False);
        let late = judged(&run(Outcome::Untrusted));
        let why = "on a row of launch.pageins that is not to be trusted: up for days";
        assert!(
            late.answer == Said::NotResolved && late.figure.ends_with(why),
            "{late:?}"
        );
        let mut later = run(Outcome::Measured);
        later.observations[0].params = Params::new().with("state", "uptime").with("days", 3);
        assert_eq!(from_swap(&later), None);
    }
}
