use super::event::{DiskStep, Event, Io, Left, What};
use super::*;

/// Made-up events of a window, in the order in which they are added.
#[derive(Default)]
pub struct Story {
    events: Vec<Event>,
    cpu: u16,
}

impl Story {
    /// An event of a thread; its process has the thread's number rounded down to a hundred.
    pub fn then(mut self, time: u64, tid: i32, what: What) -> Story {
        self.events.push(Event {
            time,
            cpu: self.cpu,
            interrupt: false,
            pid: tid / 100 * 100,
            tid,
            what,
        });
        self
    }

    /// What follows happens on this CPU.
    pub fn on(mut self, cpu: u16) -> Story {
        self.cpu = cpu;
        self
    }

    /// The last event happened in an interrupt.
    pub fn in_interrupt(mut self) -> Story {
        self.events.last_mut().unwrap().interrupt = true;
        self
    }

    pub fn enter(self, time: u64, tid: i32, call: i64) -> Story {
        self.then(
            time,
            tid,
            What::Enter {
                call: call as i32,
                args: [0; 2],
            },
        )
    }

    pub fn exit(self, time: u64, tid: i32, call: i64) -> Story {
        self.then(
            time,
            tid,
            What::Exit {
                call: call as i32,
                result: 0,
            },
        )
    }

    pub fn switch(self, time: u64, tid: i32, left: Left, next: i32) -> Story {
        self.then(time, tid, What::Switch { left, next })
    }

    pub fn waking(self, time: u64, tid: i32, who: i32) -> Story {
        let target = self.cpu;
        self.then(time, tid, What::Waking { who, target })
    }

    pub fn arrived(self, time: u64, tid: i32, socket: u64) -> Story {
        self.then(time, tid, What::Arrived { socket })
    }

    pub fn sent(self, time: u64, tid: i32, socket: u64, bytes: i32) -> Story {
        self.then(time, tid, What::Sent { socket, bytes })
    }

    pub fn received(self, time: u64, tid: i32, socket: u64, bytes: i32) -> Story {
        self.then(time, tid, What::Received { socket, bytes })
    }

    pub fn disk(self, time: u64, tid: i32, step: DiskStep) -> Story {
        self.then(
            time,
            tid,
            What::Disk {
                step,
                io: Io {
                    device: 1,
                    sector: 8,
                    sectors: 8,
                    write: true,
                },
            },
        )
    }

    /// The window of these events.
    pub fn window(self, start: u64, end: u64) -> Window {
        let mut events = self.events;
        events.sort_by_key(|e| e.time);
        Window {
            start,
            end,
            events,
            ..Window::default()
        }
    }
}

#[test]
fn a_long_window_is_told_in_parts() {
    let request = |end| (end - 7, end);
    let window = Window {
        start: 1000,
        end: 1000 + 2 * STRETCH,
        ..Window::default()
    };
    let found = Stretch::of(
        &window,
        &[request(2000), request(1000 + STRETCH), request(window.end)],
        3,
    );
    let told: Vec<(usize, u64)> = found.iter().map(|s| (s.latencies.len(), s.cut)).collect();
    assert_eq!(told, [(1, 3), (2, 0)]);
    assert!((found.iter().map(|s| s.seconds).sum::<f64>() - 0.2).abs() < 1e-9);
    assert_eq!(Stretch::of(&Window::default(), &[], 0).len(), 1);
}

#[test]
fn a_turn_cut_by_an_edge_is_of_the_request_that_is_most_of_it() {
    let followed = [(1_000, 2_000), (1_990, 2_990)];
    assert!(
        is_of_one(&(7, 990, 2_005), &followed),
        "stamped a moment before and after"
    );
    assert!(
        !is_of_one(&(7, 500, 2_005), &followed),
        "half as long again is another one"
    );
    assert!(
        !is_of_one(&(7, 1_005, 2_005), &followed),
        "it was sent before the turn began"
    );
    assert!(!is_of_one(&(7, 990, 1_995), &followed));
    assert!(!is_of_one(&(7, 990, 2_005), &[]));
}
