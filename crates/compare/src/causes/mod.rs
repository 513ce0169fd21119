//! From the difference to its cause.
//!
//! [`probes`] finds the common factor of probes alone; where a workload's steps differ, [`workloads`] has them judged by
//! `fingerpost-diagnose`.

pub(crate) mod changed;
mod cpu;
pub mod groups;
mod machines;
pub mod probes;
pub(crate) mod view;
pub mod workloads;

pub(crate) use fingerpost_diagnose::sides::order;

use crate::side::Side;

/// The differences of the hosts in these facts, a sentence each, the cheaper side first.
pub(crate) fn host_clues(fast: &Side, slow: &Side, what: &[&str]) -> Vec<String> {
    fast.evidence().host_clues(&slow.evidence(), what)
}

#[cfg(test)]
mod tests {
    use fingerpost_record::cause::cause;

    use super::groups::GROUP_CAUSES;

    #[test]
    fn what_probes_point_to_is_in_the_registry() {
        for of_group in GROUP_CAUSES {
            assert_eq!(cause(of_group.cause).map(|c| c.layer), Some(of_group.layer), "{}", of_group.cause);
        }
    }
}
