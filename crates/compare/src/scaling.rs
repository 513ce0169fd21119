//! The article's scaling table: throughput by number of clients, against one client, and what its shape says.
//!
//! Of its columns one collapses from five clients on, and the others reach their peak and leave it slowly.

use fingerpost_record::{Better, Outcome, Params, Run, Who};

/// A throughput at least this share of the peak counts as having reached it: the article's Linux columns stay within it
/// from where they flatten out to 50 clients.
const REACHED: f64 = 0.9;
/// A throughput below this share of the peak, and never again above it with more clients, is a collapse; in a table of
/// one run and in the curves of a comparison ([`crate::curves`]). The article's collapse is at 41 % of the peak on its
/// first step; its slow declines stay above 90 % (“No More Apple Mysteries, Part Two”, MySQL; `ref:g5-2.7-darwin` and
/// the other three).
pub const COLLAPSED: f64 = 0.7;

/// One line of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Clients at the same time.
    pub clients: u64,
    /// Queries or transactions a second.
    pub throughput: f64,
    /// In percent of the throughput with the fewest clients, which is 100 % and, as a rule, one client.
    pub scaling: f64,
}

/// How throughput goes with the number of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// It grows up to the most clients that were tried.
    Scales,
    /// From this many clients on more do not help, and do little harm.
    Saturates {
        /// The fewest clients with a throughput close to the peak.
        at: u64,
    },
    /// Beyond the peak it falls with more clients, but stays above what is called a collapse.
    Declines {
        /// Where it leaves the peak.
        from: u64,
    },
    /// From this many clients on there is far less than at the peak.
    Collapses {
        /// The fewest clients of the collapse.
        from: u64,
    },
}

/// The table of one server.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaling {
    /// The lines, by number of clients.
    pub rows: Vec<Row>,
    /// What they show.
    pub shape: Shape,
}

impl Scaling {
    /// The table of (clients, throughput) in any order; nothing for fewer than two numbers of clients, or for a
    /// throughput that is not a positive number.
    pub fn of(points: &[(u64, f64)]) -> Option<Scaling> {
        let mut points = points.to_vec();
        points.sort_by_key(|(clients, _)| *clients);
        points.dedup_by_key(|(clients, _)| *clients);
        if points.len() < 2 || points.iter().any(|(_, t)| !t.is_finite() || *t <= 0.0) {
            return None;
        }
        let base = points[0].1;
        let rows: Vec<Row> = points
            .iter()
            .map(|&(clients, throughput)| Row {
                clients,
                throughput,
                scaling: 100.0 * throughput / base,
            })
            .collect();
        let shape = shape(&rows);
        Some(Scaling { rows, shape })
    }

    /// The line with the highest throughput.
    pub fn peak(&self) -> Row {
        peak(&self.rows).1
    }
}

/// The highest throughput and where it is in the table.
fn peak(rows: &[Row]) -> (usize, Row) {
    let at = (0..rows.len())
        .max_by(|a, b| rows[*a].throughput.total_cmp(&rows[*b].throughput))
        .unwrap_or(0);
    (at, rows[at])
}

fn shape(rows: &[Row]) -> Shape {
    let (peak_at, peak) = peak(rows);
    let after = &rows[peak_at + 1..];
    // What falls and comes back is noise, not a collapse: the last of those that are high enough ends the search from
    // behind.
    let falls_below = |share: f64| {
        let high = after
            .iter()
            .rposition(|row| row.throughput >= share * peak.throughput);
        after
            .get(high.map_or(0, |at| at + 1))
            .map(|row| row.clients)
    };
    if let Some(from) = falls_below(COLLAPSED) {
        return Shape::Collapses { from };
    }
    if let Some(from) = falls_below(REACHED) {
        return Shape::Declines { from };
    }
    let reached = rows
        .iter()
        .position(|row| row.throughput >= REACHED * peak.throughput)
        .unwrap_or(peak_at);
    if reached == rows.len() - 1 {
        Shape::Scales
    } else {
        Shape::Saturates {
            at: rows[reached].clients,
        }
    }
}

