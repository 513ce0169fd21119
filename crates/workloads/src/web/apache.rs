//! Apache 2.4 as a private static server, with each of its three ways to work on many connections.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::plan::Plan;
use crate::WorkloadError::{self, Failed, Missing};
use crate::programs::find_program;
use crate::server_dir::ServerDir;

/// Apache's multi-processing modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mpm {
    /// A process per connection, as Apache 1.3 worked.
    Prefork,
    /// A thread per connection, in several processes.
    Worker,
    /// Threads that work on requests, while an event loop keeps idle connections.
    Event,
}

/// Where distributions put the modules.
const MODULE_DIRS: &str = "/usr/lib/apache2/modules /usr/lib64/apache2/modules /usr/lib64/httpd/modules \
    /usr/lib/httpd/modules \
                           /usr/lib/apache2 /usr/local/apache2/modules /usr/local/libexec/apache24";
/// Threads in a process of worker and event: Apache's default.
const THREADS: usize = 25;

impl Mpm {
    /// The name in settings and parameters.
    pub fn name(self) -> &'static str {
        ["prefork", "worker", "event"][self as usize]
    }

    /// Every one, the one that is taken where none is named first.
    pub const ALL: [Mpm; 3] = [Mpm::Event, Mpm::Prefork, Mpm::Worker];

    /// The least requests that it can work on at a time (MaxRequestWorkers): Apache's default with threads; with
    /// processes, which are expensive, a few.
    pub fn least_workers(self) -> usize {
        match self {
            Mpm::Prefork => 16,
            Mpm::Worker | Mpm::Event => 400,
        }
    }

    /// The processes and threads. All that may be needed are there from the start, so that none is created or ended
    /// while measuring.
    fn configuration(self, workers: usize) -> String {
        if self == Mpm::Prefork {
            return format!(
                "ServerLimit {workers}\nMaxRequestWorkers {workers}\nStartServers {workers}\nMinSpareServers 1\n\
                 MaxSpareServers {workers}\nMaxConnectionsPerChild 0\n"
            );
        }
        let processes = workers.div_ceil(THREADS);
        let all = processes * THREADS;
        format!(
            "ThreadsPerChild {THREADS}\nServerLimit {processes}\nMaxRequestWorkers {all}\nStartServers {processes}\n\
             MinSpareThreads {THREADS}\nMaxSpareThreads {all}\nMaxConnectionsPerChild 0\n"
        )
    }
}

/// What is missing for it, with what to do.
pub fn missing(mpm: Mpm) -> Option<String> {
    if find_program(&["apache2", "httpd"], &[]).is_none() {
        return Some(
            "Apache is not installed; install the package apache2 (or httpd), or use --set server=embedded".to_owned(),
        );
    }
    let module = format!("mod_mpm_{}.so", mpm.name());
    match modules() {
        None => Some(
            "Apache’s modules are in none of the usual directories; use --set url=http://127.0.0.1… for a server of \
             your own"
                .to_owned(),
        ),
        Some(dir) if !dir.join(&module).is_file() => {
            Some(format!("Apache has no {module} in {}; install it, or choose another --set mpm=", dir.display()))
        }
        Some(_) => None,
    }
}

fn modules() -> Option<PathBuf> {
    MODULE_DIRS
        .split(' ')
        .map(PathBuf::from)
        .find(|d| d.join("mod_authz_core.so").is_file())
}

/// Writes the configuration and makes the command that runs it in the foreground.
pub fn command(plan: &Plan, mpm: Mpm) -> Result<Command, WorkloadError> {
    if let Some(sentence) = missing(mpm) {
        return Err(Missing(sentence));
    }
    in_foreground(plan.dir, plan.run, |modules| {
        configuration(plan, mpm, modules)
    })
}

/// The same with a configuration of the caller's, who is told where the modules are.
pub(crate) fn in_foreground(
    dir: &ServerDir,
    run: &Path,
    text: impl FnOnce(&Path) -> String,
) -> Result<Command, WorkloadError> {
    let (Some(program), Some(modules)) = (find_program(&["apache2", "httpd"], &[]), modules())
    else {
        return Err(Missing(
            "Apache was removed just now; install it again".to_owned(),
        ));
    };
    let file = dir.write("server.conf", text(&modules).as_bytes());
    let file =
        file.map_err(|e| Failed(format!("Apache’s configuration could not be written: {e}")))?;
    let mut command = Command::new(program);
    command
        .arg("-d")
        .arg(run)
        .arg("-f")
        .arg(file)
        .args(["-D", "FOREGROUND"]);
    Ok(command)
}

fn configuration(plan: &Plan, mpm: Mpm, modules: &Path) -> String {
    let Plan {
        dir,
        run,
        root,
        port,
        workers,
        backlog,
        ..
    } = plan;
    let processes = format!("mpm_{}", mpm.name());
    let loads = [
        (processes.as_str(), true),
        ("authz_core", true),
        ("unixd", false),
    ]
    .map(|(name, required)| load(modules, name, required));
    let own = format!(
        "ListenBacklog {backlog}\nTimeout 300\nHostnameLookups Off\n{}",
        mpm.configuration(*workers)
    );
    framed(
        dir,
        (run, root),
        *port,
        &loads.concat(),
        "error",
        &own,
        "    AllowOverride None\n",
    )
}

/// The line that loads a module. What is not there is compiled in, which differs between distributions.
pub(crate) fn load(modules: &Path, name: &str, required: bool) -> String {
    let path = modules.join(format!("mod_{name}.so"));
    if required || path.is_file() {
        format!("LoadModule {name}_module \"{}\"\n", path.display())
    } else {
        String::new()
    }
}

/// A configuration of one server on 127.0.0.1: what it loads, what it logs, lines of its own, and lines about its
/// directory.
pub(crate) fn framed(
    dir: &ServerDir,
    (run, root): (&Path, &Path),
    port: u16,
    loads: &str,
    level: &str,
    own: &str,
    overrides: &str,
) -> String {
    let (run, root, log) = (run.display(), root.display(), dir.output_path());
    let log = log.display();
    format!(
        "{loads}ServerRoot \"{run}\"
DefaultRuntimeDir \"{run}\"
PidFile \"{run}/apache.pid\"
Mutex file:{run} default
ServerName localhost
Listen 127.0.0.1:{port}
ErrorLog \"{log}\"
LogLevel {level}
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 3600
{own}DocumentRoot \"{root}\"
<Directory \"{root}\">
{overrides}    Options None
    Require all granted
</Directory>
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_workers_as_connections_can_be_had_with_every_module() {
        let prefork = Mpm::Prefork.configuration(256);
        assert!(
            prefork.contains("MaxRequestWorkers 256\n") && prefork.contains("StartServers 256\n")
        );
        let event = Mpm::Event.configuration(401);
        assert!(event.contains("ServerLimit 17\n") && event.contains("MaxRequestWorkers 425\n"));
    }
}
