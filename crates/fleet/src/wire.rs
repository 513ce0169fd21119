//! How a record comes back from a node where there is no shared file system: as short lines on standard output.
//!
//! Engines cut long lines (Slurm at 1024 bytes) and mix those of all nodes, so a packed record is sent in lines of at
//! most 800 characters, each with the node that it is of, its place and a part in base 64, and a last one with their
//! number and a checksum:
//!
//! ```text
//! FINGERPOST NODE began
//! FINGERPOST NODE 0 H4sIAAAA…
//! FINGERPOST NODE end 14 5f1d8a02
//! FINGERPOST NODE failed REASON
//! ```
//!
//! Whatever else a node prints is not looked at. [`Collector`] is the other end; its memory is bounded.

use std::collections::HashMap;

use base64::prelude::*;

use crate::slim::MOST_PACKED;

/// What a line of ours begins with.
const MARK: &str = "FINGERPOST ";
/// Characters of a part: with mark, name and number the line is shorter than Slurm's 1024 bytes.
const PART: usize = 600;
/// The longest line that is looked at. What is longer is no line of ours.
pub const LONGEST_LINE: usize = 1024;
/// What is kept of a reason.
const REASON: usize = 200;

/// The lines that send these bytes.
pub fn lines(node: &str, bytes: &[u8]) -> Vec<String> {
    let text = BASE64_STANDARD.encode(bytes);
    let parts: Vec<&str> = (0..text.len())
        .step_by(PART)
        .map(|at| &text[at..text.len().min(at + PART)])
        .collect();
    let last = format!("{MARK}{node} end {} {:08x}", parts.len(), sum(bytes));
    parts
        .iter()
        .enumerate()
        .map(|(n, part)| format!("{MARK}{node} {n} {part}"))
        .chain([last])
        .collect()
}

/// The line that says that the node has begun to measure: until it came, its job may stand in a queue.
pub fn began(node: &str) -> String {
    format!("{MARK}{node} began")
}

/// The node whose line says so.
pub fn begun(line: &str) -> Option<&str> {
    let (_, line) = line.trim_end().split_once(MARK)?;
    line.strip_suffix(" began")
        .filter(|node| !node.contains(' '))
}

/// The number with which Slurm labels a line of a task (`srun --label`), and the line. Only what the line begins with is
/// a label: what follows is the task's own, whatever it looks like.
pub fn labelled(line: &str) -> Option<(usize, &str)> {
    let (label, rest) = line.split_once(": ")?;
    let digits = label.trim_start_matches(' ');
    let number = digits.bytes().all(|b| b.is_ascii_digit());
    Some((digits.parse().ok().filter(|_| number)?, rest))
}

/// The node that a line of ours names, whoever sent it.
pub fn claimed(line: &str) -> Option<&str> {
    let (_, line) = line.trim_end().split_once(MARK)?;
    line.split(' ')
        .next()
        .filter(|node| crate::nodes::is_name(node))
}

/// The line that says why there is no record.
pub fn failure(node: &str, reason: &str) -> String {
    format!(
        "{MARK}{node} failed {}",
        fingerpost_record::text::clean_short(reason, REASON)
    )
}

/// What a node's lines came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// A packed record, whole.
    Record(Vec<u8>),
    /// The node says why it has none, or its lines do not make one.
    Failed(String),
}

/// Puts records together from the lines of many nodes.
#[derive(Default)]
pub struct Collector {
    open: HashMap<String, String>,
}

impl Collector {
    /// Takes a line; gives the node and its answer when it was that one's last. `expected` says whether a node may
    /// answer.
    pub fn line(
        &mut self,
        line: &str,
        expected: impl Fn(&str) -> bool,
    ) -> Option<(String, Answer)> {
        // Slurm's and kubectl's labels, and what a program printed without a line end, stand before the mark.
        let (_, line) = line.trim_end().split_once(MARK)?;
        let mut words = line.splitn(3, ' ');
        let (node, what, rest) = (words.next()?, words.next()?, words.next()?);
        if !expected(node) || rest.len() > LONGEST_LINE {
            return None;
        }
        match what {
            "failed" => {
                self.open.remove(node);
                Some((
                    node.to_owned(),
                    Answer::Failed(fingerpost_record::text::clean_short(rest, REASON)),
                ))
            }
            "end" => Some((node.to_owned(), self.end(node, rest))),
            number => self.part(node, number.parse().ok()?, rest),
        }
    }

    fn part(&mut self, node: &str, number: usize, part: &str) -> Option<(String, Answer)> {
        let text = self.open.entry(node.to_owned()).or_default();
        // A record that begins again is another attempt.
        if number == 0 {
            text.clear();
        }
        let wrong = number != text.len().div_ceil(PART)
            || part.len() > PART
            || (text.len() + part.len()) as u64 > 2 * MOST_PACKED;
        if wrong {
            self.open.remove(node);
            return Some((
                node.to_owned(),
                Answer::Failed("its record came with lines missing, or is too long".into()),
            ));
        }
        text.push_str(part);
        None
    }

