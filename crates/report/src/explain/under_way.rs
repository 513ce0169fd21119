//! What requests without an answer wait for, in sentences: who has them, what that waits for, who could end it.

use std::collections::BTreeMap;

use fingerpost_record::Paths;
use fingerpost_record::service;
use fingerpost_record::text::counted;
use fingerpost_record::under_way::{
    Place, Process, Progress, Request, Session, SessionState, UnderWay, WaitKind,
};

use crate::words::time;

/// A request that is younger than this had no time to be in trouble, in seconds.
const OLD: f64 = 0.1;
/// Requests under way are told first where they are this many times what the followed ones come to (their rate times
/// their mean latency), and this many at least in the mean.
const MORE_THAN_FOLLOWED: f64 = 3.0;
const LEAST_UNDER_WAY: f64 = 0.3;
/// By fewer followed requests their rate is not known well enough to compute with.
const ENOUGH: u64 = 50;
/// Groups of requests, addresses and sessions that a sentence names.
const NAMED: usize = 3;
/// Beginnings of functions that any wait for a lock passes through, whatever the service, which say nothing of the
/// lock.
const OF_ANY_LOCK: [&str; 9] = [
    "_",
    "pthread",
    "futex",
    "syscall",
    "std::",
    "clone",
    "start_thread",
    "native_",
    "libc",
];

/// Whether any wait for a lock passes through this function.
fn says_nothing(function: &str) -> bool {
    OF_ANY_LOCK.iter().any(|begin| function.starts_with(begin)) || service::is_of_any_wait(function)
}

/// Whether requests under way are to be told before those that were followed.
pub fn leads(u: &UnderWay, followed: Option<&Paths>) -> bool {
    let longest = u.requests.first().map_or(0.0, |r| r.age_s);
    let Some(paths) = followed else {
        return longest >= OLD;
    };
    // Of all, or of those that were followed, whichever is less: where slow ones are missing among the followed, what is
    // under way says more than these.
    let mean = paths.mean().min(paths.latency.mean);
    let of_followed = paths.rate() * mean;
    let many = u.mean >= LEAST_UNDER_WAY.max(MORE_THAN_FOLLOWED * of_followed);
    many && longest >= OLD && longest > paths.latency.p99
}

/// What is under way, in sentences, the most important first.
pub fn sentences(u: &UnderWay) -> Vec<String> {
    let old: Vec<&Request> = u.requests.iter().filter(|r| r.age_s >= OLD).collect();
    let told = if old.is_empty() {
        u.requests.iter().collect()
    } else {
        old
    };
    if told.is_empty() {
        return Vec::new();
    }
    let mut found = vec![first(u, &told)];
    found.extend(of_workers(u, &told));
    found.extend(of_sessions(u, &told));
    found
}

fn first(u: &UnderWay, told: &[&Request]) -> String {
    let ages: Vec<f64> = told.iter().map(|r| r.age_s).collect();
    let (most, least) = (ages[0], ages[ages.len() - 1]);
    let for_how_long = if age(most) == age(least) {
        age(most)
    } else {
        format!("{} to {}", age(least), age(most))
    };
    let have = if told.len() == 1 { "has" } else { "have" };
    let mut groups: BTreeMap<String, usize> = BTreeMap::new();
    for request in told {
        *groups.entry(doing(request)).or_default() += 1;
    }
    let mut groups: Vec<(String, usize)> = groups.into_iter().collect();
    groups.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    let rest: usize = groups.iter().skip(NAMED).map(|g| g.1).sum();
    let all = groups.len() == 1;
    let mut parts: Vec<String> = groups
        .into_iter()
        .take(NAMED)
        .map(|(what, n)| if all { what } else { format!("{n} {what}") })
        .collect();
    if rest > 0 {
        parts.push(format!("{rest} something else"));
    }
    // Of what is not told in detail the age is not known.
    let of = if u.count as usize > told.len() {
        format!("{} of {}", told.len(), counted(u.count, "request"))
    } else {
        format!(
            "{0} of {0} {1}",
            told.len(),
            if told.len() == 1 {
                "request"
            } else {
                "requests"
            }
        )
    };
    format!(
        "{of} under way {have} had no answer for {for_how_long}: {}.",
        parts.join("; ")
    )
}

