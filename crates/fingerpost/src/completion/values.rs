//! Settings and their values: what `--set` takes.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::ffi::OsStr;

use clap_complete::engine::CompletionCandidate;
use fingerpost_labs::{Lab, Setting};
use fingerpost_probes::Probe;

use super::answers::beginning;

/// A setting up to the sign, or behind it one of the words that it takes.
pub fn complete(word: &OsStr) -> Vec<CompletionCandidate> {
    let words: Vec<String> = env::args_os()
        .filter_map(|word| word.into_string().ok())
        .collect();
    let asked = Asked::of(&words);
    match word.to_str().and_then(|word| word.split_once('=')) {
        Some((key, value)) => asked.values(word, key, value),
        None => beginning(word, asked.keys().into_iter()),
    }
}

/// What is to be measured: the labs and probes that the line names, and all where it names none.
struct Asked {
    labs: Vec<&'static Lab>,
    probes: Vec<&'static Probe>,
}

impl Asked {
    fn of(words: &[String]) -> Asked {
        let named = |name: &str| words.iter().any(|word| word == name);
        let family = |name: &str| name.match_indices('.').any(|(at, _)| named(&name[..at]));
        let labs: Vec<&'static Lab> = fingerpost_labs::courses()
            .filter(|lab| named(lab.name))
            .collect();
        let of_name = |probe: &&Probe| {
            named(probe.name) || family(probe.name) || probe.lab.is_some_and(named)
        };
        let probes: Vec<&'static Probe> = fingerpost_probes::all().filter(of_name).collect();
        if labs.is_empty() && probes.is_empty() {
            return Asked {
                labs: fingerpost_labs::courses().collect(),
                probes: fingerpost_probes::all().collect(),
            };
        }
        Asked { labs, probes }
    }

    fn settings(&self) -> impl Iterator<Item = &'static Setting> {
        self.labs.iter().flat_map(|lab| lab.settings)
    }

    /// Every key with its sign and a line of help.
    fn keys(&self) -> BTreeMap<String, String> {
        let of_labs = self
            .settings()
            .map(|s| (s.key.to_owned(), s.help.to_owned()));
        let own = self.probes.iter().flat_map(|probe| probe.settings);
        let own = own.map(|[key, _, help]| ((*key).to_owned(), (*help).to_owned()));
        let rows = self.probes.iter().flat_map(|probe| (probe.variants)());
        let of_probes: BTreeSet<String> = rows
            .flat_map(|params| {
                params
                    .iter()
                    .map(|(key, _)| key.to_owned())
                    .collect::<Vec<_>>()
            })
            .collect();
        let all = of_labs
            .chain(own)
            .chain(of_probes.into_iter().map(|key| (key, String::new())));
        all.fold(BTreeMap::new(), |mut told, (key, help)| {
            let name = if key.ends_with('.') {
                key
            } else {
                format!("{key}=")
            };
            told.entry(name).or_insert(help);
            told
        })
    }

    /// The words that a key takes, each with the key before it. Of a list the last one is proposed, and none that it
    /// has.
    fn values(&self, word: &OsStr, key: &str, value: &str) -> Vec<CompletionCandidate> {
        let of_labs: Vec<&Setting> = self.settings().filter(|s| s.key == key).collect();
        let rows = || self.probes.iter().flat_map(|probe| (probe.variants)());
        let of_probes: BTreeSet<String> = rows()
            .filter_map(|params| params.get(key).map(ToString::to_string))
            .collect();
        let before = value.rsplit_once(',').map(|(before, _)| before);
        let (begun, given) = (
            before.map_or(String::new(), |before| format!("{before},")),
            before.unwrap_or_default(),
        );
        let one_more = |several: bool| several || before.is_none();
        let of_labs_words = of_labs
            .iter()
            .filter(|s| one_more(s.several))
            .flat_map(|s| s.values)
            .map(|word| (*word).to_owned());
        let free = |word: &String| !given.split(',').any(|given| given == word);
        let words: BTreeSet<String> = of_labs_words.chain(of_probes).filter(free).collect();
        let mut found = beginning(
            word,
            words
                .into_iter()
                .map(|word| (format!("{key}={begun}{word}"), String::new())),
        );
        if of_labs.iter().any(|s| s.path && one_more(s.several)) {
            let paths = super::paths::any(OsStr::new(&value[begun.len()..]));
            found.extend(
                paths
                    .into_iter()
                    .map(|one| one.add_prefix(format!("{key}={begun}"))),
            );
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str, word: &str) -> Vec<String> {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let asked = Asked::of(&words);
        let found = match word.split_once('=') {
            Some((key, value)) => asked.values(OsStr::new(word), key, value),
            None => {
                return asked
                    .keys()
                    .into_keys()
                    .filter(|key| key.starts_with(word))
                    .collect();
            }
        };
        found
            .iter()
            .map(|one| one.get_value().to_string_lossy().into_owned())
            .collect()
    }

    #[test]
    fn settings_have_the_words_that_they_take() {
        assert_eq!(of("fp run database", "engine=m"), ["engine=mariadb"]);
        assert_eq!(
            of("fp run database", "engine="),
            ["engine=mariadb", "engine=postgresql", "engine=sqlite"]
        );
        assert_eq!(
            of("fp run database", "query_cache=o"),
            ["query_cache=off", "query_cache=on"]
        );
        assert_eq!(of("fp run web", "desktop="), ["desktop=off", "desktop=on"]);
        assert_eq!(of("fp run database", "clients="), [""; 0], "any numbers");
        assert_eq!(of("fp run database", "nothing="), [""; 0]);
        assert_eq!(
            of("fp run ipc.pipe", "placement="),
            ["placement=cross", "placement=same"]
        );
    }

    #[test]
    fn only_what_is_to_be_measured_counts() {
        assert_eq!(of("fp run launch", "state=w"), ["state=warm"]);
        assert_eq!(
            of("fp run site", "state=w"),
            ["state=warm", "state=warming"]
        );
        assert_eq!(
            of("fp run", "state=w"),
            ["state=warm", "state=warming"],
            "of all, where nothing is named"
        );
        assert_eq!(of("fp run web", "eng"), [""; 0]);
        assert_eq!(of("fp run flops", "cf"), ["cflags="]);
        assert_eq!(of("fp run zerofill", "cf"), [""; 0]);
        assert_eq!(of("fp run syscall", "fd"), ["fds="], "a family of probes");
    }

    #[test]
    fn of_a_list_the_last_word_is_proposed_and_none_twice() {
        assert_eq!(
            of("fp run site", "parts=rounds,s"),
            ["parts=rounds,served", "parts=rounds,sizes"]
        );
        assert_eq!(of("fp run site", "parts=sizes,s"), ["parts=sizes,served"]);
        assert_eq!(
            of("fp run database", "engine=sqlite,m"),
            [""; 0],
            "one only"
        );
        assert_eq!(
            of("fp run ipc.pipe", "placement=same,"),
            ["placement=same,cross"]
        );
    }

    #[test]
    fn files_are_proposed_where_one_is_named() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("apps.toml"), "").unwrap();
        let begun = format!("manifest={}/ap", dir.path().display());
        assert_eq!(of("fp run launch", &begun), [format!("{begun}ps.toml")]);
        assert_eq!(of("fp run launch", "manifest=pub"), ["manifest=published"]);
    }
}
