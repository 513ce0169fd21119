//! One step of a workload, measured without tracing, then once more with it, and taken apart.

use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use fingerpost_diagnose::{STEP, StepFigures};
use fingerpost_observe::Level;
use fingerpost_observe::follow::Known;
use fingerpost_observe::session::{Events, Prepared, Told, label};
use fingerpost_record::{Budget, Finding, Observation, Params, Readings, StepName};
use fingerpost_workloads::{Step, Subjects, Workload, WorkloadError};

use crate::Sink;

/// The nice value of observers (of their threads alone).
const PRIORITY: i32 = -15;
/// The share of a step after which observers take their last look: on a busy machine a look takes a while.
const WATCHED: f64 = 0.9;
/// The share of the length that was asked for that must have been seen.
const SEEN: f64 = 0.4;
/// How often a step is run that its observers miss.
const TRIES: u32 = 3;
/// How long observers may take to open what they need before the load begins without them.
const PATIENCE: Duration = Duration::from_secs(5);

/// What to attribute.
pub struct Request<'a> {
    /// The step's parameters.
    pub params: &'a Params,
    /// Length of each pass.
    pub length: Duration,
    /// Transactions that are under way at any time: the clients of a closed loop.
    pub clients: f64,
    /// Clients and transactions a second of the workload's steps, where a table was measured.
    pub sweep: &'a [(f64, f64)],
    /// Whether a query cache is on, for servers that have one.
    pub query_cache: Option<bool>,
    /// [`Level::Tracing`], or [`Level::Sampling`] to do without tracepoints.
    pub level: Level,
    /// The measured pass, where the caller has it already: transactions and seconds of the same step, untraced.
    pub measured: Option<(u64, f64)>,
    /// How long nearly all requests take, where a pass before told.
    pub latency: Option<Duration>,
    /// What keeps the kernel's events open from pass to pass, for a caller who makes many.
    pub events: Option<&'a KeptOpen>,
}

/// The kernel's events between two passes, if they could be opened.
#[derive(Default)]
pub struct KeptOpen(Mutex<Option<Events>>);

impl KeptOpen {
    fn take(&self) -> Option<Events> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put(&self, events: Option<Events>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = events;
    }
}

/// What came of it.
pub struct Attributed {
    /// The measured pass's figures, when it was made here.
    pub step: Option<Step>,
    /// Both passes' figures.
    pub figures: StepFigures,
    /// Where a transaction's time went.
    pub budget: Budget,
    /// Confirmed, likely and ruled out.
    pub findings: Vec<Finding>,
    /// What observers saw of the traced pass.
    pub observations: Vec<Observation>,
}

/// Runs a step untraced and traced, and hands observations and the budget to the sink. Findings are returned, not
/// handed over: only the caller knows which step speaks for the workload ([`hand_over_findings`]).
pub fn attribute(
    workload: &mut dyn Workload,
    request: &Request,
    sink: &mut dyn Sink,
) -> Result<Attributed, WorkloadError> {
    let step = match request.measured {
        Some(_) => None,
        None => Some(workload.step(request.params, request.length)?),
    };
    let measured = request.measured.or(step
        .as_ref()
        .map(|s| (s.transactions, s.elapsed.as_secs_f64())));
    attribute_traced(
        workload,
        &Request {
            measured,
            ..*request
        },
        sink,
    )
    .map(|a| Attributed { step, ..a })
}

/// Runs a step traced, and nothing else: for callers who compare passes that are all traced.
pub fn attribute_traced(
    workload: &mut dyn Workload,
    request: &Request,
    sink: &mut dyn Sink,
) -> Result<Attributed, WorkloadError> {
    let (
        traced,
        figures,
        Told {
            mut observations,
            recorded,
            ..
        },
    ) = seen(workload, request)?;
    // The load is over: what following costs slows nobody.
    let paths = recorded.map(|recorded| {
        let mut paths = recorded.follow();
        workload.name().clone_into(&mut paths.workload);
        paths.params = request.params.clone();
        paths
    });
    observations.push(Observation {
        observer: STEP.to_owned(),
        source: "the load generator".to_owned(),
        totals: figures.to_totals(),
        ..Observation::default()
    });
    label(&mut observations, workload.name(), request.params);
    let (mut budget, findings) =
        fingerpost_diagnose::explain(&figures, &Readings::of(&observations), paths.as_ref());
    workload.name().clone_into(&mut budget.workload);
    budget.params = request.params.clone();
    for o in &observations {
        sink.observation(o.clone());
    }
    if let Some(paths) = paths {
        sink.paths(paths);
    }
    sink.budget(budget.clone());
    Ok(Attributed {
        step: Some(traced),
        figures,
        budget,
        findings,
        observations,
    })
}

