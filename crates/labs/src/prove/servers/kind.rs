//! What can be planted, as data: a kind of plant says on which servers it acts, how it is made, and by how much it can
//! be made stronger.

use std::time::Duration;

use fingerpost_diagnose::causes::cause;
use fingerpost_record::Layer;
use fingerpost_workloads::planted::servers::Engine;

use super::scene::{PASS, Pair, Scene, computing};

/// What a kind takes besides root and its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Two CPUs.
    TwoCpus,
    /// A network of its own.
    OwnNetwork,
    /// A CPU that leaves the choice about speculative store bypass.
    StoreBypass,
    /// Huge pages without being asked for.
    HugePages,
}

/// A kind of plant, or of control.
#[derive(Clone, Copy)]
pub struct Kind {
    /// The cause with a word for the mechanism (`cpu.quota/own`), or `control/…`.
    pub name: &'static str,
    /// What is done, in words.
    pub what: &'static str,
    /// The servers on which it acts.
    pub engines: &'static [Engine],
    /// The server and its load on both sides.
    pub scene: fn(Engine) -> Scene,
    /// Changes the sides, by this magnitude.
    pub plant: fn(&mut Pair, f64),
    /// The magnitudes that can be drawn.
    pub range: (f64, f64),
    /// Whether the magnitude can be changed while the servers run, so that a calibration finds the one for the effect
    /// that was drawn.
    pub adjustable: bool,
    /// Whether it may come on top of another plant, whatever that one's load.
    pub joins: bool,
    /// What it takes.
    pub needs: &'static [Need],
    /// The length of a pass.
    pub pass: Duration,
}

/// What most kinds have in common: a server that computes.
pub const USUAL: Kind = Kind {
    name: "",
    what: "",
    engines: &[],
    scene: computing,
    plant: |_, _| (),
    range: (1.0, 1.0),
    adjustable: false,
    joins: false,
    needs: &[],
    pass: PASS,
};

/// The same, with a magnitude of this range that can be changed while the servers run.
pub const fn adjustable(low: f64, high: f64) -> Kind {
    Kind {
        range: (low, high),
        adjustable: true,
        ..USUAL
    }
}

impl Kind {
    /// The cause that the verdict must name; nothing for a control.
    pub fn cause(&self) -> &'static str {
        self.name
            .split_once('/')
            .map_or("", |(cause, _)| cause)
            .trim_start_matches("control")
    }

    /// Its layer.
    pub fn layer(&self) -> Option<Layer> {
        cause(self.cause()).map(|c| c.layer)
    }

    /// Whether it is to be ruled out of everything.
    pub fn is_control(&self) -> bool {
        self.cause().is_empty()
    }
}
