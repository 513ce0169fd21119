//! Damage to JSON that knows its structure: most of it still parses, so that it gets past the parser.

use fastrand::Rng;
use serde_json::Value;

use super::bytes::{self, NUMBERS};

/// A document that can be written in ways in which no well-behaved writer would.
#[derive(Clone)]
pub enum Node {
    /// Written as it is: numbers, words, and what is no JSON.
    Raw(String),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl From<&Value> for Node {
    fn from(value: &Value) -> Node {
        match value {
            Value::String(s) => Node::Text(s.clone()),
            Value::Array(items) => Node::List(items.iter().map(Node::from).collect()),
            Value::Object(map) => Node::Map(
                map.iter()
                    .map(|(k, v)| (k.clone(), Node::from(v)))
                    .collect(),
            ),
            other => Node::Raw(other.to_string()),
        }
    }
}

impl Node {
    /// The document's text.
    pub fn render(&self) -> Vec<u8> {
        let mut out = String::new();
        self.write(&mut out);
        out.into_bytes()
    }

    fn write(&self, out: &mut String) {
        match self {
            Node::Raw(s) => out.push_str(s),
            Node::Text(s) => out.push_str(&quoted(s)),
            Node::List(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    out.push_str(if i > 0 { "," } else { "" });
                    item.write(out);
                }
                out.push(']');
            }
            Node::Map(entries) => {
                out.push('{');
                for (i, (key, value)) in entries.iter().enumerate() {
                    out.push_str(if i > 0 { "," } else { "" });
                    out.push_str(&quoted(key));
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }

    /// A node on a random way down, so that the few nodes near the root are met as often as the many samples far below.
    /// Values of the keys in `spared` are not met.
    fn pick(&mut self, rng: &mut Rng, spared: &[&str]) -> &mut Node {
        let below: Vec<usize> = match self {
            Node::List(items) => (0..items.len()).collect(),
            Node::Map(entries) => (0..entries.len())
                .filter(|i| !spared.contains(&entries[*i].0.as_str()))
                .collect(),
            _ => vec![],
        };
        let Some(i) = rng.choice(below).filter(|_| rng.u8(..10) > 0) else {
            return self;
        };
        match self {
            Node::List(items) => items[i].pick(rng, spared),
            Node::Map(entries) => entries[i].1.pick(rng, spared),
            leaf => leaf,
        }
    }
}

fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a string is JSON")
}

/// The document with one to five pieces of damage; `other` is where foreign parts come from.
pub fn damage(rng: &mut Rng, base: &Node, other: &Node) -> Node {
    let mut document = base.clone();
    for _ in 0..rng.usize(1..6) {
        let foreign = other.clone().pick(rng, &[]).clone();
        let place = document.pick(rng, &[]);
        match (rng.u8(..10), &mut *place) {
            (0, place) => *place = foreign,
            (1, place) => *place = odd(rng),
            (_, Node::Raw(number)) => *number = another_number(rng, number),
            (_, Node::Text(text)) => hostile_text(rng, text),
            (_, Node::List(items)) => hostile_list(rng, items, foreign),
            (_, Node::Map(entries)) => hostile_map(rng, entries, foreign),
        }
    }
    document
}

/// Keys whose values are words of the format or checked first: another value would be refused at once.
const SPARED: &[&str] = &[
    "schema",
    "id",
    "unit",
    "better",
    "outcome",
    "profile",
    "layer",
    "status",
    "disturbed",
    "confidence",
];

/// The document with one to five changes after which it is still likely to be read: extreme numbers of the same type,
/// hostile texts, few, many and repeated items.
pub fn bend(rng: &mut Rng, base: &Node) -> Node {
    let mut document = base.clone();
    for _ in 0..rng.usize(1..6) {
        match document.pick(rng, SPARED) {
            Node::Raw(number) if number != "null" && number != "true" && number != "false" => {
                *number = same_type(rng, number)
            }
            Node::Raw(_) => {}
            Node::Text(text) => hostile_text(rng, text),
            Node::List(items) => bend_list(rng, items),
            Node::Map(entries) => bend_map(rng, entries),
        }
    }
    document
}

/// A number that the same field can hold, whatever it means there.
fn same_type(rng: &mut Rng, old: &str) -> String {
    let floats = [
        "0.0",
        "-0.0",
        "-1.0",
        "1e308",
        "-1e308",
        "5e-324",
        "1e-300",
        "1e18",
        "0.5",
        "1.7976931348623157e308",
        "-5e-324",
        "1e16",
        "100.0",
    ];
    let whole = [
        "0",
        "1",
        "2",
        "255",
        "65535",
        "4294967295",
        "4294967294",
        "100000",
        "2147483648",
    ];
    let wide = [
        "18446744073709551615",
        "9223372036854775807",
        "9223372036854775808",
        "9007199254740993",
    ];
    match old.contains(['.', 'e']) {
        true => floats[rng.usize(..floats.len())].into(),
        false if rng.bool() => whole[rng.usize(..whole.len())].into(),
        false => wide[rng.usize(..wide.len())].into(),
    }
}

fn bend_list(rng: &mut Rng, items: &mut Vec<Node>) {
    match rng.u8(..4) {
        0 => items.truncate(rng.usize(..=items.len())),
        1 => rng.shuffle(items),
        _ if !items.is_empty() => repeat_one(rng, items),
        _ => {}
    }
}

fn bend_map(rng: &mut Rng, entries: &mut [(String, Node)]) {
    let interval = ["low", "value", "high"];
    if interval
        .iter()
        .all(|name| entries.iter().any(|(key, _)| key == name))
    {
        // The three must keep their order, or the row is refused.
        let mut ends: Vec<f64> = (0..3)
            .map(|_| same_type(rng, "0.0").parse().expect("a number"))
            .collect();
        ends.sort_by(f64::total_cmp);
        for (key, value) in entries.iter_mut() {
            if let Some(i) = interval.iter().position(|name| name == key) {
                *value = Node::Raw(format!("{:e}", ends[i]));
            }
        }
    }
    for (key, value) in entries {
        match value {
            Node::Text(text) if !SPARED.contains(&key.as_str()) && rng.u8(..3) == 0 => {
                hostile_text(rng, text)
            }
            Node::Raw(number)
                if number.parse::<f64>().is_ok()
                    && !interval.contains(&key.as_str())
                    && !SPARED.contains(&key.as_str())
                    && rng.u8(..4) == 0 =>
            {
                *number = same_type(rng, number);
            }
            _ => {}
        }
    }
}

/// Something of another type than was there.
fn odd(rng: &mut Rng) -> Node {
    let depth = [100, 127, 128, 129, 10_000, 200_000][rng.usize(..6)];
    match rng.u8(..12) {
        0 => Node::Raw("null".into()),
        1 => Node::Raw("true".into()),
        2 => Node::Text(bytes::text(rng)),
        3 => Node::List(vec![]),
        4 => Node::Map(vec![]),
        5 => Node::Raw(format!("{}{}", "[".repeat(depth), "]".repeat(depth))),
        6 => Node::Raw(format!("{}0{}", "{\"a\":".repeat(depth), "}".repeat(depth))),
        7 => Node::Raw(format!("[{}\"\"]", "\"\",".repeat(rng.usize(1..50_000)))),
        8 => Node::Raw(format!("[{}{{}}]", "{},".repeat(rng.usize(1..20_000)))),
        9 => Node::Raw(
            [
                "\"\\ud800\"",
                "\"\\u0000\"",
                "\"\\u001b[2J\"",
                "\"\\u202e\"",
                "\"\\x\"",
                "'a'",
                "\"\u{1}\"",
                "/**/0",
            ][rng.usize(..8)]
            .into(),
        ),
        _ => Node::Raw(NUMBERS[rng.usize(..NUMBERS.len())].into()),
    }
}

fn another_number(rng: &mut Rng, old: &str) -> String {
    let value: f64 = old.parse().unwrap_or(1.0);
    match rng.u8(..6) {
        0 => format!("{:e}", value * 10f64.powi(rng.i32(-30..30))),
        1 => format!("{:e}", -value),
        2 => format!("{}", rng.i64(..)),
        3 => format!("{}", value.trunc() as i64),
        _ => NUMBERS[rng.usize(..NUMBERS.len())].into(),
    }
}

fn hostile_text(rng: &mut Rng, text: &mut String) {
    let hostile = bytes::text(rng);
    let places: Vec<usize> = text
        .char_indices()
        .map(|(i, _)| i)
        .chain([text.len()])
        .collect();
    match rng.u8(..3) {
        0 => *text = hostile,
        _ => text.insert_str(places[rng.usize(..places.len())], &hostile),
    }
}

fn hostile_list(rng: &mut Rng, items: &mut Vec<Node>, foreign: Node) {
    let at = rng.usize(..=items.len());
    match rng.u8(..8) {
        0 => items.clear(),
        1 => items.truncate(at),
        2 => items.insert(at, foreign),
        3 => rng.shuffle(items),
        4 => items.insert(at, odd(rng)),
        5 if at < items.len() => drop(items.remove(at)),
        _ if at < items.len() => repeat_one(rng, items),
        _ => {}
    }
}

/// Many of one item, but not more than a small file: the volume is in the number of files.
fn repeat_one(rng: &mut Rng, items: &mut Vec<Node>) {
    let at = rng.usize(..items.len());
    let item = items[at].clone();
    let copies = rng.usize(1..=(200_000 / item.render().len().max(1)).clamp(1, 20_000));
    items.splice(at..at, std::iter::repeat_n(item, copies));
}

fn hostile_map(rng: &mut Rng, entries: &mut Vec<(String, Node)>, foreign: Node) {
    let at = rng.usize(..=entries.len());
    match rng.u8(..9) {
        0 if at < entries.len() => drop(entries.remove(at)),
        1 if at < entries.len() => entries.push((entries[at].0.clone(), foreign)),
        2 if at < entries.len() => entries.push((entries[at].0.clone(), entries[at].1.clone())),
        3 if at < entries.len() => entries[at].0 = bytes::text(rng),
        4 => entries.insert(at, (bytes::text(rng), foreign)),
        5 => entries.insert(at, (bytes::text(rng), odd(rng))),
        6 => {
            let (n, value) = (rng.usize(1..2_000), odd(rng));
            // Only a small value is repeated.
            let value = if value.render().len() < 50 {
                value
            } else {
                Node::Raw("1".into())
            };
            entries.extend((0..n).map(|i| (format!("key{i}"), value.clone())));
        }
        7 => rng.shuffle(entries),
        _ if at < entries.len() => hostile_text(rng, &mut entries[at].0),
        _ => {}
    }
}
