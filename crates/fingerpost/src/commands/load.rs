//! `fingerpost load`: the load generator on a machine of its own. What it saw, by its own clock, is a run that
//! `explain --client` joins with what was seen of the server there.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use fingerpost_labs::load::measure;
use fingerpost_labs::{LabError, Sink as _};
use fingerpost_record::archive::checked_label;
use fingerpost_record::{Outcome, Param, Params, Run, secret, service, suggest};
use fingerpost_report::Format;
use fingerpost_undo::scratch::Scratch;
use fingerpost_workloads::Workload;
use fingerpost_workloads::database::Database;
use fingerpost_workloads::database::options::{Engine, Options};
use fingerpost_workloads::web::Web;
use fingerpost_workloads::web::settings::{Reach, Settings};

use crate::exit::{Done, usage, words};
use crate::progress::{Progress, Progressing};
use crate::recorder::{Ended, Recorder};
use crate::{conduct, cpus, output, plan};

/// Arguments of `load`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
On the client machine:
  fingerpost load mysql://bench@db-1/fptest --clients 20 -o client.json
  fingerpost load http://10.0.0.7:8080/ --set keepalive=off -o client.json
  fingerpost load redis://10.0.0.7 -o client.json

At the same time on the server's machine, as root:
  fingerpost explain --port 3306 --seconds 20 -o server.json

Then both in one record, with what passed between the two machines told apart:
  fingerpost explain ./server.json --client client.json

A database that does not exist yet is made on the server and dropped at the end, also after kill -9; of Redis it is \
one key of its own. \
Of a web server one page is asked for. No password is taken from the command line, which every user of the machine can \
list.")]
pub struct Args {
    /// The server: mysql://USER@HOST:PORT/NAME, postgres://…, redis://… or http://HOST:PORT/PATH; HOST:PORT is enough
    /// for a usual port
    #[arg(value_name = "SERVER")]
    server: String,
    /// Clients at the same time, each with a connection of its own; each asks again when it has its answer
    #[arg(short, long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=1000))]
    clients: u16,
    /// How long to load it, warming up included
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 30.0,
        allow_negative_numbers = true
    )]
    seconds: f64,
    /// Set what the clients do: mix, scale and storage of a database; keepalive, rate and generators of a web server
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// A file whose first line is the password. Without it: MYSQL_PWD, PGPASSWORD or REDISCLI_AUTH, else ~/.my.cnf or
    /// ~/.pgpass
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Load a server at a public address, which is refused otherwise
    #[arg(long)]
    public: bool,
    /// Keep the run in this file instead of the archive
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// What to call the run in lists and titles
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// How to print the run
    #[arg(long, default_value = "table", value_parser = output::format_parser())]
    format: Format,
    /// No progress, no notes
    #[arg(short, long)]
    quiet: bool,
}

/// Settings of what the clients do.
const OF_DATABASES: [&str; 3] = ["mix", "scale", "storage"];
/// See [`OF_DATABASES`].
const OF_WEB: [&str; 3] = ["keepalive", "rate", "generators"];

/// What is to be loaded, checked before anything is started.
enum Target {
    /// A database, whose options have its address.
    Database(Box<Options>),
    /// A web server.
    Web(Box<Settings>),
}

/// Loads the server, prints what the clients saw, and keeps it.
pub fn run(args: Args) -> anyhow::Result<Done> {
    if !(args.seconds.is_finite() && args.seconds >= 2.0 && args.seconds < 1e6) {
        return usage(format!(
            "--seconds {}: a load lasts 2 to 999999 seconds",
            args.seconds
        ));
    }
    let target = target(&args)?;
    let label = args
        .label
        .as_deref()
        .map(checked_label)
        .transpose()
        .or_else(usage)?
        .filter(|label| !label.is_empty());
    conduct::clean_up(args.quiet);
    let stop = conduct::stopped_by_signals()?;
    let loaded = load(&args, target, label, &stop)?;
    super::show::print(&loaded.run, args.format, false)?;
    let joining = |path: &PathBuf| {
        format!(
            "; on the server's machine: fingerpost explain RUN --client {}",
            path.display()
        )
    };
    let next = args.output.as_ref().map_or_else(String::new, joining);
    let kept = loaded.tell(Progressing::unless(args.quiet), "the run", &next);
    let failed = loaded
        .run
        .measurements
        .iter()
        .any(|m| m.outcome == Outcome::Failed);
    Ok(if failed || stop.load(Ordering::Relaxed) || !kept {
        Done::MeasurementFailed
    } else {
        Done::Well
    })
}

