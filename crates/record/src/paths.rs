//! Requests that were followed through the kernel: where each was at every moment, summed up.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::component::{Blocker, Component, Link, Side, WaitClass};
use crate::layer::Layer;
use crate::params::Params;
use crate::stacks::{RequestStacks, Stacks};

pub mod older;
pub(crate) mod valid;

/// Where followed requests of one step of a workload spent their time. Every moment of a request is in exactly one
/// leaf; nothing is scaled or fitted, so the leaves' shares add up to 1 with `not_followed`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Paths {
    /// The workload's name.
    pub workload: String,
    /// The step's parameters.
    #[serde(default)]
    pub params: Params,
    /// How the kernel's events were had, in words.
    pub source: String,
    /// Why programs in the kernel could not have the events, where perf's rings had them instead: what happens while a
    /// CPU idles may be missing then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_programs: Option<String>,
    /// Stretches of time in which events were taken.
    pub windows: u64,
    /// Seconds of all windows.
    pub seconds: f64,
    /// Events that were read.
    pub events: u64,
    /// Events that the kernel could not deliver; windows that lost any are left out.
    pub lost: u64,
    /// CPU seconds that taking and following took.
    pub self_cost: f64,
    /// CPU seconds that recording one event took of the thread that caused it, as it was measured before; 0 where it is
    /// not known.
    #[serde(default)]
    pub event_cost: f64,
    /// Requests that were followed from beginning to end.
    pub followed: u64,
    /// Requests that a window's beginning or end cut; they are in no sum.
    pub cut: u64,
    /// Requests a second in all of the time that a service was watched, windows and what is between them: the bytes
    /// that the kernel counted on its connections, divided by those of a request in the windows. Nothing where they
    /// could not be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole_rate: Option<f64>,
    /// Every request of the whole look, counted in the kernel, where that could be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole: Option<WholeLook>,
    /// Latency of the followed requests.
    pub latency: Latency,
    /// The load generator's own account of the same windows, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator: Option<Latency>,
    /// What a request's time went to, the largest first.
    pub leaves: Vec<Leaf>,
    /// By whom the largest of them came about; of those that another process had a part in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<Route>,
    /// What requests asked of other services themselves, the most time first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<Asked>,
    /// The share of all requests' time, 0 to 1, that could not be followed: lost events, unknown wakers.
    pub not_followed: f64,
    /// The slowest requests, whole, the slowest first; at most [`MOST_SLOWEST`].
    #[serde(default)]
    pub slowest: Vec<Slow>,
    /// Which functions had the CPU, where that was sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stacks: Option<Stacks>,
    /// Flame graphs of requests: on the CPU and off it, of all and of the slowest 1 %.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub graphs: Vec<RequestStacks>,
}

impl Paths {
    /// CPU seconds that recording events took for each request, in the mean: it is served that much more slowly, or
    /// more where it waits for others, while events are taken. 0 where that is not known.
    pub fn recording(&self) -> f64 {
        let requests = self.requests();
        if requests > 0.0 {
            self.events as f64 * self.event_cost / requests
        } else {
            0.0
        }
    }

    /// The same where it is so large a part of a request that whoever reads its time or rate is to know it.
    pub fn noticeable_recording(&self) -> Option<f64> {
        Some(self.recording()).filter(|cost| *cost > 0.0 && *cost >= NOTICEABLE * self.latency.mean)
    }

    /// Requests of all windows: of those that a window cut half belong to it, as each is cut by one end of two.
    pub fn requests(&self) -> f64 {
        self.followed as f64 + self.cut as f64 / 2.0
    }

    /// Every request of the whole look, where they were counted and there were any.
    pub fn counted(&self) -> Option<&WholeLook> {
        self.whole.as_ref().filter(|w| w.latency.count > 0)
    }

    /// Seconds of a request in the mean: of all where they were counted, else of those that were followed.
    pub fn mean(&self) -> f64 {
        self.counted().map_or(self.latency.mean, |w| w.latency.mean)
    }

    /// Requests a second: of all of the time where that was counted, else of the windows. 0 where no window was open.
    pub fn rate(&self) -> f64 {
        let in_windows = if self.seconds > 0.0 {
            self.requests() / self.seconds
        } else {
            0.0
        };
        self.whole_rate.unwrap_or(in_windows)
    }
}

/// The share of a request's time from which on what recording its events takes is told.
const NOTICEABLE: f64 = 0.03;
/// The slowest requests that a record keeps of one step.
pub const MOST_SLOWEST: usize = 20;
/// The spans that it keeps of one of them.
pub const MOST_SPANS: usize = 200;
/// The leaves that it keeps of one step.
pub const MOST_LEAVES: usize = 400;
/// The services that requests asked that it keeps.
pub const MOST_ASKED: usize = 20;
/// The routes that it keeps.
pub const MOST_ROUTES: usize = 20;
/// The links of a chain that it keeps.
pub const MOST_CHAIN: usize = 16;
/// The characters that a name in it may have: a component, a process, a link.
pub const MOST_NAME: usize = 200;
/// The steps of which a run keeps paths.
pub const MOST_PATHS: usize = 200;

