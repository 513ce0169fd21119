//! The relative difference that does not matter, as `ab` and `compare` are given it.

/// Reads a threshold, as a share or a percentage.
pub fn threshold(text: &str) -> Result<f64, String> {
    let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |n| (n, 0.01));
    let value = number.trim().parse::<f64>().map_err(|e| e.to_string())? * unit;
    if (0.0..=1.0).contains(&value) {
        Ok(value)
    } else {
        Err("a threshold lies between 0 and 1, or 0% and 100%".into())
    }
}

#[cfg(test)]
mod tests {
    use super::threshold;

    #[test]
    fn a_threshold_is_a_share_or_a_percentage() {
        assert_eq!(threshold("0.03"), Ok(0.03));
        assert_eq!(threshold("5%"), Ok(0.05));
        assert!(
            ["-1", "200%", "nan", "x", ""]
                .iter()
                .all(|bad| threshold(bad).is_err())
        );
    }
}
