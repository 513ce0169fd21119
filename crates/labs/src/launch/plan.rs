//! From settings to what will be done.

use std::path::Path;
use std::time::Duration;

use fingerpost_record::{Param, Params};
use fingerpost_sys::cgroup::{Controller, Group, Hierarchies};
use fingerpost_sys::procfs::Paths;
use fingerpost_sys::{swap, system, zram};

use super::drive::Drives;
use super::manifest::{self, App};
use super::placement::{self, Placement};
use super::pressure::Means;
use crate::{Context, LabError};

/// More repetitions than these tell nothing new.
const MOST_ROUNDS: usize = 30;
/// Bytes a second of a throttled placement, unless others are asked for.
const THROTTLE: u64 = 4 << 20;
/// The word for all memory being left.
const NO_PRESSURE: &str = "none";

/// How the caches are when a sequence begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Dropped.
    Cold,
    /// As the sequence before left them.
    Warm,
    /// As the machine is now, right after a boot if the user says so: one sequence.
    AfterBoot,
    /// Nothing is launched: the page-ins since boot are read, after days of uptime.
    Uptime,
}

impl State {
    /// Its name, as `--set state=` takes it.
    pub fn name(self) -> &'static str {
        match self {
            State::Cold => "cold",
            State::Warm => "warm",
            State::AfterBoot => "after-boot",
            State::Uptime => "uptime",
        }
    }

    /// Whether the machine is taken as it is, and its page-ins since boot are read.
    pub fn as_is(self) -> bool {
        matches!(self, State::AfterBoot | State::Uptime)
    }
}

/// What a run of the lab does.
#[derive(Debug)]
pub struct Plan {
    pub apps: Vec<App>,
    /// What rows call the manifest that they are of, where it is the user's own.
    manifest: Option<String>,
    /// The placements, the default first.
    pub placements: Vec<Placement>,
    /// Whether the user named them.
    pub named: bool,
    /// The share of the need that is left, and by what means.
    pub pressure: Option<(f64, Means)>,
    /// Whether the applications get a control group.
    pub group: bool,
    /// The areas' size, where the user gave it.
    pub swap_bytes: Option<u64>,
    pub state: State,
    /// Whether the machine's own swap is switched off.
    pub existing_off: bool,
    /// Bytes a second of a throttled device.
    pub throttle: u64,
    /// How long the page-ins since boot are to be watched; nothing for one reading.
    pub watch: Option<Duration>,
    rounds: Option<usize>,
    refusal: Option<String>,
}

impl Plan {
    /// The plan for a context.
    ///
    /// # Errors
    /// A setting that cannot be, in a sentence.
    pub fn of(context: &mut Context) -> Result<Plan, LabError> {
        let refusal = refusal(context.allow_system_changes, system::is_root());
        let mut plan =
            Plan::from(context.settings, context.work_dir, refusal).map_err(LabError::Setting)?;
        plan.look_at_drives(context);
        if plan.refusal.is_some() && !plan.named && !plan.state.as_is() {
            let why = "only launch times as the machine is: placing swap, dropping caches and limiting memory need \
                root and --allow-system-changes";
            context.sink.warn(why);
        }
        Ok(plan)
    }

    /// Finds the places that were asked for by drive, and what swap the machine has where it is taken as it is.
    fn look_at_drives(&mut self, context: &mut Context) {
        let paths = Paths::system();
        let drives = Drives::read(&paths);
        for placement in &mut self.placements {
            if let Some(told) = placement.resolve(&drives) {
                context.sink.warn(&told);
            }
        }
        if self.state.as_is() {
            self.placements = vec![Placement::as_is(&drives.found(&paths))];
        }
    }

    /// Whether these settings can be, on a machine where all is allowed.
    ///
    /// # Errors
    /// A setting that cannot be, in a sentence.
    pub fn check(settings: &Params) -> Result<(), LabError> {
        Plan::from(settings, &std::env::temp_dir(), None)
            .map(drop)
            .map_err(LabError::Setting)
    }

