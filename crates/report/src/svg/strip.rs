//! A strip of dots: raw samples, one line per process.

use std::fmt::Write as _;

use fingerpost_record::text::counted;
use fingerpost_record::{Process, Unit};
use maud::{Markup, html};

/// The most dots of one strip: a full run has hundreds of strips, and its report stays below a MiB.
pub const MOST: usize = 70;
/// The strip's own coordinates; it is stretched to its place, its dots are not.
const WIDTH: f64 = 1000.0;

/// What of a strip can be told in words.
pub struct Strip {
    /// The picture.
    pub picture: Markup,
    /// Samples shown, and samples that there are.
    pub shown: (usize, usize),
}

/// The axis of a strip: from the least to the greatest, unless a few lie so far out that the others would be one dot;
/// those stand at its end.
fn ends(mut values: Vec<f64>) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let at = |share: f64| values[((values.len() - 1) as f64 * share).round() as usize];
    let (least, greatest, low, high) = (at(0.0), at(1.0), at(BULK), at(1.0 - BULK));
    let reach = (high / 2.0 - low / 2.0) * 2.0 * BEYOND;
    if reach > 0.0 && reach.is_finite() {
        (least.max(low - reach), greatest.min(high + reach))
    } else {
        (least, greatest)
    }
}

/// Below this share and above its complement lie the samples that may stand at the ends.
const BULK: f64 = 0.05;
/// What is further from the bulk than this many times its width stands at the end.
const BEYOND: f64 = 1.0;

/// The dots of a strip, as paths.
#[derive(Default)]
struct Dots {
    undisturbed: String,
    /// Of samples that were disturbed, and of processes that were set aside.
    hit: String,
    /// Of what lies beyond the axis, at its ends.
    beyond: String,
    shown: usize,
}

/// Dots for some of all these samples, each process's in a line, which lie a step apart. `extremes` are the least and
/// the greatest sample; then come the axis's ends.
fn dots(
    processes: &[Process],
    total: usize,
    extremes: [f64; 2],
    [low, high]: [f64; 2],
    step: f64,
) -> Dots {
    let every = total.div_ceil(MOST).max(1);
    let mut dots = Dots::default();
    let mut at = 0;
    // Thinning keeps one of each end: they are what a reader looks for.
    let mut kept = extremes.map(Some);
    for (i, process) in processes.iter().enumerate() {
        let y = 3.0 + step * (i as f64 + 0.5);
        for (j, &value) in process
            .samples
            .iter()
            .enumerate()
            .filter(|(_, v)| v.is_finite())
        {
            at += 1;
            let end = kept
                .iter_mut()
                .find(|e| **e == Some(value))
                .and_then(Option::take);
            if at % every != 0 && end.is_none() {
                continue;
            }
            let within = value.clamp(low, high);
            let x = if high > low {
                6.0 + (within / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0) * (WIDTH - 12.0)
            } else {
                WIDTH / 2.0
            };
            let path = if value != within {
                &mut dots.beyond
            } else if process.excluded || process.disturbed.contains(&(j as u32)) {
                &mut dots.hit
            } else {
                &mut dots.undisturbed
            };
            // A line without length and with round ends is a dot.
            let _ = write!(path, "M{x:.0} {y:.1}h0");
            dots.shown += 1;
        }
    }
    dots
}

