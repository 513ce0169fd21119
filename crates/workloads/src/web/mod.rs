//! A web server under load: ours, nginx, Apache, or one of the user's own, asked for one file over many connections.
//!
//! [`Web`] is the workload. [`generator`] makes the load, in processes of their own; [`static_server`] is the default
//! server, in another; [`settings`] reads what can be set.

pub mod apache;
pub mod connection;
pub mod content;
pub mod errors;
pub mod generator;
pub mod http;
pub mod kernel;
pub mod nginx;
pub mod plan;
pub mod pool;
pub mod private;
pub mod protocol;
pub mod request;
pub mod settings;
pub(crate) mod stall;
pub mod static_server;
pub mod tally;
pub mod verdict;

use std::collections::BTreeMap;
use std::time::Duration;

use fingerpost_record::Params;
use fingerpost_undo::scratch::Scratch;

use self::kernel::Scheduled;
use self::pool::Pool;
use self::private::Running;
use self::protocol::{Load, Report, STRETCH_NS};
use self::settings::{Server, Settings};
use self::verdict::Account;
use crate::histogram::Histogram;
use crate::{
    ClientReport, Stamps, Step, Subjects, Workload,
    WorkloadError::{self, Failed},
    behind, stalls,
};

/// Load before the window of a step, on connections that are open already: thousands of round trips.
pub const WARM_UP: Duration = Duration::from_millis(120);
/// The window of a trial, which finds out how many generators a step needs.
const TRIAL: Duration = Duration::from_millis(200);
/// The least by which another generator must raise the throughput to be kept.
const WORTH: f64 = 1.03;

/// The web workload.
pub struct Web<'a> {
    settings: Settings,
    scratch: &'a mut Scratch,
    prefix: Vec<String>,
    cpus: usize,
    running: Option<Running>,
    pool: Pool,
    /// How many generators a step turned out to need.
    generators: BTreeMap<Params, usize>,
}

/// What is missing here for these settings, as a sentence that says what to do.
pub fn missing(settings: &Settings) -> Option<String> {
    match &settings.server {
        Server::Embedded => None,
        Server::Nginx => nginx::missing(),
        Server::Apache(mpm) => apache::missing(*mpm),
        Server::Url(url) => private::ask_own(url).err(),
    }
}

impl<'a> Web<'a> {
    /// A workload that is not started yet. `prefix` are the words before a private server's command; `cpus` is how many
    /// CPUs the server and its clients may use together.
    pub fn new(
        settings: Settings,
        scratch: &'a mut Scratch,
        prefix: &[String],
        cpus: usize,
    ) -> Self {
        Web {
            settings,
            scratch,
            prefix: prefix.to_vec(),
            cpus: cpus.max(1),
            running: None,
            // Without stamps there is a check less, and the run goes on.
            pool: Pool::new(Stamps::new().ok()),
            generators: BTreeMap::new(),
        }
    }

    /// What the server calls itself, usually with its version. Empty before [`Workload::start`], and where it does not
    /// tell.
    pub fn described(&self) -> &str {
        self.running
            .as_ref()
            .map_or("", |running| &running.software)
    }

    fn running(&self) -> Result<&Running, WorkloadError> {
        self.running
            .as_ref()
            .ok_or_else(|| Failed("the web workload was not started".to_owned()))
    }

    /// The loads of so many generators that together make a step's load.
    fn loads(&self, params: &Params, generators: usize) -> Result<Vec<Load>, WorkloadError> {
        let running = self.running()?;
        let connections = params.int("connections").unwrap_or(1).max(1) as usize;
        let share = |whole: u64, i: usize| {
            (whole * (i as u64 + 1) / generators as u64) - (whole * i as u64 / generators as u64)
        };
        let load = |i: usize| Load {
            address: running.address,
            host: running.host.clone(),
            paths: vec![running.path.clone()],
            connections: share(connections as u64, i) as usize,
            keep_alive: params.text("keepalive") != Some("off"),
            rate: self.settings.rate.map(|rate| rate / generators as f64),
            phase: (i as f64 + 0.5) / generators as f64,
            requests: self.settings.requests.map(|n| share(n, i)),
            spread: self.settings.spread,
        };
        Ok((0..generators).map(load).collect())
    }

