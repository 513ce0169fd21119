//! Requests of a running service counted in one short stretch after the other, and how long each took: nothing is
//! followed, nothing is kept.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::answering::{Answerers, Answering, AtOnce};
use super::source::{self, Source};
use super::taking::MOST_EVENTS;
use crate::population::Population;

/// Counts. The kernel's events stay attached from the first stretch until it is dropped, so that all stretches cost the
/// service the same.
pub struct Counter {
    source: Box<dyn Source + Send>,
    answerers: Answerers,
    population: Population,
    begun: Instant,
}

/// The requests of one stretch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counted {
    /// How long each took that lies whole within the stretch, shortest first.
    pub latencies: Vec<Duration>,
    /// The length of the stretch.
    pub length: Duration,
}

impl Counted {
    /// The mean latency in nanoseconds; nothing where there was no request.
    pub fn mean_ns(&self) -> Option<f64> {
        let sum: f64 = self.latencies.iter().map(|l| l.as_nanos() as f64).sum();
        (!self.latencies.is_empty()).then(|| sum / self.latencies.len() as f64)
    }
}

impl Counter {
    /// For the service of these processes, with their children, and of these control groups.
    ///
    /// # Errors
    /// A sentence: events cannot be had here, or the service listens nowhere.
    pub fn open(pids: &[i32], groups: &[PathBuf]) -> Result<Counter, String> {
        let population = Population::of_service(pids, groups);
        let answering = Answering::of(population.processes.keys().copied());
        if answering.is_empty() {
            return Err("it listens nowhere, so that no request of it can be counted".to_owned());
        }
        Ok(Counter {
            source: source::open(MOST_EVENTS)?,
            answerers: Answerers::new(answering),
            population,
            begun: Instant::now(),
        })
    }

    /// Counts for so long. `wait` sleeps, and returns true when the end was asked for. Nothing where events were lost.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn count(
        &mut self,
        length: Duration,
        wait: &mut dyn FnMut(Duration) -> bool,
    ) -> io::Result<Option<Counted>> {
        let window = self.source.window(length, wait)?;
        // Children that came meanwhile are the service's too.
        self.population
            .look(self.begun.elapsed().as_secs_f64(), false);
        let population = &self.population;
        let AtOnce { latencies, .. } = self
            .answerers
            .look(&window, |pid| population.processes.contains_key(&pid));
        let length = Duration::from_nanos(window.end.saturating_sub(window.start));
        Ok((window.lost == 0).then_some(Counted { latencies, length }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_of_no_request_is_nothing() {
        assert_eq!(Counted::default().mean_ns(), None);
        let counted = Counted {
            latencies: vec![Duration::from_nanos(100), Duration::from_nanos(300)],
            length: Duration::from_millis(1),
        };
        assert_eq!(counted.mean_ns(), Some(200.0));
    }

    #[test]
    fn a_process_that_listens_nowhere_is_refused_before_attaching() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let refused = Counter::open(&[child.id() as i32], &[]).err();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(refused.unwrap().contains("listens nowhere"));
    }
}
