//! How much time each profile spends, and on what.

use std::time::Duration;

use fingerpost_measure::rounds::Effort;
use fingerpost_probes::{Nature, Probe};
use fingerpost_record::Profile;

/// Measuring time of one process, not counting its setup. See `docs/measuring.md` for why 40 ms.
pub const SLICE: Duration = Duration::from_millis(40);

/// The time that a profile allows the probes.
pub fn budget(profile: Profile) -> Duration {
    Duration::from_secs(match profile {
        Profile::Quick => 55,
        Profile::Standard | Profile::Imported => 180,
        Profile::Thorough => 600,
    })
}

/// The time that a profile allows one lab.
pub fn lab_budget(profile: Profile) -> Duration {
    Duration::from_secs(match profile {
        Profile::Quick => 20,
        Profile::Standard | Profile::Imported => 90,
        Profile::Thorough => 300,
    })
}

/// Rounds and their limits.
pub fn effort(profile: Profile, budget: Duration) -> Effort {
    let (base_rounds, max_rounds) = match profile {
        Profile::Quick => (8, 60),
        Profile::Standard | Profile::Imported => (16, 200),
        Profile::Thorough => (40, 1000),
    };
    Effort { budget, base_rounds, max_rounds }
}

/// The relative half width of its interval at which a probe rests.
pub fn target(profile: Profile, probe: &Probe) -> f64 {
    match (profile, probe.nature) {
        (Profile::Quick, Nature::Computes) => 0.012,
        (Profile::Quick, Nature::Blocks) => 0.03,
        (Profile::Standard | Profile::Imported, Nature::Computes) => 0.009,
        (Profile::Standard | Profile::Imported, Nature::Blocks) => 0.015,
        (Profile::Thorough, Nature::Computes) => 0.0075,
        (Profile::Thorough, Nature::Blocks) => 0.01,
    }
}
