//! The proof as a table for a person.

use std::io::{self, Write};

use fingerpost_labs::prove::{Proof, Result as Verdict};
use fingerpost_record::Finding;
use fingerpost_report::Style;
use fingerpost_report::evidence::evidence;
use fingerpost_report::grid::{Align, Grid, Line};
use fingerpost_report::style::Tone;

use super::document::Document;

/// Writes the rows, the sums, and for each row that is not right what was said instead.
pub fn write(out: &mut dyn Write, document: &Document, style: &Style) -> io::Result<()> {
    let mut grid = Grid::titled([
        ("plant", Align::Left, 0),
        ("layer named", Align::Left, 1),
        ("cause named", Align::Left, 0),
        ("share", Align::Right, 1),
        ("unexplained", Align::Right, 2),
        ("× slower", Align::Right, 2),
        ("", Align::Left, 0),
    ]);
    for proof in &document.plants {
        grid.lines
            .push(Line::Cells(cells(proof), tone(proof.result)));
        grid.lines
            .extend(note(proof).map(|text| Line::Note(text, tone(proof.result))));
    }
    grid.lines.push(Line::Blank);
    let of = |[n, all]: [usize; 2]| format!("{n} of {all}");
    let mut say = |label: &str, text: String| {
        grid.lines
            .push(Line::Labelled(label.to_owned(), text, Tone::Plain))
    };
    say("Right cause first", of(document.named_first));
    say("Right layer first", of(document.layer_first));
    say(
        "False accusations",
        format!("on {} controls", of(document.false_accusations)),
    );
    say("Took", format!("{:.0} s", document.seconds));
    out.write_all(grid.render(style).as_bytes())
}

fn cells(proof: &Proof) -> Vec<String> {
    let first = proof.accused.first();
    let tried = proof.result.tried();
    let when = |tried: bool, text: String| if tried { text } else { String::new() };
    vec![
        proof.plant.clone(),
        first.map_or(String::new(), |f| f.layer.to_string()),
        // Where several were planted, as many are shown.
        when(tried, named(&proof.accused, proof.planted.len().max(1))),
        share(&proof.accused),
        when(
            tried && first.is_some(),
            format!("{:.0} %", proof.unexplained * 100.0),
        ),
        proof.slower.map_or(String::new(), |s| format!("{s:.2}")),
        word(proof.result).to_owned(),
    ]
}

/// The first that were accused.
pub(super) fn named(accused: &[Finding], most: usize) -> String {
    let named: Vec<&str> = accused
        .iter()
        .take(most)
        .map(|f| f.cause.as_str())
        .collect();
    if named.is_empty() {
        "nobody".to_owned()
    } else {
        named.join(", ")
    }
}

/// What the first of them explains.
pub(super) fn share(accused: &[Finding]) -> String {
    accused
        .first()
        .map_or(String::new(), |f| format!("{:.0} %", f.share * 100.0))
}

pub(super) fn word(result: Verdict) -> &'static str {
    match result {
        Verdict::Right => "right",
        Verdict::Second => "second",
        Verdict::Layer => "layer only",
        Verdict::Wrong => "wrong",
        Verdict::Missed => "missed",
        Verdict::Skipped => "skipped",
        Verdict::Failed => "failed",
    }
}

pub(super) fn tone(result: Verdict) -> Tone {
    match result {
        Verdict::Right => Tone::Plain,
        Verdict::Skipped => Tone::Faint,
        _ => Tone::Bad,
    }
}

/// Why it was not tried, or tried twice, and what the verdict rests on where it is wrong.
fn note(proof: &Proof) -> Option<String> {
    let verdict = match proof.result {
        Verdict::Missed => Some(format!("planted: {}. {}", proof.what, proof.headline)),
        Verdict::Wrong => {
            let evidence = proof
                .accused
                .first()
                .map_or(String::new(), |f| evidence(f).join("; "));
            Some(format!("planted: {}. {evidence}", proof.what))
        }
        _ => None,
    };
    let sentences: Vec<String> = [proof.reason.clone(), verdict]
        .into_iter()
        .flatten()
        .collect();
    (!sentences.is_empty()).then(|| sentences.join(". "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fingerpost_labs::prove::plants::PLANTS;

    #[test]
    fn a_failed_first_attempt_is_told_whatever_the_second_says() {
        let right = Proof {
            result: Verdict::Right,
            ..Proof::of(&PLANTS[0], Vec::new())
        };
        assert_eq!(note(&right), None);
        let again = |result| Proof {
            result,
            reason: Some("the first attempt failed: refused".into()),
            ..right.clone()
        };
        assert_eq!(
            note(&again(Verdict::Right)).unwrap(),
            "the first attempt failed: refused"
        );
        let missed = note(&again(Verdict::Missed)).unwrap();
        assert!(
            missed.starts_with("the first attempt failed: refused. planted: "),
            "{missed}"
        );
    }
}
