//! A server that stamps its own stages, so that what is said about its requests can be held against what they did.
//!
//! Each request does a drawn sequence of stages ([`Kind`]) in drawn strengths. The server logs, in memory, when each
//! began and ended, which thread it was done by, and how much CPU time that thread used; the log is given out when the
//! load is over. It is a mode of the [`super::Rehearsal`]: the load generator is the same.

pub(super) mod basic;
mod lock;
pub mod log;
pub mod peer;
pub mod server;
mod stages;

use serde::{Deserialize, Serialize};

/// What a stage does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Computes.
    Work,
    /// System calls in a loop: reads of `/dev/zero`.
    Calls,
    /// Waits for a lock whose holder computes.
    LockWorks,
    /// Waits for a lock whose holder writes and syncs.
    LockSyncs,
    /// Waits for a lock whose holder waits for a CPU that another thread has.
    LockStarves,
    /// Writes and syncs.
    Disk,
    /// Sleeps.
    Timer,
    /// Asks another process over loopback, which sleeps before it answers.
    PeerSleeps,
    /// Asks another process over loopback, which computes before it answers.
    PeerWorks,
    /// Touches pages of a file that must be read from the disk.
    Memory,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 10] = {
        use Kind::*;
        [
            Work,
            Calls,
            LockWorks,
            LockSyncs,
            LockStarves,
            Disk,
            Timer,
            PeerSleeps,
            PeerWorks,
            Memory,
        ]
    };
}

/// How requests come to the threads that serve them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// A thread for each connection.
    Threads,
    /// One thread waits for all connections, reads the requests and hands them to a pool, whose threads answer.
    Pool,
}

/// One kind of stage as a request may draw it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Order {
    /// What it does.
    pub kind: Kind,
    /// Microseconds that it lasts in the mean; each stage draws between a half and one and a half of it. A stage that
    /// waits for a device may last one operation longer.
    pub micros: u32,
}

/// What requests do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Mix {
    /// What every draw comes from.
    pub seed: u64,
    /// How requests come to threads.
    pub shape: Shape,
    /// The kinds that requests choose from.
    pub orders: Vec<Order>,
    /// The most stages of a request; each draws from 1 to this.
    pub most: usize,
    /// A stage that one request of a hundred does besides.
    pub slow: Option<Order>,
}

impl Mix {
    /// A mix of this seed: shape, kinds and strengths are drawn.
    pub fn draw(seed: u64) -> Mix {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut kinds = Kind::ALL;
        random.shuffle(&mut kinds);
        let count = random.usize(2..=5);
        // From 100 µs to 1.6 ms, evenly over the powers.
        let mut micros = |least: f64| (least * 2f64.powf(4.0 * random.f64())) as u32;
        let orders: Vec<Order> = kinds[..count]
            .iter()
            .map(|&kind| Order {
                kind,
                micros: micros(100.0),
            })
            .collect();
        // Longer than all that a request does otherwise, so that the slow ones are those that have it.
        let slow = micros(8000.0);
        Mix {
            seed,
            shape: if random.bool() {
                Shape::Threads
            } else {
                Shape::Pool
            },
            most: random.usize(1..=4),
            slow: Some(Order {
                kind: Kind::ALL[random.usize(..Kind::ALL.len())],
                micros: slow,
            }),
            orders,
        }
    }

    /// The stages of one request: kind and microseconds.
    fn request(&self, random: &mut fastrand::Rng) -> Vec<Order> {
        let vary = |random: &mut fastrand::Rng, order: Order| Order {
            micros: (f64::from(order.micros) * (0.5 + random.f64())) as u32,
            ..order
        };
        let count = if self.orders.is_empty() {
            0
        } else {
            random.usize(1..=self.most.max(1))
        };
        let mut request: Vec<Order> = Vec::with_capacity(count + 1);
        for _ in 0..count {
            let order = self.orders[random.usize(..self.orders.len())];
            request.push(vary(random, order));
        }
        if let Some(slow) = self.slow.filter(|_| random.u8(..100) == 0) {
            request.push(slow);
        }
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_is_its_seeds_and_mixes_have_every_kind_and_shape() {
        assert_eq!(Mix::draw(7), Mix::draw(7));
        let mixes: Vec<Mix> = (0..200).map(Mix::draw).collect();
        for kind in Kind::ALL {
            assert!(
                mixes
                    .iter()
                    .filter(|m| m.orders.iter().any(|d| d.kind == kind))
                    .count()
                    > 20,
                "{kind:?}"
            );
            assert!(
                mixes.iter().any(|m| m.slow.is_some_and(|d| d.kind == kind)),
                "{kind:?}"
            );
        }
        assert!(
            mixes.iter().any(|m| m.shape == Shape::Pool)
                && mixes.iter().any(|m| m.shape == Shape::Threads)
        );
    }

    #[test]
    fn one_request_of_a_hundred_has_the_slow_stage() {
        let mix = Mix {
            slow: Some(Order {
                kind: Kind::Timer,
                micros: 9,
            }),
            orders: vec![Order {
                kind: Kind::Work,
                micros: 100,
            }],
            ..Mix::draw(1)
        };
        let mut random = fastrand::Rng::with_seed(3);
        let requests: Vec<Vec<Order>> = (0..100_000).map(|_| mix.request(&mut random)).collect();
        let slow = requests
            .iter()
            .filter(|c| c.last().is_some_and(|d| d.kind == Kind::Timer))
            .count();
        assert!((800..1200).contains(&slow), "{slow}");
        assert!(
            requests
                .iter()
                .flatten()
                .all(|d| d.kind == Kind::Timer || (50..150).contains(&d.micros))
        );
    }
}
