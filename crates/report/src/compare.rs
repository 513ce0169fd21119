//! Two sides of a comparison on a terminal, and the words that its formats share.

use std::io::{self, Write};

use fingerpost_compare::comparison::{Comparison, Curve, NotCompared, Row, Waterfall};
use fingerpost_compare::service::Part;
use fingerpost_compare::side::SideInfo;
use fingerpost_compare::{Ratio, Verdict};
use fingerpost_diagnose::wording::{overlapping, unexplained};
use fingerpost_record::params::named;
use fingerpost_record::text::clean;
use fingerpost_record::unit::significant;
use fingerpost_record::{Finding, Status};

use crate::format::Format;
use crate::grid::{Align, Column, Grid, Line};
use crate::groups;
use crate::style::{Style, Tone};
use crate::surer::{SURER, surer};
use crate::view::parts_of_doubt;
use crate::words::time;
use crate::{compare_csv, compare_markdown, json};

const COLUMNS: [(&str, Align, u8); 7] = [
    ("probe", Align::Left, 0),
    ("parameters", Align::Left, 0),
    ("base", Align::Right, 0),
    ("new", Align::Right, 0),
    ("× slower", Align::Right, 0),
    ("95 % interval", Align::Left, 1),
    ("verdict", Align::Left, 0),
];

/// Writes a comparison in a format. The style matters to the table only.
///
/// # Errors
/// What writing to `out` gives.
pub fn write(out: &mut dyn Write, comparison: &Comparison, format: Format, style: &Style) -> io::Result<()> {
    match format {
        Format::Table => out.write_all(table(comparison, style).as_bytes()),
        Format::Json => json::write(out, comparison),
        Format::Csv => out.write_all(compare_csv::render(comparison).as_bytes()),
        Format::Markdown => out.write_all(compare_markdown::render(comparison).as_bytes()),
    }
}

/// The comparison as a table: what a person reads first comes first.
pub fn table(c: &Comparison, style: &Style) -> String {
    let columns = COLUMNS.map(|(title, align, rank)| Column { title, align, rank }).to_vec();
    let mut grid = Grid { columns, lines: Vec::new() };
    let lines = &mut grid.lines;
    lines.push(Line::Heading(text(&c.headline)));
    lines.extend(sides(c).into_iter().map(|(name, sentence, doubt)| match doubt {
        true => Line::Labelled(name, parts_of_doubt(&sentence).0.to_owned(), Tone::Doubtful),
        false => Line::Labelled(name, sentence, Tone::Plain),
    }));
    section(
        lines,
        "What differs between the hosts",
        c.hosts.iter().map(|d| Line::Labelled(text(&d.what), text(&format!("{} → {}", d.base, d.new)), Tone::Plain)),
    );
    section(lines, SETTLED, settled(c).into_iter().map(|l| Line::Note(l, Tone::Plain)));
    let (accused, rest): (Vec<_>, Vec<_>) = causes(c).into_iter().partition(|(_, _, status)| style.wide || status.accuses());
    let overlap = overlap(c).into_iter().map(|sentence| Line::Note(sentence, Tone::Plain));
    let accused = accused.into_iter().flat_map(cause_lines);
    section(lines, "Why", overlap.chain(accused).chain(in_one_line(c).into_iter().filter(|_| !rest.is_empty())));
    section(lines, CHANGED_PARTS, changed_parts(c).into_iter().map(|l| Line::Note(l, Tone::Plain)));
    for fall in &c.waterfalls {
        section(lines, &waterfall_title(fall), waterfall_lines(fall).into_iter().map(|l| Line::Note(l, Tone::Plain)));
    }
    for curve in &c.curves {
        section(lines, &curve_title(curve), curve_lines(curve).into_iter().map(|l| Line::Note(l, Tone::Plain)));
    }
    section(lines, GAINS, gains(c).into_iter().map(|l| Line::Note(l, Tone::Plain)));
    row_lines(&mut grid, c);
    let lines = &mut grid.lines;
    section(lines, "Not compared", not_compared_in_short(c).into_iter().map(|l| Line::Note(l, Tone::Faint)));
    lines.extend([Line::Blank, Line::Labelled("Rows".into(), summary(c), Tone::Plain)]);
    lines.extend(surer(c).map(|how| Line::Labelled(SURER.into(), how.into(), Tone::Plain)));
    grid.render(style)
}

