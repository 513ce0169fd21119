//! Two runs of labs that take turns, stretch by stretch: each has its server up, and one of them loads the machine at a
//! time.
//!
//! What a shared host does within seconds then falls on both alike: the stretches of a pair are as close as their
//! length. A lab asks for its turn by [`fingerpost_labs::Sink::wait_for_turn`]. The run is a child of `ab`, and its
//! standard input is a socket on which it asks and is answered ([`Taker`]); `ab` holds the other ends ([`give`]). A run
//! whose socket is closed has the machine to itself.

use std::io::{ErrorKind, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The variable that says that standard input is such a socket.
pub const VARIABLE: &str = "FINGERPOST_TURNS";
/// What a run says: that it waits for its turn, and that its turn is over.
const WAITS: u8 = b'w';
const OVER: u8 = b'o';
/// What it is answered: to go on, or to come to an end.
const GO: u8 = b'g';
const STOP: u8 = b's';
/// How soon a stop is noticed.
const LOOK: Duration = Duration::from_millis(100);

/// A run's end.
#[derive(Debug)]
pub struct Taker {
    /// Nothing once the other end is gone.
    socket: Option<UnixStream>,
    /// How long it has waited for its turns, and for the other's.
    pub waited: Duration,
}

impl Taker {
    /// Of this process, where it was started to take turns.
    pub fn from_environment() -> Option<Taker> {
        std::env::var_os(VARIABLE)?;
        let input = std::io::stdin().as_fd().try_clone_to_owned().ok()?;
        // Reading anything but a socket would take somebody's input.
        let socket = UnixStream::from(input);
        socket.peer_addr().ok()?;
        Taker::of(socket)
    }

    fn of(socket: UnixStream) -> Option<Taker> {
        socket.set_read_timeout(Some(LOOK)).ok()?;
        Some(Taker {
            socket: Some(socket),
            waited: Duration::ZERO,
        })
    }

    /// Returns when it is this run's turn, or `stop` is set, which `ab` can do too.
    pub fn wait(&mut self, stop: &AtomicBool) {
        self.ask(WAITS, stop);
    }

    /// Tells that the turn is over, and returns when the other run has had its own.
    pub fn over(&mut self, stop: &AtomicBool) {
        self.ask(OVER, stop);
    }

    fn ask(&mut self, what: u8, stop: &AtomicBool) {
        let begun = Instant::now();
        let Some(mut socket) = self.socket.as_ref() else {
            return;
        };
        let mut answer = [0];
        let mut answered = socket.write_all(&[what]).is_ok();
        while answered && !stop.load(Ordering::Relaxed) {
            match socket.read(&mut answer) {
                Ok(1) => {
                    stop.fetch_or(answer[0] == STOP, Ordering::Relaxed);
                    break;
                }
                Ok(_) => answered = false,
                Err(e)
                    if matches!(
                        e.kind(),
                        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                    ) => {}
                Err(_) => answered = false,
            }
        }
        if !answered {
            self.socket = None;
        }
        self.waited += begun.elapsed();
    }
}

/// The two ends for one run: `ab`'s own, and what is to be the standard input of the child, which also needs
/// [`VARIABLE`] in its environment.
///
/// # Errors
/// The kernel's, where it has no more descriptors.
pub fn ends() -> std::io::Result<(UnixStream, Stdio)> {
    let (ours, theirs) = UnixStream::pair()?;
    Ok((ours, Stdio::from(std::os::fd::OwnedFd::from(theirs))))
}

/// How a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Starting, or doing what needs no turn.
    Away,
    Waiting,
    HasTurn,
    /// Its turn is over, and that of the other is not.
    Over,
    Gone,
}

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Nothing,
    /// This run has its turn.
    Turn(usize),
    /// The pair is complete.
    Release,
}

/// Who has the next turn: nobody while one has it or is doing something else; then one of both by chance, and the other
/// right after it.
fn next(states: [State; 2], first: impl FnOnce() -> usize) -> Next {
    use State::{Away, Gone, HasTurn, Over, Waiting};
    match states {
        [HasTurn, _] | [_, HasTurn] => Next::Nothing,
        [Over, Waiting] => Next::Turn(1),
        [Waiting, Over] => Next::Turn(0),
        [Over, Over | Gone] | [Gone, Over] => Next::Release,
        [Waiting, Waiting] => Next::Turn(first()),
        [Waiting, Gone] => Next::Turn(0),
        [Gone, Waiting] => Next::Turn(1),
        // One that went away before its turn waits again, or is gone, in a while.
        [Away, _] | [_, Away] | [Gone, Gone] => Next::Nothing,
    }
}

