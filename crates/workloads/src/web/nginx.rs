//! nginx as a private static server.

use std::path::Path;
use std::process::Command;

use super::plan::Plan;
use crate::WorkloadError::{self, Failed};
use crate::programs::find_program;
use crate::server_dir::ServerDir;

/// What is missing for it, with what to do.
pub fn missing() -> Option<String> {
    find_program(&["nginx"], &[]).is_none().then(|| {
        "nginx is not installed; install the package nginx, or use --set server=embedded".to_owned()
    })
}

/// Writes the configuration and makes the command that runs it in the foreground.
pub fn command(plan: &Plan) -> Result<Command, WorkloadError> {
    in_foreground(plan.dir, plan.run, &configuration(plan))
}

/// The same with a configuration of the caller's.
pub(crate) fn in_foreground(
    dir: &ServerDir,
    run: &Path,
    text: &str,
) -> Result<Command, WorkloadError> {
    let program = find_program(&["nginx"], &[])
        .ok_or_else(|| WorkloadError::Missing(missing().unwrap_or_default()))?;
    let file = dir.write("server.conf", text.as_bytes());
    let file =
        file.map_err(|e| Failed(format!("nginx’s configuration could not be written: {e}")))?;
    let mut command = Command::new(program);
    // The compiled-in log file would be opened before the configuration is read, and needs root.
    command
        .arg("-p")
        .arg(run)
        .arg("-c")
        .arg(file)
        .args(["-e", "stderr"]);
    Ok(command)
}

fn configuration(plan: &Plan) -> String {
    let Plan {
        run,
        root,
        port,
        workers,
        backlog,
        ..
    } = plan;
    let (upstream, location) = proxy(plan);
    let main = format!("worker_processes {workers};\n");
    let http = format!(
        "    sendfile on;\n    tcp_nopush on;\n    default_type application/octet-stream;\n{upstream}"
    );
    framed(
        (run, root),
        &main,
        ("warn", 8192),
        &http,
        &format!("{port} backlog={backlog}"),
        location,
    )
}

/// A configuration of one server on 127.0.0.1, with lines for each of its parts. Every path that nginx writes to is in
/// its own directory or a descriptor that it was given; connections live as long as the client wants.
pub(crate) fn framed(
    (run, root): (&Path, &Path),
    main: &str,
    (level, connections): (&str, usize),
    http: &str,
    listen: &str,
    server: &str,
) -> String {
    let (run, root) = (run.display(), root.display());
    format!(
        "daemon off;
{main}pid \"{run}/nginx.pid\";
lock_file \"{run}/nginx.lock\";
error_log stderr {level};
events {{ worker_connections {connections}; }}
http {{
    access_log off;
    client_body_temp_path \"{run}/body\";
    proxy_temp_path \"{run}/proxy\";
    fastcgi_temp_path \"{run}/fastcgi\";
    uwsgi_temp_path \"{run}/uwsgi\";
    scgi_temp_path \"{run}/scgi\";
    keepalive_timeout 3600s;
    keepalive_requests 1000000000;
{http}    server {{
        listen 127.0.0.1:{listen};
        server_name localhost;
        root \"{root}\";
{server}    }}
}}
"
    )
}

/// What makes a proxy of it: where it gets files, over connections that it keeps.
fn proxy(plan: &Plan) -> (String, &'static str) {
    let Some(backend) = plan.backend else {
        return Default::default();
    };
    let upstream = format!(
        "    upstream backend {{ server {backend}; keepalive 128; keepalive_requests 1000000000; }}\n"
    );
    (
        upstream,
        "        location / { proxy_pass http://backend; proxy_http_version 1.1; proxy_set_header Connection \"\"; }\n",
    )
}
