//! What can be changed here for a server: its weight, its quota, its CPUs, its neighbours, its clients' CPUs, huge
//! pages.
//!
//! Each change is written to a journal with its undoing before it is made, and undone within its stretch, by the
//! guardian where the run cannot.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fingerpost_diagnose::deciding::Offer;
use fingerpost_record::Change;
use fingerpost_sys::autogroup::Autogroup;
use fingerpost_sys::cgroup::{Hierarchies, Setting, Weights, members, write_setting};
use fingerpost_sys::procfs::{Paths, parse_list};
use fingerpost_sys::threads::{Before, To, with_descendants};
use fingerpost_sys::{child, sample, system, trace};
use fingerpost_undo::journal::{Undo, boot_id};
use fingerpost_undo::scratch::{Scratch, Ticket};
use fingerpost_workloads::Subjects;

/// The nice value of what comes first.
const FIRST: i32 = -20;
/// Where huge pages are switched, for the whole system.
const HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

/// One thing that is changed together.
#[derive(Clone, Debug, PartialEq)]
pub enum Act {
    /// A setting of a control group.
    Group(Setting),
    /// Nice value or CPUs of all threads of these processes and their descendants.
    Threads(Vec<i32>, To),
    /// The nice value of the session of a process.
    Session(i32, i32),
    /// Processes of ours, with all that descend from them, that are stopped.
    Stop(Vec<i32>),
    /// A switch of the kernel.
    Switch {
        /// Its file.
        file: PathBuf,
        /// What it held.
        was: String,
        /// What it is to hold.
        to: String,
    },
}

/// A change that can be made, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Lever {
    /// What it is.
    pub offer: Offer,
    /// How it is made.
    pub acts: Vec<Act>,
}

/// Who is asked, and what may be changed.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// The processes.
    pub subjects: Subjects,
    /// Processes of ours beside the server that may be held.
    pub own_neighbours: Vec<i32>,
    /// Whether settings may be changed that others than ours live under: control groups with other processes in them,
    /// switches of the kernel.
    pub beyond_ours: bool,
}

/// The changes that can be made here.
pub fn levers(scope: &Scope) -> Vec<Lever> {
    let Some(server) = scope.subjects.servers.first() else {
        return Vec::new();
    };
    let of_server = Hierarchies::of_process(&Paths::system(), &server.to_string());
    let clients: Vec<i32> = scope
        .subjects
        .clients
        .iter()
        .copied()
        .filter(|c| !scope.subjects.servers.contains(c))
        .collect();
    let mut found: Vec<Lever> = Vec::new();
    found.extend(quota(&of_server));
    found.extend(cpus(
        Change::Cpus,
        "the server",
        &scope.subjects.servers,
        of_server.cpusets(),
    ));
    found.extend(priority(scope, &of_server));
    found.extend(weight(scope, &of_server));
    found.extend(hold(&scope.own_neighbours));
    found.extend(client(&clients, &of_server));
    found.extend(huge_pages());
    found
        .iter_mut()
        .for_each(|lever| lever.offer.hindrance = hindrance(lever, scope));
    found
}

fn lever(change: Change, what: String, acts: Vec<Act>) -> Option<Lever> {
    (!acts.is_empty()).then_some(Lever {
        offer: Offer {
            change,
            what,
            hindrance: None,
        },
        acts,
    })
}

fn quota(groups: &Hierarchies) -> Option<Lever> {
    let online = trace::online_cpus().map_or(f64::INFINITY, |cpus| cpus.len() as f64);
    // More than all CPUs stops nobody.
    let quotas: Vec<(Setting, f64)> = groups
        .quotas()
        .into_iter()
        .filter(|(_, cpus)| *cpus < online)
        .collect();
    let (tightest, cpus) = quotas.iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let what = format!(
        "the CPU quota of {} lifted ({cpus:.2} CPUs)",
        tightest.group.display()
    );
    lever(
        Change::Quota,
        what,
        quotas.into_iter().map(|(s, _)| Act::Group(s)).collect(),
    )
}