/// What the followed requests asked of one other service.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Asked {
    /// Who answered: a thread's name; empty where it was not seen.
    pub name: String,
    /// Questions with their answers, of all requests together.
    pub turns: u64,
    /// Seconds from the first byte of a question to the last of its answer, all together.
    pub seconds: f64,
}

/// The way by which most of the time of a leaf came about.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Route {
    /// The place of the leaf in [`Paths::leaves`].
    pub leaf: u32,
    /// Whom the request's thread waited for, whom that did, and so on.
    pub hops: Vec<Hop>,
}

/// A step from a thread to one that it waited for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Hop {
    /// What it waited for.
    pub link: Link,
    /// The thread's name; empty where it is not known.
    pub name: String,
}

/// All requests of a service while it was looked at, windows and what is between them. A request is a turn at a
/// connection: from the arrival of its first bytes to the last bytes of its answer before the next one.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct WholeLook {
    /// How they were counted, in words.
    pub source: String,
    /// Seconds that they were counted for.
    pub seconds: f64,
    /// Latency of those that were answered: an exact count and mean, and quantiles within a hundredth.
    pub latency: Latency,
    /// The longest, in seconds.
    pub longest: f64,
    /// Seconds from a request's arrival until a thread read of it, in the mean.
    pub unread: f64,
    /// Bytes that the service read at its connections.
    pub received: u64,
    /// Bytes that it gave to them.
    pub sent: u64,
    /// Connections that began.
    pub opened: u64,
    /// Connections that ended.
    pub closed: u64,
    /// Requests that ended with their connection, without an answer.
    pub unanswered: u64,
    /// Connections whose requests were not counted, for want of room.
    pub missed: u64,
    /// Requests that had no answer at the end.
    pub under_way: u64,
    /// Of these, those that no thread had read.
    pub under_way_unread: u64,
    /// How long the oldest of these had been under way, in seconds.
    pub oldest: f64,
}

impl WholeLook {
    /// Requests a second.
    pub fn rate(&self) -> f64 {
        if self.seconds > 0.0 {
            self.latency.count as f64 / self.seconds
        } else {
            0.0
        }
    }
}

/// How many requests, and how long they took, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Latency {
    /// Requests.
    pub count: u64,
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// Nine in ten are not longer.
    pub p90: f64,
    /// 99 in 100 are not longer.
    pub p99: f64,
}

/// What time went to, at the end of one chain of waits.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Leaf {
    /// What the thread at the end of the chain did or waited for.
    pub class: WaitClass,
    /// Which side that thread is on.
    pub side: Side,
    /// Who had meanwhile what was waited for, or whose work it was, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocker: Option<Blocker>,
    /// How the path came there, from the request's own thread on. Empty for what that thread did itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<Link>,
    /// Of all requests.
    pub all: Share,
    /// Of the requests in the middle: from the 40th to the 60th percentile of latency.
    pub middle: Share,
    /// Of the slowest 1 %.
    pub slow: Share,
}

impl Leaf {
    /// The layer that it belongs to, and what it is called by itself, before its chain is judged.
    pub fn component(&self) -> (Layer, Component) {
        self.class.component(self.side)
    }

    /// Whether this link is in its chain.
    pub fn has(&self, link: Link) -> bool {
        self.chain.contains(&link)
    }
}

/// A leaf's part of a class of requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Share {
    /// Seconds of a request, in the mean.
    pub seconds: f64,
    /// Share of the requests' time, 0 to 1.
    pub share: f64,
    /// Lower end of the 95 % interval of `share`: a bootstrap over stretches of requests.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// One slow request, whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Slow {
    /// Seconds from beginning to end.
    pub seconds: f64,
    /// What it did, in the order of time, each after the one before.
    pub spans: Vec<SlowSpan>,
}

/// A stretch of a slow request.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct SlowSpan {
    /// Seconds after the request's beginning.
    pub at: f64,
    /// Its length in seconds.
    pub seconds: f64,
    /// As [`Leaf::class`].
    pub class: WaitClass,
    /// As [`Leaf::side`].
    pub side: Side,
    /// As [`Leaf::blocker`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocker: Option<Blocker>,
    /// As [`Leaf::chain`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub chain: Vec<Link>,
}

impl SlowSpan {
    /// As [`Leaf::component`].
    pub fn component(&self) -> (Layer, Component) {
        self.class.component(self.side)
    }
}
