//! Children that measure: so many at a time, each with a deadline, their answers as they come.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use fingerpost_fleet::wire::{self, Answer, Collector, LONGEST_LINE};
use fingerpost_record::text::clean_short;
use fingerpost_sys::child;

/// One child, and the nodes that it answers for.
pub struct Task {
    /// The program and its words.
    pub words: Vec<String>,
    /// The nodes.
    pub nodes: Vec<String>,
    /// Whether this program's file goes to its standard input, which stays open until it ends.
    pub send_program: bool,
    /// Whether each line of its output begins with its node's number among `nodes`, as `srun --label` writes it.
    /// Without, all of the output is the one node's.
    pub labelled: bool,
}

impl Task {
    /// Whose a line is by what started the child, not by what the line says; and the line. A line of many nodes without
    /// a label is nobody's.
    fn sender<'a>(&self, line: &'a str) -> Option<(&str, &'a str)> {
        match (self.labelled, self.nodes.as_slice()) {
            (true, nodes) => {
                let (number, line) = wire::labelled(line)?;
                Some((nodes.get(number)?, line))
            }
            (false, [node]) => Some((node, line)),
            (false, _) => None,
        }
    }
}

/// What happens.
pub enum Event {
    /// A node has begun to measure. Before, its job may wait in a queue, or the program is on its way there.
    Began(String),
    /// A node's answer. One that gave none is failed, with the reason.
    Answered(String, Answer),
    /// Something was not believed: a sentence.
    Refused(String),
}

/// What is said of a child that ended before all of its nodes had answered.
pub const NO_RECORD: &str = "and no record";

/// How long is waited between two looks at whether to stop.
const LOOK: Duration = Duration::from_millis(100);
/// How long a child may take to end when it is asked to, or has no more to say.
const LAST: Duration = Duration::from_secs(10);

/// Runs the tasks, `at_once` at a time, and tells `event` of each answer on this thread. Ends early when `stop` is set.
pub fn run(
    tasks: &[Task],
    at_once: usize,
    timeout: Duration,
    stop: &AtomicBool,
    event: impl FnMut(Event),
) {
    each(
        tasks,
        at_once,
        stop,
        |task, tell| one(task, timeout, stop, &mut |event| tell(event)),
        event,
    );
}

/// Does `work` with these, so many at a time, each by some thread, and tells of what it gives on this one as it comes.
/// None is begun any more when `stop` is set.
pub fn each<'a, T: Sync, R: Send>(
    all: &'a [T],
    at_once: usize,
    stop: &AtomicBool,
    work: impl Fn(&'a T, &dyn Fn(R)) + Sync,
    tell: impl FnMut(R),
) {
    let (send, results) = mpsc::channel();
    let (next, work) = (&AtomicUsize::new(0), &work);
    std::thread::scope(|scope| {
        for _ in 0..at_once.clamp(1, all.len().max(1)) {
            let send = send.clone();
            scope.spawn(move || {
                while let Some(one) = all
                    .get(next.fetch_add(1, Ordering::Relaxed))
                    .filter(|_| !stop.load(Ordering::Relaxed))
                {
                    // That nobody listens is no reason to leave a child.
                    work(one, &|result| drop(send.send(result)));
                }
            });
        }
        drop(send);
        results.into_iter().for_each(tell);
    });
}

/// Runs one child to its end, its deadline or the stop.
fn one(task: &Task, timeout: Duration, stop: &AtomicBool, tell: &mut dyn FnMut(Event)) {
    let mut open: BTreeSet<&str> = task.nodes.iter().map(String::as_str).collect();
    let mut twice = BTreeSet::new();
    let reason = match followed(task, timeout, stop, &mut |event| match &event {
        // Who answers twice is believed once.
        Event::Answered(node, _) if !open.remove(node.as_str()) => {
            if twice.insert(node.clone()) {
                tell(Event::Refused(format!(
                    "{node} answered more than once: only its first answer is kept"
                )));
            }
        }
        Event::Began(node) if !open.contains(node.as_str()) => {}
        _ => tell(event),
    }) {
        Ok(reason) => reason,
        Err(e) => format!("cannot start {}: {e}", task.words[0]),
    };
    // What was stopped is left to do, not failed.
    if stop.load(Ordering::Relaxed) {
        return;
    }
    for node in open {
        tell(Event::Answered(
            node.to_owned(),
            Answer::Failed(reason.clone()),
        ));
    }
}

