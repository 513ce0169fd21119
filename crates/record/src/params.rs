//! The parameters of a measurement: what `--set` takes and what rows are aligned by.

use std::collections::BTreeMap;
use std::fmt;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::de::{self, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// One parameter's value: a whole number (sizes in bytes, counts) or a word.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(untagged)]
pub enum Param {
    /// A whole number; sizes are in bytes.
    Int(i64),
    /// A word, such as a placement or an engine.
    Text(String),
}

/// By hand: the derived form keeps each value aside before it tries the variants.
impl<'de> Deserialize<'de> for Param {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Value)
    }
}

/// Takes what stands where a parameter's value is expected.
struct Value;

impl Visitor<'_> for Value {
    type Value = Param;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number or a word")
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Param, E> {
        Ok(Param::Int(number))
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<Param, E> {
        i64::try_from(number)
            .map(Param::Int)
            .map_err(|_| E::invalid_value(Unexpected::Unsigned(number), &self))
    }

    fn visit_str<E: de::Error>(self, word: &str) -> Result<Param, E> {
        Ok(Param::from(word))
    }
}

impl fmt::Display for Param {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Param::Int(n) => write!(f, "{n}"),
            Param::Text(s) => f.write_str(s),
        }
    }
}

impl From<i64> for Param {
    fn from(n: i64) -> Self {
        Param::Int(n)
    }
}

impl From<&str> for Param {
    fn from(s: &str) -> Self {
        Param::Text(s.to_owned())
    }
}

impl From<String> for Param {
    fn from(s: String) -> Self {
        Param::Text(s)
    }
}

impl Param {
    /// Reads a value as a user writes it: a number, a number with a binary suffix (`64K`, `16M`, `1G`), else a word.
    pub fn parse(text: &str) -> Param {
        let (digits, factor) = match text.as_bytes().last() {
            Some(b'K' | b'k') => (&text[..text.len() - 1], 1 << 10),
            Some(b'M') => (&text[..text.len() - 1], 1 << 20),
            Some(b'G') => (&text[..text.len() - 1], 1 << 30),
            _ => (text, 1),
        };
        match digits
            .parse::<i64>()
            .ok()
            .and_then(|n| n.checked_mul(factor))
        {
            Some(n) => Param::Int(n),
            None => Param::Text(text.to_owned()),
        }
    }
}

/// Parameters by name. The order of the names is fixed, so that equal parameters are equal as keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(transparent)]
pub struct Params(pub BTreeMap<String, Param>);

impl Params {
    /// No parameters.
    pub fn new() -> Self {
        Self::default()
    }

    /// These parameters and one more; the way a descriptor lists its variants.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Param>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Option<&Param> {
        self.0.get(name)
    }

    /// The value of a parameter that is a whole number.
    pub fn int(&self, name: &str) -> Option<i64> {
        if let Param::Int(n) = self.get(name)? {
            Some(*n)
        } else {
            None
        }
    }

    /// The value of a parameter that is a word.
    pub fn text(&self, name: &str) -> Option<&str> {
        if let Param::Text(s) = self.get(name)? {
            Some(s)
        } else {
            None
        }
    }

    /// Those that `keep` holds for.
    pub fn only(&self, keep: impl Fn(&str, &Param) -> bool) -> Params {
        Params(
            self.0
                .iter()
                .filter(|(key, value)| keep(key, value))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
        )
    }

    /// All but those of these names.
    pub fn without(&self, names: &[&str]) -> Params {
        self.only(|key, _| !names.contains(&key))
    }

    /// How many ask a server at the same time, and who that is; nothing of rows that nobody asks for.
    pub fn asking(&self) -> Option<(u64, Who)> {
        WHO.into_iter()
            .find_map(|who| Some((u64::try_from(self.int(who.many)?).unwrap_or(0), who)))
    }

    /// All but the number of those who ask.
    pub fn whoever_asks(&self) -> Params {
        self.without(&WHO.map(|who| who.many))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names and values in the order of the names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Param)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v))
    }
}

