//! Watches processes that are already under load and prints the budget: what `bench/follow cost` attaches and detaches.
//!
//!     watch SERVER_PIDS CLIENT_PIDS CONNECTIONS SECONDS [tracing|sampling|counting]

use std::time::Duration;

use fingerpost_diagnose::{StepFigures, explain};
use fingerpost_observe::{Level, Session};
use fingerpost_record::Readings;
use fingerpost_workloads::Subjects;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [servers, clients, connections, seconds, rest @ ..] = &words[..] else {
        eprintln!("watch SERVER_PIDS CLIENT_PIDS CONNECTIONS SECONDS [tracing|sampling|counting]");
        std::process::exit(2);
    };
    let pids = |list: &str| list.split(',').filter_map(|p| p.parse().ok()).collect();
    let level = match rest.first().map(String::as_str) {
        Some("sampling") => Level::Sampling,
        Some("counting") => Level::Counting,
        _ => Level::Tracing,
    };
    let session = Session::attach(
        &Subjects {
            servers: pids(servers),
            clients: pids(clients),
        },
        level,
    );
    std::thread::sleep(Duration::from_secs_f64(seconds.parse().unwrap_or(1.0)));
    let observations = session.finish().observations;
    let totals = Readings::of(&observations);
    let step = StepFigures {
        // As many as the server sent answers.
        transactions: ["writev", "sendto", "write", "sendmsg"]
            .iter()
            .filter_map(|c| totals.known_as(&format!("server.call.{c}.count")))
            .fold(1.0, f64::max) as u64,
        elapsed_s: totals
            .known(fingerpost_record::reading::name::ELAPSED_SECONDS)
            .unwrap_or(0.0),
        clients: connections.parse().unwrap_or(1.0),
        ..StepFigures::default()
    };
    let (budget, findings) = explain(&step, &totals, None);
    for o in &observations {
        println!(
            "# {:10} cost {:.4} s, lost {}, {}",
            o.observer, o.self_cost, o.lost, o.source
        );
    }
    for part in &budget.parts {
        println!(
            "{:6.2} %  {:12} {}",
            part.share * 100.0,
            part.layer.as_str(),
            part.component
        );
    }
    println!("{:6.2} %  unexplained", budget.unexplained * 100.0);
    for f in findings.iter().filter(|f| f.status.accuses()) {
        println!(
            "{:?} {} {:.1} %: {}",
            f.status,
            f.cause,
            f.share * 100.0,
            fingerpost_report::evidence::evidence(f).join("; ")
        );
    }
    if rest.iter().any(|w| w == "totals") {
        totals
            .between("", "")
            .for_each(|(k, v)| println!("{k} {v}"));
    }
}
