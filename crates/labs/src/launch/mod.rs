//! Lab `launch`: applications launched in sequence, none quit, under several placements of swap.
//!
//! After Andy Moraitis, “OSX Version 10.1 Swapfile Benchmarks”: ten applications, three placements, each sequence twice
//! after a re-boot. Here a sequence ends with everything gone, caches dropped and swap emptied, and memory is made
//! short by a limit on the applications alone.

pub mod analysis;
mod area;
mod drive;
mod launcher;
mod manifest;
mod pageins;
mod paging;
mod placement;
mod plan;
pub(crate) mod pressure;
mod rows;
mod sequence;
mod shown;
mod window;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fingerpost_measure::course::{Extent, Interleaved};
use fingerpost_observe::{Level, Session};
use fingerpost_record::{Observation, Params, Profile};
use fingerpost_sys::cgroup::Throttle;
use fingerpost_workloads::Subjects;

use self::manifest::App;
use self::placement::Placement;
use self::plan::{Plan, State};
use self::pressure::{Means, reserve, share_of};
use self::rows::Sequences;
use self::sequence::{Obstacle, Push, Sequence, Step};
use crate::{Context, Lab, LabError, Setting};

/// The longest that a quick run with the default placements may become.
const QUICK: Duration = Duration::from_secs(30);
/// Swap areas smaller than this are no use.
const LEAST_SWAP: u64 = 64 << 20;

fn run(context: &mut Context) -> Result<(), LabError> {
    let plan = Plan::of(context)?;
    pageins::tell(&plan, context.sink);
    if plan.state == State::Uptime {
        if let Some(length) = plan.watch {
            pageins::watch(&plan, length, context.sink);
        }
        return Ok(());
    }
    let apps = prepare(context, &plan)?;
    let mut off = match plan.existing_off {
        true => area::switch_existing_off(context.scratch, pressure::available())
            .map_err(LabError::Failed)?,
        false => Vec::new(),
    };
    let result = Course::new(context, &plan, &apps).and_then(|mut course| course.run());
    let back = pressure::undo_all(&mut off, context.scratch);
    result?;
    back.map_err(LabError::Failed)
}

/// Prepares the applications, and tells which are launched and which cannot be.
fn prepare(context: &mut Context, plan: &Plan) -> Result<Vec<App>, LabError> {
    let sequences = sequences(plan, &[], &plan.placements);
    let (dir, data) = directories(context.scratch.path());
    let mut apps: Vec<App> = Vec::new();
    for app in &plan.apps {
        if context.sink.interrupted() {
            break;
        }
        context
            .sink
            .progress(&format!("preparing {}", app.name), 0.0);
        let prepared = match manifest::find_program(&app.command[0]) {
            None => Err(format!(
                "it is not installed: no program `{}` here",
                app.command[0]
            )),
            Some(_) => sequence::prepare(context.scratch, app, &dir, &data, apps.len()).map(drop),
        };
        match prepared {
            Ok(()) => apps.push(app.clone()),
            Err(sentence) => {
                let _ = std::fs::remove_dir_all(data.join(apps.len().to_string()));
                sequences.skip_app(&app.name, &sentence, context.sink);
            }
        }
    }
    let _ = std::fs::remove_dir_all(&dir);
    if apps.is_empty() {
        return Err(LabError::Missing(
            "none of the applications can be launched here; name some with --set manifest=FILE"
                .into(),
        ));
    }
    let names: Vec<&str> = apps.iter().map(|a| a.name.as_str()).collect();
    context.sink.warn(&format!(
        "launching {} in this order ({})",
        names.join(", "),
        launcher::RESOLUTION
    ));
    Ok(apps)
}

/// No sequences yet, of these.
fn sequences(plan: &Plan, apps: &[App], placements: &[Placement]) -> Sequences {
    let (apps, placements) = (
        apps.iter().map(|a| a.name.clone()).collect(),
        placements.iter().map(|p| p.name.clone()).collect(),
    );
    Sequences::new(apps, placements, plan.stated(), plan.state.as_is())
}

fn directories(scratch: &Path) -> (PathBuf, PathBuf) {
    (scratch.join("sequence"), scratch.join("applications"))
}

/// The sequences of a run.
struct Course<'c, 'r> {
    context: &'c mut Context<'r>,
    plan: &'c Plan,
    apps: &'c [App],
    data: PathBuf,
    placements: Vec<Placement>,
    push: Push,
    swap_bytes: u64,
    sequences: Sequences,
    begun: Instant,
}