    /// Loads the server with so many generators, and watches how busy it is.
    fn window(
        &mut self,
        params: &Params,
        generators: usize,
        warm_up: Duration,
        length: Duration,
        begun: &mut dyn FnMut(),
    ) -> Result<Window, WorkloadError> {
        self.pool.grow(generators, self.scratch)?;
        let loads = self.loads(params, generators)?;
        let servers = self.subjects().servers;
        let before = kernel::scheduled_tree(&servers);
        let began = protocol::now_ns();
        let reports = self.pool.run(&loads, warm_up, length, begun)?;
        let whole = (protocol::now_ns() - began).max(1);
        let after = kernel::scheduled_tree(&servers).since(before);
        let elapsed_ns = reports.iter().map(|r| r.elapsed_ns).max().unwrap_or(0);
        // The server's time is known for the load as a whole, and is taken to be even over it.
        let part = |ns: u64| (ns as f64 * elapsed_ns as f64 / whole as f64) as u64;
        let server = Scheduled {
            run_ns: part(after.run_ns),
            wait_ns: part(after.wait_ns),
        };
        let account = Account {
            elapsed_ns,
            generators: reports
                .iter()
                .map(|r| Scheduled {
                    run_ns: r.cpu_ns,
                    wait_ns: r.wait_ns,
                })
                .collect(),
            server: (!servers.is_empty()).then_some(server),
            workers: self.running()?.workers.unwrap_or(1),
            cpus: self.cpus,
        };
        Ok(Window { reports, account })
    }

    /// How long a trial takes: in an open loop long enough that several requests are due.
    fn trial(&self) -> Duration {
        self.settings.rate.map_or(TRIAL, |rate| {
            TRIAL.max(Duration::from_secs_f64((5.0 / rate).min(5.0)))
        })
    }

    /// Finds out how many generators a step needs until the client is not the limit, or until another one no longer
    /// helps.
    fn generators_for(&mut self, params: &Params) -> Result<usize, WorkloadError> {
        if let Some(&known) = self.generators.get(params) {
            return Ok(known);
        }
        let connections = params.int("connections").unwrap_or(1).max(1) as usize;
        if let Some(asked) = self.settings.generators {
            return Ok(asked.min(connections));
        }
        let most = self.cpus.min(connections);
        let mut count = 1;
        let mut best = self
            .window(params, count, TRIAL / 2, self.trial(), &mut || {})?
            .answered(self.trial())?;
        while count < most && best.account.saturated().is_some() {
            let next = self.window(params, count + 1, TRIAL / 2, self.trial(), &mut || {})?;
            if next.rate() < best.rate() * WORTH {
                break;
            }
            count += 1;
            best = next;
        }
        self.generators.insert(params.clone(), count);
        Ok(count)
    }
}

/// What one window gave.
struct Window {
    reports: Vec<Report>,
    account: Account,
}

impl Window {
    fn completed(&self) -> u64 {
        self.reports.iter().map(|r| r.completed).sum()
    }

    fn rate(&self) -> f64 {
        self.completed() as f64 / (self.account.elapsed_ns.max(1) as f64 / 1e9)
    }

    /// This, unless nothing at all was answered.
    fn answered(self, length: Duration) -> Result<Window, WorkloadError> {
        if self.completed() > 0 {
            return Ok(self);
        }
        let client = self.client(None);
        let errors = client
            .errors
            .iter()
            .map(|(kind, n)| format!("{kind} ({n} times)"))
            .collect::<Vec<_>>()
            .join(", ");
        let why = match client.stalls.first() {
            Some(stall) => stall.why.to_string(),
            None if errors.is_empty() => "nothing came back".to_owned(),
            None => errors,
        };
        Err(Failed(format!(
            "no request was answered within {:.1} s: {why}",
            length.as_secs_f64()
        )))
    }

