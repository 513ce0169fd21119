//! Words with their tone and their figures.

use crate::lab::derived::Derived;
use crate::style::Tone;
use crate::words::clean;

/// A sentence with its tone, and the figures that it tells.
pub struct Text {
    /// The words, cleaned.
    pub words: String,
    /// Whether it is doubtful, or stands aside.
    pub tone: Tone,
    /// What belongs to it, each a sentence of its own: the evidence of a claim.
    pub below: Vec<String>,
    /// The figures in it, for formats that programs read.
    pub figures: Vec<Derived>,
}

/// A name, and what there is to say under it.
pub struct Fact {
    /// The name, cleaned.
    pub name: String,
    /// The text.
    pub text: Text,
}

impl Text {
    /// Words in a tone, which are cleaned here.
    pub fn new(words: impl AsRef<str>, tone: Tone) -> Text {
        Text {
            words: clean(words.as_ref()),
            tone,
            below: Vec::new(),
            figures: Vec::new(),
        }
    }

    /// The same with what belongs to it.
    pub fn over(mut self, below: impl IntoIterator<Item = impl AsRef<str>>) -> Text {
        let below = below.into_iter().map(|words| clean(words.as_ref()));
        self.below.extend(below);
        self
    }

    /// The same with the figures that it tells.
    pub fn with(mut self, figures: impl IntoIterator<Item = Derived>) -> Text {
        self.figures.extend(figures);
        self
    }
}

impl Fact {
    /// A name, and what there is to say under it; both are cleaned here.
    pub fn new(name: impl AsRef<str>, words: impl AsRef<str>, tone: Tone) -> Fact {
        Fact {
            name: clean(name.as_ref()),
            text: Text::new(words, tone),
        }
    }

    /// The same with the figures that it tells.
    pub fn with(mut self, figures: impl IntoIterator<Item = Derived>) -> Fact {
        self.text.figures.extend(figures);
        self
    }
}