/// All CPUs, where those that all threads of the processes may use together are fewer.
fn cpus(change: Change, who: &str, pids: &[i32], sets: Vec<Setting>) -> Option<Lever> {
    let online = trace::online_cpus().ok()?;
    let allowed = allowed_together(pids);
    let missing = online.iter().any(|cpu| !allowed.contains(cpu));
    if allowed.is_empty() || !missing {
        return None;
    }
    let (before, after) = (
        list(&allowed.into_iter().collect::<Vec<_>>()),
        list(&online),
    );
    let mut acts: Vec<Act> = sets.into_iter().map(Act::Group).collect();
    acts.push(Act::Threads(pids.to_vec(), To::Cpus(online)));
    lever(
        change,
        format!("{who} allowed on the CPUs {after} instead of {before}"),
        acts,
    )
}

fn allowed_together(pids: &[i32]) -> BTreeSet<usize> {
    let all = with_descendants(pids);
    let dirs = all.iter().flat_map(|pid| {
        let dir = PathBuf::from(format!("/proc/{pid}/task"));
        sample::numbers(&dir)
            .into_iter()
            .map(move |tid| dir.join(tid.to_string()))
            .collect::<Vec<_>>()
    });
    // A main thread that only waits may be allowed anywhere; threads that used no CPU time say nothing.
    let worked = dirs.filter(|dir| sample::stat(dir).is_some_and(|s| s.user + s.system > 0));
    worked
        .filter_map(|dir| parse_list(&sample::status(&dir)?.cpus_allowed?))
        .flatten()
        .collect()
}

/// `0-1,4`.
fn list(cpus: &[usize]) -> String {
    let mut parts: Vec<(usize, usize)> = Vec::new();
    for &cpu in cpus {
        match parts.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => parts.push((cpu, cpu)),
        }
    }
    let part = |(a, b): &(usize, usize)| {
        if a == b {
            a.to_string()
        } else {
            format!("{a}-{b}")
        }
    };
    parts.iter().map(part).collect::<Vec<_>>().join(",")
}

/// The usual nice value and weight, where they were lowered.
fn priority(scope: &Scope, groups: &Hierarchies) -> Option<Lever> {
    let nice = |pid: &i32| {
        sample::process(*pid)
            .map(|s| s.nice)
            .filter(|nice| *nice > 0)
    };
    let nice = scope.subjects.servers.iter().filter_map(nice).max();
    let weights = groups.weights(Weights::Lowered);
    let told = [
        nice.map(|nice| format!("the nice value 0 instead of {nice}")),
        weights.first().map(|s| {
            format!(
                "the usual CPU weight of {} ({} instead of {})",
                s.group.display(),
                s.to,
                s.was
            )
        }),
    ];
    let what = told.into_iter().flatten().collect::<Vec<_>>().join(" and ");
    let mut acts: Vec<Act> = weights.into_iter().map(Act::Group).collect();
    acts.extend(nice.map(|_| Act::Threads(scope.subjects.servers.clone(), To::Nice(0))));
    lever(Change::Priority, what, acts)
}

/// The server, with its clients where they are ours, before all others: groups, sessions and threads are weighed one
/// within the other.
fn weight(scope: &Scope, groups: &Hierarchies) -> Option<Lever> {
    let Subjects { servers, clients } = &scope.subjects;
    let all: Vec<i32> = servers
        .iter()
        .chain(clients.iter().filter(|c| !servers.contains(c)))
        .copied()
        .collect();
    let mut acts: Vec<Act> = groups
        .weights(Weights::All)
        .into_iter()
        .map(Act::Group)
        .collect();
    acts.extend(
        all.iter()
            .filter(|pid| Autogroup::of(**pid).is_some())
            .map(|pid| Act::Session(*pid, FIRST)),
    );
    acts.push(Act::Threads(all.clone(), To::Nice(FIRST)));
    let who = if all.len() > servers.len() {
        "the server and its clients"
    } else {
        "the server"
    };
    lever(
        Change::Weight,
        format!("{who} before all other processes (highest CPU weight)"),
        acts,
    )
}

fn hold(own: &[i32]) -> Option<Lever> {
    let name = |pid: &i32| sample::process(*pid).map(|s| format!("{} ({pid})", s.name));
    let names: Vec<String> = own.iter().filter_map(name).collect();
    lever(
        Change::Hold,
        format!("{} held", names.join(", ")),
        if names.is_empty() {
            Vec::new()
        } else {
            vec![Act::Stop(own.to_vec())]
        },
    )
}

