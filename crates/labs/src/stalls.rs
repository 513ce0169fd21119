//! Stalls, told in one line for a lab: the longest stands for all of them, the record holds every one.

use fingerpost_record::{Params, Series};
use fingerpost_workloads::{Stall, Step};

/// One sentence about the stalls of all steps; nothing when there was none.
pub fn told<'a>(lab: &str, steps: impl Iterator<Item = (&'a Params, &'a [Step])>) -> Option<String> {
    let stalls: Vec<(&Params, usize, &Stall)> = steps
        .flat_map(|(params, rounds)| rounds.iter().enumerate().map(move |(i, step)| (params, i + 1, step)))
        .flat_map(|(params, round, step)| step.client.stalls.iter().map(move |stall| (params, round, stall)))
        .collect();
    let (params, round, longest) = stalls.iter().max_by(|a, b| a.2.length_s.total_cmp(&b.2.length_s))?;
    let others = match stalls.len() - 1 {
        0 => String::new(),
        n => format!(" ({n} shorter stalls besides, all of them in the record)"),
    };
    let (length, at, why) = (longest.length_s * 1e3, longest.at_s, &longest.why);
    Some(format!("{lab} {params}: nothing completed for {length:.0} ms, {at:.2} s into round {round}{others}: {why}"))
}

/// Every stall of a step's rounds: when, counted over the rounds one after the other, and how long.
pub fn series(rounds: &[Step]) -> Vec<Series> {
    let mut begin = 0.0;
    let mut points = Vec::new();
    for step in rounds {
        points.extend(step.client.stalls.iter().map(|s| (begin + s.at_s, s.length_s)));
        begin += step.elapsed.as_secs_f64();
    }
    if points.is_empty() {
        Vec::new()
    } else {
        vec![Series { name: "stall.length".to_owned(), unit: "s".to_owned(), points }]
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use fingerpost_workloads::{ClientReport, Reason, Threads};

    use super::*;

    #[test]
    fn the_longest_stall_is_told_with_its_reason_and_all_are_kept() {
        let stall = |at_s, length_s| Stall { at_s, length_s, why: Reason::Server(1, Threads::Unseen) };
        let client = ClientReport { stalls: vec![stall(0.5, 0.03), stall(1.25, 0.3)], ..ClientReport::default() };
        let quiet = Step { elapsed: Duration::from_secs(2), ..Step::default() };
        let rounds = [quiet.clone(), Step { client, ..quiet.clone() }];
        let params = Params::new().with("clients", 5);
        let sentence = told("database", [(&params, &rounds[..])].into_iter()).unwrap();
        assert_eq!(
            sentence,
            "database clients=5: nothing completed for 300 ms, 1.25 s into round 2 (1 shorter stalls besides, all of \
             them in the record): the client was waiting for the server"
        );
        assert_eq!(series(&rounds)[0].points, [(2.5, 0.03), (3.25, 0.3)]);
        assert_eq!(told("database", [(&params, &rounds[..1])].into_iter()), None);
        assert!(series(&rounds[..1]).is_empty());
    }
}
