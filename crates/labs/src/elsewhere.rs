//! Settings that the user did not write: a record, a sweep or the form of the web page names them.
//!
//! A record may come from anywhere, so that nothing of it is taken but what is known to do no more than to change what
//! is measured: names that stand on a list, with values of their type and range. Everything else (files, directories,
//! programs, addresses, a server's other variables, the environment) is for the user to name on the command line. There
//! is no list of what is forbidden: servers and compilers have more ways to name a file than anybody can list.

use fingerpost_probes::Probe;
use fingerpost_record::Param;

use crate::lab::{Lab, Setting};

mod flags;
mod variables;

/// The longest value, and the most parts of a list, that are taken.
const LONGEST: usize = 200;
const MOST_PARTS: usize = 64;
/// How many times the greatest number that a probe is measured with a record may ask for.
const TIMES: i64 = 64;

/// Which numbers are taken beside a setting's words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Numbers {
    /// None.
    None,
    /// Whole numbers from the first to the last, also with K, M or G.
    Whole(i64, i64),
    /// Numbers from the first to the last.
    Real(f64, f64),
}

impl Numbers {
    /// Whether this text is one of them.
    fn take(self, text: &str) -> bool {
        match self {
            Numbers::None => false,
            Numbers::Whole(low, high) => {
                let digits = text.trim_end_matches(['K', 'M', 'G']);
                let plain = text.len() - digits.len() <= 1 && is_digits(digits);
                plain && matches!(Param::parse(text), Param::Int(n) if (low..=high).contains(&n))
            }
            Numbers::Real(low, high) => {
                let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
                let plain = is_digits(whole) && is_digits(part);
                plain && text.parse().is_ok_and(|n| (low..=high).contains(&n))
            }
        }
    }

    /// Them in words; nothing where there are none.
    fn words(self) -> Option<String> {
        match self {
            Numbers::None => None,
            Numbers::Whole(low, high) => Some(format!("whole numbers from {low} to {high}")),
            Numbers::Real(low, high) => Some(format!("numbers from {low} to {high}")),
        }
    }
}

fn is_digits(text: &str) -> bool {
    (1..=18).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
}

/// Why a setting is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Only the user may choose it, whatever its value is.
    Setting,
    /// It may be chosen, but not with this value; what it takes, in words.
    Value(String),
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refused::Setting => {
                f.write_str("it is not among the settings that are known to be harmless")
            }
            Refused::Value(takes) => write!(f, "known to be harmless are {takes}"),
        }
    }
}

/// Whether a lab's setting is taken that the user did not write, else why not.
///
/// # Errors
/// Why it is not.
pub fn of_lab(lab: &Lab, key: &str, value: &str) -> Result<(), Refused> {
    if let Some(name) = key.strip_prefix("server.") {
        let known = lab.settings.iter().any(|s| s.key == "server.");
        return if known {
            variables::take(name, value)
        } else {
            Err(Refused::Setting)
        };
    }
    let setting = lab.all_settings().find(|s| s.key == key);
    let of_rows = || {
        let mut refused = Refused::Setting;
        for probe in lab.probes() {
            match of_probe(probe, key, value) {
                Err(Refused::Setting) => {}
                Err(why) => refused = why,
                Ok(()) => return Ok(()),
            }
        }
        Err(refused)
    };
    match setting {
        Some(setting) if lab.is_course() => of_setting(&setting, value),
        _ => of_rows(),
    }
}

/// The same of a probe's parameter, or of the compilers that it is built with.
///
/// # Errors
/// Why it is not.
pub fn of_probe(probe: &Probe, key: &str, value: &str) -> Result<(), Refused> {
    if probe.settings.iter().any(|[own, ..]| *own == key) {
        return match key {
            "cc" => flags::title(value),
            "cflags" => flags::all(value),
            _ => Err(Refused::Setting),
        };
    }
    let known: Vec<Param> = (probe.variants)()
        .iter()
        .filter_map(|params| params.get(key).cloned())
        .collect();
    let greatest = known.iter().filter_map(|value| match value {
        Param::Int(n) => Some(*n),
        Param::Text(_) => None,
    });
    let numbers = greatest.max().map_or(Numbers::None, |most| {
        Numbers::Whole(0, most.max(1).saturating_mul(TIMES))
    });
    let words: Vec<String> = known.iter().map(ToString::to_string).collect();
    if words.is_empty() {
        return Err(Refused::Setting);
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    among(&words, numbers, true, value)
}

/// Whether anything that can be measured takes this setting: where it is not known yet what will be.
///
/// # Errors
/// Why nothing does.
pub fn of_any(key: &str, value: &str) -> Result<(), Refused> {
    let labs = crate::REGISTRY.iter().map(|lab| of_lab(lab, key, value));
    let probes = fingerpost_probes::all().map(|probe| of_probe(probe, key, value));
    let mut refused = Refused::Setting;
    for told in labs.chain(probes) {
        match told {
            Err(Refused::Setting) => {}
            Err(why) => refused = why,
            Ok(()) => return Ok(()),
        }
    }
    Err(refused)
}

/// Whether anything of this setting is taken.
pub fn takes_any(setting: &Setting) -> bool {
    !setting.by_the_user && (!setting.values.is_empty() || setting.numbers != Numbers::None)
}

fn of_setting(setting: &Setting, value: &str) -> Result<(), Refused> {
    if !takes_any(setting) {
        return Err(Refused::Setting);
    }
    among(setting.values, setting.numbers, setting.several, value)
}

/// Whether each part of a value is one of the words or numbers.
fn among(words: &[&str], numbers: Numbers, several: bool, value: &str) -> Result<(), Refused> {
    let one = |part: &str| words.contains(&part) || numbers.take(part);
    let parts = value.split(',').take(MOST_PARTS + 1);
    let fits = value.len() <= LONGEST
        && (one(value)
            || (several && parts.clone().count() <= MOST_PARTS && parts.clone().all(one)));
    let takes = || {
        let words = (!words.is_empty()).then(|| words.join(", "));
        let all: Vec<String> = words.into_iter().chain(numbers.words()).collect();
        all.join(", ")
    };
    if fits {
        Ok(())
    } else {
        Err(Refused::Value(takes()))
    }
}

#[cfg(test)]
mod tests;
