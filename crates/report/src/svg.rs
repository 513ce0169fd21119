//! Charts as inline SVG: they need no script, print well, and are read out by a screen reader.
//!
//! Horizontal positions are percentages and vertical ones pixels, so a chart is as wide as its page and its letters
//! keep their size on a phone. Colours come from the page's style sheet by class; series differ by the shape of their
//! marks too.
//!
//! A chart is one of two kinds. Where each mark has a row of a table to itself (intervals, a comparison, a budget, a
//! waterfall) it is a cell of that table ([`cells`]): the table is its text alternative, and both scroll and print
//! together. Else it is a picture of its own with a title and a description ([`lines`], [`strip`]).

pub mod cells;
pub mod icicle;
pub mod lines;
mod moments;
pub mod strip;
pub mod timeline;

use fingerpost_record::Unit;

/// The plot begins and ends this many per cent inside its box, so that a mark at the edge is whole.
const MARGIN: f64 = 1.5;
/// Values whose largest is this many times the smallest are shown on a logarithmic axis.
const LOG_FROM: f64 = 20.0;
/// An axis stays logarithmic with values that are not positive where there are more than this many positive ones to
/// each of them.
const MOSTLY: usize = 4;

/// A linear or logarithmic axis over a range of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    from: f64,
    to: f64,
    log: bool,
    /// Whether its ticks are round in KiB, MiB and GiB.
    binary: bool,
}

impl Axis {
    /// An axis for all values: logarithmic where nearly all are positive and those are far apart, else linear from
    /// zero. On a logarithmic one the few that are not positive (a cost that came out below zero) lie at its lower end.
    pub fn over(values: impl IntoIterator<Item = f64>) -> Axis {
        let values: Vec<f64> = values.into_iter().filter(|v| v.is_finite()).collect();
        let ends = |of: &mut dyn Iterator<Item = f64>| {
            of.fold(None, |range: Option<(f64, f64)>, v| {
                Some(range.map_or((v, v), |(low, high)| (low.min(v), high.max(v))))
            })
        };
        let positive = values.iter().filter(|v| **v > 0.0).count();
        let few_are_not = positive > MOSTLY * (values.len() - positive);
        let range = ends(&mut values.iter().copied().filter(|v| *v > 0.0 || !few_are_not));
        let (low, high) = range.unwrap_or((0.0, 1.0));
        // Of a linear axis, all are within.
        let all = ends(&mut values.iter().copied()).unwrap_or((0.0, 1.0));
        if low > 0.0 && high / low >= LOG_FROM {
            // Powers that a hostile run's values cannot push out of a float's range.
            let power = |exponent: f64| 10f64.powi(exponent.clamp(-300.0, 300.0) as i32);
            return Axis {
                from: power(low.log10().floor()),
                to: power(high.log10().ceil()),
                log: true,
                binary: false,
            };
        }
        let (from, to) = rounded(all.0.min(0.0), all.1.max(0.0)).unwrap_or((0.0, 1.0));
        Axis {
            from,
            to,
            log: false,
            binary: false,
        }
    }

    /// Whether equal distances are equal ratios.
    pub fn is_log(&self) -> bool {
        self.log
    }

    /// A linear axis from one value to another, or round ones just beyond, for values whose differences matter more
    /// than their size.
    pub fn between(from: f64, to: f64) -> Axis {
        let (from, to) = rounded(from, to).unwrap_or((from - 0.5, from + 0.5));
        Axis {
            from,
            to,
            log: false,
            binary: false,
        }
    }

    /// A linear axis from zero to just this value, for lines of time that fill it.
    pub fn up_to(to: f64) -> Axis {
        Axis {
            from: 0.0,
            to: if to > 0.0 && to.is_finite() { to } else { 1.0 },
            log: false,
            binary: false,
        }
    }

    /// How far along the axis a value lies, 0 to 1; values beyond an end lie at it.
    pub fn share(&self, value: f64) -> f64 {
        let share = if self.log {
            (value.max(self.from).log10() - self.from.log10())
                / (self.to.log10() - self.from.log10())
        } else {
            (value - self.from) / (self.to - self.from)
        };
        if share.is_nan() {
            0.0
        } else {
            share.clamp(0.0, 1.0)
        }
    }

    /// Where a value lies, as a percentage of the box's width.
    pub fn place(&self, value: f64) -> f64 {
        MARGIN + self.share(value) * (100.0 - 2.0 * MARGIN)
    }

    /// Values to label: at most six.
    pub fn ticks(&self) -> Vec<f64> {
        if self.binary {
            return self.binary_ticks();
        }
        if self.log {
            let (first, last) = (
                self.from.log10().round() as i32,
                self.to.log10().round() as i32,
            );
            let step = ((last - first) as usize).div_ceil(5).max(1);
            return (first..=last)
                .step_by(step)
                .map(|e| 10f64.powi(e))
                .collect();
        }
        let step = nice_step(self.to - self.from);
        let count = ((self.to - self.from) / step).round() as usize;
        (0..=count).map(|i| self.from + i as f64 * step).collect()
    }

    /// The same axis, its ticks round in the unit that they are shown in: of bytes, whole KiB, MiB and GiB.
    pub fn in_unit(self, unit: Unit) -> Axis {
        Axis {
            binary: unit == Unit::Bytes && self.from >= 0.0,
            ..self
        }
    }

    fn binary_ticks(&self) -> Vec<f64> {
        if self.log {
            let (first, last) = (
                self.from.log2().ceil() as i32,
                self.to.log2().floor() as i32,
            );
            let step = (last - first).max(0) as usize / 5 + 1;
            return (first..=last).step_by(step).map(|e| 2f64.powi(e)).collect();
        }
        let divisor = Unit::Bytes.scale_for(self.to).divisor;
        // Parts of a byte mean nothing.
        let step = (nice_step((self.to - self.from) / divisor) * divisor).max(1.0);
        let first = (self.from / step).ceil();
        let count = ((self.to / step).floor() - first).clamp(0.0, 10.0) as usize;
        (0..=count).map(|i| (first + i as f64) * step).collect()
    }
}

