//! Events from programs in the kernel (eBPF), through one ring per CPU. Programs at what happens often are at their
//! tracepoints while a window is open, and a little longer: see [`Source::rest`].

mod programs;
pub(crate) use programs::{WAYS, at_functions};

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use fingerpost_sys::bpf::btf::Btf;
use fingerpost_sys::bpf::closed::Places;
use fingerpost_sys::bpf::{Point, Programs};
use fingerpost_sys::trace::monotonic_ns;

use self::programs::HEADER;
use super::flow::{self, About, Flow, Names, Source, Window};
use crate::follow::event::Event;

/// Bytes of the shortest record in a ring, with its length.
const LEAST_RECORD_BYTES: usize = HEADER + 8;

/// Nanoseconds before the first record that did not fit: that one happened a little earlier than its program could
/// tell.
const UNTOLD: u64 = 10_000;

/// Programs at the tracepoints of all CPUs.
pub struct Bpf {
    programs: Programs,
    /// So many of them, the first, stay attached between windows.
    stay: usize,
    partitions: HashMap<u32, u32>,
    names: Names,
    /// Ports of the sockets that this window has told of.
    ports: HashMap<u64, (u16, u16)>,
    most_events: usize,
    about: About,
    /// Whether windows follow each other without a gap, where the last one ended while programs went on, and events that
    /// came after it.
    without_gaps: bool,
    ended: Option<u64>,
    /// Whether the window that is open is such a one.
    goes_on: bool,
    after: Vec<Event>,
}

impl Bpf {
    /// Loads the programs; `most_events` is as of [`super::open`].
    ///
    /// # Errors
    /// One sentence that says why this is not possible here.
    pub fn open(most_events: usize) -> Result<Bpf, String> {
        flow::first_pid_namespace()?;
        let btf = Btf::read().map_err(|e| e.to_string())?;
        let cpus = flow::cpus()?;
        let chosen = programs::choose(&btf, &flow::own_threads())?;
        let event_cost = calibrate(&btf, &cpus)?;
        let programs = Programs::load(
            &btf,
            programs::object(),
            &chosen.programs,
            &cpus,
            flow::ring_bytes(cpus.len()),
        )
        .map_err(|e| e.to_string())?;
        let mut described = "programs in the kernel (eBPF)".to_owned();
        if let Some(way) = programs.way().and_then(|way| programs::WAYS.get(way)) {
            described += &format!(", at sockets by {way}");
        }
        let missing = [&chosen.missing[..], programs.left_out()].concat();
        if !missing.is_empty() {
            described += &format!(", without {}", missing.join(", "));
        }
        let about = About {
            described,
            no_programs: None,
            cpus: programs.cpus(),
            event_cost,
            closing: Places::of(&btf),
        };
        Ok(Bpf {
            stay: chosen.stay.saturating_sub(programs.left_out().len()),
            programs,
            partitions: flow::partitions(),
            names: Names::default(),
            ports: HashMap::new(),
            most_events,
            about,
            without_gaps: false,
            ended: None,
            goes_on: false,
            after: Vec::new(),
        })
    }
}

impl Flow for Bpf {
    fn fullness(&self) -> f64 {
        self.programs.fullness()
    }

    fn most_waiting(&self) -> usize {
        self.programs.waiting() / LEAST_RECORD_BYTES
    }

    fn drain(&mut self, window: &mut Window) -> io::Result<()> {
        let (names, ports, partitions) = (&mut self.names, &mut self.ports, &self.partitions);
        let (start, goes_on, events) = (window.start, self.goes_on, &mut window.events);
        window.lost += self.programs.drain(|record| {
            programs::names(record, names);
            let Some(mut event) = programs::event(record, partitions) else {
                return;
            };
            // One whose program was not done when the window before was read is of its end.
            if event.time < start && !goes_on {
                return;
            }
            event.time = event.time.max(start);
            events.extend(programs::new_ports(&event, record, ports));
            events.push(event);
        })?;
        Ok(())
    }
}

impl Source for Bpf {
    fn about(&self) -> &About {
        &self.about
    }

    fn window(
        &mut self,
        length: Duration,
        wait: &mut dyn FnMut(Duration) -> bool,
    ) -> io::Result<Window> {
        self.ports.clear();
        let mut window = Window::default();
        self.goes_on = self.ended.is_some();
        match self.ended.take() {
            Some(end) => {
                window.start = end;
                window.events = std::mem::take(&mut self.after);
            }
            None => {
                self.programs.enable()?;
                window.start = monotonic_ns();
            }
        }
        let most = self.most_events;
        let flowed = flow::let_flow(self, &mut window, length, most, wait);
        window.end = monotonic_ns();
        let goes_on = self.without_gaps && flowed.is_ok();
        if !goes_on {
            self.programs.disable()?;
        }
        flowed?;
        self.drain(&mut window)?;
        let stopped = self.programs.stopped()?;
        if let Some(stopped) = stopped {
            // A ring was full, and every program stopped there: what was taken before is whole.
            window.end = window.end.min(stopped - UNTOLD).max(window.start);
            window.lost = 0;
        }
        if goes_on && stopped.is_none() && window.lost == 0 {
            self.ended = Some(window.end);
            let end = window.end;
            self.after = window.events.extract_if(.., |e| e.time > end).collect();
        }
        flow::close(&mut window, &mut self.names);
        Ok(window)
    }

    fn without_gaps(&mut self) {
        self.without_gaps = true;
    }

    fn rest(&mut self) {
        if self.ended.take().is_some() {
            self.after.clear();
            // They go with their links at least.
            _ = self.programs.disable();
        }
        self.programs.detach_but(self.stay);
    }
}

/// What an event is taken to cost where it cannot be measured here: 41 to 56 ns on the machines of `bench/RESULTS.md`.
const USUAL: f64 = 50e-9;

/// What an event costs: see [`flow::event_cost`].
fn calibrate(btf: &Btf, cpus: &[usize]) -> Result<f64, String> {
    let mut chosen = programs::choose(btf, &[])?.programs;
    let is_call = |point: &Point| matches!(point, Point::Tracepoint("sys_enter" | "sys_exit"));
    chosen.switched.retain(is_call);
    let calls = chosen.switched.len();
    chosen.ways.clear();
    let mut programs = Programs::load(btf, programs::object(), &chosen, cpus, 1 << 20)
        .map_err(|e| e.to_string())?;
    let switched = |e| format!("programs in the kernel cannot be switched on or off: {e}");
    flow::event_cost(calls, USUAL, || {
        programs.disable().map_err(switched)?;
        let bare = flow::cheapest_call(|| ());
        programs.enable().map_err(switched)?;
        Ok([bare, flow::cheapest_call(|| _ = programs.drain(|_| ()))])
    })
}
