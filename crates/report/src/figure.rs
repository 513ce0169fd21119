//! A value with its interval as a person reads it.

use fingerpost_record::unit::Scale;
use fingerpost_record::{Estimate, Unit};

/// An interval whose one side is this many times the other is shown as its two ends.
const LOPSIDED: f64 = 1.5;

/// An estimate with the scale that its parts share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The estimate, in the record's unit.
    pub estimate: Estimate,
    /// The scale chosen for the value.
    pub scale: Scale,
}

impl Figure {
    /// The figure of an estimate.
    pub fn new(estimate: Estimate, unit: Unit) -> Figure {
        Figure {
            estimate,
            scale: unit.scale_for(estimate.value),
        }
    }

    /// The value alone: `41.30`.
    pub fn value(&self) -> String {
        self.number(self.estimate.value)
    }

    /// The unit's symbol: `µs`.
    pub fn symbol(&self) -> &'static str {
        self.scale.symbol
    }

    /// The interval in the value's scale: `± 0.17`, or `40.9–42.8` where the sides differ much; nothing for an interval
    /// without width.
    pub fn interval(&self) -> String {
        let Estimate {
            value, low, high, ..
        } = self.estimate;
        if low == high {
            return String::new();
        }
        let (below, above) = (value - low, high - value);
        if below.max(above) > LOPSIDED * below.min(above) {
            // A dash before a minus would not be read as one.
            let between = if low < 0.0 { " to " } else { "–" };
            return format!("{}{between}{}", self.number(low), self.number(high));
        }
        let half = (high - low) / 2.0;
        let units = half / self.scale.divisor * 10_f64.powi(self.decimals() as i32);
        // What a printed figure was rounded from is half of its last digit, which that digit alone would make a whole
        // or nothing.
        if (units - 0.5).abs() < 1e-3 {
            return format!("± {:.*}", self.decimals() + 1, half / self.scale.divisor);
        }
        let half = self.number(half);
        // A figure that is surer than its digits show.
        if half.bytes().all(|b| matches!(b, b'0' | b'.')) {
            format!("± <{}1", &half[..half.len() - 1])
        } else {
            format!("± {half}")
        }
    }

    /// The value, the interval and the unit in one text: `41.30 ± 0.17 ns`.
    pub fn text(&self) -> String {
        let parts = [self.value(), self.interval(), self.symbol().to_owned()];
        parts
            .iter()
            .filter(|p| !p.is_empty())
            .cloned()
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// As a sentence tells it: the value and its unit, and the interval where it is more than a tenth of the value
    /// either way.
    pub fn told(&self) -> String {
        let Estimate {
            value, low, high, ..
        } = self.estimate;
        let alone = format!("{} {}", self.value(), self.symbol());
        if high - low > 0.2 * value.abs() {
            format!("{alone} ({})", self.interval())
        } else {
            alone
        }
    }

    /// Another value (a percentile) in this figure's scale and digits.
    pub fn number(&self, value: f64) -> String {
        let decimals = self.decimals();
        format!("{:.decimals$}", value / self.scale.divisor)
    }

    /// Decimals that show four digits of the value.
    fn decimals(&self) -> usize {
        let value = (self.estimate.value / self.scale.divisor).abs();
        if value == 0.0 {
            2
        } else {
            (3 - value.log10().floor() as i32).clamp(0, 9) as usize
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: f64, low: f64, high: f64, unit: Unit) -> String {
        Figure::new(
            Estimate {
                value,
                low,
                high,
                confidence: 0.95,
            },
            unit,
        )
        .text()
    }

    #[test]
    fn an_interval_from_below_nothing_has_no_dash_before_its_minus() {
        assert_eq!(
            text(10.0, -50.0, 20.0, Unit::Nanoseconds),
            "10.00 -50.00 to 20.00 ns"
        );
        assert_eq!(text(10.0, 1.0, 20.0, Unit::Nanoseconds), "10.00 ± 9.50 ns");
        assert_eq!(
            text(10.0, 1.0, 90.0, Unit::Nanoseconds),
            "10.00 1.00–90.00 ns"
        );
    }

    #[test]
    fn value_and_interval_share_unit_and_digits() {
        assert_eq!(text(41.3, 41.1, 41.5, Unit::Nanoseconds), "41.30 ± 0.20 ns");
        assert_eq!(
            text(133_000.0, 132_000.0, 134_000.0, Unit::Nanoseconds),
            "133.0 ± 1.0 µs"
        );
        assert_eq!(
            text(999.0, 990.0, 1008.0, Unit::Nanoseconds),
            "999.0 ± 9.0 ns"
        );
        assert_eq!(
            text(2.41e9, 2.40e9, 2.42e9, Unit::BytesPerSecond),
            "2.410 ± 0.010 GB/s"
        );
        assert_eq!(text(3.0, 3.0, 3.0, Unit::Count), "3.000");
        assert_eq!(text(0.0, 0.0, 0.0, Unit::Percent), "0.00 %");
    }

    #[test]
    fn a_sentence_tells_the_interval_where_it_is_wide() {
        let told = |low: f64, high: f64| {
            Figure::new(
                Estimate {
                    value: 31_620.0,
                    low,
                    high,
                    confidence: 0.95,
                },
                Unit::Nanoseconds,
            )
            .told()
        };
        assert_eq!(told(18_720.0, 53_390.0), "31.62 µs (18.72–53.39)");
        assert_eq!(told(28_000.0, 35_240.0), "31.62 µs (± 3.62)");
        assert_eq!(told(29_000.0, 34_240.0), "31.62 µs");
    }

    #[test]
    fn a_lopsided_interval_shows_its_ends() {
        assert_eq!(
            text(100.0, 99.0, 110.0, Unit::Nanoseconds),
            "100.0 99.0–110.0 ns"
        );
        assert_eq!(
            text(100.0, 100.0, 110.0, Unit::Nanoseconds),
            "100.0 100.0–110.0 ns"
        );
    }

    #[test]
    fn an_interval_below_the_digits_is_not_shown_as_zero() {
        assert_eq!(
            text(41.3, 41.2999, 41.3001, Unit::Nanoseconds),
            "41.30 ± <0.01 ns"
        );
        assert_eq!(
            text(12_345_678.0, 12_345_677.9, 12_345_678.1, Unit::Count),
            "12345678 ± <1"
        );
    }

    #[test]
    fn half_of_the_last_digit_is_neither_a_whole_one_nor_nothing() {
        assert_eq!(
            text(9496.0, 9495.5, 9496.5, Unit::Nanoseconds),
            "9.496 ± 0.0005 µs"
        );
        assert_eq!(
            text(7645.0, 7644.5, 7645.5, Unit::Nanoseconds),
            "7.645 ± 0.0005 µs"
        );
        assert_eq!(text(9078.0, 9077.5, 9078.5, Unit::Count), "9078 ± 0.5");
    }
}