/// What a section of [`changed_parts`] is called.
pub(crate) const CHANGED_PARTS: &str = "What changed most in a request of the service";

/// The parts of a service's requests that changed most, with who had what was waited for.
pub(crate) fn changed_parts(c: &Comparison) -> Vec<String> {
    let part = |p: &Part| text(&format!("{}: {} → {}", p.what, time(p.seconds[0]), time(p.seconds[1])));
    c.loads.iter().flat_map(|load| load.parts.iter().map(part)).collect()
}

/// What a section of [`settled`] is called.
pub(crate) const SETTLED: &str = "Each change by itself, measured here";

/// What each change made by itself, a sentence each, with the runs that say so.
pub(crate) fn settled(c: &Comparison) -> Vec<String> {
    let kept = |runs: &[String]| if runs.is_empty() { String::new() } else { format!(" ({})", runs.join(" and ")) };
    c.settled.iter().map(|one| text(&format!("{}{}", one.words(), kept(&one.runs)))).collect()
}

/// What a section of [`gains`] is called.
pub(crate) const GAINS: &str = "What a place of its own for swap gains on each side";

/// What each placement of swap gains on both sides, a sentence each.
pub(crate) fn gains(c: &Comparison) -> Vec<String> {
    c.gains.iter().map(|gain| text(&gain.words(&c.base.name, &c.new.name))).collect()
}

fn section(lines: &mut Vec<Line>, title: &str, content: impl Iterator<Item = Line>) {
    let content: Vec<Line> = content.collect();
    if !content.is_empty() {
        lines.extend([Line::Blank, Line::Heading(title.to_owned())]);
        lines.extend(content);
    }
}

fn row_lines(grid: &mut Grid, c: &Comparison) {
    let titles = grid.titles();
    grid.lines.extend([Line::Blank, titles]);
    let title = |row: &Row| groups::group_of(&row.probe).1.title;
    for rows in in_order(c).chunk_by(|a, b| title(a) == title(b)) {
        let shared = shared(rows);
        let words = std::iter::once(title(rows[0])).chain(shared.iter().map(String::as_str));
        grid.lines.push(Line::Heading(words.collect::<Vec<_>>().join("  ")));
        for row in rows {
            let mut cells = cells(row);
            cells[1] = params(row).filter(|word| !shared.contains(word)).collect::<Vec<_>>().join(" ");
            grid.lines.push(Line::Cells(cells.to_vec(), tone(row.verdict)));
            grid.lines.extend(row.note.iter().map(|note| Line::Note(text(note), Tone::Faint)));
        }
    }
}

/// A row's parameters, a word each.
fn params(row: &Row) -> impl Iterator<Item = String> {
    row.params.iter().map(|(key, value)| text(&named(key, value)))
}

/// The parameters that all of several rows have alike: they belong into the title, as in a run's own table.
fn shared(rows: &[&Row]) -> Vec<String> {
    let [first, others @ ..] = rows else { return Vec::new() };
    let all = |word: &String| others.iter().all(|row| params(row).any(|own| own == *word));
    params(first).filter(|word| !others.is_empty() && all(word)).collect()
}

/// The cells of a row, cleaned: probe, parameters, base, new, ratio, interval, verdict.
pub(crate) fn cells(row: &Row) -> [String; 7] {
    let (ratio, interval) = row.ratio.map_or_else(Default::default, |r| (number(r.value), interval(&r)));
    let value = |v: f64| row.unit.format(v);
    [text(&row.probe), text(&row.params.to_string()), value(row.base.value), value(row.new.value), ratio, interval, row.verdict.to_string()]
}

/// A ratio with as many digits as a person compares: three decimals near one, four significant digits elsewhere.
pub(crate) fn number(ratio: f64) -> String {
    if (0.1..10.0).contains(&ratio) { format!("{ratio:.3}") } else { significant(ratio) }
}

pub(crate) fn interval(r: &Ratio) -> String {
    format!("{}–{}", number(r.low), number(r.high))
}

pub(crate) fn tone(verdict: Verdict) -> Tone {
    match verdict {
        Verdict::Slower => Tone::Bad,
        Verdict::Faster => Tone::Good,
        Verdict::Same => Tone::Plain,
        Verdict::Unresolved => Tone::Doubtful,
    }
}