/// Round ends of a linear axis around these. A range that is nothing, or too large for its own steps, has none, and
/// still needs a width.
fn rounded(from: f64, to: f64) -> Option<(f64, f64)> {
    let step = nice_step(to - from);
    let (from, to) = ((from / step).floor() * step, (to / step).ceil() * step);
    (to > from && (to - from).is_finite()).then_some((from, to))
}

/// A step of 1, 2 or 5 times a power of ten that divides a width into at most five.
fn nice_step(width: f64) -> f64 {
    if !(width > 0.0 && width.is_finite()) {
        return 1.0;
    }
    let rough = width / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .find(|f| f * power >= rough * 0.999_999)
        .unwrap_or(10.0);
    factor * power
}

/// A value on an axis in as few digits as it has: `10 µs`, `2.5 GB/s`.
pub fn tick_label(unit: Unit, value: f64) -> String {
    // Nothing is the same in every unit, and the axis's other labels have theirs.
    if value == 0.0 && unit != Unit::Percent {
        return "0".to_owned();
    }
    let scale = unit.scale_for(value);
    let number = scale.number(value);
    let short = if number.contains('.') {
        number.trim_end_matches('0').trim_end_matches('.')
    } else {
        &number
    };
    format!("{short} {}", scale.symbol).trim_end().to_owned()
}

/// A place as CSS has it, in per cent of the width.
pub fn percent(place: f64) -> String {
    format!("{place:.2}%")
}

/// Labels at the edges grow inwards.
pub fn anchor(place: f64) -> &'static str {
    match place {
        p if p < 10.0 => "start",
        p if p > 90.0 => "end",
        _ => "middle",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_axis_is_logarithmic_only_where_values_are_far_apart_and_positive() {
        let near = Axis::over([40.0, 95.0]);
        assert_eq!((near.from, near.to, near.is_log()), (0.0, 100.0, false));
        let far = Axis::over([40.0, 133_000.0]);
        assert_eq!(
            (far.from.round(), far.to.round(), far.is_log()),
            (10.0, 1e6, true)
        );
        assert!(!Axis::over([0.0, 1e9]).is_log());
        assert!(!Axis::over([-5.0, 1e3]).is_log());
        let one_below: Vec<f64> = (0..12)
            .map(|i| 100.0 * f64::from(1 << i))
            .chain([-3.0, 0.0])
            .collect();
        let axis = Axis::over(one_below);
        assert!(
            axis.is_log() && axis.share(-3.0) == 0.0 && axis.share(200.0) > 0.0,
            "{axis:?}"
        );
    }

    #[test]
    fn places_are_within_the_box_and_in_order() {
        for axis in [
            Axis::over([40.0, 95.0]),
            Axis::over([1.0, 1e6]),
            Axis::over([-3.0, 8.0]),
            Axis::over([]),
            Axis::over([0.0]),
            Axis::over([7.0]),
        ] {
            let places: Vec<f64> = axis.ticks().into_iter().map(|t| axis.place(t)).collect();
            assert!(
                places.len() >= 2 && places.len() <= 7,
                "{axis:?} has {} ticks",
                places.len()
            );
            assert!(
                places.is_sorted()
                    && places
                        .iter()
                        .all(|p| (MARGIN - 1e-9..=100.0 - MARGIN + 1e-9).contains(p)),
                "{axis:?}: {places:?}"
            );
        }
    }

    #[test]
    fn bytes_are_labelled_in_round_binary_units() {
        let labels = |axis: Axis| {
            axis.in_unit(Unit::Bytes)
                .ticks()
                .into_iter()
                .map(|t| tick_label(Unit::Bytes, t))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            labels(Axis::over([3.0e6, 17.0e6])),
            ["0", "5 MiB", "10 MiB", "15 MiB"]
        );
        for axis in [
            Axis::over([4096.0, 1e9]),
            Axis::over([1.0, 1e12]),
            Axis::over([100.0, 9000.0]),
            Axis::over([]),
            Axis::over([0.0]),
        ] {
            let ticks = axis.in_unit(Unit::Bytes).ticks();
            assert!(
                (1..=7).contains(&ticks.len()) && ticks.is_sorted(),
                "{axis:?}: {ticks:?}"
            );
            assert!(
                labels(axis).iter().all(|label| !label.contains('.')),
                "{:?}",
                labels(axis)
            );
        }
        assert_eq!(
            Axis::over([40.0, 95.0]).in_unit(Unit::Nanoseconds).ticks(),
            Axis::over([40.0, 95.0]).ticks()
        );
    }

    #[test]
    fn extreme_values_make_no_endless_axis() {
        for values in [
            [f64::MIN_POSITIVE, f64::MAX],
            [f64::MIN, f64::MAX],
            [f64::NAN, f64::INFINITY],
            [5e-324, 1.0],
        ] {
            let axis = Axis::over(values);
            assert!(axis.ticks().len() <= 12, "{values:?}");
            assert!(axis.place(1.0).is_finite(), "{values:?}");
        }
    }

    #[test]
    fn ticks_are_short() {
        assert_eq!(tick_label(Unit::Nanoseconds, 10_000.0), "10 µs");
        assert_eq!(tick_label(Unit::BytesPerSecond, 2.5e9), "2.5 GB/s");
        assert_eq!(tick_label(Unit::Count, 1000.0), "1000");
        assert_eq!(tick_label(Unit::Nanoseconds, 0.0), "0");
    }
}
