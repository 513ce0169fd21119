//! How text may look on the terminal at hand.

/// What the terminal can show. Decided by the binary, so that no format looks at the environment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Whether colours may be used.
    pub color: bool,
    /// Columns of the terminal; nothing where lines may be as long as they like (a file, a pipe).
    pub width: Option<usize>,
    /// Whether the user asked for every column (`--wide`).
    pub wide: bool,
}

/// What a piece of text is, for colouring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Ordinary text.
    #[default]
    Plain,
    /// A heading.
    Strong,
    /// Present for completeness: skipped rows, column titles.
    Faint,
    /// Not to be relied on.
    Doubtful,
    /// Went wrong, or got worse.
    Bad,
    /// Got better.
    Good,
}

impl Style {
    /// Text with its tone; without colours, the text alone.
    pub fn paint(&self, tone: Tone, text: &str) -> String {
        let code = match tone {
            _ if !self.color || text.is_empty() => return text.to_owned(),
            Tone::Plain => return text.to_owned(),
            Tone::Strong => "1",
            Tone::Faint => "2",
            Tone::Doubtful => "33",
            Tone::Bad => "31",
            Tone::Good => "32",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}