/// Runs a step with observers attached, again where they came too late: on a busy machine they wait for a CPU like
/// others.
fn seen(
    workload: &mut dyn Workload,
    request: &Request,
) -> Result<(Step, StepFigures, Told), WorkloadError> {
    let Subjects { servers, clients } = workload.subjects();
    let own = clients.iter().all(|c| servers.contains(c));
    for _ in 0..TRIES {
        let (traced, told) = observed(workload, request)?;
        if let Some(why) = told.refused {
            return Err(WorkloadError::Failed(why));
        }
        let figures = figures(request, request.measured, &traced, &told.observations, own);
        if !told.observations.is_empty()
            && figures.elapsed_s >= SEEN * request.length.min(traced.elapsed).as_secs_f64()
        {
            return Ok((traced, figures, told));
        }
    }
    let why = format!(
        "{TRIES} times the load was over before its observers, which wait for a CPU like others, saw it"
    );
    Err(WorkloadError::Failed(why))
}

/// Hands the findings of the step that speaks for the workload to the sink, each with that step, for a run may hold
/// several workloads.
pub fn hand_over_findings(attributed: &Attributed, sink: &mut dyn Sink) {
    let Budget {
        workload, params, ..
    } = &attributed.budget;
    for mut finding in attributed.findings.iter().cloned() {
        finding.step = Some(StepName {
            workload: workload.clone(),
            params: params.clone(),
        });
        sink.finding(finding);
    }
}

/// Runs a step with observers attached. They are attached a moment after the load begins and detached before it ends
/// (it lasts for its warm-up longer than they look), so that what they see is load and nothing else.
fn observed(workload: &mut dyn Workload, request: &Request) -> Result<(Step, Told), WorkloadError> {
    let Request {
        params,
        length,
        level,
        ..
    } = *request;
    let subjects = workload.subjects();
    // By Little's law: so many transactions under way, so many done a second.
    let mean = request
        .measured
        .filter(|m| m.0 > 0)
        .map(|(done, seconds)| Duration::from_secs_f64(request.clients * seconds / done as f64));
    let known = Known {
        stamps: workload.stamps(),
        latency: request.latency.or(mean),
        ..Known::default()
    };
    let settle = (length / 4).min(Duration::from_millis(300));
    thread::scope(|scope| {
        let (tell, told) = mpsc::channel::<()>();
        let (ready, prepared) = mpsc::channel::<()>();
        let open = request.events.and_then(KeptOpen::take);
        let watch = move || {
            observe(
                &subjects,
                known,
                (level, open),
                settle,
                length.mul_f64(WATCHED),
                &ready,
                &told,
            )
        };
        let observer = thread::Builder::new().spawn_scoped(scope, watch);
        // Rings of some megabytes are opened before there is a load, which would keep a busy machine from it until the
        // load is over.
        let _ = prepared.recv_timeout(PATIENCE);
        let step = workload.step_observed(params, length, &mut || _ = tell.send(()));
        drop(tell);
        let mut seen = observer.map_or_else(
            |e| Told::refused(&e),
            |thread| thread.join().unwrap_or_default(),
        );
        if let Some(kept) = request.events {
            kept.put(seen.events.take());
        }
        Ok((step?, seen))
    })
}

/// Says when it is ready, waits for the word that the load has begun, and observes it until `length` after that. The
/// channel closes when the step is over: one that failed is not waited for.
fn observe(
    subjects: &Subjects,
    known: Known,
    (level, open): (Level, Option<Events>),
    settle: Duration,
    length: Duration,
    ready: &mpsc::Sender<()>,
    told: &mpsc::Receiver<()>,
) -> Told {
    // Among many threads that all want a CPU an observer would come to its work when that is over. Where the user may
    // not have a higher priority, it goes without.
    let _ = rustix::process::setpriority_process(None, PRIORITY);
    let prepared = Prepared::new(level, open);
    let _ = ready.send(());
    let wait = |time| {
        matches!(
            told.recv_timeout(time),
            Err(mpsc::RecvTimeoutError::Timeout)
        )
    };
    if told.recv().is_err() {
        return Told::default();
    }
    let end = Instant::now() + length;
    if !wait(settle) {
        return Told::default();
    }
    let session = prepared.attach(subjects, known);
    wait(end.saturating_duration_since(Instant::now()));
    session.finish()
}

fn figures(
    request: &Request,
    measured: Option<(u64, f64)>,
    traced: &Step,
    observations: &[Observation],
    own: bool,
) -> StepFigures {
    // A program that is its own client tells its transactions themselves; of others the kernel sees each round trip.
    let turns = if own || traced.transactions == 0 {
        1.0
    } else {
        traced.turns.max(1) as f64 / traced.transactions as f64
    };
    let elapsed = traced.elapsed.as_secs_f64();
    let seen = Readings::of(observations)
        .known(fingerpost_record::reading::name::ELAPSED_SECONDS)
        .unwrap_or(elapsed);
    let scale = if elapsed > 0.0 { seen / elapsed } else { 0.0 };
    StepFigures {
        transactions: (traced.transactions as f64 * scale).round() as u64,
        elapsed_s: seen,
        clients: request.clients,
        measured,
        client_saturated: traced.client.saturated.clone(),
        client_cpus: traced.client.cpus,
        client_errors: traced.client.errors.values().sum(),
        stalled_s: traced.client.stalls.iter().map(|s| s.length_s).sum::<f64>() * scale,
        sweep: request.sweep.to_vec(),
        query_cache: request.query_cache,
        turns_per_transaction: turns,
    }
}