    fn from(settings: &Params, dir: &Path, refusal: Option<String>) -> Result<Plan, String> {
        let allowed = refusal.is_none();
        let state = state(settings, allowed)?;
        let as_is = state.as_is();
        let named = settings.get("placements").is_some();
        let placements = match word(settings, "placements") {
            Some(list) => placement::parse(&list, dir)?,
            None if allowed && !as_is => placement::parse(default_placements(), dir)?,
            None => placement::parse("none", dir)?,
        };
        if as_is && placements.iter().any(|p| !p.is_none()) {
            return Err(format!(
                "`state={}` takes the machine as it is: leave `placements` out",
                state.name()
            ));
        }
        let existing_off = one_of(settings, "existing_swap", &["on", "off"])? == Some(1);
        if let (true, Some(sentence)) = (existing_off, &refusal) {
            return Err(format!("existing_swap=off: {sentence}"));
        }
        let watch = word(settings, "watch")
            .map(|text| length(&text))
            .transpose()?;
        if watch.is_some() && state != State::Uptime {
            return Err("watch is for the page-ins since boot: add --set state=uptime".into());
        }
        let means = means(settings)?;
        let share = share(settings)?.filter(|_| allowed && !as_is);
        let found = |program: &str| manifest::find_program(program).is_some();
        let (apps, manifest) = match settings.text("manifest") {
            Some(manifest::PUBLISHED) => (manifest::published(found), None),
            Some(path) => {
                manifest::read(Path::new(path)).map(|(apps, called)| (apps, Some(called)))?
            }
            None => (manifest::default(found), None),
        };
        Ok(Plan {
            apps,
            manifest,
            placements,
            named,
            group: allowed && !as_is && has_controller(),
            pressure: share.map(|share| (share, means)),
            swap_bytes: number(settings, "swap_size", 1 << 20, 1 << 46)?,
            state,
            existing_off,
            throttle: number(settings, "throttle", 4096, 1 << 40)?.unwrap_or(THROTTLE),
            watch,
            rounds: number(settings, "rounds", 1, MOST_ROUNDS as u64)?.map(|n| n as usize),
            refusal,
        })
    }

    /// What decides about the time of an application besides the placement, as all rows of the run state it: how the
    /// caches are and how much memory is left always, since that depends on what is allowed here; the rest where it is
    /// not the default.
    pub fn stated(&self) -> Params {
        let params = Params::new().with("state", self.state.name());
        let params = if self.existing_off {
            params.with("existing_swap", "off")
        } else {
            params
        };
        let params = self.manifest.iter().fold(params, |params, called| {
            params.with("manifest", called.as_str())
        });
        if self.state.as_is() {
            return params;
        }
        let params = match self.pressure {
            None => params.with("pressure", NO_PRESSURE),
            Some((share, means)) => params
                .with("pressure", Param::parse(&share.to_string()))
                .with("pressure_by", means.name()),
        };
        let params = self.swap_bytes.iter().fold(params, |params, bytes| {
            params.with("swap_size", *bytes as i64)
        });
        if self.throttle == THROTTLE {
            params
        } else {
            params.with("throttle", self.throttle as i64)
        }
    }

    /// Rounds at least and at most.
    pub fn rounds(&self) -> (usize, usize) {
        match (self.state, self.rounds) {
            (State::AfterBoot | State::Uptime, _) => (1, 1),
            (_, Some(rounds)) => (rounds, rounds),
            (_, None) => (2, MOST_ROUNDS),
        }
    }

    /// Why a placement may not be tried.
    pub fn forbidden(&self, placement: &Placement) -> Option<String> {
        self.refusal
            .clone()
            .filter(|_| !placement.is_none())
            .or_else(|| placement.refusal.clone())
    }
}

fn refusal(allowed: bool, root: bool) -> Option<String> {
    match (allowed, root) {
        (true, true) => None,
        (true, false) => Some("switching swap needs root: run it with sudo".into()),
        (false, true) => Some(
            "switching swap changes the system: add --allow-system-changes; everything is undone"
                .into(),
        ),
        (false, false) => Some("switching swap needs root and --allow-system-changes".into()),
    }
}

/// How long a reading of the page-ins since boot takes: what they are watched for. Whatever launches takes its budget.
pub fn takes(settings: &Params) -> Option<Duration> {
    let watch = word(settings, "watch").map_or(Ok(Duration::from_secs(1)), |text| length(&text));
    watch
        .ok()
        .filter(|_| settings.text("state") == Some("uptime"))
}

/// A length such as `4d`, `12h`, `30m` or `90s`.
fn length(text: &str) -> Result<Duration, String> {
    let unit = text.chars().last().and_then(|unit| {
        Some((
            unit,
            [('d', 86_400), ('h', 3600), ('m', 60), ('s', 1)]
                .iter()
                .find(|u| u.0 == unit)?
                .1,
        ))
    });
    let read = unit.and_then(|(unit, seconds)| {
        Some(text.strip_suffix(unit)?.parse::<u32>().ok()?.max(1) as u64 * seconds)
    });
    let wrong =
        || format!("watch={text}: it is a length of up to 100 days, such as 4d, 12h, 30m or 90s");
    read.filter(|seconds| *seconds <= 100 * 86_400)
        .map(Duration::from_secs)
        .ok_or_else(wrong)
}