/// Who asks a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Who {
    /// The parameter that counts them: `clients`.
    pub many: &'static str,
    /// What one is called.
    pub one: &'static str,
}

const WHO: [Who; 2] = [
    Who {
        many: "clients",
        one: "client",
    },
    Who {
        many: "connections",
        one: "connection",
    },
];

impl fmt::Display for Params {
    /// `fds=100 placement=same`; sizes and footprints that are whole KiB or more are written with their binary suffix.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, value)) in self.iter().enumerate() {
            let gap = if i == 0 { "" } else { " " };
            write!(f, "{gap}{}", named(name, value))?;
        }
        Ok(())
    }
}

/// One parameter as a person reads it: `fds=100`; of bytes that are whole KiB or more `size=64M`.
pub fn named(name: &str, value: &Param) -> String {
    format!("{name}={}", shown(name, value))
}

/// The value of a parameter as a person reads it: `100`; of bytes that are whole KiB or more `64M`.
pub fn shown(name: &str, value: &Param) -> String {
    match value {
        Param::Int(n) if is_bytes(name) => short_bytes(*n),
        _ => value.to_string(),
    }
}

fn is_bytes(name: &str) -> bool {
    matches!(
        name,
        "size" | "footprint" | "resident" | "stride" | "memory" | "swap_size" | "throttle"
    )
}

fn short_bytes(n: i64) -> String {
    let whole =
        |(factor, suffix)| (n != 0 && n % factor == 0).then(|| format!("{}{suffix}", n / factor));
    [(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")]
        .into_iter()
        .find_map(whole)
        .unwrap_or_else(|| n.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_user_writes_is_read_as_number_size_or_word() {
        assert_eq!(Param::parse("100"), Param::Int(100));
        assert_eq!(Param::parse("64K"), Param::Int(65536));
        assert_eq!(Param::parse("16M"), Param::Int(16 << 20));
        assert_eq!(Param::parse("same"), Param::Text("same".into()));
        assert_eq!(
            Param::parse("99999999999999G"),
            Param::Text("99999999999999G".into())
        );
        assert_eq!(Param::parse("K"), Param::Text("K".into()));
        assert_eq!(Param::parse(""), Param::Text(String::new()));
    }

    #[test]
    fn a_value_in_a_record_is_a_whole_number_or_a_word() {
        let read = |text: &str| serde_json::from_str::<Param>(text).map_err(|e| e.to_string());
        assert_eq!(read("-5"), Ok(Param::Int(-5)));
        assert_eq!(read("9223372036854775807"), Ok(Param::Int(i64::MAX)));
        assert_eq!(read(r#""a\u00b5""#), Ok(Param::Text("aµ".into())));
        for other in ["9223372036854775808", "1.5", "true", "null", "[]", "{}"] {
            assert!(
                read(other)
                    .unwrap_err()
                    .contains("expected a whole number or a word"),
                "{other}: {:?}",
                read(other)
            );
        }
    }

    #[test]
    fn a_part_of_parameters_keeps_their_values() {
        let all = Params::new()
            .with("clients", 10)
            .with("engine", "redis")
            .with("mix", "read");
        assert_eq!(
            all.without(&["mix", "clients", "another"]),
            Params::new().with("engine", "redis")
        );
        assert_eq!(
            all.only(|_, value| matches!(value, Param::Int(_))),
            Params::new().with("clients", 10)
        );
        assert_eq!(all.without(&[]), all);
    }

    #[test]
    fn parameters_print_in_a_fixed_order_with_short_sizes() {
        assert_eq!(
            Params::new()
                .with("memory", 64 << 20)
                .with("threads", 1024)
                .to_string(),
            "memory=64M threads=1024"
        );
        assert_eq!(named("swap_size", &Param::Int(1 << 30)), "swap_size=1G");
        let p = Params::new()
            .with("tasks", 16)
            .with("footprint", 65536)
            .with("placement", "same");
        assert_eq!(p.to_string(), "footprint=64K placement=same tasks=16");
        assert_eq!(
            serde_json::to_string(&p).unwrap(),
            r#"{"footprint":65536,"placement":"same","tasks":16}"#
        );
    }
}
