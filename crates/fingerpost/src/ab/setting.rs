//! What `--a KEY=VALUE` and `--b KEY=VALUE` say.

use std::path::{Path, PathBuf};

use fingerpost_record::{Param, Params, secret};

use crate::exit::usage;
use crate::{cpus, plan};

/// Everything in which the sides of a pair may differ.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Setting {
    /// Parameters of the probes or settings of the lab.
    pub params: Params,
    /// Variables of the environment (`env.NAME=VALUE`; `preload=FILE` sets LD_PRELOAD).
    pub env: Vec<(String, String)>,
    /// CPUs to measure on (`cpu=LIST`).
    pub cpus: Option<String>,
    /// Transparent huge pages (`thp=always|madvise|never`).
    pub thp: Option<Thp>,
    /// Words before a private server's command (`server-prefix=…`).
    pub server_prefix: Option<String>,
    /// The directory for files (`dir=…`).
    pub dir: Option<PathBuf>,
    /// What the user wrote, for people.
    pub words: Vec<String>,
}

/// A setting of transparent huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thp {
    /// For all memory: a change of the system.
    Always,
    /// For memory that asks for it: a change of the system.
    Madvise,
    /// For no memory of the measured processes: a setting of theirs, which needs no privilege.
    Never,
}

impl Thp {
    /// The word that the kernel uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Thp::Always => "always",
            Thp::Madvise => "madvise",
            Thp::Never => "never",
        }
    }
}

/// The settings that are `ab`'s own, whatever is measured.
pub const KEYS: [&str; 5] = ["cpu", "thp", "preload", "server-prefix", "dir"];

impl Setting {
    /// Reads the words of one side.
    pub fn parse(words: &[String]) -> anyhow::Result<Setting> {
        let mut setting = Setting {
            words: words.to_vec(),
            ..Setting::default()
        };
        for word in words {
            match word.split_once('=') {
                Some((key, value)) if !key.is_empty() => setting.set(key, value)?,
                _ => {
                    return usage(format!(
                        "“{word}” is not a setting: write KEY=VALUE, such as --a fds=100"
                    ));
                }
            }
        }
        Ok(setting)
    }

    fn set(&mut self, key: &str, value: &str) -> anyhow::Result<()> {
        match (key, key.strip_prefix("env.")) {
            (_, Some("")) => return usage("env.=… names no variable: write env.NAME=VALUE"),
            (_, Some(name)) => self.env.push((name.to_owned(), value.to_owned())),
            ("preload", _) if !Path::new(value).is_file() => {
                return usage(format!("cannot preload {value}: there is no such file"));
            }
            ("preload", _) => self.env.push(("LD_PRELOAD".to_owned(), value.to_owned())),
            ("cpu", _) => {
                cpus::choose(Some(value))?;
                self.cpus = Some(value.to_owned());
            }
            ("thp", _) => {
                let known = [Thp::Always, Thp::Madvise, Thp::Never];
                match known.into_iter().find(|t| t.as_str() == value) {
                    Some(thp) => self.thp = Some(thp),
                    None => {
                        return usage(format!(
                            "thp={value} is not a valid value; it takes always, madvise or never"
                        ));
                    }
                }
            }
            ("server-prefix", _) => self.server_prefix = Some(value.to_owned()),
            ("dir", _) if !Path::new(value).is_dir() => {
                return usage(format!("{value} is not a directory"));
            }
            ("dir", _) => self.dir = Some(PathBuf::from(value)),
            // A value may hold commas of its own (`cflags=-Wl,-O1`): a side is one setting, never several.
            _ => self.params = std::mem::take(&mut self.params).with(key, Param::parse(value)),
        }
        Ok(())
    }

    /// The parameters as the plan takes them.
    pub fn plan_settings(&self) -> plan::Settings {
        self.params
            .iter()
            .map(|(key, value)| (key.to_owned(), vec![value.clone()]))
            .collect()
    }

    /// What of it a probe cannot feel, with the reason; nothing when all is well.
    pub fn lost_on_probes(&self) -> Option<&'static str> {
        if self.server_prefix.is_some() {
            return Some("server-prefix is for labs that start a server; a probe starts none");
        }
        let loader = |name: &str| matches!(name, "LD_PRELOAD" | "LD_LIBRARY_PATH" | "LD_AUDIT");
        let any = self.env.iter().any(|(name, _)| loader(name));
        any.then_some(
            "probes are linked statically and load no library, so preload is for the servers of labs (`ab database …`)",
        )
    }

    /// What a person calls it.
    pub fn title(&self) -> String {
        if self.words.is_empty() {
            return "as it is".to_owned();
        }
        secret::cut_words(self.words.iter().map(String::as_str)).join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> anyhow::Result<Setting> {
        Setting::parse(&words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn each_kind_of_setting_finds_its_place() {
        let s = parse(&[
            "fds=100",
            "env.MALLOC_ARENA_MAX=1",
            "thp=never",
            "server-prefix=taskset -c 0",
            "cflags=-O2,-g",
            "dir=/tmp",
        ])
        .unwrap();
        assert_eq!(
            s.params,
            Params::new().with("fds", 100).with("cflags", "-O2,-g")
        );
        assert_eq!(s.env, [("MALLOC_ARENA_MAX".to_owned(), "1".to_owned())]);
        assert_eq!(
            (s.thp, s.server_prefix.as_deref(), s.dir.is_some()),
            (Some(Thp::Never), Some("taskset -c 0"), true)
        );
        assert!(s.lost_on_probes().unwrap().contains("server"));
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        for (word, hint) in [
            ("fds", "KEY=VALUE"),
            ("=1", "KEY=VALUE"),
            ("thp=on", "always, madvise or never"),
            ("env.=1", "env.NAME=VALUE"),
            ("preload=/nonexistent.so", "no such file"),
            ("dir=/nonexistent", "not a directory"),
            ("cpu=x", "list of CPUs"),
        ] {
            let said = parse(&[word]).unwrap_err().to_string();
            assert!(said.contains(hint), "{word}: {said}");
        }
    }

    #[test]
    fn a_probe_is_never_said_to_have_felt_a_library() {
        assert!(
            parse(&["preload=/proc/self/exe"])
                .unwrap()
                .lost_on_probes()
                .unwrap()
                .contains("statically")
        );
        assert_eq!(parse(&["env.LANG=C"]).unwrap().lost_on_probes(), None);
    }
}
