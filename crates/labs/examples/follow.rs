//! Follows the requests of processes that are already under load, and prints what a record keeps of them, as JSON.
//!
//!     follow SERVER_PIDS CLIENT_PIDS SECONDS

use std::process::ExitCode;
use std::time::{Duration, Instant};

use fingerpost_observe::follow::source;
use fingerpost_observe::follow::{Follower, Requested, Side};

/// Events of a window, 48 bytes each.
const MOST_EVENTS: usize = 2 << 20;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [servers, clients, seconds] = &words[..] else {
        eprintln!("follow SERVER_PIDS CLIENT_PIDS SECONDS");
        return ExitCode::from(2);
    };
    match follow(servers, clients, seconds.parse().unwrap_or(1.0)) {
        Ok(json) => {
            println!("{json}");
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("{why}");
            ExitCode::from(3)
        }
    }
}

fn follow(servers: &str, clients: &str, seconds: f64) -> Result<serde_json::Value, String> {
    let mut source = source::open(MOST_EVENTS)?;
    let mut follower = Follower::default();
    for (pids, side) in [(servers, Side::Server), (clients, Side::Client)] {
        pids.split(',')
            .filter_map(|p| p.parse().ok())
            .for_each(|pid| follower.side(pid, side));
    }
    let end = Instant::now() + Duration::from_secs_f64(seconds.clamp(0.1, 600.0));
    let mut windows = Vec::new();
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        let pause = &mut |pause| {
            std::thread::sleep(pause);
            false
        };
        // What following costs slows nobody once the load is over.
        windows.push(
            source
                .window(left.min(Duration::from_secs(2)), pause)
                .map_err(|e| e.to_string())?,
        );
    }
    windows.iter_mut().for_each(|window| follower.learn(window));
    for window in &windows {
        follower.window(window, &Default::default(), &[], Requested::ByClients);
    }
    Ok(serde_json::json!(
        follower.finish(source.about().described.clone())
    ))
}
