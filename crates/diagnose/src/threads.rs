//! What the threads of a server did, where its requests could not be followed.

use fingerpost_record::reading::name;
use fingerpost_record::{Layer, Readings};
use serde::Serialize;

/// What blocked time is called, and which layer it belongs to.
const BLOCKED: [(&str, Layer, &str); 8] = [
    ("lock", Layer::Application, "blocked: a lock or condition"),
    ("disk", Layer::Storage, "blocked: the disk"),
    ("commit", Layer::Storage, "blocked: another's disk write"),
    ("network", Layer::Network, "blocked: a socket"),
    ("timer", Layer::Application, "blocked: a timer"),
    ("memory", Layer::Memory, "blocked: memory"),
    ("pipe", Layer::Application, "blocked: a pipe"),
    ("other", Layer::Application, "blocked: not known by what"),
];

/// Time of a server's threads in one state. It is the threads' and no request's: a thread that waits for work waits all
/// day.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct State {
    /// The layer that the state belongs to.
    pub layer: Layer,
    /// The state in words.
    pub state: String,
    /// Seconds of all threads that took part.
    pub seconds: f64,
    /// Of the life of those threads, 0 to 1.
    pub share: f64,
}

/// The threads' time by state, the largest first; empty where nobody looked at them. What no reading tells of is no
/// state, and a thread that waits for its own child is left out: the child's time is there itself, and where it came
/// and went unseen, its CPU time is.
pub fn threads(t: &Readings) -> Vec<State> {
    let Some(wall) = t.known(name::SERVER_WALL_SECONDS).filter(|w| *w > 0.0) else {
        return Vec::new();
    };
    let (user, kernel) = on_cpu(t);
    let others = [
        (Layer::Application, "user code", user),
        (Layer::Kernel, "kernel", kernel),
        (
            Layer::Scheduler,
            "ready, waiting for a CPU",
            t.known(name::SERVER_RUNQUEUE_SECONDS),
        ),
        (
            Layer::Application,
            "waiting for the next request",
            t.known(name::SERVER_IDLE_SECONDS),
        ),
    ];
    let blocked = BLOCKED.map(|(what, layer, state)| {
        (
            layer,
            state,
            t.known_as(&format!("server.blocked.{what}.seconds")),
        )
    });
    let state = |(layer, state, seconds): (Layer, &str, Option<f64>)| {
        Some(State {
            layer,
            state: state.to_owned(),
            seconds: seconds.filter(|s| *s > 0.0)?,
            share: 0.0,
        })
    };
    let mut found: Vec<State> = others
        .into_iter()
        .chain(blocked)
        .filter_map(state)
        .collect();
    let life = (wall - t.known(name::SERVER_BLOCKED_CHILD_SECONDS).unwrap_or(0.0))
        .max(found.iter().map(|s| s.seconds).sum());
    found.iter_mut().for_each(|s| s.share = s.seconds / life);
    found.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    found
}

/// Seconds in user code and in the kernel. Children that ended before they were looked at count with the CPU time that
/// their parents waited for: ticks of all processes are then more than those of the threads that were seen.
fn on_cpu(t: &Readings) -> (Option<f64>, Option<f64>) {
    let sum = |kind: &str| {
        t.known_as(&format!("server.{kind}user.seconds"))
            .zip(t.known_as(&format!("server.{kind}kernel.seconds")))
    };
    let larger = |a: Option<(f64, f64)>, b: Option<(f64, f64)>| match (a, b) {
        (Some(a), Some(b)) => Some(if a.0 + a.1 > b.0 + b.1 { a } else { b }),
        (a, b) => a.or(b),
    };
    larger(sum(""), sum("thread_")).unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_the_threads_own_and_what_was_not_read_is_none() {
        let read = [
            ("server.wall.seconds", 10.0),
            ("server.thread_user.seconds", 2.0),
            ("server.thread_kernel.seconds", 1.0),
            ("server.blocked.lock.seconds", 6.0),
        ];
        let t = Readings::by("threads", "made up", read.map(|(k, v)| (k.to_owned(), v)));
        let found: Vec<(String, f64)> = threads(&t)
            .into_iter()
            .map(|s| (s.state, s.share))
            .collect();
        assert_eq!(
            found,
            [
                ("blocked: a lock or condition".to_owned(), 0.6),
                ("user code".to_owned(), 0.2),
                ("kernel".to_owned(), 0.1)
            ]
        );
        assert!(threads(&Readings::default()).is_empty());
        let shell = [
            ("server.wall.seconds", 10.0),
            ("server.blocked.child.seconds", 9.9),
            ("server.user.seconds", 8.0),
            ("server.kernel.seconds", 1.0),
        ];
        let found = threads(&Readings::by(
            "threads",
            "made up",
            shell.map(|(k, v)| (k.to_owned(), v)),
        ));
        assert!(
            (found[0].share - 8.0 / 9.0).abs() < 1e-9,
            "the time of children that came and went: {found:?}"
        );
    }
}
