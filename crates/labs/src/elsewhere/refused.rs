//! Why a setting of somebody else's is not taken.

/// The longest value that is taken.
pub(super) const LONGEST: usize = 200;

/// Why a setting is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Only the user may choose it, whatever its value is.
    Setting,
    /// It may be chosen, but not with this value; what it takes, in words.
    Value(String),
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refused::Setting => {
                f.write_str("it is not among the settings that are known to be harmless")
            }
            Refused::Value(takes) => write!(f, "known to be harmless are {takes}"),
        }
    }
}
