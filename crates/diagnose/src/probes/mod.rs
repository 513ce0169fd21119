//! The causes of a difference between rows of probes alone, for which no step of a workload speaks.

pub mod changed;
mod cpu;
pub mod groups;
mod judging;
mod machines;
mod seen;
mod view;

pub use judging::judge;
pub use seen::{Changed, Clients, Compared, Kind, Seen, Verdict};
pub use view::is_cost;

#[cfg(test)]
mod tests {
    use crate::causes::cause;

    use super::groups::causes;

    #[test]
    fn what_probes_point_to_is_in_the_registry() {
        for (group, name) in causes() {
            assert_eq!(group.cause().map(|c| c.name), cause(name).map(|c| c.name));
            assert!(group.words().is_some(), "{name}");
        }
    }
}