fn followed(
    task: &Task,
    timeout: Duration,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(Event),
) -> anyhow::Result<String> {
    let mut command = Command::new(&task.words[0]);
    let input = if task.send_program {
        Stdio::piped()
    } else {
        Stdio::null()
    };
    // The user's own variable would go before the order of the nodes that the labels are read by.
    command
        .args(&task.words[1..])
        .env_remove("SLURM_HOSTFILE")
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut running = child::die_with_parent(&mut command).spawn()?;
    let (stdout, stderr, stdin) = (
        running.stdout.take(),
        running.stderr.take(),
        running.stdin.take(),
    );
    let mut collector = Collector::default();
    let mut for_others = BTreeSet::new();
    std::thread::scope(|scope| {
        let (send, lines) = mpsc::sync_channel::<String>(256);
        scope.spawn(move || stdout.map(|out| pass_lines(out, &send)));
        let complaints = scope.spawn(move || complaint(stderr, "none"));
        // The child may end without reading all; the input stays open until it does.
        let (close, closed) = mpsc::channel::<()>();
        scope.spawn(move || {
            let mut stdin = stdin;
            if let (Some(pipe), Ok((mut file, _))) = (stdin.as_mut(), super::node::own_file()) {
                let _ = std::io::copy(&mut file, pipe).and_then(|_| pipe.flush());
            }
            let _ = closed.recv();
        });
        let deadline = Instant::now() + timeout;
        let mut late = false;
        loop {
            match lines.recv_timeout(LOOK) {
                Ok(line) => {
                    let (node, line) = task.sender(&line).unwrap_or_default();
                    match wire::claimed(line) {
                        _ if node.is_empty() => {}
                        // A host's answer stands for that host alone.
                        Some(other) if other != node => {
                            if for_others.insert(node.to_owned()) {
                                tell(Event::Refused(format!(
                                    "{node} answered for {}, which is not believed",
                                    clean_short(other, 60)
                                )));
                            }
                        }
                        _ if wire::begun(line) == Some(node) => {
                            tell(Event::Began(node.to_owned()));
                        }
                        _ => {
                            if let Some((node, got)) = collector.line(line, |name| name == node) {
                                tell(Event::Answered(node, got));
                            }
                        }
                    }
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
            late = Instant::now() > deadline;
            if late || stop.load(Ordering::Relaxed) {
                child::signal_group(running.id() as i32, libc::SIGTERM)?;
                break;
            }
        }
        drop(close);
        ended_by(&mut running, Instant::now() + LAST)?;
        let status = running.wait()?;
        drop(lines);
        let complaint = complaints.join().unwrap_or_default();
        Ok(match late {
            true => format!("no answer within {} seconds", timeout.as_secs()),
            false => format!(
                "{} ended with {status} {NO_RECORD}; its last words: {complaint}",
                task.words[0]
            ),
        })
    })
}

/// Waits for a child until then; one that has not ended then is killed with its group, and nothing given.
pub fn ended_by(running: &mut Child, deadline: Instant) -> anyhow::Result<Option<ExitStatus>> {
    let status = child::wait_deadline(running, deadline)?;
    if status.is_none() {
        child::signal_group(running.id() as i32, libc::SIGKILL)?;
        running.wait()?;
    }
    Ok(status)
}

/// Passes on lines of bounded length.
fn pass_lines(from: impl Read, to: &mpsc::SyncSender<String>) {
    let mut from = from;
    // That nobody listens any more is an end like another.
    let _ = lines(&mut from, LONGEST_LINE).try_for_each(|line| to.send(line));
    // What comes after nobody listens is read, so that the child is not held up.
    let _ = std::io::copy(&mut from, &mut std::io::sink());
}

/// Lines up to this length; of a longer one, the beginning. Its rest is no line of its own: whoever wrote it could have
/// it begin with another's label.
pub fn lines(from: impl Read, longest: usize) -> impl Iterator<Item = String> {
    let mut from = BufReader::new(from);
    std::iter::from_fn(move || {
        let mut line = Vec::new();
        let read = from
            .by_ref()
            .take(longest as u64)
            .read_until(b'\n', &mut line)
            .ok()
            .filter(|read| *read > 0)?;
        if read == longest && line.last() != Some(&b'\n') {
            from.skip_until(b'\n').ok()?;
        }
        Some(String::from_utf8_lossy(&line).into_owned())
    })
}

/// Waits for so long, or until it is to end.
pub fn pause(time: Duration, stop: &AtomicBool) {
    let until = Instant::now() + time;
    while Instant::now() < until && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(LOOK);
    }
}

/// The line of a child's complaints that says most: one that tells that the job was taken away, else the last;
/// `none` where it has none. All is read, so that nothing is held up.
pub fn complaint(from: Option<impl Read>, none: &str) -> String {
    let Some(from) = from else {
        return String::new();
    };
    let mut told = none.to_owned();
    for line in lines(from, 4096) {
        if !line.trim().is_empty() && !super::engine::was_preempted(&told) {
            told = clean_short(line.trim(), 200);
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(script: &str, nodes: &[&str]) -> Task {
        Task {
            words: ["sh", "-c", script].map(str::to_owned).to_vec(),
            nodes: nodes.iter().map(|n| (*n).to_owned()).collect(),
            send_program: false,
            labelled: nodes.len() > 1,
        }
    }

    fn answers(script: &str, nodes: &[&str], timeout: Duration) -> Vec<(String, Answer)> {
        let mut got = Vec::new();
        let task = task(script, nodes);
        run(&[task], 4, timeout, &AtomicBool::new(false), |event| {
            if let Event::Answered(node, answer) = event {
                got.push((node, answer));
            }
        });
        got
    }

    #[test]
    fn a_task_answers_for_its_own_node_and_for_no_other() {
        // The first task answers for the second's node, before that one and after it, with its label within a line and
        // behind a line that is cut.
        let long = "x".repeat(LONGEST_LINE - 3);
        let script = format!(
            "echo 0: FINGERPOST n2 failed false; echo '0: 1: FINGERPOST n2 failed false'; echo FINGERPOST n2 failed \
             false; echo '0: {long}1: FINGERPOST n2 failed false'; echo 2: FINGERPOST n2 failed false; echo 1: \
             FINGERPOST n2 failed true; echo 1: FINGERPOST n2 failed again; echo 0: FINGERPOST n1 failed own"
        );
        let (mut got, mut refused) = (Vec::new(), Vec::new());
        let task = task(&script, &["n1", "n2"]);
        run(
            &[task],
            1,
            Duration::from_secs(60),
            &AtomicBool::new(false),
            |event| match event {
                Event::Answered(node, answer) => got.push((node, answer)),
                Event::Refused(sentence) => refused.push(sentence),
                Event::Began(_) => {}
            },
        );
        let failed = |node: &str, why: &str| (node.to_owned(), Answer::Failed(why.into()));
        assert_eq!(got, [failed("n2", "true"), failed("n1", "own")]);
        assert_eq!(
            refused,
            [
                "n1 answered for n2, which is not believed",
                "n2 answered more than once: only its first answer is kept"
            ]
        );
    }

    #[test]
    fn the_rest_of_a_long_line_is_no_line() {
        let text = format!("short\n{}1: FINGERPOST\nnext\nend", "x".repeat(10));
        let got: Vec<String> = lines(text.as_bytes(), 10).collect();
        assert_eq!(got, ["short\n", "xxxxxxxxxx", "next\n", "end"]);
    }

    #[test]
    fn every_node_is_answered_for_once_with_its_reason() {
        let script = "echo nonsense; echo 0: FINGERPOST n1 failed no space; echo 0: FINGERPOST n1 failed again; echo \
            0: FINGERPOST x failed no; echo dead >&2; exit 7";
        let got = answers(script, &["n1", "n2"], Duration::from_secs(60));
        assert_eq!(got[0], ("n1".to_owned(), Answer::Failed("no space".into())));
        let Answer::Failed(reason) = &got[1].1 else {
            panic!("{got:?}")
        };
        assert!(
            got.len() == 2
                && got[1].0 == "n2"
                && reason.contains("exit status: 7")
                && reason.ends_with("dead"),
            "{reason}"
        );
    }

    #[test]
    fn a_node_runs_when_it_says_so_not_when_its_child_started() {
        let script = "echo 0: FINGERPOST n1 began; echo 0: FINGERPOST x began; echo 0: FINGERPOST n1 failed no; echo 0: FINGERPOST n1 began";
        let task = task(script, &["n1", "n2"]);
        let mut told = Vec::new();
        run(
            &[task],
            1,
            Duration::from_secs(60),
            &AtomicBool::new(false),
            |event| {
                told.extend(match event {
                    Event::Began(node) => Some(format!("{node} began")),
                    Event::Answered(node, _) => Some(format!("{node} answered")),
                    Event::Refused(_) => None,
                });
            },
        );
        assert_eq!(told, ["n1 began", "n1 answered", "n2 answered"]);
    }

    #[test]
    fn a_child_that_hangs_is_ended_at_its_deadline() {
        let got = answers(
            "echo FINGERPOST n1 0 aaaa; exec sleep 1000",
            &["n1"],
            Duration::from_millis(200),
        );
        assert!(
            matches!(&got[0].1, Answer::Failed(reason) if reason.starts_with("no answer within")),
            "{got:?}"
        );
    }
}
