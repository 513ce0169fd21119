//! A part of a run as a run of its own: `latest[api=mmap]`.
//!
//! The rows with those parameters are kept and the parameters taken out, so that two parts of one run (two interfaces,
//! two compilers, two placements) align with each other and are judged like two runs.

use fingerpost_record::{Param, Params, Run};

/// Splits `RUN[key=value,key=value]` into the run and the wanted parameters. Without brackets there are none.
///
/// # Errors
/// A sentence when the brackets do not hold such pairs.
pub fn parse(text: &str) -> Result<(&str, Params), String> {
    let Some((run, rest)) = text.split_once('[') else {
        return Ok((text, Params::new()));
    };
    let inner = rest
        .strip_suffix(']')
        .ok_or_else(|| format!("“{text}” has no closing bracket; write RUN[KEY=VALUE]"))?;
    let mut wanted = Params::new();
    for pair in inner.split(',') {
        let (key, value) = pair
            .split_once('=')
            .filter(|(k, _)| !k.is_empty())
            .ok_or_else(|| format!("“{pair}” in “{text}” is not KEY=VALUE"))?;
        wanted = wanted.with(key.trim(), Param::parse(value.trim()));
    }
    Ok((run, wanted))
}

/// Splits a list at the commas outside brackets.
pub fn list(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_i32);
    for (i, c) in text.char_indices() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            ',' if depth <= 0 => {
                parts.push(&text[start..i]);
                start = i + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.into_iter().filter(|p| !p.is_empty()).collect()
}

/// The id of the run that one with this id is a part of; nothing when it is a whole run.
pub fn whole(id: &str) -> Option<&str> {
    id.split_once('[').map(|(run, _)| run)
}

/// The parameters that were taken out of a part of a run: those that are told, else those that its id tells.
pub(crate) fn taken_out_of(id: &str, told: &Params) -> Params {
    if told.is_empty() {
        parse(id).map(|(_, wanted)| wanted).unwrap_or_default()
    } else {
        told.clone()
    }
}

/// Keeps the rows with these parameters and takes the parameters out of them.
///
/// # Errors
/// A sentence when no row has them.
pub fn part(mut run: Run, wanted: &Params) -> Result<Run, String> {
    if wanted.is_empty() {
        return Ok(run);
    }
    let has = |params: &Params| wanted.iter().all(|(k, v)| params.get(k) == Some(v));
    run.measurements.retain(|m| has(&m.params));
    run.budgets.retain(|b| has(&b.params));
    run.paths.retain(|p| has(&p.params));
    run.observations.retain(|o| has(&o.params));
    if run.measurements.is_empty() {
        return Err(format!("run {} has no row with {wanted}", run.id));
    }
    let take_out = |params: &mut Params| params.0.retain(|k, _| wanted.get(k).is_none());
    run.measurements
        .iter_mut()
        .for_each(|m| take_out(&mut m.params));
    run.budgets.iter_mut().for_each(|b| take_out(&mut b.params));
    run.paths.iter_mut().for_each(|p| take_out(&mut p.params));
    run.observations
        .iter_mut()
        .for_each(|o| take_out(&mut o.params));
    run.host.hostname = format!(
        "{}[{wanted}]",
        if run.host.hostname.is_empty() {
            &run.id
        } else {
            &run.host.hostname
        }
    );
    run.id = format!("{}[{wanted}]", run.id);
    Ok(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_known_by_its_id() {
        let run = fingerpost_record::fixture::run();
        let (id, wanted) = (
            run.id.clone(),
            run.measurements
                .iter()
                .find(|m| !m.params.is_empty())
                .unwrap()
                .params
                .clone(),
        );
        assert_eq!(
            (whole(&id), whole(&part(run, &wanted).unwrap().id)),
            (None, Some(id.as_str()))
        );
    }

    #[test]
    fn what_was_followed_goes_with_its_step() {
        let mut run = fingerpost_record::fixture::followed::slow_locks();
        let mut row = run.measurements[0].clone();
        row.params = Params::new().with("clients", 8).with("mix", "read");
        run.measurements.push(row);
        assert!(
            part(run.clone(), &Params::new().with("mix", "read"))
                .unwrap()
                .paths
                .is_empty(),
            "it was of no such step"
        );
        let eight = part(run, &Params::new().with("clients", 8)).unwrap();
        assert_eq!(
            (eight.paths.len(), eight.paths[0].params.clone()),
            (1, Params::new())
        );
    }

    #[test]
    fn a_run_may_be_followed_by_parameters() {
        assert_eq!(parse("latest").unwrap(), ("latest", Params::new()));
        let (run, wanted) = parse("ref:x[api=mmap,pages=2]").unwrap();
        assert_eq!(
            (run, wanted),
            ("ref:x", Params::new().with("api", "mmap").with("pages", 2))
        );
        assert!(parse("a[b").is_err() && parse("a[b]").is_err() && parse("a[=1]").is_err());
        assert_eq!(list("a,b[x=1,y=2],,c"), ["a", "b[x=1,y=2]", "c"]);
    }
}