fn load(
    args: &Args,
    target: Target,
    label: Option<String>,
    stop: &AtomicBool,
) -> anyhow::Result<Ended> {
    let beginning = Instant::now();
    let cpus = cpus::choose(None)?;
    let mut scratch =
        Scratch::create_guarded().context("cannot make a private directory for the run")?;
    let command = secret::cut_words(super::run::command(words()).iter().map(String::as_str));
    let run = Run {
        label,
        ..conduct::begun(
            command,
            fingerpost_host::describe_for(scratch.path(), &cpus),
        )
    };
    let (writer, trouble) = conduct::open_writer(args.output.as_deref(), &run)?;
    let whole = Duration::from_secs_f64(args.seconds);
    let progress = Progress::start("loading the server", whole, Progressing::unless(args.quiet));
    trouble.iter().for_each(|sentence| progress.say(sentence));
    let mut recorder = Recorder::new(run, writer, progress, stop, None);
    let result = match target {
        Target::Database(options) => database(*options, whole, &mut scratch, &mut recorder),
        Target::Web(settings) => loaded(
            &mut Web::new(*settings, &mut scratch, &[], cpus.len()),
            Web::described,
            whole,
            &mut recorder,
        ),
    };
    if let Err(error) = result {
        // Nothing was measured: a run without figures would only stand in the way as the latest.
        recorder.writer.withdraw();
        return match error {
            LabError::Setting(sentence) => usage(sentence),
            LabError::Missing(sentence) | LabError::Failed(sentence) => {
                Err(anyhow::anyhow!(sentence))
            }
        };
    }
    Ok(recorder.finish(beginning))
}

fn database(
    options: Options,
    whole: Duration,
    scratch: &mut Scratch,
    recorder: &mut Recorder,
) -> Result<(), LabError> {
    recorder.progress("making a database on the server and filling it", 0.0);
    let mut workload = Database::new(options, scratch);
    let result = loaded(&mut workload, Database::described, whole, recorder);
    workload
        .take_warnings()
        .iter()
        .for_each(|sentence| recorder.warn(sentence));
    result
}

fn loaded<W: Workload>(
    workload: &mut W,
    described: fn(&W) -> &str,
    whole: Duration,
    recorder: &mut Recorder,
) -> Result<(), LabError> {
    let result = workload.start().and_then(|()| {
        let (step, described) = (workload.steps().remove(0), described(workload).to_owned());
        measure(workload, &step, whole, &described, recorder)
    });
    workload.stop();
    result
}

/// Reads the address and the settings; says which of them cannot be.
fn target(args: &Args) -> anyhow::Result<Target> {
    let url = address(&args.server)?;
    let scheme = url.split("://").next().unwrap_or_default().to_owned();
    let web = matches!(scheme.as_str(), "http" | "https");
    let mut params = Params::new().with("url", Param::Text(url)).with(
        if web { "connections" } else { "clients" },
        i64::from(args.clients),
    );
    let known = if web { OF_WEB } else { OF_DATABASES };
    for (key, values) in plan::parse_settings(&plan::all_settings(&args.set))? {
        if !known.contains(&key.as_str()) {
            let known = known.join(", ");
            return usage(format!(
                "--set {key}: of this server the clients take {known}{}",
                suggest::of_listed(&key, &known)
            ));
        }
        params = params.with(&key, plan::joined(&values));
    }
    if web {
        if args.password_file.is_some() {
            return usage(
                "--password-file is for databases; a web server is asked without a password",
            );
        }
        let reach = if args.public {
            Reach::Anywhere
        } else {
            Reach::Private
        };
        // One step: both ways of keeping a connection would be two.
        return match Settings::within(reach, &params) {
            Ok(settings) if settings.keep_alive.len() == 1 => Ok(Target::Web(Box::new(settings))),
            Ok(_) => usage("--set keepalive=both: one load is one way; say on or off"),
            Err(error) => usage(error.to_string()),
        };
    }
    if let Some(file) = &args.password_file {
        params = params.with("password_file", Param::Text(file.display().to_string()));
    }
    let options = Options::from_settings(&params, fastrand::u64(..1 << 53))
        .or_else(|error| usage(error.to_string()))?;
    match &options.engine {
        Engine::Own { login, .. } if login.password.is_some() => usage(
            "a password stands in the address, where every user of this machine can read it; leave it out, and name \
             its file with --password-file",
        ),
        _ => Ok(Target::Database(Box::new(options))),
    }
}

