//! Which numbers a setting takes that the user did not write.

use fingerpost_record::Param;

/// Which numbers are taken beside a setting's words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Numbers {
    /// None.
    None,
    /// Whole numbers from the first to the last, also with K, M or G.
    Whole(i64, i64),
    /// Numbers from the first to the last.
    Real(f64, f64),
}

impl Numbers {
    /// Whether this text is one of them.
    pub fn take(self, text: &str) -> bool {
        match self {
            Numbers::None => false,
            Numbers::Whole(low, high) => {
                let digits = text.trim_end_matches(['K', 'M', 'G']);
                let plain = text.len() - digits.len() <= 1 && is_digits(digits);
                plain && matches!(Param::parse(text), Param::Int(n) if (low..=high).contains(&n))
            }
            Numbers::Real(low, high) => {
                let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
                let plain = is_digits(whole) && is_digits(part);
                plain && text.parse().is_ok_and(|n| (low..=high).contains(&n))
            }
        }
    }

    /// Them in words; nothing where there are none.
    pub fn words(self) -> Option<String> {
        match self {
            Numbers::None => None,
            Numbers::Whole(low, high) => Some(format!("whole numbers from {low} to {high}")),
            Numbers::Real(low, high) => Some(format!("numbers from {low} to {high}")),
        }
    }
}

/// Whether a text is a whole number that fits 64 bits, and nothing else.
pub fn is_digits(text: &str) -> bool {
    (1..=18).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())
}