/// All CPUs and no quota for the load generator, where it has less.
fn client(clients: &[i32], of_server: &Hierarchies) -> Option<Lever> {
    let groups = Hierarchies::of_process(&Paths::system(), &clients.first()?.to_string());
    let shared: Vec<PathBuf> = of_server
        .quotas()
        .into_iter()
        .map(|(s, _)| s.file)
        .collect();
    let quotas: Vec<(Setting, f64)> = groups
        .quotas()
        .into_iter()
        .filter(|(s, _)| !shared.contains(&s.file))
        .collect();
    let wider = cpus(Change::Client, "the load generator", clients, Vec::new());
    let told = quotas.first().map(|(s, n)| {
        format!(
            "the CPU quota of the load generator's group {} lifted ({n:.2} CPUs)",
            s.group.display()
        )
    });
    let what: Vec<String> = wider
        .iter()
        .map(|l| l.offer.what.clone())
        .chain(told)
        .collect();
    let acts = quotas
        .into_iter()
        .map(|(s, _)| Act::Group(s))
        .chain(wider.into_iter().flat_map(|l| l.acts));
    lever(Change::Client, what.join(" and "), acts.collect())
}

fn huge_pages() -> Option<Lever> {
    let text = std::fs::read_to_string(HUGE_PAGES).ok()?;
    let was = chosen(&text)?;
    let acts = (was != "always").then(|| Act::Switch {
        file: HUGE_PAGES.into(),
        was: was.to_owned(),
        to: "always".into(),
    });
    lever(
        Change::HugePages,
        format!("huge pages for all new memory (always instead of {was})"),
        acts.into_iter().collect(),
    )
}

/// Whether this is chosen for huge pages.
pub(crate) fn huge_pages_are(word: &str) -> bool {
    std::fs::read_to_string(HUGE_PAGES).is_ok_and(|text| chosen(&text) == Some(word))
}

/// The word in brackets.
fn chosen(text: &str) -> Option<&str> {
    Some(text.split_once('[')?.1.split_once(']')?.0)
}

/// Why a change may not or cannot be made.
fn hindrance(lever: &Lever, scope: &Scope) -> Option<String> {
    let needs_root = |act: &Act| match act {
        Act::Group(_) | Act::Switch { .. } | Act::Session(..) => true,
        Act::Threads(_, to) => matches!(to, To::Nice(_)),
        Act::Stop(_) => false,
    };
    if lever.acts.iter().any(needs_root) && !system::is_root() {
        return Some("which needs root".to_owned());
    }
    if scope.beyond_ours {
        return None;
    }
    let ours = ours(&scope.subjects);
    let shared = |dir: &Path| {
        members::of_directory(dir)
            .iter()
            .any(|pid| !ours.contains(pid))
    };
    lever.acts.iter().find_map(|act| match act {
        Act::Group(s) => s.file.parent().filter(|dir| shared(dir)).map(|_| {
            format!(
                "because other processes than the server live in its control group {}; --allow-system-changes allows \
                 it",
                s.group.display()
            )
        }),
        Act::Switch { .. } => {
            Some("because it is a setting of the whole system; --allow-system-changes allows it".to_owned())
        }
        _ => None,
    })
}

/// The server's and clients' processes, this one, what descends from them, and the processes that they descend from.
fn ours(subjects: &Subjects) -> BTreeSet<i32> {
    let own = std::process::id() as i32;
    let roots: Vec<i32> = subjects
        .servers
        .iter()
        .chain(&subjects.clients)
        .copied()
        .chain([own])
        .collect();
    let mut all = with_descendants(&roots);
    let mut at = own;
    while let Some(parent) = sample::process(at)
        .map(|s| s.parent)
        .filter(|p| *p > 0 && all.insert(*p))
    {
        at = parent;
    }
    all
}

/// A change that is made now, and the entries of the journal that undo it.
#[derive(Default)]
pub struct Pulled {
    tickets: Vec<Ticket>,
    /// It was made before, and what it leaves behind is looked for when the scratch directory goes.
    again: bool,
}

