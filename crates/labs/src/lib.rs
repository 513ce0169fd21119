//! Experiments made of several measurements, each with its own course and analysis.
//!
//! A lab drives workloads and observers and hands every result to a [`Sink`] as soon as it exists. It never prints. One file per
//! lab, each ending in its [`Lab`] descriptor; [`REGISTRY`] lists them all.

pub mod attribute;
pub mod database;
pub mod deciding;
mod desktop;
mod explained;
pub mod launch;
pub mod load;
pub mod prove;
pub mod rows;
pub mod service;
pub mod site;
mod stalls;
pub mod web;

use std::path::Path;
use std::time::Duration;

use fingerpost_record::unstated::UNKNOWN;
use fingerpost_record::{Budget, Experiment, Finding, Measurement, Observation, Params, Paths, Profile};
use fingerpost_sys::procfs;
pub use fingerpost_workloads::WorkloadError as LabError;

/// Takes results as soon as they exist, and tells whether to go on. What a sink has no use for it leaves out.
pub trait Sink {
    /// A row, new or measured further: a row with the same probe, version and parameters is replaced.
    fn measurement(&mut self, row: Measurement);
    /// What an observer saw.
    fn observation(&mut self, _observation: Observation) {}
    /// Where a transaction's time went.
    fn budget(&mut self, _budget: Budget) {}
    /// Requests of a step that were followed.
    fn paths(&mut self, _paths: Paths) {}
    /// A cause, named or cleared.
    fn finding(&mut self, _finding: Finding) {}
    /// An experiment that was made to decide between causes.
    fn experiment(&mut self, _experiment: Experiment) {}
    /// A sentence for the person who waits (standard error), such as a setting that had no effect.
    fn warn(&mut self, _sentence: &str) {}
    /// What is being done now, and the share done so far, 0 to 1.
    fn progress(&mut self, _doing: &str, _done: f64) {}
    /// Whether this run takes turns with another one: two servers, of which each round should be of another start, since what a start makes of a
    /// server is in all rounds of it.
    fn takes_turns(&self) -> bool {
        false
    }
    /// Returns when this run may load the machine, where it takes turns with another run. What is measured until [`Sink::turn_over`] has the
    /// machine to itself.
    fn wait_for_turn(&mut self) {}
    /// This run's turn is over: returns when the other has had its own.
    fn turn_over(&mut self) {}
    /// How long this run has waited for turns.
    fn waited(&self) -> Duration {
        Duration::ZERO
    }
    /// Whether the user asked to stop: finish the step, keep what there is, clean up, return.
    fn interrupted(&self) -> bool {
        false
    }
}

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
    pub scratch: &'a mut fingerpost_sys::scratch::Scratch,
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
pub struct Setting {
    /// The key. A key that ends in `.` is a prefix (`server.` takes `server.NAME`).
    pub key: &'static str,
    /// The default in words.
    pub default: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// Words that it takes, for a shell to propose; where there are none, and beside them, whatever else the lab reads (numbers, addresses).
    pub values: &'static [&'static str],
    /// Whether several of them may be given, with commas between.
    pub several: bool,
    /// Whether it names a file or a directory.
    pub path: bool,
}

impl Setting {
    /// A setting whose values cannot be listed.
    pub const fn new(key: &'static str, default: &'static str, help: &'static str) -> Setting {
        Setting { key, default, help, values: &[], several: false, path: false }
    }

    /// The same, with words of which it takes one.
    pub const fn one_of(self, values: &'static [&'static str]) -> Setting {
        Setting { values, ..self }
    }

    /// The same, with words of which it takes one or more.
    pub const fn several(self, values: &'static [&'static str]) -> Setting {
        Setting { values, several: true, ..self }
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
    /// The probes whose rows it makes (`database.throughput`).
    pub probes: &'static [&'static str],
    /// The settings it takes.
    pub settings: &'static [Setting],
    /// What is missing here for this lab with these settings, as a sentence that says what to do.
    pub missing: fn(&Params) -> Option<String>,
    /// Says which of its settings cannot be, as far as that is known before anything is started or kept.
    pub check: fn(&Params, Profile) -> Result<(), LabError>,
    /// Whether it asks for a turn before each stretch that it measures, so that two runs of it can take turns stretch by stretch.
    pub takes_turns: bool,
    /// How long it takes by these settings alone; nothing where that is the profile's or the budget's to say.
    pub takes: fn(&Params) -> Option<Duration>,
    /// Runs it.
    pub run: fn(&mut Context) -> Result<(), LabError>,
}