/// The rows in the order in which a run's own table has them.
pub(crate) fn in_order(c: &Comparison) -> Vec<&Row> {
    let mut rows: Vec<&Row> = c.rows.iter().collect();
    rows.sort_by_key(|r| {
        let (at, group) = groups::group_of(&r.probe);
        (at, groups::place_in(group, &r.probe))
    });
    rows
}

/// Who is compared, with sources and doubts: label, sentence, whether it is a doubt.
pub(crate) fn sides(c: &Comparison) -> Vec<(String, String, bool)> {
    let side = |label: &str, info: &SideInfo| {
        let ids = match info.ids.as_slice() {
            [one] => one.clone(),
            many => {
                format!("{} runs, {} to {}", many.len(), many.first().map_or("", String::as_str), many.last().map_or("", String::as_str))
            }
        };
        let who = if info.name == ids { ids } else { format!("{} ({ids})", info.name) };
        let who = info.measured.as_ref().map_or(who.clone(), |measured| format!("{who}: {measured}"));
        let mut lines = vec![(label.to_owned(), text(&who), false)];
        lines.extend(info.source.iter().map(|s| (format!("{label} source"), text(s), false)));
        lines
    };
    // What is doubtful on both sides is told once.
    let shared = |doubt: &&String| c.new.doubts.contains(doubt);
    let both = c.base.doubts.iter().filter(shared).map(|d| ("Both doubt".to_owned(), text(d), true));
    let own = |label: &str, info: &SideInfo, other: &SideInfo| -> Vec<(String, String, bool)> {
        let of = info.doubts.iter().filter(|d| !other.doubts.contains(d));
        of.map(|d| (format!("{label} doubt"), text(d), true)).collect()
    };
    let doubts: Vec<_> = both.chain(own("Base", &c.base, &c.new)).chain(own("New", &c.new, &c.base)).collect();
    let mut lines = side("Base", &c.base);
    lines.extend(side("New", &c.new));
    lines.extend(c.changes.iter().map(|change| ("Changed".to_owned(), text(&change.words()), false)));
    lines.extend(c.pooled.iter().map(|p| {
        let rows = format!("{} rows of {} are {}: {} ({})", p.rows, p.of, p.verdict, number(p.ratio.value), interval(&p.ratio));
        ("Together".to_owned(), text(&rows), false)
    }));
    lines.push(("Threshold".into(), format!("{} %", significant_short(c.threshold * 100.0)), false));
    lines.extend(doubts);
    lines
}