/// The address with its scheme.
fn address(server: &str) -> anyhow::Result<String> {
    if server.contains("://") {
        return Ok(server.to_owned());
    }
    let host = server.split(['/', '?']).next().unwrap_or_default();
    let port = host
        .rsplit_once(':')
        .and_then(|(_, port)| port.parse().ok());
    match port.and_then(service::scheme_at) {
        Some(scheme) => Ok(format!("{scheme}://{server}")),
        None => {
            let addresses: Vec<String> = service::schemes()
                .iter()
                .map(|scheme| format!("{scheme}://{host}"))
                .collect();
            usage(format!(
                "{}: what listens there is not known by its port; write {}",
                secret::cut(server),
                addresses.join(" or ")
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Words {
        #[command(flatten)]
        args: Args,
    }

    fn parsed(words: &[&str]) -> anyhow::Result<Target> {
        target(
            &Words::try_parse_from([&["load"], words].concat())
                .unwrap()
                .args,
        )
    }

    #[test]
    fn a_usual_port_tells_what_listens() {
        let of = |server: &str| address(server).unwrap();
        assert_eq!(of("db-1:3306/shop"), "mysql://db-1:3306/shop");
        assert_eq!(of("[fd00::1]:6379"), "redis://[fd00::1]:6379");
        assert_eq!(
            of("10.0.0.1:8080/a?b=c:80"),
            "http://10.0.0.1:8080/a?b=c:80"
        );
        assert_eq!(of("postgres://h"), "postgres://h");
        assert!(
            address("db-1:4711")
                .unwrap_err()
                .to_string()
                .contains("write mysql://db-1:4711")
        );
    }

    #[test]
    fn what_cannot_be_is_refused_in_a_sentence_without_a_password() {
        let refused = |words: &[&str]| parsed(words).err().unwrap().to_string();
        let password = refused(&["mysql://bob:hunter2@db-1/shop"]);
        assert!(
            password.contains("--password-file") && !password.contains("hunter2"),
            "{password}"
        );
        assert!(refused(&["http://8.8.8.8/"]).contains("--public"));
        assert!(
            refused(&["http://10.0.0.1/", "--password-file", "x"]).contains("without a password")
        );
        assert!(
            refused(&["http://10.0.0.1/", "--set", "mix=read"])
                .contains("keepalive, rate, generators")
        );
        assert!(
            refused(&["http://10.0.0.1/", "--set", "keepalvie=on"])
                .ends_with("did you mean “keepalive”?")
        );
        assert!(refused(&["http://10.0.0.1/", "--set", "keepalive=both"]).contains("on or off"));
        assert!(refused(&["redis://10.0.0.1", "--set", "mix=read"]).contains("look-ups by key"));
        assert!(refused(&["https://10.0.0.1/"]).contains("only http"));
        assert!(refused(&["oracle://10.0.0.1/"]).contains("none of mysql, postgres and redis"));
    }

    #[test]
    fn each_kind_of_server_has_one_step_of_so_many_clients() {
        let Ok(Target::Database(options)) = parsed(&[
            "postgres://bench@db-1/shop",
            "-c",
            "7",
            "--set",
            "mix=point",
        ]) else {
            panic!()
        };
        assert_eq!(
            (
                options.clients.as_slice(),
                options.params().to_string().as_str()
            ),
            (&[7][..], "engine=postgresql mix=point")
        );
        let Ok(Target::Web(settings)) =
            parsed(&["http://10.0.0.1:81/x", "-c", "7", "--set", "keepalive=off"])
        else {
            panic!()
        };
        assert_eq!(settings.steps().len(), 1);
        assert_eq!(
            settings.steps()[0].to_string(),
            "connections=7 keepalive=off server=http://10.0.0.1:81/x"
        );
    }
}