/// The default, as the source had it, is a file on the disk that all else is on. Without any swap there is nothing to
/// compare.
fn default_placements() -> &'static str {
    match (swap::areas().is_empty(), zram::available()) {
        (true, true) => "file,loop,zram",
        (true, false) => "file,loop",
        (false, true) => "none,file,loop,zram",
        (false, false) => "none,file,loop",
    }
}

fn has_controller() -> bool {
    Group::plan(
        &Hierarchies::of_self(&Paths::system()),
        "fingerpost-launch",
        &[Controller::Memory],
    )
    .is_ok()
}

fn word(settings: &Params, key: &str) -> Option<String> {
    settings.get(key).map(Param::to_string)
}

fn one_of(settings: &Params, key: &str, words: &[&str]) -> Result<Option<usize>, String> {
    let Some(text) = word(settings, key) else {
        return Ok(None);
    };
    match words.iter().position(|word| *word == text) {
        Some(i) => Ok(Some(i)),
        None => Err(format!("`{key}` is {}, not `{text}`", words.join(" or "))),
    }
}

fn state(settings: &Params, allowed: bool) -> Result<State, String> {
    let states = [State::Cold, State::Warm, State::AfterBoot, State::Uptime];
    match one_of(settings, "state", &states.map(State::name))?.map(|i| states[i]) {
        Some(State::Cold) if !allowed => Err(
            "`state=cold` drops the machine's caches, which needs root and --allow-system-changes"
                .into(),
        ),
        Some(state) => Ok(state),
        None => Ok(if allowed { State::Cold } else { State::Warm }),
    }
}

fn means(settings: &Params) -> Result<Means, String> {
    match one_of(settings, "pressure_by", &["limit", "reserve"])? {
        Some(0) if !has_controller() => {
            Err("`pressure_by=limit` needs a control group with the memory controller, and there is none".into())
        }
        None if !has_controller() => Ok(Means::Reserve),
        None | Some(0) => Ok(Means::Limit),
        Some(_) => Ok(Means::Reserve),
    }
}

fn share(settings: &Params) -> Result<Option<f64>, String> {
    let Some(text) = word(settings, "pressure") else {
        return Ok(Some(0.6));
    };
    match text.parse::<f64>() {
        _ if text == NO_PRESSURE => Ok(None),
        Ok(share) if share.is_finite() && (0.05..=10.0).contains(&share) => Ok(Some(share)),
        _ => Err(format!(
            "`pressure` is a share of the applications' need, 0.05 to 10, or `none`, not `{text}`"
        )),
    }
}

