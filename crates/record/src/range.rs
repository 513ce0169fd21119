//! Which numbers a record may hold.

/// The largest number that a record may hold, without its sign. What is computed from a few such numbers is finite
/// still.
const LARGEST: f64 = 1e30;
/// The least number but 0, without its sign. What is divided by it is finite still.
const LEAST: f64 = 1e-100;
/// The largest count of anything, bytes included. Sums of as many counts as a file can hold do not overflow.
const MOST_COUNTED: u64 = 1_000_000_000_000;
/// The largest size in bytes, and the largest whole number of a parameter: pages of so many are a number still.
pub(crate) const MOST_BYTES: u64 = 1_000_000_000_000_000;

/// What is wrong with a number, if anything.
pub(crate) fn out_of_range(value: f64) -> bool {
    !value.is_finite() || value.abs() > LARGEST || (value != 0.0 && value.abs() < LEAST)
}

/// Numbers of either sign.
pub(crate) fn finite(what: &str, values: impl IntoIterator<Item = f64>) -> Result<(), String> {
    match values.into_iter().find(|v| out_of_range(*v)) {
        Some(v) if !v.is_finite() => Err(format!("{what} has a value that is not a number")),
        Some(v) => Err(format!(
            "{what} has the value {v:e}, and nothing that is measured is so large or so small"
        )),
        None => Ok(()),
    }
}

/// Numbers that cannot be negative: times, counts, sizes.
pub(crate) fn amounts(what: &str, values: impl IntoIterator<Item = f64>) -> Result<(), String> {
    match values.into_iter().find(|v| out_of_range(*v) || *v < 0.0) {
        Some(v) => Err(format!("{what} has {v:e} where an amount stands")),
        None => Ok(()),
    }
}

pub(crate) fn at_most(
    what: &str,
    values: impl IntoIterator<Item = u64>,
    most: u64,
) -> Result<(), String> {
    match values.into_iter().find(|v| *v > most) {
        Some(v) => Err(format!("{what} has the count {v}, more than {most}")),
        None => Ok(()),
    }
}

pub(crate) fn counts(what: &str, values: impl IntoIterator<Item = u64>) -> Result<(), String> {
    at_most(what, values, MOST_COUNTED)
}

/// So many of something.
pub(crate) fn no_more(what: &str, found: usize, most: usize) -> Result<(), String> {
    if found <= most {
        Ok(())
    } else {
        Err(format!("it has {found} {what}, more than {most}"))
    }
}

/// Each of a list, with its place where it is not valid.
pub(crate) fn each<T>(
    list: &str,
    of: &[T],
    valid: impl Fn(&T) -> Result<(), String>,
) -> Result<(), String> {
    of.iter()
        .enumerate()
        .try_for_each(|(i, one)| valid(one).map_err(|what| format!("{list}[{i}]: {what}")))
}

/// Sizes in bytes.
pub(crate) fn sizes(what: &str, values: impl IntoIterator<Item = u64>) -> Result<(), String> {
    at_most(what, values, MOST_BYTES)
}
