//! Units and the one place where a number with a unit becomes text.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The unit of a measurement's values, as written in the record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub enum Unit {
    /// Nanoseconds for one operation.
    #[serde(rename = "ns")]
    Nanoseconds,
    /// Operations a second.
    #[serde(rename = "1/s")]
    PerSecond,
    /// Bytes a second.
    #[serde(rename = "bytes/s")]
    BytesPerSecond,
    /// Floating-point operations a second.
    #[serde(rename = "flop/s")]
    FlopPerSecond,
    /// Bytes.
    #[serde(rename = "bytes")]
    Bytes,
    /// Hundredths.
    #[serde(rename = "percent")]
    Percent,
    /// A plain count.
    #[serde(rename = "count")]
    Count,
}

impl Unit {
    /// The unit's name as the record writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Unit::Nanoseconds => "ns",
            Unit::PerSecond => "1/s",
            Unit::BytesPerSecond => "bytes/s",
            Unit::FlopPerSecond => "flop/s",
            Unit::Bytes => "bytes",
            Unit::Percent => "percent",
            Unit::Count => "count",
        }
    }

    /// The scaled steps of this unit, smallest first: each is a divisor and the symbol that goes with it.
    fn steps(self) -> &'static [(f64, &'static str)] {
        match self {
            Unit::Nanoseconds => &[(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s")],
            Unit::PerSecond => &[(1.0, "/s"), (1e3, "k/s"), (1e6, "M/s")],
            Unit::BytesPerSecond => &[(1.0, "B/s"), (1e3, "kB/s"), (1e6, "MB/s"), (1e9, "GB/s")],
            Unit::FlopPerSecond => &[(1.0, "flop/s"), (1e6, "MFLOPS"), (1e9, "GFLOPS")],
            Unit::Bytes => &[
                (1.0, "B"),
                (1024.0, "KiB"),
                (1_048_576.0, "MiB"),
                (1_073_741_824.0, "GiB"),
            ],
            Unit::Percent => &[(1.0, "%")],
            Unit::Count => &[(1.0, "")],
        }
    }

    /// The scale in which a value is best read, so that several figures (a value and its interval) can share it.
    pub fn scale_for(self, value: f64) -> Scale {
        let steps = self.steps();
        let (divisor, symbol) = steps
            .iter()
            .rev()
            .find(|(d, _)| value.abs() >= *d)
            .or(steps.first())
            .copied()
            .unwrap_or((1.0, ""));
        Scale { divisor, symbol }
    }

    /// A value with its unit in three or four significant digits: `133 µs`, `2.41 GB/s`.
    pub fn format(self, value: f64) -> String {
        let scale = self.scale_for(value);
        let number = scale.number(value);
        if scale.symbol.is_empty() {
            number
        } else {
            format!("{number} {}", scale.symbol)
        }
    }
}

/// A divisor and a symbol chosen by [`Unit::scale_for`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// What a value in the record's unit is divided by.
    pub divisor: f64,
    /// What is written after the number.
    pub symbol: &'static str,
}

impl Scale {
    /// The value in this scale with four significant digits (`133.0`, `2.410`, `0.04500`), the symbol left out.
    pub fn number(self, value: f64) -> String {
        significant(value / self.divisor)
    }
}

/// A number with four significant digits, never in exponent form for what a person meets (1e-6 to 1e15).
pub fn significant(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let magnitude = value.abs().log10().floor() as i32;
    let decimals = (3 - magnitude).clamp(0, 9) as usize;
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_scaled_to_what_a_person_reads() {
        assert_eq!(Unit::Nanoseconds.format(133_210.0), "133.2 µs");
        assert_eq!(Unit::Nanoseconds.format(0.25), "0.2500 ns");
        assert_eq!(Unit::BytesPerSecond.format(2.41e9), "2.410 GB/s");
        assert_eq!(Unit::Bytes.format(65536.0), "64.00 KiB");
        assert_eq!(Unit::Percent.format(97.5), "97.50 %");
        assert_eq!(Unit::Count.format(3.0), "3.000");
        assert_eq!(Unit::Nanoseconds.format(0.0), "0 ns");
        assert_eq!(Unit::Nanoseconds.format(f64::NAN), "– ns");
    }

    #[test]
    fn names_are_those_of_the_record() {
        for unit in [
            Unit::Nanoseconds,
            Unit::PerSecond,
            Unit::BytesPerSecond,
            Unit::FlopPerSecond,
            Unit::Bytes,
            Unit::Percent,
            Unit::Count,
        ] {
            assert_eq!(
                serde_json::to_string(&unit).unwrap(),
                format!("\"{}\"", unit.as_str())
            );
        }
    }
}
