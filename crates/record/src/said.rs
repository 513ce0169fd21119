//! What the words of a `run` or `load` command say: what was to be measured, its settings, and its options.

/// Options of `run` and `load` that are followed by a value.
const WITH_VALUE: [&str; 15] = [
    "--label",
    "--profile",
    "--budget",
    "--output",
    "-o",
    "--cpu",
    "--server-prefix",
    "--seed",
    "--format",
    "--progress",
    "--watch",
    "-c",
    "--clients",
    "--seconds",
    "--password-file",
];

/// The words after the command, read.
#[derive(Debug, Default)]
pub(crate) struct Said<'a> {
    /// Names of probes and labs; the server that is loaded.
    pub names: Vec<&'a str>,
    /// Settings, in the order given.
    pub settings: Vec<(&'a str, &'a str)>,
    /// Other options with their values, which are empty for those that take none.
    options: Vec<(&'a str, &'a str)>,
}

impl<'a> Said<'a> {
    /// Reads the words.
    pub fn of(words: &'a [String]) -> Said<'a> {
        let mut said = Said::default();
        let mut words = words.iter().map(String::as_str);
        while let Some(word) = words.next() {
            match (word, word.split_once('=')) {
                ("--", _) => said.names.extend(words.by_ref()),
                ("--set", _) => said
                    .settings
                    .extend(words.next().and_then(|setting| setting.split_once('='))),
                (_, Some(("--set", setting))) => said.settings.extend(setting.split_once('=')),
                (_, Some((option, value))) if option.starts_with("--") => {
                    said.options.push((option, value))
                }
                (option, _) if WITH_VALUE.contains(&option) => said
                    .options
                    .push((option, words.next().unwrap_or_default())),
                (option, _) if option.starts_with('-') => said.options.push((option, "")),
                (name, _) => said.names.push(name),
            }
        }
        said
    }

    /// The value of a setting: of several the last, which is the one that is taken.
    pub fn value(&self, key: &str) -> Option<&'a str> {
        self.settings
            .iter()
            .rev()
            .find(|(k, _)| *k == key)
            .map(|(_, value)| *value)
    }

    /// The value of an option.
    pub fn option(&self, name: &str) -> Option<&'a str> {
        self.options
            .iter()
            .rev()
            .find(|(option, _)| *option == name)
            .map(|(_, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_settings_and_options_are_told_apart() {
        let words: Vec<String> = [
            "database",
            "--set",
            "clients=1,2",
            "--server-prefix",
            "nice -n 5",
            "--set=clients=8",
            "--cpu=0",
            "-q",
            "--",
            "-x",
        ]
        .map(str::to_owned)
        .to_vec();
        let said = Said::of(&words);
        assert_eq!(
            (
                said.names.as_slice(),
                said.value("clients"),
                said.value("mix")
            ),
            (&["database", "-x"][..], Some("8"), None)
        );
        let options = ["--server-prefix", "--cpu", "-q", "--label"].map(|name| said.option(name));
        assert_eq!(options, [Some("nice -n 5"), Some("0"), Some(""), None]);
    }
}
