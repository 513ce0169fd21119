//! What a lab is: what it is given, the settings it takes, and its descriptor.

use std::path::Path;
use std::time::Duration;

use fingerpost_probes::Probe;
use fingerpost_record::unstated::UNKNOWN;
use fingerpost_record::{Params, Profile};
use fingerpost_report::lab::{Analysis, LabView, ServerWords};
use fingerpost_sys::procfs;

use crate::LabError;
use crate::numbers::Numbers;
use crate::rows::Definition;
use crate::sink::Sink;

/// Everything that a lab may use.
pub struct Context<'a> {
    /// `--set` values that are this lab's, already checked against [`Lab::settings`]; unset ones are absent.
    pub settings: &'a Params,
    /// How much time may be spent.
    pub profile: Profile,
    /// Time for this lab.
    pub budget: Duration,
    /// Seed of every random choice.
    pub seed: u64,
    /// A private directory that is removed afterwards, also after a kill.
    pub scratch: &'a mut fingerpost_undo::scratch::Scratch,
    /// CPUs that may be used.
    pub cpus: &'a [usize],
    /// Words put before a private server's command (`taskset -c 0`).
    pub server_prefix: &'a [String],
    /// Whether the system may be changed (and restored).
    pub allow_system_changes: bool,
    /// The directory to work in when a probe asks for a file system.
    pub work_dir: &'a Path,
    /// Where results go.
    pub sink: &'a mut dyn Sink,
}

/// One `--set KEY=VALUE` that a lab understands.
#[derive(Clone, Copy)]
pub struct Setting {
    /// The key. A key that ends in `.` is a prefix (`server.` takes `server.NAME`).
    pub key: &'static str,
    /// The default in words.
    pub default: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// Words that it takes, for a shell to propose; where there are none, and beside them, whatever else the lab reads
    /// (numbers, addresses).
    pub values: &'static [&'static str],
    /// Whether several of them may be given, with commas between.
    pub several: bool,
    /// Whether it names a file or a directory.
    pub path: bool,
    /// Numbers that are taken of it where the user did not write it ([`crate::elsewhere`]), beside its words.
    pub numbers: Numbers,
    /// Whether nobody but the user may choose it, its words included.
    pub by_the_user: bool,
}

impl Setting {
    /// A setting whose values cannot be listed.
    pub const fn new(key: &'static str, default: &'static str, help: &'static str) -> Setting {
        Setting {
            key,
            default,
            help,
            values: &[],
            several: false,
            path: false,
            numbers: Numbers::None,
            by_the_user: false,
        }
    }

    /// The same, of which whole numbers from `low` to `high` are taken from a record too.
    pub const fn whole(self, low: i64, high: i64) -> Setting {
        let numbers = Numbers::Whole(low, high);
        Setting { numbers, ..self }
    }

    /// The same, with several numbers and commas between.
    pub const fn list(self, low: i64, high: i64) -> Setting {
        Setting {
            several: true,
            ..self.whole(low, high)
        }
    }

    /// The same, of which numbers from `low` to `high` are taken from a record too.
    pub const fn real(self, low: f64, high: f64) -> Setting {
        let numbers = Numbers::Real(low, high);
        Setting { numbers, ..self }
    }

    /// The same, of which nothing is taken from a record.
    pub const fn by_the_user(self) -> Setting {
        Setting {
            by_the_user: true,
            ..self
        }
    }

    /// The same, with words of which it takes one.
    pub const fn one_of(self, values: &'static [&'static str]) -> Setting {
        Setting { values, ..self }
    }

    /// The same, with words of which it takes one or more.
    pub const fn several(self, values: &'static [&'static str]) -> Setting {
        Setting {
            values,
            several: true,
            ..self
        }
    }

    /// The same, for the name of a file or directory.
    pub const fn path(self) -> Setting {
        Setting { path: true, ..self }
    }
}

