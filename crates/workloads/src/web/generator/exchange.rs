//! One request and its answer on a connection: begun, received, completed or failed, and what the connection does next.

use rustix::event::epoll::EventFlags;
use rustix::io::Errno;

use super::{BUFFER, Generator, PAUSE_NS};
use crate::closed_loop::stamp;
use crate::stalls::Doing;
use crate::web::connection::{Stage, untoken};
use crate::web::errors;
use crate::web::http::Progress;
use crate::web::protocol::now_ns;
use crate::web::tally::Times;

impl Generator {
    /// Begins a request on a connection that has none under way.
    pub(super) fn begin(&mut self, index: u32, now: u64, intended: u64) {
        self.turn = (self.turn + 1) % self.requests.len();
        self.turns[index as usize] = self.turn;
        let connection = &mut self.connections[index as usize];
        (connection.times, connection.asked) = (
            Times {
                intended,
                started: now,
            },
            now,
        );
        self.busy += 1;
        let sent = if connection.socket.is_some() {
            connection.stage = Stage::Sending(0);
            connection.send(&self.requests[self.turn])
        } else {
            connection.open(&self.epoll, index, &self.load, &self.requests[self.turn])
        };
        if let Err(e) = sent {
            self.fail(index, &errors::kind(e));
        }
    }

    /// What a connection does that has become free.
    pub(super) fn next(&mut self, index: u32, now: u64) {
        if self.tally.over(now) {
            return;
        }
        if self.pace.is_none() && !self.ready {
            self.early.push(index);
        } else if self.pace.is_none() {
            self.begin(index, now, now);
        } else if let Some(due) = self.queue.pop_front() {
            self.begin(index, now, due);
        } else {
            self.free.push(index);
        }
    }

    pub(super) fn on_event(&mut self, token_of_event: u64, flags: EventFlags) {
        let (index, generation) = untoken(token_of_event);
        let Some(connection) = self
            .connections
            .get_mut(index)
            .filter(|c| c.generation == generation && c.socket.is_some())
        else {
            return;
        };
        let hung_up = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        if hung_up && connection.stage == Stage::Idle {
            // A server may close a connection that has nothing to do; the next request makes a new one.
            connection.close();
            return;
        }
        if connection.stage == Stage::Connecting
            && let Some(e) = connection.error()
        {
            return self.fail(index as u32, &errors::kind(e));
        }
        if matches!(connection.stage, Stage::Connecting | Stage::Sending(_))
            && flags.contains(EventFlags::OUT)
            && let Err(e) = connection.send(&self.requests[self.turns[index]])
        {
            return self.fail(index as u32, &errors::kind(e));
        }
        if flags.contains(EventFlags::IN) || hung_up {
            self.receive(index as u32, hung_up);
        }
    }

    /// Reads what is there. `hung_up` tells that the server's end of the stream is there too, which a short read alone
    /// does not show.
    fn receive(&mut self, index: u32, hung_up: bool) {
        let connection = &mut self.connections[index as usize];
        while connection.busy() {
            let Some(socket) = &connection.socket else {
                return;
            };
            let n = match rustix::io::read(socket, &mut self.buffer[..]) {
                Ok(n) => n,
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR) => continue,
                Err(e) => return self.fail(index, &errors::kind(e)),
            };
            if n == 0 {
                return match connection.parser.close() {
                    Ok(done) => self.complete(index, done.status, false),
                    Err(bad) => self.fail(index, &bad.to_string()),
                };
            }
            match connection.parser.feed(&self.buffer[..n], &mut self.heads) {
                Ok(Progress::More) if n < BUFFER && !hung_up => return,
                Ok(Progress::More) => {}
                Ok(Progress::Done(_, used)) if used < n => {
                    return self.fail(index, errors::TRAILING);
                }
                Ok(Progress::Done(done, _)) => {
                    return self.complete(index, done.status, done.keep_alive && !hung_up);
                }
                Err(bad) => return self.fail(index, &bad.to_string()),
            }
        }
    }

    fn complete(&mut self, index: u32, status: u16, keep_alive: bool) {
        let now = now_ns();
        let connection = &mut self.connections[index as usize];
        self.tally.complete(connection.times, now);
        stamp(self.thread_writer.as_ref(), index, connection.asked, now);
        self.watch.completed(now);
        if status >= 400 {
            self.tally.error(&format!("status {status}"), now);
        }
        self.answered += usize::from(!std::mem::replace(&mut connection.answered, true));
        connection.stage = Stage::Idle;
        self.busy -= 1;
        if !(keep_alive && self.load.keep_alive) {
            connection.close();
        }
        self.next(index, now);
    }

    /// A request came to nothing.
    fn fail(&mut self, index: u32, kind: &str) {
        let now = now_ns();
        let connection = &mut self.connections[index as usize];
        let connected = connection.socket.is_some() && connection.stage != Stage::Connecting;
        connection.close();
        connection.stage = Stage::Pausing;
        self.busy -= 1;
        self.tally.error(kind, now);
        if self.last_error.as_deref() != Some(kind) {
            self.last_error = Some(kind.to_owned());
        }
        self.pausing
            .push((now + if connected { PAUSE_NS.1 } else { PAUSE_NS.0 }, index));
    }

    pub(super) fn doing(&self) -> Doing {
        let mut doing = Doing {
            last_error: self.last_error.clone(),
            ..Doing::default()
        };
        for c in &self.connections {
            match c.stage {
                Stage::Idle => doing.idle += 1,
                Stage::Connecting => doing.connecting += 1,
                Stage::Pausing => doing.pausing += 1,
                Stage::Receiving if c.parser.begun => doing.receiving += 1,
                Stage::Sending(_) | Stage::Receiving => doing.waiting += 1,
            }
        }
        doing
    }
}