/// Gives turns to two runs until both are gone or `stop` says so, which they are told. `tell` is told of each turn: how
/// many there were, and whose it is.
pub fn give(
    sides: &[UnixStream; 2],
    rng: &mut fastrand::Rng,
    stop: impl Fn() -> bool,
    mut tell: impl FnMut(usize, usize),
) {
    let (sender, received) = mpsc::channel();
    std::thread::scope(|scope| {
        for (side, socket) in sides.iter().enumerate() {
            let sender = sender.clone();
            scope.spawn(move || {
                let mut socket = socket;
                let mut word = [0];
                while let Ok(1) = socket.read(&mut word) {
                    let _ = sender.send((side, word[0]));
                }
                let _ = sender.send((side, 0));
            });
        }
        let mut states = [State::Away; 2];
        let mut turns = 0;
        while states != [State::Gone; 2] {
            if stop() {
                // Each reads it when it next asks.
                sides.iter().for_each(|socket| answer(socket, STOP));
                sides
                    .iter()
                    .for_each(|socket| drop(socket.shutdown(std::net::Shutdown::Write)));
                return;
            }
            match received.recv_timeout(LOOK) {
                Ok((side, WAITS)) => states[side] = State::Waiting,
                Ok((side, OVER)) => states[side] = State::Over,
                Ok((side, _)) => states[side] = State::Gone,
                Err(_) => {}
            }
            match next(states, || usize::from(rng.bool())) {
                Next::Nothing => {}
                Next::Turn(side) => {
                    states[side] = State::HasTurn;
                    turns += 1;
                    tell(turns, side);
                    answer(&sides[side], GO);
                }
                Next::Release => {
                    for (state, socket) in states
                        .iter_mut()
                        .zip(sides)
                        .filter(|(state, _)| **state == State::Over)
                    {
                        *state = State::Away;
                        answer(socket, GO);
                    }
                }
            }
        }
    });
}

fn answer(mut socket: &UnixStream, word: u8) {
    // A run that is gone needs no answer.
    let _ = socket.write_all(&[word]);
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Two runs of so many stretches each; what they did, in order: side and stretch.
    fn course(stretches: [usize; 2]) -> (Vec<(usize, usize)>, Vec<usize>) {
        let ((a, to_a), (b, to_b)) = (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
        let (under_way, done) = (AtomicBool::new(false), Mutex::new(Vec::new()));
        let mut told = Vec::new();
        std::thread::scope(|scope| {
            for (side, (socket, count)) in [to_a, to_b].into_iter().zip(stretches).enumerate() {
                let (under_way, done) = (&under_way, &done);
                scope.spawn(move || {
                    let mut taker = Taker::of(socket).unwrap();
                    let stop = AtomicBool::new(false);
                    for stretch in 0..count {
                        taker.wait(&stop);
                        assert!(!under_way.swap(true, Ordering::SeqCst), "both at a time");
                        done.lock().unwrap().push((side, stretch));
                        under_way.store(false, Ordering::SeqCst);
                        taker.over(&stop);
                    }
                    assert!(!stop.load(Ordering::Relaxed));
                });
            }
            give(
                &[a, b],
                &mut fastrand::Rng::with_seed(3),
                || false,
                |_, side| told.push(side),
            );
        });
        (done.into_inner().unwrap(), told)
    }

    #[test]
    fn stretches_of_a_pair_follow_each_other_in_changing_order() {
        let (done, told) = course([40, 40]);
        for (n, pair) in done.chunks(2).enumerate() {
            assert_eq!(
                (pair[0].1, pair[1].1, pair[0].0 + pair[1].0),
                (n, n, 1),
                "{done:?}"
            );
        }
        let first: Vec<usize> = done.iter().step_by(2).map(|d| d.0).collect();
        assert!(first.contains(&0) && first.contains(&1));
        assert_eq!(told, done.iter().map(|d| d.0).collect::<Vec<_>>());
    }

    #[test]
    fn who_has_more_goes_on_alone() {
        let (done, _) = course([3, 10]);
        assert_eq!(done.len(), 13);
        assert!(done[6..].iter().all(|d| d.0 == 1), "{done:?}");
    }

    #[test]
    fn a_stop_reaches_both() {
        let ((a, to_a), (b, to_b)) = (UnixStream::pair().unwrap(), UnixStream::pair().unwrap());
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for socket in [to_a, to_b] {
                scope.spawn(|| {
                    let mut taker = Taker::of(socket).unwrap();
                    let told = AtomicBool::new(false);
                    while !told.load(Ordering::Relaxed) && taker.socket.is_some() {
                        taker.wait(&told);
                        taker.over(&told);
                    }
                    assert!(told.load(Ordering::Relaxed));
                });
            }
            give(
                &[a, b],
                &mut fastrand::Rng::new(),
                || stop.load(Ordering::Relaxed),
                |turns, _| stop.store(turns > 4, Ordering::Relaxed),
            );
        });
    }

    #[test]
    fn nobody_has_a_turn_while_the_other_has_it_or_is_about_to() {
        use State::{Away, Gone, HasTurn, Over, Waiting};
        let told = |states| next(states, || 1);
        assert_eq!(told([Waiting, Away]), Next::Nothing);
        assert_eq!(told([HasTurn, Waiting]), Next::Nothing);
        assert_eq!(told([Waiting, Waiting]), Next::Turn(1));
        assert_eq!(told([Waiting, Over]), Next::Turn(0));
        assert_eq!(
            (told([Over, Over]), told([Gone, Over])),
            (Next::Release, Next::Release)
        );
        assert_eq!(told([Waiting, Gone]), Next::Turn(0));
    }
}