    /// All generators' reports as one step.
    fn step(&self, rate: Option<f64>) -> Step {
        let merged = |of: fn(&Report) -> &Vec<(u64, u64)>| {
            let mut all = Histogram::default();
            self.reports.iter().for_each(|r| all.add_counted(of(r)));
            all.counted()
        };
        let elapsed = Duration::from_nanos(self.account.elapsed_ns);
        let stretches = self
            .reports
            .iter()
            .map(|r| r.stretches.len())
            .max()
            .unwrap_or(0);
        let in_stretch = |i: usize| {
            self.reports
                .iter()
                .filter_map(|r| r.stretches.get(i))
                .sum::<u64>() as f64
        };
        Step {
            transactions: self.completed(),
            turns: self.completed(),
            elapsed,
            throughput: (0..stretches)
                .map(|i| in_stretch(i) * 1e9 / STRETCH_NS as f64)
                .collect(),
            latencies: merged(|r| &r.latencies),
            intended: merged(|r| &r.intended),
            client: self.client(rate),
        }
    }

    fn client(&self, rate: Option<f64>) -> ClientReport {
        let mut errors: BTreeMap<String, u64> = BTreeMap::new();
        for (kind, n) in self.reports.iter().flat_map(|r| &r.errors) {
            *errors.entry(kind.clone()).or_default() += n;
        }
        let stalls = stalls::common(self.reports.iter().map(|r| &r.stalls[..]));
        let missed = rate.and_then(|asked| {
            let due = self.reports.iter().map(|r| r.due).sum();
            verdict::missed_rate(
                asked,
                due,
                self.completed(),
                self.account.elapsed_ns as f64 / 1e9,
            )
        });
        let own = errors.iter().find(|(kind, _)| errors::is_clients_own(kind));
        let wanting = own.map(|(kind, n)| {
            let waiting = self.reports.iter().map(|r| r.time_wait).max().unwrap_or(0);
            format!(
                "the load generator lacked something of its own {n} times ({kind}; {waiting} sockets in TIME_WAIT, \
                {} local ports for one address); keepalive=on or source=spread avoids it",
                kernel::local_ports()
            )
        });
        ClientReport {
            cpu_seconds: self.reports.iter().map(|r| r.cpu_ns).sum::<u64>() as f64 / 1e9,
            cpus: self.account.cpus,
            generators: self.reports.len(),
            stalls,
            saturated: wanting.or_else(|| self.account.saturated()).or(missed),
            time_wait: self.reports.iter().map(|r| r.time_wait).max().unwrap_or(0),
            listen_overflows: self
                .reports
                .iter()
                .map(|r| r.listen_overflows)
                .max()
                .unwrap_or(0),
            errors,
        }
    }
}

impl Workload for Web<'_> {
    fn name(&self) -> &'static str {
        "web"
    }

    fn start(&mut self) -> Result<(), WorkloadError> {
        self.running = Some(private::start(
            &self.settings,
            self.scratch,
            &self.prefix,
            self.cpus,
        )?);
        self.pool.grow(1, self.scratch)
    }

    fn renew(&mut self) -> Result<bool, WorkloadError> {
        if matches!(self.settings.server, Server::Url(_)) {
            return Ok(false);
        }
        self.stop();
        self.running = Some(private::start(
            &self.settings,
            self.scratch,
            &self.prefix,
            self.cpus,
        )?);
        self.pool.grow(1, self.scratch).map(|()| true)
    }

    fn steps(&self) -> Vec<Params> {
        let private = !matches!(self.settings.server, Server::Url(_));
        let prefix = if private { self.prefix.as_slice() } else { &[] };
        self.settings
            .steps()
            .into_iter()
            .map(|params| behind(params, prefix))
            .collect()
    }

    fn subjects(&self) -> Subjects {
        let servers = self
            .running
            .iter()
            .filter_map(|r| r.server.as_ref())
            .map(|s| s.pid())
            .collect();
        Subjects {
            servers,
            clients: self.pool.pids(),
        }
    }

    fn stamps(&self) -> Option<Stamps> {
        self.pool.stamps.clone()
    }

    fn step_observed(
        &mut self,
        params: &Params,
        length: Duration,
        begun: &mut dyn FnMut(),
    ) -> Result<Step, WorkloadError> {
        let generators = self.generators_for(params)?;
        let window = self
            .window(params, generators, WARM_UP, length, begun)?
            .answered(length)?;
        Ok(window.step(self.settings.rate))
    }

    fn stop(&mut self) {
        self.pool.stop(self.scratch);
        for server in self
            .running
            .take()
            .into_iter()
            .flat_map(|r| [r.server, r.backend])
            .flatten()
        {
            // What cannot be ended here is ended with the scratch directory.
            let _ = self.scratch.stop(server);
        }
    }
}
