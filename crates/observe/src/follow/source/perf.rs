//! Events from the kernel's tracepoints, through one ring per CPU.

mod layout;

use std::io;
use std::time::Duration;

use fingerpost_sys::trace::{Point, Rings, monotonic_ns};
use fingerpost_sys::tracefs::{self, Tracepoint};

use self::layout::Decoder;
use super::flow::{self, About, Flow, Names, Source, Window};
use super::wanted::{Kind, WANTED, Wanted};

/// Bytes of the shortest record: what bounds the events that a ring may hold.
const LEAST_RECORD_BYTES: usize = 48;
/// Tracepoints of all CPUs.
pub struct Perf {
    rings: Rings,
    decoder: Decoder,
    names: Names,
    most_events: usize,
    about: About,
}

impl Perf {
    /// Opens the tracepoints, switched off; `most_events` is as of [`super::open`].
    ///
    /// # Errors
    /// One sentence that says why tracing is not possible here.
    pub fn open(most_events: usize) -> Result<Perf, String> {
        flow::first_pid_namespace()?;
        let names: Vec<&str> = WANTED.iter().map(|w| w.name).collect();
        let found = tracefs::find(&names).map_err(|e| e.to_string())?;
        let mut decoder = Decoder::new(flow::partitions());
        let (points, missing) = resolve(&found, &mut decoder, &flow::own_threads())?;
        let event_cost = calibrate(&found)?;
        let rings = Rings::open(&points, flow::ring_bytes(flow::cpus()?.len())).map_err(refused)?;
        let mut described = "perf tracepoints".to_owned();
        if !missing.is_empty() {
            described += &format!(" (this kernel lacks {})", missing.join(", "));
        }
        let about = About {
            described,
            no_programs: None,
            cpus: rings.cpus(),
            event_cost,
            closing: None,
        };
        Ok(Perf {
            rings,
            decoder,
            names: Names::default(),
            most_events,
            about,
        })
    }
}

impl Perf {
    /// The same, opened because programs in the kernel could not be: says so with what it tells of itself.
    pub fn instead_of_programs(self, why: String) -> Perf {
        let about = About {
            no_programs: Some(why),
            ..self.about
        };
        Perf { about, ..self }
    }
}

impl Flow for Perf {
    fn fullness(&self) -> f64 {
        self.rings.fullness()
    }

    fn most_waiting(&self) -> usize {
        self.rings.waiting() / LEAST_RECORD_BYTES
    }

    fn drain(&mut self, window: &mut Window) -> io::Result<()> {
        let (decoder, names) = (&self.decoder, &mut self.names);
        let (start, events) = (window.start, &mut window.events);
        window.lost += self.rings.drain(|raw| {
            decoder
                .names(&raw)
                .into_iter()
                .flatten()
                .for_each(|(tid, name)| names.learn(tid, name));
            events.extend(decoder.event(&raw).filter(|e| e.time >= start));
        });
        Ok(())
    }
}

impl Source for Perf {
    fn about(&self) -> &About {
        &self.about
    }

    fn window(
        &mut self,
        length: Duration,
        wait: &mut dyn FnMut(Duration) -> bool,
    ) -> io::Result<Window> {
        self.rings.switch(true)?;
        let mut window = Window {
            start: monotonic_ns(),
            ..Window::default()
        };
        let most = self.most_events;
        flow::let_flow(self, &mut window, length, most, wait)?;
        window.end = monotonic_ns();
        self.rings.switch(false)?;
        // What the kernel could not write it reports with the next record that it can write: into the next window, if a
        // ring is full.
        window.lost += u64::from(self.rings.full());
        self.drain(&mut window)?;
        flow::close(&mut window, &mut self.names);
        Ok(window)
    }
}

/// What the kernel said when it did not open them, as a sentence.
fn refused(e: io::Error) -> String {
    format!("tracepoints cannot be opened: {e}")
}

/// What is to be opened, in the order of [`WANTED`], and the names of what this kernel lacks.
fn resolve(
    found: &[Option<Tracepoint>],
    decoder: &mut Decoder,
    own: &[i32],
) -> Result<(Vec<Point>, Vec<&'static str>), String> {
    let (mut points, mut missing) = (Vec::new(), Vec::new());
    for (wanted, found) in WANTED.iter().zip(found) {
        match found {
            Some(point) if decoder.learn(wanted, point) => points.push(Point {
                id: point.id,
                filter: filter(wanted, own),
            }),
            _ if wanted.optional => missing.push(wanted.name),
            found => {
                let name = wanted.name;
                let lacks = match found {
                    Some(_) => format!("the tracepoint {name} lacks fields that are needed"),
                    None => format!("this kernel has no tracepoint {name} (sock: since Linux 6.3)"),
                };
                return Err(format!("requests cannot be followed: {lacks}"));
            }
        }
    }
    Ok((points, missing))
}

/// The filter of a tracepoint: the observer's own calls, and what is not wanted of it, are left out.
fn filter(wanted: &Wanted, own: &[i32]) -> Option<String> {
    let calls = matches!(wanted.kind, Kind::Enter | Kind::Exit);
    let own = own
        .iter()
        .filter(|_| calls)
        .map(|tid| format!("common_pid != {tid}"));
    let parts: Vec<String> = layout::filter(wanted.kind)
        .map(str::to_owned)
        .into_iter()
        .chain(own)
        .collect();
    (!parts.is_empty()).then(|| parts.join(" && "))
}

/// What an event is taken to cost where it cannot be measured here, in CPU seconds: 116 to 121 ns in docs/observers.md.
const USUAL: f64 = 118e-9;

/// What an event costs: see [`flow::event_cost`].
fn calibrate(found: &[Option<Tracepoint>]) -> Result<f64, String> {
    let points: Vec<Point> = found[..2]
        .iter()
        .flatten()
        .map(|t| Point {
            id: t.id,
            filter: None,
        })
        .collect();
    let mut rings = Rings::open(&points, 1 << 20).map_err(refused)?;
    flow::event_cost(points.len(), USUAL, || {
        rings.switch(false).map_err(refused)?;
        let bare = flow::cheapest_call(|| ());
        rings.switch(true).map_err(refused)?;
        Ok([bare, flow::cheapest_call(|| _ = rings.drain(|_| ()))])
    })
}

#[cfg(test)]
mod tests;
