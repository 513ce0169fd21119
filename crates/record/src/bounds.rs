//! What a JSON text would cost in memory, told before any of it is made.
//!
//! A file of 60 MB can hold twenty million empty strings, each of which costs eight times its length as a value, or as
//! many empty objects. The text is looked through once, in time linear in its length, and refused where what it says
//! would need more memory than `FACTOR` times its length and `FREE` bytes. The records of real runs need less than one
//! time their length.

/// Memory that any text may cost, in bytes, whatever its length.
const FREE: usize = 16 << 20;
/// Bytes of memory that each further byte of a text may cost. The text itself lies in memory too.
const FACTOR: usize = 2;

/// What a value costs at most, by its kind, as the record's types and the allocator have it: the value in a list that
/// grew by doubling, or with its share of a tree's node.
mod cost {
    pub const NUMBER: usize = 8;
    pub const EMPTY_TEXT: usize = 24;
    pub const TEXT: usize = 24 + 16;
    pub const KEY: usize = 24;
    pub const LIST: usize = 32;
    pub const OBJECT: usize = 160;
}

/// What a key costs: nothing where it is the name of a field that is the same in every row. Any other may be that of a
/// map's entry.
fn cost_of_key(name: &[u8]) -> usize {
    match name {
        b"probe" | b"version" | b"params" | b"unit" | b"better" | b"outcome" | b"reason" => 0,
        b"estimate" | b"value" | b"low" | b"high" | b"confidence" | b"percentiles" | b"p50"
        | b"p90" | b"p99" => 0,
        b"processes" | b"samples" | b"disturbed" | b"pace" | b"aside" | b"batch" | b"counters"
        | b"share" => 0,
        // Of leaves, and of stretches of slow requests, of which a run has many thousand.
        b"class" | b"side" | b"blocker" | b"chain" | b"thread" | b"comm" | b"pid" | b"group"
        | b"system_call" | b"all" | b"middle" | b"slow" | b"at" | b"seconds" | b"layer"
        | b"component" | b"whom" => 0,
        other => cost::KEY + cost::TEXT + other.len(),
    }
}

/// Lists and objects within each other: as many as the parser takes.
const DEEPEST: usize = 128;
/// The most rows that one run may have.
pub const MAX_ROWS: usize = 20_000;
/// The longest string, in bytes.
pub const MAX_TEXT: usize = 64 << 10;

/// Says why a JSON text is not to be parsed, if so: one of its strings is too long, or it would cost too much memory.
/// Whether it is JSON at all is the parser's to say.
///
/// # Errors
/// The sentence, without the file's name.
pub fn check(text: &[u8]) -> Result<(), String> {
    let budget = FREE + FACTOR * text.len();
    let (mut spent, mut depth) = (0, 0_usize);
    let mut line = 1;
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'\n' => line += 1,
            open @ (b'{' | b'[') => {
                spent += if open == b'{' {
                    cost::OBJECT
                } else {
                    cost::LIST
                };
                depth += 1;
                if depth > DEEPEST {
                    return Err(format!(
                        "line {line} is nested deeper than {DEEPEST} levels"
                    ));
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' => spent += cost::NUMBER,
            b'"' => {
                let end = end_of_string(text, at);
                let length = end.saturating_sub(at + 1);
                if length > MAX_TEXT {
                    return Err(format!(
                        "line {line} has a text of more than {MAX_TEXT} bytes"
                    ));
                }
                spent += match is_key(text, end) {
                    true => cost_of_key(&text[at + 1..end]),
                    _ if length == 0 => cost::EMPTY_TEXT,
                    false => cost::TEXT + length,
                };
                at = end;
            }
            _ => {}
        }
        if spent > budget {
            return Err(format!(
                "its first {line} lines hold so many values that it would take more memory than any run does"
            ));
        }
        at += 1;
    }
    Ok(())
}

/// Where the string that begins here has its closing quote, or the text ends.
fn end_of_string(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    loop {
        match memchr::memchr2(b'"', b'\\', text.get(at..).unwrap_or_default()) {
            Some(next) if text[at + next] == b'"' => return at + next,
            Some(next) => at += next + 2,
            None => return text.len(),
        }
    }
}

/// Whether a colon follows.
fn is_key(text: &[u8], end: usize) -> bool {
    text.get(end + 1..)
        .unwrap_or_default()
        .iter()
        .take(8)
        .find(|b| !b.is_ascii_whitespace())
        == Some(&b':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_realistic_run_costs_less_than_its_length() {
        // So long that what is free hardly counts.
        let text = serde_json::to_vec(&crate::fixture::with_everything()).unwrap();
        let many = text.repeat((FREE * 3 / 2).div_ceil(text.len()));
        assert_eq!(check(&many), Ok(()), "{} bytes", text.len());
    }

    #[test]
    fn many_small_values_are_refused_of_every_kind() {
        for small in [
            "\"\",",
            "\"a\",",
            "{},",
            "[],",
            "{\"samples\":[]},",
            "\"a\":1,",
            "0,",
            "[0,0],",
        ] {
            let large = small.repeat((40 << 20) / small.len());
            assert!(check(large.as_bytes()).is_err(), "{small}");
            assert_eq!(check(small.repeat(1000).as_bytes()), Ok(()), "{small}");
        }
    }

    #[test]
    fn a_long_text_is_named_with_its_line() {
        let text = format!("{{\n\"a\": \"{}\\\"\"}}", "x".repeat(MAX_TEXT));
        assert!(
            check(text.as_bytes())
                .unwrap_err()
                .contains("line 2 has a text")
        );
        for unfinished in ["\"", "\"\\", "\"abc", "\"\\\"", ""] {
            assert_eq!(check(unfinished.as_bytes()), Ok(()), "{unfinished:?}");
        }
    }
}
