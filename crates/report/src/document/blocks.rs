//! The blocks that a document is made of.

use std::borrow::Cow;

use super::chart::Chart;
use super::table::Table;
use super::text::{Fact, Text};
use crate::lab::derived::Derived;
use crate::style::Tone;
use crate::words::clean;

/// A whole: what a person reads first, the sections, and what stands at the end.
#[derive(Default)]
pub struct Document {
    /// The title.
    pub title: String,
    /// What a person reads first.
    pub lead: Vec<Block>,
    /// The sections.
    pub sections: Vec<Section>,
    /// What stands at the end.
    pub end: Vec<Block>,
}

/// A part of a document with a title.
pub struct Section {
    /// A word for the anchor of a page.
    pub key: Cow<'static, str>,
    /// The title; empty where what is under it has titles of its own.
    pub title: String,
    /// What is under it.
    pub blocks: Vec<Block>,
}

/// A part of a section.
pub enum Block {
    /// A title below the section's.
    Heading(String),
    /// A sentence or several.
    Sentence(Text),
    /// Sentences of which each stands for itself: what was found, or why.
    List(Vec<Text>),
    /// Names with what there is to say under each.
    Facts(Vec<Fact>),
    /// Rows and columns.
    Table(Table),
    /// A picture of figures.
    Chart(Box<dyn Chart>),
    /// Figures that nothing shown tells, for formats that programs read.
    Figures(Vec<Derived>),
    /// What is shown on request: a terminal has it in short unless every column was asked for.
    Details {
        /// What it is.
        summary: String,
        /// All of it in one line.
        short: Text,
        /// The whole.
        blocks: Vec<Block>,
    },
    /// What follows is another matter: on a terminal an empty line.
    Apart,
    /// The command that makes it again. Who sits at a terminal has just typed it.
    Command(String),
}

impl Block {
    /// A sentence in an ordinary tone.
    pub fn sentence(words: impl AsRef<str>) -> Block {
        Block::Sentence(Text::new(words, Tone::Plain))
    }

    /// A sentence that says how to read what stands above it.
    pub fn aside(words: impl AsRef<str>) -> Block {
        Block::Sentence(Text::new(words, Tone::Faint))
    }

    /// A title below the section's.
    pub fn heading(title: impl AsRef<str>) -> Block {
        Block::Heading(clean(title.as_ref()))
    }

    /// Whether there is nothing to show.
    pub fn is_empty(&self) -> bool {
        match self {
            Block::Heading(_) | Block::Chart(_) | Block::Apart => false,
            Block::Sentence(text) => text.words.is_empty() && text.figures.is_empty(),
            Block::Figures(figures) => figures.is_empty(),
            Block::List(list) => list.is_empty(),
            Block::Facts(facts) => facts.is_empty(),
            Block::Table(table) => table.is_empty(),
            Block::Command(command) => command.is_empty(),
            Block::Details { blocks, .. } => blocks.iter().all(Block::is_empty),
        }
    }
}

impl Section {
    /// A section without blocks yet.
    pub fn new(key: impl Into<Cow<'static, str>>, title: impl AsRef<str>) -> Section {
        Section {
            key: key.into(),
            title: clean(title.as_ref()),
            blocks: Vec::new(),
        }
    }

    /// The same with further blocks; those that show nothing are left out.
    pub fn with(mut self, blocks: impl IntoIterator<Item = Block>) -> Section {
        self.blocks
            .extend(blocks.into_iter().filter(|block| !block.is_empty()));
        self
    }

    /// The same with further blocks under a title of their own; without any there is no title.
    pub fn under(self, title: impl AsRef<str>, blocks: impl IntoIterator<Item = Block>) -> Section {
        let blocks: Vec<Block> = blocks.into_iter().filter(|b| !b.is_empty()).collect();
        let title = (!blocks.is_empty()).then(|| Block::heading(title));
        self.with(title.into_iter().chain(blocks))
    }
}

/// Every figure that blocks tell, in the order shown.
pub(super) fn figures(blocks: &[Block]) -> Vec<&Derived> {
    fn of(block: &Block) -> Vec<&Derived> {
        match block {
            Block::Heading(_) | Block::Chart(_) | Block::Command(_) | Block::Apart => Vec::new(),
            Block::Sentence(text) => text.figures.iter().collect(),
            Block::List(list) => list.iter().flat_map(|text| &text.figures).collect(),
            Block::Facts(facts) => facts.iter().flat_map(|f| &f.text.figures).collect(),
            Block::Table(table) => table.figures().collect(),
            Block::Figures(figures) => figures.iter().collect(),
            Block::Details { blocks, .. } => figures(blocks),
        }
    }
    blocks.iter().flat_map(of).collect()
}