/// An age as it is told: it is known to the kernel's tick only.
fn age(seconds: f64) -> String {
    match seconds {
        10.0.. => format!("{seconds:.0} s"),
        1.0.. => format!("{seconds:.1} s"),
        _ => format!("{:.0} ms", seconds * 1e3),
    }
}

/// What a request waits for.
fn doing(request: &Request) -> String {
    let Some(place) = &request.place else {
        return match request.progress {
            Progress::NotAccepted => "waiting to be accepted".into(),
            Progress::Unread => "not read yet".into(),
            Progress::Read => "read, and which thread has it is not known".into(),
        };
    };
    let mut what = at(place);
    let mut peer = &place.peer;
    while let Some(next) = peer.as_ref().filter(|p| tells(p)) {
        what += &format!(", which is {}", at(next));
        peer = &next.peer;
    }
    if request.progress == Progress::Unread {
        format!("not read yet, as {} is {what}", who(&place.process))
    } else {
        what
    }
}

/// What a thread is at.
fn at(place: &Place) -> String {
    if let Some(session) = &place.session {
        let command = |what: &str| format!("{what} ({})", session.command);
        match session.state {
            SessionState::Waiting => return command("waiting for a lock of the database"),
            SessionState::WaitingForStandby => return command("waiting for a standby to confirm"),
            _ => {}
        }
    }
    let wait = &place.wait;
    let by = |whom: &Option<Process>, before: &str, otherwise: &str| {
        whom.as_ref()
            .map_or_else(|| otherwise.to_owned(), |w| format!("{before}{}", who(w)))
    };
    let within = place
        .functions
        .iter()
        .find(|f| !says_nothing(f) && !f.contains("+0x"))
        .map_or_else(String::new, |f| format!(", in {f}"));
    match wait.kind {
        WaitKind::Running => "running on a CPU".into(),
        WaitKind::Lock => format!("waiting for a lock or condition in memory{within}"),
        WaitKind::Semaphore => format!("waiting for a semaphore{within}"),
        WaitKind::FileLock => format!(
            "waiting for the lock on the file {}{}",
            wait.path,
            by(&wait.whom, ", held by ", ", whose holder is not known")
        ),
        WaitKind::Pipe => format!(
            "waiting for the other end of a pipe{}",
            by(&wait.whom, ", which is of ", "")
        ),
        WaitKind::Peer => format!(
            "waiting for {}{}",
            if wait.address.is_empty() {
                "another service"
            } else {
                &wait.address
            },
            by(&wait.whom, ", which is ", "")
        ),
        WaitKind::Client => format!(
            "waiting for bytes of the client {}, silent for {}",
            wait.address,
            age(wait.silent_s)
        ),
        WaitKind::Events => "waiting for events, and nothing tells for which".into(),
        WaitKind::Own => format!("waiting for another process or thread of the service{within}"),
        WaitKind::Sleep => "sleeping until a time".into(),
        WaitKind::Child => "waiting for a child process to end".into(),
        WaitKind::FileSystem => format!(
            "waiting for the file system{}{}",
            if wait.path.is_empty() {
                String::new()
            } else {
                format!(" at {}", wait.path)
            },
            by(&wait.whom, ", served by ", ", which a process serves")
        ),
        WaitKind::Kernel if !wait.function.is_empty() => {
            format!("waiting in the kernel ({})", wait.function)
        }
        WaitKind::Kernel => "waiting in the kernel".into(),
        WaitKind::Unknown => "waiting, and nothing tells for what".into(),
    }
}

/// Whether it says more of a service that another waits for than that it is at work.
fn tells(place: &Place) -> bool {
    let kind = place.wait.kind;
    !matches!(
        kind,
        WaitKind::Events | WaitKind::Unknown | WaitKind::Client
    )
}

/// Whether a request waits for something that its followed path does not name: a lock and who holds it, a file system
/// and who serves it.
fn names_more(place: &Place) -> bool {
    let waiting = |s: &Session| {
        matches!(
            s.state,
            SessionState::Waiting | SessionState::WaitingForStandby
        )
    };
    let kind = matches!(
        place.wait.kind,
        WaitKind::FileLock | WaitKind::FileSystem | WaitKind::Pipe
    );
    kind || place.session.as_ref().is_some_and(waiting)
        || place.peer.as_ref().is_some_and(|p| names_more(p))
}