/// A lab's descriptor.
pub struct Lab {
    /// The name on the command line.
    pub name: &'static str,
    /// One line for `list`.
    pub summary: &'static str,
    /// The rows that its course makes, and what the figure of each is; none of a lab that is made of probes alone,
    /// whose rows are measured in rounds as all probes are.
    pub rows: &'static [(&'static Definition, &'static str)],
    /// The settings that its course takes.
    pub settings: &'static [Setting],
    /// What is missing here for this lab with these settings, as a sentence that says what to do.
    pub missing: fn(&Params) -> Option<String>,
    /// Says which of its settings cannot be, as far as that is known before anything is started or kept.
    pub check: fn(&Params, Profile) -> Result<(), LabError>,
    /// Whether it asks for a turn before each stretch that it measures, so that two runs of it can take turns stretch
    /// by stretch.
    pub takes_turns: bool,
    /// How long it takes by these settings alone; nothing where that is the profile's or the budget's to say.
    pub takes: fn(&Params) -> Option<Duration>,
    /// What a report says of its server; nothing of a lab that loads none.
    pub server: Option<ServerWords>,
    /// What a report makes of its rows.
    pub analyses: &'static [&'static Analysis],
    /// Runs its course.
    pub run: fn(&mut Context) -> Result<(), LabError>,
}

impl Lab {
    /// What a lab has where its descriptor says nothing else: it is made of the probes that state its name.
    pub const USUAL: Lab = Lab {
        name: "",
        summary: "",
        rows: &[],
        settings: &[],
        missing: |_| None,
        check: |_, _| Ok(()),
        takes_turns: false,
        takes: |_| None,
        server: None,
        analyses: &[],
        run: |_| Ok(()),
    };

    /// Whether it has a course of its own.
    pub fn is_course(&self) -> bool {
        !self.rows.is_empty()
    }

    /// The probes that it is made of; none of a lab with a course.
    pub fn probes(&self) -> impl Iterator<Item = &'static Probe> {
        fingerpost_probes::of_lab(self.name)
    }

    /// What a report knows of it.
    pub(crate) fn view(&self) -> LabView {
        LabView {
            name: self.name,
            server: self.server,
            analyses: self.analyses,
        }
    }

    /// The settings that it takes; of one made of probes those that they take beside their parameters.
    pub fn all_settings(&self) -> impl Iterator<Item = Setting> {
        let of_probes = self.probes().flat_map(|probe| probe.settings);
        self.settings
            .iter()
            .copied()
            .chain(of_probes.map(|[key, default, help]| Setting::new(key, default, help)))
    }

    /// The names of its rows, and what the figure of each is.
    pub fn figures(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let of_probes = self.probes().map(|probe| (probe.name, probe.summary));
        self.rows
            .iter()
            .map(|(of, meaning)| (of.probe, *meaning))
            .chain(of_probes)
    }
}

/// The kind of file system that a directory of the user's lies on, as rows state it.
pub fn file_system(dir: &Path) -> String {
    procfs::mounts::kind_of(&procfs::Paths::system(), dir).unwrap_or_else(|| UNKNOWN.to_owned())
}

/// What a profile has, of what a quick, a standard and a thorough run have.
pub fn by_profile<T>(profile: Profile, [quick, standard, thorough]: [T; 3]) -> T {
    match profile {
        Profile::Screen | Profile::Quick => quick,
        // What is imported is not measured.
        Profile::Standard | Profile::Imported => standard,
        Profile::Thorough => thorough,
    }
}

/// Whether a part that takes time is wanted: not in a quick run, unless it was asked for.
pub fn wanted(settings: &Params, key: &str, profile: Profile) -> Result<bool, LabError> {
    match settings.get(key).map(ToString::to_string).as_deref() {
        Some("on") => Ok(true),
        Some("off") => Ok(false),
        Some(other) => Err(LabError::Setting(format!("{key}={other}: it is on or off"))),
        None => Ok(profile != Profile::Quick),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_time_is_asked_for_or_left_to_longer_runs() {
        let of = |value: &str| {
            wanted(
                &Params::new().with("import", value),
                "import",
                Profile::Quick,
            )
        };
        assert!(matches!((of("on"), of("off")), (Ok(true), Ok(false))));
        assert!(matches!(
            wanted(&Params::new(), "import", Profile::Quick),
            Ok(false)
        ));
        assert!(matches!(
            wanted(&Params::new(), "import", Profile::Standard),
            Ok(true)
        ));
        assert!(
            of("maybe")
                .unwrap_err()
                .to_string()
                .contains("import=maybe")
        );
    }
}