    fn end(&mut self, node: &str, rest: &str) -> Answer {
        let text = self.open.remove(node).unwrap_or_default();
        let stated = rest.split_once(' ').and_then(|(n, sum)| {
            Some((n.parse::<usize>().ok()?, u32::from_str_radix(sum, 16).ok()?))
        });
        match (stated, BASE64_STANDARD.decode(&text)) {
            (Some((parts, stated)), Ok(bytes))
                if parts == text.len().div_ceil(PART) && stated == sum(&bytes) =>
            {
                Answer::Record(bytes)
            }
            _ => Answer::Failed("its record came damaged: parts or checksum do not agree".into()),
        }
    }

    /// The nodes of which a part came, and not the end.
    pub fn unfinished(&self) -> impl Iterator<Item = &str> {
        self.open.keys().map(String::as_str)
    }
}

/// CRC-32 as in gzip.
fn sum(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn collect(lines: &[String]) -> Vec<(String, Answer)> {
        let mut collector = Collector::default();
        lines
            .iter()
            .filter_map(|line| collector.line(line, |node| node.starts_with('n')))
            .collect()
    }

    #[test]
    fn lines_of_many_nodes_mixed_with_others_make_their_records() {
        let (a, b) = (vec![7; 2000], vec![9; 3000]);
        let (mut of_a, of_b) = (lines("n1", &a), lines("n2", &b));
        assert!(of_a.iter().chain(&of_b).all(|line| line.len() < 1000));
        of_a.push(failure("n3", "no\u{1b}[31m space"));
        let mut mixed = vec![
            "slurmstepd: hello".to_owned(),
            "FINGERPOST x1 end 0 00000000".to_owned(),
        ];
        let most = of_a.len().max(of_b.len());
        for at in 0..most {
            mixed.extend(of_a.get(at).map(|line| format!("12: {line}")));
            mixed.extend(of_b.get(at).cloned());
        }
        let mut got = collect(&mixed);
        got.sort_by(|x, y| x.0.cmp(&y.0));
        let reason = Answer::Failed("no\u{fffd}[31m space".into());
        assert_eq!(
            got,
            [
                ("n1".into(), Answer::Record(a)),
                ("n2".into(), Answer::Record(b)),
                ("n3".into(), reason)
            ]
        );
    }

    #[test]
    fn a_label_is_only_what_a_line_begins_with() {
        assert_eq!(
            labelled("3: FINGERPOST n1 began\n"),
            Some((3, "FINGERPOST n1 began\n"))
        );
        assert_eq!(labelled("  7: 12: x: y"), Some((7, "12: x: y")));
        for none in [
            "x 3: FINGERPOST n1 began",
            "3:FINGERPOST",
            "-1: x",
            "+1: x",
            ": x",
            "3",
            "n1: x",
        ] {
            assert_eq!(labelled(none), None, "{none}");
        }
        assert_eq!(claimed("x FINGERPOST n1 failed no"), Some("n1"));
        assert_eq!(
            [claimed("FINGERPOST ../n1 began"), claimed("n1 began")],
            [None, None]
        );
    }

    #[test]
    fn that_a_node_began_is_no_answer() {
        let line = began("n1");
        assert_eq!(
            [begun(&line), begun(&format!("12: {line}\n"))],
            [Some("n1"), Some("n1")]
        );
        assert_eq!(
            [
                begun("FINGERPOST n1 failed it never began"),
                begun("n1 began")
            ],
            [None, None]
        );
        assert!(collect(&[line]).is_empty());
    }

    #[test]
    fn a_record_with_a_missing_or_changed_line_is_a_failure() {
        let sent = lines("n1", &[1; 2000]);
        let failed =
            |lines: &[String]| matches!(collect(lines).first(), Some((_, Answer::Failed(_))));
        assert!(failed(&[&sent[..1], &sent[2..]].concat()));
        let mut changed = sent.clone();
        changed[1].replace_range(20..21, "z");
        assert!(failed(&changed));
        assert!(failed(&sent[sent.len() - 1..]));
        let mut collector = Collector::default();
        sent[..2]
            .iter()
            .for_each(|line| drop(collector.line(line, |_| true)));
        assert_eq!(collector.unfinished().collect::<Vec<_>>(), ["n1"]);
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(bytes in prop::collection::vec(any::<u8>(), 0..4000)) {
            prop_assert_eq!(collect(&lines("n1", &bytes)), vec![("n1".to_owned(), Answer::Record(bytes))]);
        }

        #[test]
        fn a_mutated_answer_is_never_another_record(at in 0_usize..1500, to in 32_u8..127) {
            let bytes: Vec<u8> = (0..1000_u32).map(|n| (n * 7 % 251) as u8).collect();
            let mut text = lines("n1", &bytes).join("\n").into_bytes();
            let at = at % text.len();
            text[at] = to;
            let text: Vec<String> = String::from_utf8(text).unwrap().lines().map(str::to_owned).collect();
            for (_, answer) in collect(&text) {
                if let Answer::Record(got) = answer { prop_assert_eq!(got, bytes.clone()); }
            }
        }
    }
}