/// What requests under way add to those that were followed, where that is worth telling: they are as many as the followed
/// ones come to, and what they wait for is known better.
pub fn beside(u: &UnderWay, followed: &Paths) -> Vec<String> {
    let of_followed = followed.rate() * followed.latency.mean;
    let all_held =
        !u.workers.is_empty() && u.workers.iter().all(|w| w.wait.kind == WaitKind::Client);
    let named = |r: &Request| r.place.as_ref().is_some_and(names_more);
    let telling = u.requests.iter().filter(|r| named(r)).count();
    // One that waits for a moment is no news.
    let telling = telling > 1 && telling * 2 >= u.requests.len();
    let many = u.mean >= LEAST_UNDER_WAY && u.mean >= 0.3 * of_followed;
    if u.requests.is_empty() || !many || !(telling || all_held) {
        return Vec::new();
    }
    sentences(u)
}

fn who(process: &Process) -> String {
    format!("{} (process {})", process.name, process.pid)
}

/// Why nobody takes the requests that none has read: what those do that could.
fn of_workers(u: &UnderWay, told: &[&Request]) -> Option<String> {
    let untaken = |r: &&&Request| r.place.is_none() && r.progress != Progress::Read;
    if u.workers.is_empty() || told.iter().filter(untaken).count() == 0 {
        return None;
    }
    let all = u.workers.len();
    let clients: Vec<&Place> = u
        .workers
        .iter()
        .filter(|w| w.wait.kind == WaitKind::Client)
        .collect();
    let (subject, is) = if all == 1 {
        (
            format!("The only worker, {},", who(&u.workers[0].process)),
            "is",
        )
    } else if clients.len() == all {
        (format!("All {all} workers"), "are")
    } else {
        (format!("Of {all} workers {}", clients.len()), "are")
    };
    if !clients.is_empty() {
        let silent = clients.iter().map(|c| c.wait.silent_s);
        let longest = silent.fold(0.0, f64::max);
        let mut addresses: Vec<&str> = clients.iter().map(|c| c.wait.address.as_str()).collect();
        addresses.dedup();
        let more = if addresses.len() > NAMED {
            " and others"
        } else {
            ""
        };
        let named = addresses[..addresses.len().min(NAMED)].join(", ");
        return Some(format!(
            "{subject} {is} held by clients that send nothing, for up to {}: {named}{more}.",
            age(longest)
        ));
    }
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    u.workers
        .iter()
        .for_each(|w| *kinds.entry(at(w)).or_default() += 1);
    let (what, n) = kinds.into_iter().max_by_key(|k| k.1)?;
    Some(if all == 1 {
        format!("{subject} is {what}.")
    } else {
        format!("Of {all} workers {n} are {what}.")
    })
}

/// Sessions that may hold the locks for which requests wait.
fn of_sessions(u: &UnderWay, told: &[&Request]) -> Option<String> {
    let waits = |r: &&&Request| {
        let session = r.place.as_ref().and_then(|p| p.session.as_ref());
        session.is_some_and(|s| s.state == SessionState::Waiting)
    };
    let sessions: Vec<String> = u
        .in_transaction
        .iter()
        .filter_map(|p| {
            let s = p.session.as_ref()?;
            let client = if s.client == "[local]" {
                "a client of this machine".to_owned()
            } else {
                format!("client {}", s.client)
            };
            Some(format!(
                "{} in {} ({client}, process {})",
                s.user, s.database, p.process.pid
            ))
        })
        .collect();
    if sessions.is_empty() || told.iter().filter(waits).count() == 0 {
        return None;
    }
    let named = sessions[..sessions.len().min(NAMED)].join(", ");
    let rest = sessions.len().saturating_sub(NAMED);
    let more = if rest > 0 {
        format!(" and {rest} more")
    } else {
        String::new()
    };
    Some(if sessions.len() == 1 {
        format!("The session of {named} is idle in transaction: it may hold the lock.")
    } else {
        format!("The sessions of {named}{more} are idle in transaction: one may hold the lock.")
    })
}