impl<'c, 'r> Course<'c, 'r> {
    /// Measures what the applications need, where memory is to be short, and sizes limit and swap by it.
    fn new(
        context: &'c mut Context<'r>,
        plan: &'c Plan,
        apps: &'c [App],
    ) -> Result<Self, LabError> {
        let (_, data) = directories(context.scratch.path());
        let mut course = Course {
            data,
            placements: plan.placements.clone(),
            push: Push::None,
            swap_bytes: plan.swap_bytes.unwrap_or(LEAST_SWAP),
            sequences: sequences(plan, apps, &[]),
            begun: Instant::now(),
            context,
            plan,
            apps,
        };
        if let Some((share, means)) = plan.pressure {
            course.measure_need(share, means)?;
        }
        course.sequences = sequences(plan, apps, &course.placements);
        Ok(course)
    }

    fn measure_need(&mut self, share: f64, means: Means) -> Result<(), LabError> {
        let begun = Instant::now();
        let free = Placement::as_is("without limit");
        let before = pressure::available();
        let failed = |(Obstacle::Placement(sentence) | Obstacle::Failed(sentence))| {
            LabError::Failed(sentence)
        };
        let sequence = self.sequence(&free, Push::None, 0.0).map_err(failed)?;
        let used = sequence
            .totals
            .get("free_before.bytes")
            .zip(sequence.totals.get("free_after.bytes"))
            .map(|(b, a)| (b - a).max(0.0) as u64);
        let need = sequence.held.or(used).unwrap_or(0);
        let (push, how, left) = match means {
            Means::Limit => {
                let limit = share_of(need, share);
                (
                    Push::Limit(limit),
                    "a limit on their control group".to_owned(),
                    limit,
                )
            }
            Means::Reserve => {
                let reserve = reserve(need, share, before);
                (
                    Push::Reserve(need, share),
                    format!("a pinned reserve of {} MiB", reserve >> 20),
                    before - reserve,
                )
            }
        };
        self.push = push;
        self.swap_bytes = self
            .plan
            .swap_bytes
            .unwrap_or_else(|| need.max(LEAST_SWAP).next_multiple_of(1 << 20));
        let (mib, left) = (need >> 20, left >> 20);
        self.context.sink.warn(&format!(
            "the applications need {mib} MiB together; {how} leaves them {left} MiB"
        ));
        self.fit(begun.elapsed());
        Ok(())
    }

    /// Leaves out the last of the default placements where a quick run would not be quick.
    fn fit(&mut self, one: Duration) {
        if self.context.profile != Profile::Quick || self.plan.named {
            return;
        }
        let fits = (QUICK.saturating_sub(self.begun.elapsed()).as_secs_f64()
            / (2.0 * one.as_secs_f64())) as usize;
        let left: Vec<String> = self
            .placements
            .drain(fits.max(2).min(self.placements.len())..)
            .map(|p| p.name)
            .collect();
        if !left.is_empty() {
            self.context.sink.warn(&format!(
                "left out for want of time: {}; name them with --set placements=…",
                left.join(", ")
            ));
        }
    }

    /// Rounds over the placements in random order, so that drift hits all alike.
    fn run(&mut self) -> Result<(), LabError> {
        let (least, most) = self.plan.rounds();
        let begun = Instant::now();
        let extent = Extent {
            least,
            most,
            budget: self.context.budget.saturating_sub(self.begun.elapsed()),
        };
        let mut course = Interleaved::shuffled(self.placements.len(), self.context.seed, extent);
        while let Some(turn) = course.next_within(begun.elapsed(), self.context.sink.interrupted())
        {
            if !self.one(turn.step, turn.done / least as f64)? {
                course.leave_out(turn.step);
            }
        }
        (0..self.placements.len()).for_each(|i| self.sequences.tell_paging(i, self.context.sink));
        self.observe();
        Ok(())
    }

    /// One more sequence, whose times do not count, under observers: how soon real applications touch the memory that
    /// they ask for.
    fn observe(&mut self) {
        if self.context.sink.interrupted() || self.plan.state.as_is() {
            return;
        }
        // The applications are this process' children, and theirs.
        let subjects = Subjects {
            servers: vec![std::process::id() as i32],
            clients: Vec::new(),
        };
        let session = Session::attach(&subjects, Level::Tracing);
        let done = self.sequence(&Placement::as_is("observed"), Push::None, 0.99);
        let told = session.finish();
        let mappings = told
            .observations
            .into_iter()
            .find(|o| o.observer == "mappings");
        if let (Ok(_), Some(observation)) = (done, mappings) {
            self.context.sink.observation(Observation {
                workload: "launch".into(),
                ..observation
            });
        }
    }