/// Every lab.
pub static REGISTRY: &[&Lab] = &[&database::LAB, &web::LAB, &site::LAB, &launch::LAB];

/// Measures something when it is this run's turn.
fn in_turn<T>(sink: &mut dyn Sink, measure: impl FnOnce(&mut dyn Sink) -> T) -> T {
    sink.wait_for_turn();
    let measured = measure(sink);
    sink.turn_over();
    measured
}

/// The kind of file system that a directory of the user's lies on, as rows state it.
fn file_system(dir: &Path) -> String {
    procfs::mounts::kind_of(&procfs::Paths::system(), dir).unwrap_or_else(|| UNKNOWN.to_owned())
}

/// What is said of a server that does not start again for a round.
fn not_started_again(server: &str, round: usize, error: &LabError) -> String {
    format!("the {server} could not be started for round {round}, and the rounds before it are all: {error}")
}

/// Whether a part that takes time is wanted: not in a quick run, unless it was asked for.
fn wanted(settings: &Params, key: &str, profile: Profile) -> Result<bool, LabError> {
    match settings.get(key).map(ToString::to_string).as_deref() {
        Some("on") => Ok(true),
        Some("off") => Ok(false),
        Some(other) => Err(LabError::Setting(format!("{key}={other}: it is on or off"))),
        None => Ok(profile != Profile::Quick),
    }
}

#[cfg(test)]
mod tests {
    use fingerpost_record::Param;

    use super::*;

    /// What must be set beside a setting for it to mean something.
    fn beside(key: &str, value: &str) -> Params {
        let (key, value) = match (key, value) {
            ("storage" | "query_cache", _) => ("engine", "mariadb"),
            ("mpm", _) => ("server", "apache"),
            ("backend", "embedded") => ("server", "nginx"),
            _ => return Params::new(),
        };
        Params::new().with(key, value)
    }

    /// What the lab says of a value.
    fn said(lab: &Lab, key: &str, value: &str) -> Option<String> {
        let settings = beside(key, value).with(key, Param::parse(value));
        (lab.check)(&settings, Profile::Standard).err().map(|e| e.to_string())
    }

    #[test]
    fn labs_take_the_values_that_shells_propose_and_name_them_where_another_is_given() {
        for lab in REGISTRY {
            for s in lab.settings.iter().filter(|s| !s.values.is_empty()) {
                // Two of these depend on the machine: who may limit memory, and who is root.
                for value in s.values.iter().filter(|v| !matches!((s.key, **v), ("pressure_by", "limit") | ("existing_swap", "off"))) {
                    assert_eq!(said(lab, s.key, value), None, "{} {}={value}", lab.name, s.key);
                }
                let Some(sentence) = said(lab, s.key, "no-such-thing") else { panic!("{} {} takes anything", lab.name, s.key) };
                let missing: Vec<&&str> = s.values.iter().filter(|v| !sentence.contains(**v)).collect();
                assert!(s.path || missing.is_empty(), "{} {}: {missing:?} not in “{sentence}”", lab.name, s.key);
                if s.several && s.values.len() > 1 {
                    let two = format!("{},{}", s.values[0], s.values[1]);
                    assert_eq!(said(lab, s.key, &two), None, "{} {}={two}", lab.name, s.key);
                }
            }
        }
    }

    #[test]
    fn what_takes_time_is_asked_for_or_left_to_longer_runs() {
        let of = |value: &str| wanted(&Params::new().with("import", value), "import", Profile::Quick);
        assert!(matches!((of("on"), of("off")), (Ok(true), Ok(false))));
        assert!(matches!(wanted(&Params::new(), "import", Profile::Quick), Ok(false)));
        assert!(matches!(wanted(&Params::new(), "import", Profile::Standard), Ok(true)));
        assert!(of("maybe").unwrap_err().to_string().contains("import=maybe"));
    }

    #[test]
    fn one_key_is_one_setting_of_a_lab() {
        for lab in REGISTRY {
            let keys: std::collections::BTreeSet<&str> = lab.settings.iter().map(|s| s.key).collect();
            assert_eq!(keys.len(), lab.settings.len(), "{}", lab.name);
        }
    }
}
