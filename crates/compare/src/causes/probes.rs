//! Rows of probes as they are given to the judge of their causes.

use fingerpost_diagnose::probes::{self, Changed, Clients, Compared, Seen};
use fingerpost_record::Finding;

use crate::changes::Change;
use crate::curves::Curve;
use crate::pooled::Pooled;
use crate::row::Row;
use crate::side::Side;
use crate::verdict::Verdict;

/// The causes in order, those ruled out last, and the share that is left unexplained: of the rows with their verdicts,
/// those that move together, what was changed between the sides, and throughput by clients. Of the sides the base is
/// first.
pub(crate) fn judge(
    rows: &[Row],
    pooled: &[Pooled],
    changes: &[Change],
    curves: &[Curve],
    sides: [&Side; 2],
    threshold: f64,
) -> (Vec<Finding>, f64) {
    let together = together(rows, pooled);
    let seen: Vec<Seen> = rows
        .iter()
        .zip(together)
        .map(|(row, together)| seen(row, together, changes))
        .collect();
    let changes: Vec<Changed> = changes
        .iter()
        .map(|c| Changed {
            what: c.what.clone(),
            base: c.base.clone(),
            new: c.new.clone(),
            kind: c.kind,
        })
        .collect();
    let curves: Vec<Clients> = curves.iter().map(clients).collect();
    probes::judge(&Compared {
        rows: &seen,
        changes: &changes,
        curves: &curves,
        sides: sides.map(Side::evidence),
        measured_here: sides.iter().all(|side| !side.imported),
        threshold,
    })
}

/// Each row's own verdict, or that of the rows that it moves with.
fn together(rows: &[Row], pooled: &[Pooled]) -> Vec<Verdict> {
    let mut verdicts: Vec<Verdict> = rows.iter().map(|r| r.verdict).collect();
    for part in pooled {
        let along = |place: &&usize| {
            rows[**place]
                .log()
                .is_some_and(|log| (log > 0.0) == (part.verdict == Verdict::Slower))
        };
        part.places
            .iter()
            .filter(along)
            .for_each(|place| verdicts[*place] = part.verdict);
    }
    verdicts
}

fn seen<'a>(row: &'a Row, together: Verdict, changes: &[Change]) -> Seen<'a> {
    Seen {
        probe: &row.probe,
        descriptor: &row.descriptor,
        params: &row.params,
        unit: row.unit,
        better: row.better,
        base: row.base.value,
        new: row.new.value,
        ratio: row.ratio.map(|r| [r.value, r.low, r.high]),
        verdict: row.verdict,
        together,
        judged: together != Verdict::Unresolved || row.note.is_none(),
        counters: &row.counters,
        changes: changes
            .iter()
            .enumerate()
            .filter(|(_, c)| c.concerns(row))
            .map(|(place, _)| place)
            .collect(),
    }
}

fn clients(curve: &Curve) -> Clients<'_> {
    Clients {
        probe: &curve.probe,
        points: &curve.points,
        base_collapses_from: curve.base_collapses_from,
        new_collapses_from: curve.new_collapses_from,
    }
}
