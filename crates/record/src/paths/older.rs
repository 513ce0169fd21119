//! Leaves and stretches of records of schema 1, which have a layer, and text for all else: they are converted when they
//! are read, and written as what they are.

use serde::{Deserialize, Deserializer};

use super::{Leaf, Share, SlowSpan};
use crate::component::{Blocker, Link, Side, WaitClass};
use crate::findings::Layer;

/// A leaf of this schema or of the one before.
#[derive(Deserialize)]
struct AnyLeaf {
    #[serde(flatten)]
    what: AnyWhat,
    all: Share,
    middle: Share,
    slow: Share,
}

/// A stretch of this schema or of the one before.
#[derive(Deserialize)]
struct AnySpan {
    #[serde(flatten)]
    what: AnyWhat,
    at: f64,
    seconds: f64,
}

#[derive(Deserialize)]
struct AnyWhat {
    #[serde(default)]
    class: Option<WaitClass>,
    #[serde(default)]
    side: Side,
    #[serde(default)]
    blocker: Option<Blocker>,
    #[serde(default)]
    chain: Vec<AnyLink>,
    #[serde(default)]
    layer: Option<Layer>,
    #[serde(default)]
    component: String,
    #[serde(default)]
    whom: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum AnyLink {
    Known(Link),
    Older(String),
}

/// What a leaf or a stretch of schema 1 is: class, side, blocker and chain, by its layer, component, whom and chain.
pub fn read(
    layer: Layer,
    component: &str,
    whom: &str,
    chain: &[&str],
) -> (WaitClass, Side, Option<Blocker>, Vec<Link>) {
    let (class, side) = WaitClass::of_older(layer, component);
    let chain = chain.iter().map(|link| Link::of_older(link)).collect();
    (class, side, Blocker::of_older(whom), chain)
}

impl AnyWhat {
    fn read(self) -> (WaitClass, Side, Option<Blocker>, Vec<Link>) {
        let links = self.chain.into_iter().map(|link| match link {
            AnyLink::Known(link) => link,
            AnyLink::Older(text) => Link::of_older(&text),
        });
        let chain = links.collect();
        if let Some(class) = self.class {
            return (class, self.side, self.blocker, chain);
        }
        let layer = self.layer.unwrap_or(Layer::Application);
        let (class, side) = WaitClass::of_older(layer, &self.component);
        (class, side, Blocker::of_older(&self.whom), chain)
    }
}

impl<'de> Deserialize<'de> for Leaf {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Leaf, D::Error> {
        let AnyLeaf {
            what,
            all,
            middle,
            slow,
        } = AnyLeaf::deserialize(from)?;
        let (class, side, blocker, chain) = what.read();
        Ok(Leaf {
            class,
            side,
            blocker,
            chain,
            all,
            middle,
            slow,
        })
    }
}

impl<'de> Deserialize<'de> for SlowSpan {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<SlowSpan, D::Error> {
        let AnySpan { what, at, seconds } = AnySpan::deserialize(from)?;
        let (class, side, blocker, chain) = what.read();
        Ok(SlowSpan {
            at,
            seconds,
            class,
            side,
            blocker,
            chain,
        })
    }
}
