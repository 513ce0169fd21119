//! What is shown as lines of fields, for programs: values unrounded in the record's units.

/// A field.
#[derive(Clone, Debug, PartialEq)]
pub enum Field {
    /// A text of a run.
    Text(String),
    /// A number, or nothing.
    Number(String),
}

/// Lines of fields under the names of their columns.
#[derive(Clone, Debug, Default)]
pub struct Records {
    /// The names.
    pub columns: Vec<&'static str>,
    /// The lines, each with a field for each column.
    pub lines: Vec<Vec<Field>>,
}

impl Field {
    /// A text.
    pub fn text(text: impl Into<String>) -> Field {
        Field::Text(text.into())
    }

    /// A number.
    pub fn number(value: impl ToString) -> Field {
        Field::Number(value.to_string())
    }

    /// A number that there may be.
    pub fn maybe(value: Option<impl ToString>) -> Field {
        Field::Number(value.map_or_else(String::new, |v| v.to_string()))
    }

    /// Nothing.
    pub fn none() -> Field {
        Field::Number(String::new())
    }
}