/// The samples of a row on a linear axis; nothing where there are none.
pub fn strip(name: &str, unit: Unit, processes: &[Process]) -> Option<Strip> {
    let finite = || {
        processes
            .iter()
            .flat_map(|p| &p.samples)
            .copied()
            .filter(|v| v.is_finite())
    };
    let total = finite().count();
    if total == 0 {
        return None;
    }
    let (least, greatest) = finite().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| {
        (l.min(v), h.max(v))
    });
    let (low, high) = ends(finite().collect());
    let step = (24.0 / processes.len() as f64).min(5.0);
    let height = step * processes.len() as f64 + 6.0;
    let left = if least < low {
        format!("{} … {}", unit.format(least), unit.format(low))
    } else {
        unit.format(low)
    };
    let right = if greatest > high {
        format!("{} … {}", unit.format(high), unit.format(greatest))
    } else {
        unit.format(high)
    };
    let Dots {
        undisturbed,
        hit,
        beyond,
        shown,
    } = dots(processes, total, [least, greatest], [low, high], step);
    let picture = html! {
        div class="strip" {
            svg viewBox={ "0 0 " (WIDTH) " " (format!("{height:.1}")) } preserveAspectRatio="none"
                height=(format!("{:.0}", height.max(14.0))) width="100%" role="img" xmlns="http://www.w3.org/2000/svg" {
                title { "Samples of " (name) }
                desc {
                    (counted(total as u64, "sample"))
                    " from "
                    (unit.format(least))
                    " to "
                    (unit.format(greatest))
                    ", a line for each of "
                    (counted(processes.len() as u64, "process"))
                    "."
                }
                path class="dots" d=(undisturbed) {}
                @if !hit.is_empty() { path class="dots hit" d=(hit) {} }
                @if !beyond.is_empty() { path class="dots beyond" d=(beyond) {} }
            }
            div class="ends" aria-hidden="true" { span { (left) } span { (right) } }
        }
    };
    Some(Strip {
        picture,
        shown: (shown, total),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(samples: &[f64], disturbed: &[u32], excluded: bool) -> Process {
        Process {
            samples: samples.to_vec(),
            disturbed: disturbed.to_vec(),
            excluded,
            ..Process::default()
        }
    }

    #[test]
    fn thousands_of_samples_become_some_dots_with_both_ends() {
        let samples: Vec<f64> = (0..9_000).map(|i| 100.0 + f64::from(i % 77)).collect();
        let s = strip("x", Unit::Nanoseconds, &[process(&samples, &[], false)]).unwrap();
        assert!(s.shown.0 <= MOST + 2 && s.shown.1 == 9_000, "{:?}", s.shown);
        let text = s.picture.into_string();
        assert!(
            text.contains("M6 ")
                && text.contains("M994 ")
                && text.contains("from 100.0 ns to 176.0 ns"),
            "{text}"
        );
    }

    #[test]
    fn an_outlier_stands_at_the_end_and_leaves_the_others_their_width() {
        let mut samples: Vec<f64> = (0..50).map(|i| 100.0 + f64::from(i % 10)).collect();
        samples.push(1e6);
        let s = strip("x", Unit::Nanoseconds, &[process(&samples, &[], false)]).unwrap();
        let text = s.picture.into_string();
        assert!(
            text.contains("dots beyond")
                && text.contains("118.0 ns … 1.000 ms")
                && text.contains("to 1.000 ms"),
            "{text}"
        );
        let places: std::collections::BTreeSet<&str> =
            text.split("d=\"M").nth(1).unwrap().split('M').collect();
        assert!(places.len() >= 10, "{places:?}");
        // A spread that grows steadily has no outliers.
        let steady: Vec<f64> = (0..50).map(|i| 100.0 + f64::from(i)).collect();
        let even = strip("x", Unit::Nanoseconds, &[process(&steady, &[], false)]).unwrap();
        assert!(!even.picture.into_string().contains("beyond"));
    }

    #[test]
    fn disturbed_ones_are_apart_and_nothing_is_no_strip() {
        let samples = [1.0, 2.0, f64::NAN, 3.0];
        let text = strip("x", Unit::Nanoseconds, &[process(&samples, &[3], false)])
            .unwrap()
            .picture
            .into_string();
        assert_eq!(text.matches("h0").count(), 3);
        assert!(text.contains("dots hit"));
        let excluded = strip("x", Unit::Nanoseconds, &[process(&samples, &[], true)])
            .unwrap()
            .picture
            .into_string();
        assert!(excluded.contains("dots hit"));
        assert!(strip("x", Unit::Nanoseconds, &[]).is_none());
        let same = strip(
            "x",
            Unit::Nanoseconds,
            &[process(&[f64::MAX, f64::MIN], &[], false)],
        )
        .unwrap();
        assert!(!same.picture.into_string().contains("NaN"));
    }
}