impl Scaling {
    /// One sentence, in which those who ask are called this.
    pub fn sentence(&self, who: &str) -> String {
        let clients = |n: u64| {
            if n == 1 {
                format!("1 {who}")
            } else {
                format!("{n} {who}s")
            }
        };
        let base = format!("what {} gave", clients(self.rows[0].clients));
        let (peak, last) = (self.peak(), self.rows[self.rows.len() - 1]);
        let of_peak = 100.0 * last.throughput / peak.throughput;
        match self.shape {
            Shape::Scales => format!(
                "scales up to {}, to {:.0} % of {base}",
                clients(last.clients),
                last.scaling
            ),
            Shape::Saturates { at } => {
                format!(
                    "saturates at {}, peaks at {:.0} % of {base}, and holds it",
                    clients(at),
                    peak.scaling
                )
            }
            Shape::Declines { from } => {
                format!(
                    "declines from {} on, to {of_peak:.0} % of its peak at {}",
                    clients(from),
                    clients(peak.clients)
                )
            }
            Shape::Collapses { from } => {
                format!(
                    "collapses from {} on, to {of_peak:.0} % of its peak at {}",
                    clients(from),
                    clients(peak.clients)
                )
            }
        }
    }
}

/// The table of one server within a run: rows that differ in nothing but the number of those who ask.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The workload (`database`).
    pub workload: String,
    /// What all rows have in common.
    pub params: Params,
    /// Who asks.
    pub who: Who,
    /// The table.
    pub scaling: Scaling,
    /// Those of the rows, by number of clients, whose figure is not to be trusted.
    pub untrusted: Vec<u64>,
}

