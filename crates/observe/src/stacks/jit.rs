//! Functions that a program made at run time, as it tells them itself: `/tmp/perf-PID.map`, a line `START LENGTH NAME`
//! each.
//!
//! The text is whoever's it is. It is read to a bound, and what it says names functions, and nothing else.

use super::image::Source;
use super::nearest::Nearest;

/// Bytes that are read, of a line at most, and characters of a name.
const MOST_BYTES: u64 = 64 << 20;
const LONGEST_LINE: usize = 2_000;
const MOST_NAME: usize = 200;
/// Bytes that are read at a time.
const PIECE: usize = 64 << 10;

/// The names of the functions at these addresses.
pub fn names(source: &Source, wanted: &[u64]) -> Vec<Option<String>> {
    let mut nearest: Nearest<(u64, String)> = Nearest::to(wanted.iter().copied());
    // Code that was thrown away leaves its line behind: the last one of an address counts.
    lines(source, |line| {
        let (start, length, name) = function(line)?;
        nearest.offer(start, |_| false, || (length, name_of(name)));
        Some(())
    });
    let name = |address: &u64| {
        let (start, (length, name)) = nearest.below(*address)?;
        (address - start < *length).then(|| name.clone())
    };
    wanted.iter().map(name).collect()
}

fn function(line: &str) -> Option<(u64, u64, &str)> {
    let mut words = line.splitn(3, ' ');
    let mut number = || u64::from_str_radix(words.next()?.trim_start_matches("0x"), 16).ok();
    let (start, length) = (number()?, number()?);
    let name = words.next()?.trim();
    (length > 0 && name.chars().any(|c| !c.is_control())).then_some((start, length, name))
}

fn name_of(name: &str) -> String {
    name.chars()
        .filter(|c| !c.is_control())
        .take(MOST_NAME)
        .collect()
}

/// Gives each line; of one that is too long the beginning.
fn lines(source: &Source, mut take: impl FnMut(&str) -> Option<()>) {
    let (mut at, mut piece, mut kept) = (0, vec![0; PIECE], 0_usize);
    let mut within = false;
    loop {
        let room = usize::try_from(MOST_BYTES.saturating_sub(at)).unwrap_or(PIECE);
        let to = PIECE.min(kept.saturating_add(room));
        let read = source.fill(at, &mut piece[kept..to]);
        at += read as u64;
        let full = kept + read;
        let mut rest = &piece[..full];
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line = &rest[..end.min(LONGEST_LINE)];
            if !std::mem::take(&mut within) {
                take(&String::from_utf8_lossy(line));
            }
            rest = &rest[end + 1..];
        }
        let left = rest.len();
        if read == 0 || left == PIECE {
            if !std::mem::take(&mut within) {
                take(&String::from_utf8_lossy(&rest[..left.min(LONGEST_LINE)]));
            }
            // What follows belongs to the same line.
            within = true;
            kept = 0;
            if read == 0 {
                return;
            }
            continue;
        }
        piece.copy_within(full - left..full, 0);
        kept = left;
    }
}

#[cfg(test)]
mod tests {
    use super::super::image::tests::source;
    use super::*;

    fn at(text: &str, wanted: &[u64]) -> Vec<Option<String>> {
        names(&source(text.as_bytes()), wanted)
    }

    fn one(text: &str, address: u64) -> Option<String> {
        at(text, &[address]).remove(0)
    }

    #[test]
    fn functions_are_found_by_address_and_the_last_line_counts() {
        let text = "1000 20 old\n1000 20 new one\n0x1040 10 LazyCompile:*f /srv/app.js:3\nnonsense\n2000 0 empty\nzz 1 \
            x\n3000 5\n";
        let wanted = [0x101f, 0x1045, 0x1020, 0x2000, 0x3000, 0];
        let found = at(text, &wanted);
        assert_eq!(found[0].as_deref(), Some("new one"));
        assert_eq!(found[1].as_deref(), Some("LazyCompile:*f /srv/app.js:3"));
        assert_eq!(found[2..], [const { None }; 4]);
        assert_eq!(
            one("1 5 a\u{1b}[2Jb", 2).as_deref(),
            Some("a[2Jb"),
            "nothing that acts on a terminal"
        );
        assert_eq!(
            one(&format!("1 5 {}", "x".repeat(9999)), 1).map(|name| name.len()),
            Some(MOST_NAME)
        );
    }

    #[test]
    fn a_line_may_lie_across_two_pieces_and_a_long_one_is_skipped() {
        let filler = "nonsense ".repeat(PIECE / 9 - 1);
        let text = format!(
            "{filler}\n10 5 first\n{}\n20 5 second\n",
            "y".repeat(3 * PIECE)
        );
        assert_eq!(
            at(&text, &[0x11, 0x21]),
            [Some("first".to_owned()), Some("second".to_owned())]
        );
        assert_eq!(at("", &[1]), [None]);
    }
}