impl Pulled {
    /// Makes a change, after it is written down how to undo it.
    ///
    /// # Errors
    /// A sentence; what was made of it until then is undone.
    pub fn pull(
        &mut self,
        lever: &Lever,
        scratch: &mut Scratch,
        limit: Duration,
    ) -> Result<(), String> {
        let steps = lever.acts.iter().map(step).collect::<Result<Vec<_>, _>>()?;
        let (undo, make): (Vec<Undo>, Vec<Make>) = steps.into_iter().unzip();
        let trouble = |e| format!("the journal cannot be written: {e}");
        if !std::mem::replace(&mut self.again, true) {
            mark_threads(&undo, scratch).map_err(trouble)?;
        }
        self.tickets = scratch.begin_brief(&undo, limit).map_err(trouble)?;
        let made = make.iter().try_for_each(|make| make());
        made.or_else(|error| self.release(scratch).and(Err(error)))
    }

    /// Undoes it.
    ///
    /// # Errors
    /// A sentence; what could not be undone stays in the journal.
    pub fn release(&mut self, scratch: &mut Scratch) -> Result<(), String> {
        if self.tickets.is_empty() {
            Ok(())
        } else {
            scratch.end_brief(std::mem::take(&mut self.tickets))
        }
    }
}

/// Has the journal look, when all is over, for processes that inherited what is about to be changed, and marks those
/// that they will come from.
fn mark_threads(undo: &[Undo], scratch: &mut Scratch) -> std::io::Result<()> {
    for undo in undo {
        if let Undo::Threads { before } = undo {
            let left = before.left();
            scratch.record(Undo::Inherited { left: left.clone() })?;
            left.mark();
        }
    }
    Ok(())
}

/// Makes an act.
type Make<'a> = Box<dyn Fn() -> Result<(), String> + 'a>;

