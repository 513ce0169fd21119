//! Labels of an axis whose steps are moments.

/// The most labels where times of day are enough, and where dates or seconds take more room.
const MOST: usize = 8;
const MOST_LONG: usize = 5;

/// A step's label.
#[derive(Debug, PartialEq, Eq)]
pub struct Label<'a> {
    /// Which step.
    pub step: usize,
    /// The time of day.
    pub time: &'a str,
    /// The date, where the label before is of another day.
    pub date: Option<&'a str>,
}

/// The labels of steps that are moments, as `2026-01-02 03:04:05`. Seconds are told where labels side by side have the
/// minute in common.
pub fn labels(moments: &[String]) -> Vec<Label<'_>> {
    let split: Vec<(&str, &str)> = moments
        .iter()
        .map(|m| m.split_once(' ').unwrap_or((m, "")))
        .collect();
    let every = |most: usize| {
        split
            .iter()
            .enumerate()
            .step_by(moments.len().div_ceil(most).max(1))
    };
    let ambiguous = |most: usize| {
        let shown: Vec<_> = every(most)
            .map(|(_, (date, time))| (date, to_the_minute(time)))
            .collect();
        shown.windows(2).any(|pair| pair[0] == pair[1])
    };
    let most = if ambiguous(MOST) || split.windows(2).any(|pair| pair[0].0 != pair[1].0) {
        MOST_LONG
    } else {
        MOST
    };
    let seconds = ambiguous(most);
    let mut day = None;
    every(most)
        .map(|(step, &(date, time))| {
            let changed = day.replace(date) != Some(date);
            Label {
                step,
                time: if seconds { time } else { to_the_minute(time) },
                date: changed.then_some(date),
            }
        })
        .collect()
}

fn to_the_minute(time: &str) -> &str {
    time.get(..5).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(moments: &[&str]) -> Vec<String> {
        let moments: Vec<String> = moments.iter().map(|&m| m.to_owned()).collect();
        labels(&moments)
            .iter()
            .map(|l| {
                format!("{} {}", l.time, l.date.unwrap_or_default())
                    .trim()
                    .to_owned()
            })
            .collect()
    }

    #[test]
    fn the_date_stands_where_it_changes() {
        let runs = [
            "2026-11-24 23:50:00",
            "2026-11-25 00:10:00",
            "2026-11-25 09:00:00",
        ];
        assert_eq!(
            shown(&runs),
            ["23:50 2026-11-24", "00:10 2026-11-25", "09:00"]
        );
        assert_eq!(shown(&[]), Vec::<String>::new());
        assert_eq!(shown(&["é"]), ["é"]);
    }

    #[test]
    fn seconds_tell_runs_of_one_minute_apart() {
        assert_eq!(
            shown(&["2026-11-25 09:00:01", "2026-11-25 09:00:31"]),
            ["09:00:01 2026-11-25", "09:00:31"]
        );
    }

    #[test]
    fn many_runs_have_few_labels() {
        let of = |day: fn(usize) -> usize| {
            (0..40)
                .map(|n| format!("2026-11-{:02} 09:{n:02}:00", day(n)))
                .collect::<Vec<_>>()
        };
        assert_eq!(labels(&of(|_| 25)).len(), MOST);
        assert_eq!(labels(&of(|n| 1 + n / 2)).len(), MOST_LONG);
    }
}
