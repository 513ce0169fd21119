//! What each side alone says of the causes of a difference.

use fingerpost_record::Finding;

use super::clues::{Clues, OnRecord};
use crate::chain;
use crate::deciding::verdict;
use crate::facts::Facts;
use crate::step::StepFigures;
use crate::suspects::suspects;

/// What the slower side alone convicts, suspects and clears, and the faster one.
pub(super) struct Own([Vec<Finding>; 2]);

impl Own {
    /// By what both have on record.
    pub(super) fn of(clues: &Clues) -> Own {
        let experiments = clues.experiments();
        let mut experiments = experiments.iter();
        Own(clues.on_record().map(|of| {
            let made = experiments.next().map_or(&[][..], Vec::as_slice);
            let made: Vec<_> = made.iter().map(|e| (*e).clone()).collect();
            let judged = judged(&of);
            judged.map_or_else(|| found(&of), |found| verdict(&found, &made))
        }))
    }

    /// Of a cause what the slower side alone says, and what the faster one does.
    pub(super) fn says(&self, cause: &str) -> [Option<&Finding>; 2] {
        self.0
            .each_ref()
            .map(|own| own.iter().find(|f| f.cause == cause))
    }
}

/// Judged anew from what is on record, where that allows it.
fn judged(of: &OnRecord) -> Option<Vec<Finding>> {
    let step = StepFigures::from_totals(of.readings)?;
    Some(suspects(&Facts::of(&step, of.readings, Some(of.paths?))))
}

/// What was found then.
fn found(of: &OnRecord) -> Vec<Finding> {
    let (side, budget) = (of.side, of.budget);
    // In records of one step some findings do not say of which step they are.
    let is_of_step =
        |f: &&Finding| f.is_of(&budget.workload, &budget.params) || !side.has_step_of(f);
    let mut found: Vec<Finding> = side
        .steps
        .findings
        .iter()
        .filter(is_of_step)
        .cloned()
        .collect();
    chain::order(&mut found);
    found
}
