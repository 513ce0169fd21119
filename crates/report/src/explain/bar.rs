//! A share as a bar of cells.

/// Cells of the bar for the whole of the time.
pub(super) const BAR: usize = 40;

/// A bar that begins where the one above it ended, as the parts of a whole lie side by side.
pub(super) fn bar(start: f64, share: f64) -> String {
    let cell = |x: f64| (x.clamp(0.0, 1.0) * BAR as f64).round() as usize;
    let (from, to) = (cell(start), cell(start + share.max(0.0)));
    let filled = (to - from).max(usize::from(share > 0.0 && from < BAR));
    format!("{}{}", " ".repeat(from), "█".repeat(filled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_lie_side_by_side() {
        assert_eq!(bar(0.0, 0.5), "█".repeat(20));
        assert_eq!(bar(0.5, 0.25), format!("{}{}", " ".repeat(20), "█".repeat(10)));
        assert_eq!(bar(0.0, 0.001), "█", "what there is can be seen");
        assert_eq!(bar(1.0, 0.3).trim(), "");
        assert_eq!(bar(0.5, -0.2).trim(), "");
    }
}
