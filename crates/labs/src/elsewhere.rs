//! Settings that the user did not write: a record, a sweep or the form of the web page names them.
//!
//! A record may come from anywhere, so that nothing of it is taken but what is known to do no more than to change what
//! is measured: names that stand on a list, with values of their type and range. Everything else (files, directories,
//! programs, addresses, a server's other variables, the environment) is for the user to name on the command line. There
//! is no list of what is forbidden: servers and compilers have more ways to name a file than anybody can list.

use fingerpost_probes::Probe;
use fingerpost_record::Param;

use crate::lab::{Lab, Setting};
use crate::numbers::Numbers;

mod flags;
mod refused;
mod variables;

use refused::LONGEST;
pub use refused::Refused;

/// The most parts of a list that are taken.
const MOST_PARTS: usize = 64;
/// How many times the greatest number that a probe is measured with a record may ask for.
const TIMES: i64 = 64;

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
