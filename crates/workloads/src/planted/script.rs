//! What the clients of a private server do.

use serde::{Deserialize, Serialize};

/// Requests of one kind: what is asked, one after another, makes one transaction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// How often it comes, beside the others' weights.
    pub weight: f64,
    /// Statements, commands of Redis, or paths. `{r}` and `{s}` are numbers up to [`Script::keys`], drawn once a
    /// transaction, `{c}` is the client's number, `{x}` is [`Script::payload`] letters.
    pub asks: Vec<String>,
}

/// What all clients do, in a closed loop each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Script {
    /// Clients, a thread and a connection each.
    pub clients: usize,
    /// The largest number that `{r}` stands for.
    pub keys: u32,
    /// Letters that `{x}` stands for.
    pub payload: usize,
    /// What is asked.
    pub shares: Vec<Share>,
    /// Microseconds that a client thinks before each transaction.
    pub think_us: u64,
    /// Turns of a loop of arithmetic that it does with each answer.
    pub client_work: u32,
    /// Whether each transaction makes a connection of its own.
    pub connects: bool,
    /// Whether a request goes out in two small writes, with Nagle's algorithm on.
    pub split: bool,
    /// What the clients call themselves, where the protocol has a place for it.
    pub name: String,
}

impl Default for Script {
    fn default() -> Self {
        Script {
            clients: 4,
            keys: 1000,
            payload: 0,
            shares: Vec::new(),
            think_us: 0,
            client_work: 0,
            connects: false,
            split: false,
            name: String::new(),
        }
    }
}

impl Script {
    /// A script whose transactions ask this alone.
    pub fn asking(ask: &str) -> Script {
        Script {
            shares: vec![Share {
                weight: 1.0,
                asks: vec![ask.to_owned()],
            }],
            ..Script::default()
        }
    }

    /// The transaction of this number in 0 to 1.
    pub fn pick(&self, number: f64) -> Option<&Share> {
        let whole: f64 = self.shares.iter().map(|s| s.weight).sum();
        let mut left = number * whole;
        self.shares.iter().find(|s| {
            left -= s.weight;
            left < 0.0
        })
    }
}

/// Fills a pattern.
pub fn fill(pattern: &str, numbers: [u32; 2], client: usize, payload: &str) -> String {
    let mut text = String::with_capacity(pattern.len() + payload.len() + 16);
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let Some((word, end)) = after.split_once('}') else {
            text.push('{');
            rest = after;
            continue;
        };
        match word {
            "r" => text.push_str(&numbers[0].to_string()),
            "s" => text.push_str(&numbers[1].to_string()),
            "c" => text.push_str(&client.to_string()),
            "x" => text.push_str(payload),
            other => text.extend(["{", other, "}"]),
        }
        rest = end;
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_filled_and_what_is_no_word_stays() {
        assert_eq!(fill("SET k{r} {x}{c}", [7, 8], 3, "ab"), "SET k7 ab3");
        assert_eq!(fill("{s}{q}{", [7, 8], 3, ""), "8{q}{");
    }

    #[test]
    fn shares_come_by_weight() {
        let mut script = Script::asking("a");
        script.shares.push(Share {
            weight: 3.0,
            asks: vec!["b".into()],
        });
        assert_eq!(script.pick(0.2).unwrap().asks, ["a"]);
        assert_eq!(script.pick(0.3).unwrap().asks, ["b"]);
        assert_eq!(script.pick(0.999).unwrap().asks, ["b"]);
        assert_eq!(Script::default().pick(0.5), None);
    }
}