/// Connections of which nothing tells whether they wait for an answer.
pub fn quiet(u: &UnderWay) -> Option<String> {
    (u.quiet > 0 && u.quiet_s >= OLD).then(|| {
        format!(
            "{} sent last, up to {} before, and {} had no answer: nothing tells whether {} for one",
            counted(u.quiet, "connection"),
            age(u.quiet_s),
            if u.quiet == 1 { "has" } else { "have" },
            if u.quiet == 1 {
                "it waits"
            } else {
                "they wait"
            },
        )
    })
}

/// What requests under way add to latency: how many there were, what that comes to by their rate, and which percentiles
/// are longer than those of the followed requests.
pub fn latency(u: &UnderWay, paths: Option<&Paths>, watched_s: f64) -> Option<String> {
    let longest = u.requests.first()?.age_s;
    let mut text = format!(
        "{} under way {} watching began, the oldest for at least {}; {:.1} in the mean of {}",
        counted(u.count, "request"),
        format_args!("{} after", age(u.at_s)),
        age(longest),
        u.mean,
        counted(u.looks, "look"),
    );
    // Where all requests were counted, their figures are known, and stand beside this.
    let Some(paths) = paths.filter(|p| p.whole.is_none()) else {
        return Some(text);
    };
    let rate = paths.rate();
    if paths.followed < ENOUGH {
        return Some(text);
    }
    if rate > 0.0 && u.mean > MORE_THAN_FOLLOWED * rate * paths.latency.mean {
        text += &format!(
            "; by the rate a request takes {} in the mean, not {}",
            time(u.mean / rate),
            time(paths.latency.mean)
        );
    }
    let told = [
        ("the median", 0.5, paths.latency.p50),
        ("the 90th percentile", 0.1, paths.latency.p90),
        ("the 99th percentile", 0.01, paths.latency.p99),
    ];
    let longer: Vec<String> = told
        .into_iter()
        .filter_map(|(name, above, followed)| {
            let at_least = at_least(u, rate * watched_s, above)?;
            (at_least > followed).then(|| format!("{name} is at least {}", age(at_least)))
        })
        .collect();
    if !longer.is_empty() {
        text += &format!("; with them {}", longer.join(", "));
    }
    Some(text)
}

/// The age that more than this share of all requests have reached, those under way among them; nothing where they are
/// too few to say. What has no answer yet takes at least as long as it has waited.
fn at_least(u: &UnderWay, answered: f64, above: f64) -> Option<f64> {
    let all = answered + u.count as f64;
    let rank = (above * all).floor() as usize;
    u.requests.get(rank).map(|r| r.age_s)
}

#[cfg(test)]
mod tests {
    use fingerpost_record::paths::Latency;
    use fingerpost_record::under_way::Wait;

    use super::*;

    fn place(wait: Wait) -> Place {
        Place {
            process: Process {
                pid: 71,
                name: "postgres".into(),
            },
            wait,
            ..Place::default()
        }
    }

    fn request(age_s: f64, place: Option<Place>) -> Request {
        Request {
            age_s,
            place,
            ..Request::default()
        }
    }

    fn of(requests: Vec<Request>) -> UnderWay {
        UnderWay {
            count: requests.len() as u64,
            mean: requests.len() as f64,
            looks: 40,
            requests,
            ..UnderWay::default()
        }
    }

    fn session(state: SessionState) -> Option<Session> {
        Some(Session {
            user: "shop".into(),
            database: "db".into(),
            client: "10.0.0.7:51234".into(),
            command: "UPDATE".into(),
            state,
        })
    }

    #[test]
    fn an_outage_says_how_many_for_how_long_for_what_and_who_could_end_it() {
        let waiting = Place {
            session: session(SessionState::Waiting),
            ..place(Wait::default())
        };
        let mut u = of(vec![
            request(31.0, Some(waiting.clone())),
            request(24.0, Some(waiting)),
        ]);
        u.in_transaction = vec![Place {
            session: session(SessionState::IdleInTransaction),
            ..place(Wait::default())
        }];
        assert_eq!(
            sentences(&u),
            [
                "2 of 2 requests under way have had no answer for 24 s to 31 s: waiting for a lock of the database \
                 (UPDATE).",
                "The session of shop in db (client 10.0.0.7:51234, process 71) is idle in transaction: it may hold the \
                 lock."
            ]
        );
    }