fn significant_short(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// That the shares of the causes are not to be added up, where that is so.
pub(crate) fn overlap(c: &Comparison) -> Option<String> {
    overlapping(&c.causes, Some(1.0 - c.unexplained))
}

/// The causes as label and sentences, most first; the cleared last; then what is unexplained.
pub(crate) fn causes(c: &Comparison) -> Vec<(String, Vec<String>, Status)> {
    let label = |f: &Finding| match f.status {
        Status::Guilty => format!("{}, {} ({})", words(f), share(f), place(f)),
        Status::Suspected => format!("{}, suspected, {} ({})", words(f), share(f), place(f)),
        Status::Cleared | Status::NotJudged => format!("{}, {} ({})", words(f), f.status.as_str(), place(f)),
    };
    let mut out: Vec<_> = c.causes.iter().map(|f| (text(&label(f)), f.evidence.iter().map(|e| text(e)).collect(), f.status)).collect();
    if c.unexplained > 0.0 {
        let at = c.causes.iter().take_while(|f| f.status.accuses()).count();
        out.insert(at, (format!("{}, {:.0} %", unexplained(&c.causes), c.unexplained * 100.0), Vec::new(), Status::Suspected));
    }
    out
}

/// The share of a cause that is named; not even one of nothing where it is not known.
fn share(f: &Finding) -> String {
    if f.share > 0.0 { format!("{:.0} %", f.share * 100.0) } else { SHARE_NOT_KNOWN.to_owned() }
}

/// What stands in place of a share that is not known.
pub(crate) const SHARE_NOT_KNOWN: &str = "share not known";

/// What a cause is called in words.
fn words(f: &Finding) -> &str {
    fingerpost_diagnose::label(&f.cause)
}

/// The name by which `list CAUSE` tells more of it, and its layer.
fn place(f: &Finding) -> String {
    format!("{}, layer {}", f.cause, f.layer)
}

/// Who was cleared and who could not be judged: names, each kind in one line. Their figures come with every column.
fn in_one_line(c: &Comparison) -> Vec<Line> {
    let of = |status: Status| -> Vec<String> {
        c.causes.iter().filter(|f| f.status == status).map(|f| text(fingerpost_diagnose::label(&f.cause))).collect()
    };
    let kinds = [Status::Cleared, Status::NotJudged].map(|status| (status, of(status)));
    let told = kinds.into_iter().filter(|(_, names)| !names.is_empty());
    told.map(|(status, names)| Line::Note(format!("{} (by what: --wide): {}", status.as_str(), names.join(", ")), Tone::Faint)).collect()
}

fn cause_lines((label, evidence, status): (String, Vec<String>, Status)) -> Vec<Line> {
    let tone = match status {
        Status::Guilty => Tone::Bad,
        Status::Suspected => Tone::Doubtful,
        Status::Cleared | Status::NotJudged => Tone::Faint,
    };
    // A cleared suspect is one line, as one that was not judged; a named one has its evidence below it.
    if !status.accuses() {
        return vec![Line::Note(format!("{label}: {}", evidence.join("; ")), tone)];
    }
    let mut lines = vec![Line::Note(label, tone)];
    lines.extend(evidence.into_iter().map(|e| Line::Note(format!("– {e}"), Tone::Plain)));
    lines
}

fn step(workload: &str, params: &fingerpost_record::Params) -> String {
    text(&if params.is_empty() { workload.to_owned() } else { format!("{workload} {params}") })
}

/// Seconds that no clock tells from none.
pub(crate) const NOTHING: f64 = 1e-12;

pub(crate) fn waterfall_title(fall: &Waterfall) -> String {
    let what = if fall.workload == fingerpost_compare::service::WORKLOAD { "request" } else { "transaction" };
    format!("A {what} of {}: {} → {}", step(&fall.workload, &fall.params), time(fall.base_seconds), time(fall.new_seconds))
}

/// The steps of a waterfall from base to new, the unexplained rest, and the prediction from unit costs.
pub(crate) fn waterfall_lines(fall: &Waterfall) -> Vec<String> {
    let change = |s: f64| format!("{}{}", if s < 0.0 { "−" } else { "+" }, time(s.abs()));
    let mut lines: Vec<String> = fall
        .steps
        .iter()
        .filter(|s| s.base_seconds != s.new_seconds)
        .map(|s| {
            text(&format!(
                "{} ({}): {} → {}, {}",
                s.component,
                s.layer,
                time(s.base_seconds),
                time(s.new_seconds),
                change(s.new_seconds - s.base_seconds)
            ))
        })
        .collect();
    // What is left of a sum of floating-point numbers is nothing.
    let unexplained = if fall.unexplained_seconds.abs() < NOTHING { 0.0 } else { fall.unexplained_seconds };
    lines.push(format!("unexplained: {}", change(unexplained)));
    lines.extend(fall.predicted_share.map(|p| format!("unit costs times counts predict {:.0} % of the change", p * 100.0)));
    lines.extend(fall.predictions.iter().map(|p| text(p)));
    lines
}

pub(crate) fn curve_title(curve: &Curve) -> String {
    format!("{} by clients", step(&curve.probe, &curve.params))
}

/// Clients, both throughputs, and each against one client, as the articles' scaling table has it.
pub(crate) fn curve_lines(curve: &Curve) -> Vec<String> {
    let Some(&(_, base_one, new_one)) = curve.points.first() else { return Vec::new() };
    let percent = |v: f64, one: f64| format!("{:.0} %", v / one * 100.0);
    let mut lines: Vec<String> = curve
        .points
        .iter()
        .map(|(n, base, new)| {
            format!(
                "{n:>4} {}: {} ({}) → {} ({})",
                if *n == 1 { "client" } else { "clients" },
                significant(*base),
                percent(*base, base_one),
                significant(*new),
                percent(*new, new_one)
            )
        })
        .collect();
    let fall = |side: &str, from: Option<i64>| from.map(|n| format!("the {side} side collapses from {n} clients on"));
    lines.extend(fall("base", curve.base_collapses_from));
    lines.extend(fall("new", curve.new_collapses_from));
    lines
}

/// Rows that were not compared, by reason, so that a hundred rows of one side are one line.
pub(crate) fn not_compared(c: &Comparison) -> Vec<String> {
    by_reason(c).into_iter().map(|(why, rows)| each_named(why, &rows)).collect()
}

/// Rows of one reason that a terminal and a page name one by one.
const NAMED: usize = 24;

/// The same, where many rows have one reason as numbers of rows by probe: the answer above them is to stay on the screen.
pub(crate) fn not_compared_in_short(c: &Comparison) -> Vec<String> {
    let counted = |why: &str, rows: &[&NotCompared]| {
        let mut probes: Vec<(&str, usize)> = Vec::new();
        for row in rows {
            match probes.last_mut().filter(|(probe, _)| *probe == row.probe) {
                Some((_, n)) => *n += 1,
                None => probes.push((&row.probe, 1)),
            }
        }
        let each = |(probe, n): &(&str, usize)| if *n == 1 { (*probe).to_owned() } else { format!("{probe} ({n})") };
        let probes: Vec<String> = probes.iter().map(each).collect();
        text(&format!("{why}: {} rows, each with its figures in the comparison as Markdown or CSV: {}", rows.len(), probes.join(", ")))
    };
    let line = |(why, rows): (&str, Vec<&NotCompared>)| {
        if rows.len() > NAMED { counted(why, &rows) } else { each_named(why, &rows) }
    };
    by_reason(c).into_iter().map(line).collect()
}

/// The rows that were not compared, by the reason.
fn by_reason(c: &Comparison) -> Vec<(&str, Vec<&NotCompared>)> {
    let mut reasons: Vec<(&str, Vec<&NotCompared>)> = Vec::new();
    for row in &c.not_compared {
        match reasons.iter_mut().find(|(why, _)| *why == row.why) {
            Some((_, rows)) => rows.push(row),
            None => reasons.push((&row.why, vec![row])),
        }
    }
    reasons
}

/// A reason with each of its rows and their figures.
fn each_named(why: &str, rows: &[&NotCompared]) -> String {
    let one = |r: &&NotCompared| {
        let figures: Vec<String> = [r.base, r.new].into_iter().flatten().map(|v| r.unit.format(v)).collect();
        let params = if r.params.is_empty() { String::new() } else { format!(" {}", r.params) };
        let figures = if figures.is_empty() { String::new() } else { format!(" ({})", figures.join(", ")) };
        format!("{}{params}{figures}", r.probe)
    };
    text(&format!("{why}: {}", rows.iter().map(one).collect::<Vec<_>>().join(", ")))
}

/// How many rows have each verdict.
pub(crate) fn summary(c: &Comparison) -> String {
    let count = |v: Verdict| c.rows.iter().filter(|r| r.verdict == v).count();
    let mut parts: Vec<String> = [Verdict::Slower, Verdict::Faster, Verdict::Same, Verdict::Unresolved]
        .into_iter()
        .filter(|v| count(*v) > 0)
        .map(|v| format!("{} {v}", count(v)))
        .collect();
    if !c.not_compared.is_empty() {
        parts.push(format!("{} not compared", c.not_compared.len()));
    }
    if parts.is_empty() { "none".into() } else { parts.join(", ") }
}

/// Strings of a run are hostile until cleaned.
pub(crate) fn text(hostile: &str) -> String {
    clean(hostile).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fingerpost_compare::{Options, compare, references};

    fn g5() -> Comparison {
        let load = |name| references::load(name).unwrap();
        compare(&[load("g5-2.5-linux")], &[load("g5-2.7-darwin")], &Options::default())
    }

    fn written(format: Format) -> String {
        let mut out = Vec::new();
        write(&mut out, &g5(), format, &Style::default()).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_headline_and_the_hosts_come_before_the_rows() {
        let text = written(Format::Table);
        let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("no “{what}” in {text}"));
        assert!(at("the operating system, not the CPU") < at("What differs between the hosts"));
        assert!(at("What differs between the hosts") < at("system call and signal cost, 42 % (syscall.entry, layer kernel)"));
        assert!(at("(syscall.entry, layer kernel)") < at("cleared (by what: --wide): "));
        assert!(at("the CPU's speed") < at("\nSystem calls\n"));
        assert!(!text.contains("cpu.speed"), "names alone");
        let wide = table(&g5(), &Style { wide: true, ..Style::default() });
        assert!(wide.find("(syscall.entry").unwrap() < wide.find("the CPU's speed, cleared (cpu.speed, layer cpu): ").unwrap(), "{wide}");
        assert!(text.contains("8.071") && text.contains("5 clients"), "{text}");
    }

    #[test]
    fn each_row_tells_itself_from_its_neighbours_on_a_narrow_terminal_too() {
        let style = Style { width: Some(80), ..Style::default() };
        let text = table(&g5(), &style);
        let title = text.lines().find(|line| line.starts_with("Database  ")).expect("a title with what all of its rows have");
        assert!(title.contains("engine=mysql") && title.contains("storage=myisam"), "{title}");
        let row =
            |clients: u32| text.lines().any(|line| line.contains("database.throughput") && line.contains(&format!("clients={clients} ")));
        assert!([1, 2, 5, 10, 20, 35, 50].into_iter().all(row), "{text}");
        assert!(!text.lines().any(|line| line.contains("database.throughput  ") && line.contains("engine=mysql")), "{text}");
    }

    #[test]
    fn every_format_says_where_shares_overlap_or_are_not_known() {
        use crate::html::comparison::sections;
        let all = |c: &Comparison| {
            let page: String = sections(c, None).into_iter().map(|s| s.body.into_string()).collect();
            [table(c, &Style::default()), compare_markdown::render(c), page]
        };
        let mut c = g5();
        let told = "Together they explain";
        assert!(all(&c).iter().all(|text| !text.contains(told)), "parts that exclude each other");
        c.causes[1].share = c.causes[0].share;
        c.causes[2].share = c.causes[0].share;
        for text in all(&c) {
            assert!(text.contains(&format!("{told} {:.0} % of the difference", (1.0 - c.unexplained) * 100.0)), "{text}");
        }
        let load = |name| references::load(name).unwrap();
        for text in all(&compare(&[load("launch-10.0.4")], &[load("launch-10.1")], &Options::default())) {
            assert!(text.contains("share not known") && text.contains("or of a cause whose share is not known"), "{text}");
        }
    }

    #[test]
    fn json_is_the_comparison_with_the_fields_of_the_design() {
        let v: serde_json::Value = serde_json::from_str(&written(Format::Json)).unwrap();
        for key in ["base", "new", "rows", "causes", "headline"] {
            assert!(!v[key].is_null(), "{key}");
        }
        let row = &v["rows"].as_array().unwrap().iter().find(|r| r["probe"] == "syscall.null").unwrap();
        assert_eq!(row["verdict"], "slower");
        assert!(row["ratio"]["low"].as_f64().unwrap() < row["ratio"]["value"].as_f64().unwrap());
        assert!(row["ratio"]["high"].is_f64() && row["params"].is_object() && row["base"]["value"].is_f64());
        for key in ["cause", "layer", "share", "status", "evidence"] {
            assert!(!v["causes"][0][key].is_null(), "{key}");
        }
    }

    #[test]
    fn csv_and_markdown_have_every_row_and_escape() {
        let c = g5();
        let csv = written(Format::Csv);
        assert_eq!(csv.lines().count(), 1 + c.rows.len() + c.not_compared.len());
        let mut hostile = c.clone();
        hostile.rows[0].probe = "=cmd|\"<script>\u{1b}[2J".into();
        hostile.headline = "a <b> | c".into();
        let (csv, md) = (compare_csv::render(&hostile), compare_markdown::render(&hostile));
        assert!(csv.contains("'=cmd") && !md.contains("<script>") && !md.contains("<b>"));
        assert!(!csv.contains('\u{1b}') && !md.contains('\u{1b}') && !table(&hostile, &Style::default()).contains('\u{1b}'));
    }

    #[test]
    fn narrow_terminals_lose_columns_and_no_line_is_too_long() {
        use unicode_width::UnicodeWidthStr;
        let text = table(&g5(), &Style { width: Some(80), ..Style::default() });
        assert!(text.lines().filter(|l| l.contains("slower") && l.contains("syscall")).all(|l| l.width() <= 80), "{text}");
    }
}