/// The scaling tables of a run in the order of its rows.
pub fn tables(run: &Run) -> Vec<Table> {
    /// Workload, parameters in common, who asks; then number, throughput, and whether it is to be trusted.
    type Series = ((String, Params, Who), Vec<(u64, f64, bool)>);
    let mut found: Vec<Series> = Vec::new();
    for m in run
        .measurements
        .iter()
        .filter(|m| m.better == Better::Higher)
    {
        let Some((number, who)) = m.params.asking() else {
            continue;
        };
        let (Some(workload), Some(estimate)) = (m.probe.strip_suffix(".throughput"), m.estimate)
        else {
            continue;
        };
        let point = (number, estimate.value, m.outcome == Outcome::Measured);
        let key = (workload.to_owned(), m.params.without(&[who.many]), who);
        match found.iter_mut().find(|(k, _)| *k == key) {
            Some((_, points)) => points.push(point),
            None => found.push((key, vec![point])),
        }
    }
    let table = |((workload, params, who), points): Series| {
        let scaling = Scaling::of(&points.iter().map(|p| (p.0, p.1)).collect::<Vec<_>>())?;
        let untrusted = points.iter().filter(|p| !p.2).map(|p| p.0).collect();
        Some(Table {
            workload,
            params,
            who,
            scaling,
            untrusted,
        })
    };
    found.into_iter().filter_map(table).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENTS: [u64; 7] = [1, 2, 5, 10, 20, 35, 50];

    fn table(throughput: [f64; 7]) -> Scaling {
        let points: Vec<(u64, f64)> = CLIENTS.into_iter().zip(throughput).collect();
        Scaling::of(&points).unwrap()
    }

    fn percents(scaling: &Scaling) -> Vec<u64> {
        scaling
            .rows
            .iter()
            .map(|row| row.scaling.round() as u64)
            .collect()
    }

    #[test]
    fn the_articles_mac_os_x_collapses_from_5_clients_on() {
        let tiger = table([192.0, 274.0, 113.0, 62.0, 50.0, 50.0, 47.0]);
        // As printed, but for 47 / 192 = 24.5 %, which the article rounds up.
        assert_eq!(percents(&tiger), [100, 143, 59, 32, 26, 26, 24]);
        assert_eq!(tiger.shape, Shape::Collapses { from: 5 });
        assert_eq!(
            tiger.sentence("client"),
            "collapses from 5 clients on, to 17 % of its peak at 2 clients"
        );
    }

    #[test]
    fn the_articles_linux_on_the_same_machine_saturates() {
        let linux = table([228.0, 349.0, 411.0, 443.0, 439.0, 422.0, 414.0]);

        assert_eq!(percents(&linux), [100, 153, 180, 194, 193, 185, 182]);
        assert_eq!(linux.shape, Shape::Saturates { at: 5 });
        assert_eq!(
            linux.sentence("client"),
            "saturates at 5 clients, peaks at 194 % of what 1 client gave, and holds it"
        );
    }

    #[test]
    fn the_articles_opteron_saturates() {
        let opteron = table([290.0, 438.0, 543.0, 629.0, 670.0, 650.0, 669.0]);
        // As printed, but for 669 / 290 = 230.7 %, which the article rounds down.
        assert_eq!(percents(&opteron), [100, 151, 187, 217, 231, 224, 231]);
        assert_eq!(opteron.shape, Shape::Saturates { at: 10 });
    }

    #[test]
    fn what_grows_to_the_end_scales_and_what_never_grows_is_saturated_by_one() {
        let grows = table([1.0, 2.0, 5.0, 10.0, 20.0, 35.0, 50.0]);
        assert_eq!(grows.shape, Shape::Scales);
        assert_eq!(
            grows.sentence("client"),
            "scales up to 50 clients, to 5000 % of what 1 client gave"
        );
        assert_eq!(
            table([100.0, 101.0, 99.0, 100.0, 98.0, 100.0, 99.0]).shape,
            Shape::Saturates { at: 1 }
        );
    }

    #[test]
    fn a_dip_that_comes_back_is_no_collapse_and_a_slow_fall_is_a_decline() {
        assert_eq!(
            table([100.0, 200.0, 50.0, 195.0, 198.0, 190.0, 192.0]).shape,
            Shape::Saturates { at: 2 }
        );
        let falls = table([100.0, 200.0, 195.0, 190.0, 175.0, 160.0, 150.0]);
        assert_eq!(falls.shape, Shape::Declines { from: 20 });
        assert_eq!(
            falls.sentence("client"),
            "declines from 20 clients on, to 75 % of its peak at 2 clients"
        );
        assert_eq!(
            table([100.0, 200.0, 150.0, 190.0, 175.0, 130.0, 120.0]).shape,
            Shape::Collapses { from: 35 }
        );
    }

    #[test]
    fn a_run_has_a_table_for_each_series_of_rows() {
        use fingerpost_record::{Estimate, Measurement, Unit};
        let row = |probe: &str, by: &str, n: i64, mix: &str, rate: f64| Measurement {
            estimate: Some(Estimate {
                value: rate,
                low: rate,
                high: rate,
                confidence: 0.95,
            }),
            outcome: if n == 10 {
                Outcome::Untrusted
            } else {
                Outcome::Measured
            },
            ..fingerpost_record::fixture::row(
                probe,
                Params::new().with("mix", mix).with(by, n),
                Unit::PerSecond,
                Better::Higher,
            )
        };
        let rows = [
            (1, "read", 10.0),
            (10, "read", 20.0),
            (1, "write", 5.0),
            (10, "write", 1.0),
            (1, "point", 3.0),
        ];
        let mut run = Run {
            measurements: rows
                .map(|(n, mix, r)| row("database.throughput", "clients", n, mix, r))
                .to_vec(),
            ..Run::default()
        };
        run.measurements
            .extend([1, 10].map(|n| row("web.throughput", "connections", n, "x", n as f64)));
        run.measurements
            .push(row("memory.read", "size", 4, "x", 1.0));
        let found = tables(&run);
        let names: Vec<_> = found
            .iter()
            .map(|t| {
                (
                    t.workload.as_str(),
                    t.params.to_string(),
                    t.untrusted.clone(),
                )
            })
            .collect();
        assert_eq!(
            names,
            [
                ("database", "mix=read".into(), vec![10]),
                ("database", "mix=write".into(), vec![10]),
                ("web", "mix=x".into(), vec![10])
            ]
        );
        assert_eq!(found[1].scaling.shape, Shape::Collapses { from: 10 });
        assert_eq!(
            found[2].scaling.sentence(found[2].who.one),
            "scales up to 10 connections, to 1000 % of what 1 connection gave"
        );
    }

    #[test]
    fn order_does_not_matter_and_what_is_no_table_is_none() {
        assert_eq!(
            Scaling::of(&[(2, 20.0), (1, 10.0)]).unwrap().rows[0].clients,
            1
        );
        assert_eq!(Scaling::of(&[(1, 10.0)]), None);
        assert_eq!(Scaling::of(&[]), None);
        assert_eq!(Scaling::of(&[(1, 10.0), (1, 20.0)]), None);
        assert_eq!(Scaling::of(&[(1, 0.0), (2, 20.0)]), None);
        assert_eq!(Scaling::of(&[(1, f64::NAN), (2, 20.0)]), None);
    }
}