fn number(settings: &Params, key: &str, least: u64, most: u64) -> Result<Option<u64>, String> {
    match settings.get(key) {
        None => Ok(None),
        Some(Param::Int(n)) if u64::try_from(*n).is_ok_and(|n| (least..=most).contains(&n)) => {
            Ok(Some(*n as u64))
        }
        Some(other) => Err(format!(
            "`{key}` is a whole number from {least} to {most}, not `{other}`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(settings: Params, refusal: Option<&str>) -> Result<Plan, String> {
        Plan::from(&settings, Path::new("/w"), refusal.map(str::to_owned))
    }

    #[test]
    fn a_watch_takes_what_it_is_asked_for_and_launching_its_budget() {
        let uptime = || Params::new().with("state", "uptime");
        assert_eq!(
            takes(&uptime().with("watch", "4d")),
            Some(Duration::from_secs(4 * 86_400))
        );
        assert_eq!(takes(&uptime()), Some(Duration::from_secs(1)));
        assert_eq!(takes(&Params::new()), None);
        assert_eq!(takes(&Params::new().with("state", "after-boot")), None);
    }

    #[test]
    fn without_leave_nothing_is_changed() {
        let plan = plan(Params::new(), Some("no")).unwrap();
        assert_eq!(plan.placements.len(), 1);
        assert!(plan.placements[0].is_none() && !plan.group && plan.pressure.is_none());
        assert_eq!((plan.state, plan.rounds()), (State::Warm, (2, MOST_ROUNDS)));
        assert_eq!(plan.forbidden(&plan.placements[0]), None);
    }

    #[test]
    fn a_named_placement_without_leave_is_forbidden_with_the_reason() {
        let plan = plan(Params::new().with("placements", "none,file"), Some("no")).unwrap();
        assert_eq!(plan.forbidden(&plan.placements[1]).as_deref(), Some("no"));
    }

    #[test]
    fn with_leave_caches_are_dropped_and_memory_is_short() {
        let settings = Params::new()
            .with("pressure", "0.5")
            .with("pressure_by", "reserve")
            .with("rounds", 3)
            .with("swap_size", 1 << 30);
        let plan = plan(settings, None).unwrap();
        assert_eq!(
            (plan.state, plan.pressure, plan.rounds()),
            (State::Cold, Some((0.5, Means::Reserve)), (3, 3))
        );
        assert_eq!(plan.swap_bytes, Some(1 << 30));
        assert!(plan.placements.len() >= 2);
    }

    #[test]
    fn rows_state_what_decides_about_them() {
        let stated = |settings: Params, refusal: Option<&str>| {
            plan(settings, refusal).unwrap().stated().to_string()
        };
        let set = |pairs: &[(&str, &str)]| {
            pairs.iter().fold(Params::new(), |all, (key, value)| {
                all.with(key, Param::parse(value))
            })
        };
        // What was asked for and could not be had is not what was measured.
        assert_eq!(
            stated(
                set(&[("pressure", "0.3"), ("swap_size", "64M")]),
                Some("no")
            ),
            "pressure=none state=warm swap_size=64M"
        );
        let by = |pairs: &[(&str, &str)]| {
            stated(
                set(&[&[("pressure_by", "reserve")][..], pairs].concat()),
                None,
            )
        };
        let usual = "pressure=0.6 pressure_by=reserve state=cold";
        assert_eq!(by(&[]), usual);
        assert_eq!(
            by(&[
                ("pressure", "0.60"),
                ("throttle", "4M"),
                ("existing_swap", "on")
            ]),
            usual,
            "the defaults, named"
        );
        let changed = [
            (
                "pressure",
                "0.3",
                "pressure=0.3 pressure_by=reserve state=cold",
            ),
            ("pressure", "1", "pressure=1 pressure_by=reserve state=cold"),
            ("pressure", "none", "pressure=none state=cold"),
            (
                "state",
                "warm",
                "pressure=0.6 pressure_by=reserve state=warm",
            ),
            (
                "swap_size",
                "512M",
                "pressure=0.6 pressure_by=reserve state=cold swap_size=512M",
            ),
            (
                "throttle",
                "1M",
                "pressure=0.6 pressure_by=reserve state=cold throttle=1M",
            ),
            (
                "existing_swap",
                "off",
                "existing_swap=off pressure=0.6 pressure_by=reserve state=cold",
            ),
        ];
        for (key, value, expected) in changed {
            assert_eq!(by(&[(key, value)]), expected);
        }
        // The machine is taken as it is: nothing is limited, and no place for swap is made.
        assert_eq!(
            stated(set(&[("state", "after-boot"), ("pressure", "0.3")]), None),
            "state=after-boot"
        );
    }

    #[test]
    fn after_a_boot_one_sequence_is_made_with_the_machine_as_it_is() {
        let settings = || Params::new().with("state", "after-boot");
        let after_boot = plan(settings(), None).unwrap();
        assert_eq!(
            (
                after_boot.rounds(),
                after_boot.placements.len(),
                after_boot.pressure,
                after_boot.group
            ),
            ((1, 1), 1, None, false)
        );
        assert!(
            plan(settings().with("placements", "file"), None)
                .unwrap_err()
                .contains("as it is")
        );
        assert!(
            plan(settings().with("placements", "dual"), None)
                .unwrap_err()
                .contains("as it is")
        );
    }

    #[test]
    fn a_drive_that_is_not_there_is_a_reason() {
        let mut plan = plan(Params::new().with("placements", "file,dual"), None).unwrap();
        plan.placements[1].refusal = Some("one drive".into());
        assert_eq!(
            (
                plan.forbidden(&plan.placements[0]),
                plan.forbidden(&plan.placements[1]).as_deref()
            ),
            (None, Some("one drive"))
        );
    }

    #[test]
    fn a_setting_that_cannot_be_is_named() {
        for (key, value) in [
            ("pressure", "much"),
            ("pressure", "0"),
            ("state", "hot"),
            ("existing_swap", "maybe"),
            ("swap_size", "big"),
            ("rounds", "none"),
            ("throttle", "1"),
            ("placements", "moon"),
        ] {
            let sentence = plan(Params::new().with(key, Param::parse(value)), None).unwrap_err();
            assert!(sentence.contains(value), "{key}: {sentence}");
        }
        assert!(
            plan(Params::new().with("state", "cold"), Some("no"))
                .unwrap_err()
                .contains("--allow-system-changes")
        );
        assert!(
            plan(Params::new().with("existing_swap", "off"), Some("no"))
                .unwrap_err()
                .contains("no")
        );
    }

    #[test]
    fn each_refusal_says_what_to_do() {
        assert_eq!(refusal(true, true), None);
        assert!(refusal(true, false).unwrap().contains("root"));
        assert!(
            refusal(false, true)
                .unwrap()
                .contains("--allow-system-changes")
        );
    }
}