    #[test]
    fn every_kind_of_wait_has_words() {
        let whom = Some(Process {
            pid: 9,
            name: "node".into(),
        });
        let with = |kind| Wait {
            kind,
            address: "127.0.0.1:9001".into(),
            path: "/srv/lock".into(),
            whom: whom.clone(),
            function: "jbd2_log_wait_commit".into(),
            timeout: false,
            silent_s: 2.0,
        };
        let said = |kind| at(&place(with(kind)));
        assert_eq!(
            said(WaitKind::Peer),
            "waiting for 127.0.0.1:9001, which is node (process 9)"
        );
        assert!(said(WaitKind::FileLock).ends_with("/srv/lock, held by node (process 9)"));
        assert!(said(WaitKind::FileSystem).contains("at /srv/lock, served by node"));
        assert!(said(WaitKind::Kernel).contains("(jbd2_log_wait_commit)"));
        assert!(said(WaitKind::Pipe).contains("which is of node"));
        assert!(said(WaitKind::Client).contains("127.0.0.1:9001, silent for 2.0 s"));
        let mut lock = place(with(WaitKind::Lock));
        lock.functions = [
            "___pthread_cond_timedwait",
            "libc.so.6+0x1",
            "MDL_wait::timed_wait",
        ]
        .map(str::to_owned)
        .into();
        assert!(
            at(&lock).ends_with("in MDL_wait::timed_wait"),
            "{}",
            at(&lock)
        );
        let others = [
            WaitKind::Running,
            WaitKind::Semaphore,
            WaitKind::Events,
            WaitKind::Own,
            WaitKind::Sleep,
            WaitKind::Child,
            WaitKind::Unknown,
        ];
        let mut all: Vec<String> = others.map(said).into();
        all.dedup();
        assert_eq!(all.len(), others.len());
    }

    #[test]
    fn requests_that_nobody_reads_are_told_with_what_holds_the_workers() {
        let mut u = of(vec![Request {
            progress: Progress::NotAccepted,
            ..request(0.9, None)
        }]);
        u.workers = vec![
            place(Wait {
                kind: WaitKind::Client,
                address: "10.0.0.9:4000".into(),
                silent_s: 0.8,
                ..Wait::default()
            });
            2
        ];
        let told = sentences(&u);
        assert!(
            told[0].ends_with("for 900 ms: waiting to be accepted."),
            "{told:?}"
        );
        assert_eq!(
            told[1],
            "All 2 workers are held by clients that send nothing, for up to 800 ms: 10.0.0.9:4000."
        );
    }

    #[test]
    fn they_come_first_where_windows_miss_most_of_the_time() {
        let paths = |mean: f64, whole_rate: f64| Paths {
            followed: 100,
            seconds: 1.0,
            whole_rate: Some(whole_rate),
            latency: Latency {
                count: 100,
                mean,
                p50: mean,
                p90: mean,
                p99: 2.0 * mean,
            },
            ..Paths::default()
        };
        let u = of(vec![request(0.9, None); 4]);
        assert!(
            leads(&u, Some(&paths(0.009, 4.0))),
            "4 under way, where 0.04 would be"
        );
        assert!(
            !leads(&u, Some(&paths(0.4, 10.0))),
            "as many as there must be"
        );
        assert!(leads(&u, None));
        assert!(
            !leads(&of(vec![request(0.01, None)]), None),
            "it has only just come"
        );
        assert!(!leads(&of(Vec::new()), None));
        let said = latency(&u, Some(&paths(0.009, 4.0)), 10.0).unwrap();
        assert!(
            said.contains("a request takes 1.000 s in the mean, not 9.000 ms"),
            "{said}"
        );
        assert!(
            said.contains("with them the 99th percentile is at least 900 ms"),
            "{said}"
        );
        assert!(!said.contains("the median"), "40 were answered: {said}");
    }
}