/// How an act is undone and how it is made, with what is known at the moment of making it.
fn step(act: &Act) -> Result<(Undo, Make<'_>), String> {
    Ok(match act {
        Act::Group(s) => {
            let trouble = |e| format!("“{}” cannot be written to {}: {e}", s.to, s.file.display());
            let undo = Undo::GroupSetting {
                file: s.file.clone(),
                content: s.was.clone(),
            };
            (
                undo,
                Box::new(move || write_setting(&s.file, &s.to).map_err(trouble)),
            )
        }
        Act::Threads(pids, to) => {
            let before = Before::look(pids, to.clone()).map_err(|e| e.to_string())?;
            let undo = Undo::Threads {
                before: before.clone(),
            };
            (
                undo,
                Box::new(move || {
                    before
                        .change()
                        .map_err(|e| format!("the threads cannot be changed: {e}"))
                }),
            )
        }
        Act::Session(pid, nice) => {
            let before = Autogroup::of(*pid).ok_or("the server has ended")?;
            let undo = Undo::Autogroup {
                before: before.clone(),
            };
            (
                undo,
                Box::new(move || {
                    before
                        .set(*nice)
                        .map_err(|e| format!("the session's nice value cannot be set: {e}"))
                }),
            )
        }
        Act::Stop(pids) => {
            // One that is stopped by somebody else stays so.
            let runs = |pid| sample::process(pid).filter(|s| !matches!(s.state, 'T' | 't'));
            let known = |pid: i32| Some((pid, runs(pid)?.started));
            let processes: Vec<(i32, u64)> = with_descendants(pids)
                .into_iter()
                .filter_map(known)
                .collect();
            let undo = Undo::Continue {
                processes: processes.clone(),
                boot: boot_id(),
            };
            let hold = |pid: i32| {
                child::signal(pid, libc::SIGSTOP)
                    .map_err(|e| format!("process {pid} cannot be held: {e}"))
            };
            let same = |(pid, started): &&(i32, u64)| child::start_time(*pid) == Some(*started);
            (
                undo,
                Box::new(move || {
                    processes
                        .iter()
                        .filter(same)
                        .try_for_each(|(pid, _)| hold(*pid))
                }),
            )
        }
        Act::Switch { file, was, to } => {
            let undo = Undo::WriteFile {
                path: file.clone(),
                content: was.clone(),
            };
            (
                undo,
                Box::new(move || {
                    std::fs::write(file, to)
                        .map_err(|e| format!("{} cannot be set: {e}", file.display()))
                }),
            )
        }
    })
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn lists_of_cpus_and_switches_read_as_the_kernel_writes_them() {
        assert_eq!(list(&[0, 1, 2, 5, 7, 8]), "0-2,5,7-8");
        assert_eq!(parse_list(&list(&[0, 1, 2, 5])).unwrap(), [0, 1, 2, 5]);
        assert_eq!(
            (chosen("always [madvise] never\n"), chosen("always")),
            (Some("madvise"), None)
        );
    }

    #[test]
    fn a_server_with_one_cpu_can_have_all_and_gives_them_back() {
        let online = trace::online_cpus().unwrap();
        let mut command = Command::new("sh");
        // It has used CPU time when it says so.
        command.args([
            "-c",
            "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo; read x",
        ]);
        command
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped());
        let mut server = fingerpost_sys::task::on_cpus(&mut command, &online[..1])
            .spawn()
            .unwrap();
        let mut line = String::new();
        std::io::BufRead::read_line(
            &mut std::io::BufReader::new(server.stdout.as_mut().unwrap()),
            &mut line,
        )
        .unwrap();
        let pid = server.id() as i32;
        let scope = Scope {
            subjects: Subjects {
                servers: vec![pid],
                clients: vec![],
            },
            ..Scope::default()
        };
        let all = levers(&scope);
        let wider = all.iter().find(|l| l.offer.change == Change::Cpus);
        assert_eq!(wider.is_some(), online.len() > 1, "{all:?}");
        if let Some(lever) = wider {
            assert!(
                lever.offer.what.ends_with("instead of 0"),
                "{}",
                lever.offer.what
            );
            let dir = tempfile::tempdir().unwrap();
            let mut scratch = Scratch::create_in(dir.path()).unwrap();
            let mut pulled = Pulled::default();
            // Of what the lever does the threads alone: a set of CPUs needs root.
            let lever = Lever {
                acts: lever
                    .acts
                    .iter()
                    .filter(|a| matches!(a, Act::Threads(..)))
                    .cloned()
                    .collect(),
                ..lever.clone()
            };
            pulled
                .pull(&lever, &mut scratch, Duration::from_secs(1))
                .unwrap();
            assert_eq!(allowed_together(&[pid]).len(), online.len());
            pulled.release(&mut scratch).unwrap();
            assert_eq!(allowed_together(&[pid]).len(), 1);
        }
        drop(server.stdin.take());
        server.wait().unwrap();
    }

    #[test]
    fn own_neighbours_are_held_and_go_on() {
        let mut neighbour = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = neighbour.id() as i32;
        let state = || sample::process(pid).unwrap().state;
        let lever = hold(&[pid]).unwrap();
        assert_eq!(lever.offer.what, format!("sleep ({pid}) held"));
        let dir = tempfile::tempdir().unwrap();
        let mut scratch = Scratch::create_in(dir.path()).unwrap();
        let mut pulled = Pulled::default();
        pulled
            .pull(&lever, &mut scratch, Duration::from_secs(1))
            .unwrap();
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        while state() != 'T' && std::time::Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert_eq!(state(), 'T');
        pulled.release(&mut scratch).unwrap();
        while state() == 'T' && std::time::Instant::now() < deadline {
            std::thread::yield_now();
        }
        assert_ne!(state(), 'T');
        neighbour.kill().unwrap();
        neighbour.wait().unwrap();
        assert_eq!(hold(&[]), None);
    }

    #[test]
    fn what_others_live_under_is_left_alone_unless_that_is_allowed() {
        let switch = Lever {
            offer: Offer {
                change: Change::HugePages,
                what: String::new(),
                hindrance: None,
            },
            acts: vec![Act::Switch {
                file: HUGE_PAGES.into(),
                was: "never".into(),
                to: "always".into(),
            }],
        };
        let of = |beyond_ours| {
            hindrance(
                &switch,
                &Scope {
                    beyond_ours,
                    ..Scope::default()
                },
            )
        };
        if system::is_root() {
            assert!(of(false).unwrap().contains("--allow-system-changes"));
            assert_eq!(of(true), None);
        } else {
            assert_eq!(of(true).as_deref(), Some("which needs root"));
        }
    }
}