    /// One sequence under one placement, after this share of the least rounds. False when there is no use in trying it
    /// again.
    fn one(&mut self, i: usize, by_rounds: f64) -> Result<bool, LabError> {
        let by_time =
            self.begun.elapsed().as_secs_f64() / self.context.budget.as_secs_f64().max(1e-3);
        let placement = self.placements[i].clone();
        if let Some(sentence) = self.plan.forbidden(&placement) {
            self.sequences.skip(i, &sentence, self.context.sink);
            return Ok(false);
        }
        match self.sequence(
            &placement,
            self.push,
            by_rounds.min(by_time.max(by_rounds / 2.0)).clamp(0.0, 0.99),
        ) {
            Ok(sequence) => {
                let whole = sequence.times.len() == self.apps.len();
                if whole || !self.context.sink.interrupted() {
                    self.sequences.enter(i, &sequence);
                }
                self.sequences.tell(i, self.context.sink);
                // What does not fit now does not fit the next time either.
                Ok(sequence.killed == 0)
            }
            Err(Obstacle::Placement(sentence)) => {
                self.sequences.skip(i, &sentence, self.context.sink);
                Ok(false)
            }
            Err(Obstacle::Failed(sentence)) => Err(LabError::Failed(sentence)),
        }
    }

    fn sequence(
        &mut self,
        placement: &Placement,
        push: Push,
        done: f64,
    ) -> Result<Sequence, Obstacle> {
        let limit = Some(self.plan.throttle);
        let step = Step {
            apps: self.apps,
            data: &self.data,
            placement,
            swap_bytes: self.swap_bytes,
            push,
            group: self.plan.group,
            cold: self.plan.state == State::Cold,
            slow: Throttle {
                read_bytes: limit,
                write_bytes: limit,
                ..Throttle::default()
            },
        };
        sequence::run(self.context.scratch, &step, self.context.sink, done)
    }
}

/// Nothing that could be missing is known before the applications are looked for.
fn missing(settings: &Params) -> Option<String> {
    let path = settings
        .text("manifest")
        .filter(|path| *path != manifest::PUBLISHED)?;
    manifest::read(Path::new(path)).err()
}

/// The descriptor.
pub static LAB: Lab = Lab {
    name: "launch",
    summary: "applications launched in sequence, none quit, under placements of swap",
    rows: &[
        (&rows::OF_TIME, "from the start of an application until it is ready, while those launched before it stay"),
        (&rows::OF_SUM, "the launch times of all applications of one sequence together"),
        (
            &pageins::OF_PAGEINS,
            "page-ins since the machine was booted: faults that waited for a page of a file or of swap",
        ),
    ],
    settings: &[
        Setting::new(
            "manifest",
            "ten of what is installed",
            "TOML file that names the applications, or `published`: one for each of the ten that the source launched, \
             which `replay ref:launch` knows",
        )
        .one_of(&[manifest::PUBLISHED])
        .path(),
        Setting::new(
            "placements",
            "none; as root with --allow-system-changes: file,loop,zram",
            "none, file[:DIR], loop[:PLACE], single[:PLACE] (another partition of the system's drive), dual[:PLACE] \
             (another drive), striped[:PLACE+PLACE], zram, zswap[:DIR], throttled[:DIR]; PLACE is a directory or \
             /dev/PARTITION; the first is the default that others are compared with",
        )
        .several(&["none", "file", "loop", "single", "dual", "striped", "zram", "zswap", "throttled"]),
        Setting::new(
            "pressure",
            "0.6",
            "memory that is left to the applications as a share of what they need, or `none`",
        ).real(0.05, 10.0)
        .one_of(&["none"]),
        Setting::new(
            "pressure_by",
            "limit, or reserve where no controller is",
            "limit (control group) or reserve (pinned memory)",
        )
        .one_of(&["limit", "reserve"]),
        Setting::new("swap_size", "what the applications need", "size of each placement's swap, such as 512M").whole(1 << 20, 64 << 30),
        Setting::new("rounds", "2, more as time allows", "sequences under each placement").whole(1, 100),
        Setting::new(
            "state",
            "cold where caches may be dropped, else warm",
            "cold, warm; after-boot: one sequence, now, and the page-ins since boot; uptime: the page-ins since boot \
             alone",
        )
        .one_of(&["cold", "warm", "after-boot", "uptime"]),
        Setting::new(
            "watch",
            "one reading",
            "with state=uptime: go on reading the page-ins for so long (4d, 12h, 30m); each day of uptime is a row, \
             and the course is kept",
        ),
        Setting::new("existing_swap", "on", "off: switch the machine's own swap off for the time of the run").by_the_user()
            .one_of(&["on", "off"]),
        Setting::new("throttle", "4M", "bytes a second of a throttled placement").whole(4096, 1 << 40),
    ],
    missing,
    check: |settings, _| Plan::check(settings),
    takes: plan::takes,
    analyses: &[&shown::ANALYSIS],
    run,
    ..Lab::USUAL
};
