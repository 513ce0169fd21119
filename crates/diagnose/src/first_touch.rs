//! Two ways to get memory, taken apart: whether the call that maps costs more, or what the first touch of a page does.

use fingerpost_record::cause::id;
use fingerpost_record::evidence::Ratio;
use fingerpost_record::{Evidence, Finding, Layer, Metric, Status};

/// What a comparison says of the call that maps.
pub const MAPPING: &str = id::MEMORY_MAPPING;
/// What it says of faults with their zero-filling.
pub const FIRST_TOUCH: &str = id::MEMORY_FIRST_TOUCH;
/// The cause of both together, which a common factor of the rows names.
pub const FAULT: &str = id::MEMORY_FAULT;
/// Causes that a common factor of the rows would name instead.
const BY_FACTOR: [&str; 2] = [FAULT, id::MEMORY_PAGE_SIZE];

/// One number of pages, taken apart. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Apart {
    /// Pages at a time.
    pub pages: i64,
    /// How many times the base's cost allocating and freeing is.
    pub call: f64,
    /// What it costs more; below zero is less.
    pub call_difference: f64,
    /// What touching adds on the base side, and on the new one.
    pub touching: [f64; 2],
    /// How many times the base's cost that is, with its interval.
    pub fault: f64,
    /// The interval's lower end.
    pub fault_low: f64,
    /// The interval's upper end.
    pub fault_high: f64,
}

/// Puts what the arithmetic says in place of what a common factor of the same rows said. Nothing changes where there is
/// nothing to take apart.
pub fn judge(found: &[Apart], causes: &mut Vec<Finding>, unexplained: &mut f64, threshold: f64) {
    let named = causes.iter().any(|f| f.status != Status::RuledOut);
    if found.is_empty() || !named {
        return;
    }
    let share = share_of_call(found);
    let facts = found.iter().flat_map(facts).collect::<Vec<_>>();
    let beyond =
        |a: &Apart| a.fault_low > 1.0 + threshold || a.fault_high < 1.0 / (1.0 + threshold);
    let faults = found.iter().filter(|a| beyond(a)).count() * 2 > found.len();
    let by_factor = causes
        .iter()
        .position(|f| BY_FACTOR.contains(&f.cause.as_str()) && f.status != Status::RuledOut);
    match by_factor {
        Some(at) => {
            let whole = causes[at].clone();
            causes[at] = Finding::new(
                MAPPING,
                Layer::Memory,
                whole.status,
                whole.share * share,
                facts.clone(),
            );
            let rest = whole.share * (1.0 - share);
            if !faults {
                *unexplained = (*unexplained + rest).min(1.0);
            } else {
                let cause = if whole.cause == FAULT {
                    FIRST_TOUCH.to_owned()
                } else {
                    whole.cause.clone()
                };
                causes.insert(
                    at + 1,
                    Finding {
                        cause,
                        share: rest,
                        evidence: facts.clone(),
                        ..whole
                    },
                );
            }
        }
        // What was changed is named already: the arithmetic says what it moves.
        None => {
            let named = causes.iter_mut().find(|f| f.status != Status::RuledOut);
            named
                .into_iter()
                .for_each(|f| f.evidence.extend(facts.clone()));
        }
    }
    if !faults && causes.iter().all(|f| f.cause != FAULT) {
        causes.push(Finding::new(
            FIRST_TOUCH,
            Layer::Memory,
            Status::RuledOut,
            0.0,
            facts,
        ));
    }
    crate::sides::order(causes);
}

/// The share of the difference that the call makes: all of it in the rows without touching, its part in those with.
fn share_of_call(found: &[Apart]) -> f64 {
    let of_touched = |a: &Apart| {
        let whole = a.call_difference + a.touching[1] - a.touching[0];
        if whole == 0.0 {
            1.0
        } else {
            (a.call_difference / whole).clamp(0.0, 1.0)
        }
    };
    let mean = found.iter().map(of_touched).sum::<f64>() / found.len() as f64;
    (1.0 + mean) / 2.0
}

fn facts(a: &Apart) -> [Evidence; 2] {
    let pages = a.pages as f64;
    let call = Evidence {
        ratio: Some(Ratio {
            value: a.call,
            low: a.call,
            high: a.call,
        }),
        ..Evidence::figure(Metric::MappingCost, a.call_difference).out_of(pages)
    };
    let touching = Evidence {
        ratio: Some(Ratio {
            value: a.fault,
            low: a.fault_low,
            high: a.fault_high,
        }),
        ..Evidence::pair(Metric::TouchingCost, a.touching).out_of(pages)
    };
    [call, touching]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times are microseconds: what the call costs more, and what touching adds on either side, within five per cent.
    fn pages(pages: i64, call: f64, touching: [f64; 2]) -> Apart {
        let fault = touching[1] / touching[0];
        let touching = touching.map(|us| us * 1e3);
        Apart {
            pages,
            call: 1.5,
            call_difference: call * 1e3,
            touching,
            fault,
            fault_low: fault / 1.05,
            fault_high: fault * 1.05,
        }
    }

    fn by_factor(cause: &str) -> Vec<Finding> {
        let (cause, layer, status) = (cause.to_owned(), Layer::Memory, Status::Likely);
        vec![Finding {
            cause,
            layer,
            status,
            share: 0.9,
            evidence: vec![],
            step: None,
            relation: None,
        }]
    }

    fn judged(found: &[Apart], cause: &str) -> (Vec<(String, Status, f64)>, f64) {
        let (mut causes, mut unexplained) = (by_factor(cause), 0.1);
        judge(found, &mut causes, &mut unexplained, 0.03);
        (
            causes
                .into_iter()
                .map(|f| (f.cause, f.status, (f.share * 100.0).round() / 100.0))
                .collect(),
            (unexplained * 100.0).round() / 100.0,
        )
    }

    #[test]
    fn a_call_that_costs_more_is_told_and_its_faults_are_ruled_out() {
        let (causes, unexplained) = judged(
            &[pages(1, 10.0, [30.0, 30.0]), pages(2, 10.0, [60.0, 60.0])],
            FAULT,
        );
        assert_eq!(
            causes,
            [
                (MAPPING.to_owned(), Status::Likely, 0.9),
                (FIRST_TOUCH.to_owned(), Status::RuledOut, 0.0)
            ]
        );
        assert_eq!(unexplained, 0.1);
    }

    #[test]
    fn faults_that_cost_more_have_their_part_beside_the_calls() {
        // Of 20 µs more the call makes half: all of the rows without touching, and half of those with.
        let (causes, _) = judged(&[pages(1, 10.0, [30.0, 40.0])], FAULT);
        assert_eq!(
            causes,
            [
                (MAPPING.to_owned(), Status::Likely, 0.68),
                (FIRST_TOUCH.to_owned(), Status::Likely, 0.23)
            ]
        );
    }

    #[test]
    fn nothing_taken_apart_changes_nothing() {
        assert_eq!(
            judged(&[], FAULT).0,
            [(FAULT.to_owned(), Status::Likely, 0.9)]
        );
    }
}
