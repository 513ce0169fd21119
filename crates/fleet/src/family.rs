//! What rows, and families of rows, are called, and the causes that they point at by themselves.

use fingerpost_diagnose::fleet::Unit;
use fingerpost_diagnose::probes::groups::{GROUP_CAUSES, Group, GroupCause};

use crate::table::Row;

/// A family as a person calls it.
pub(crate) fn family_name(family: u8, rows: &[Row]) -> String {
    let group = rows.iter().map(|row| row.group).find(|group| *group as u8 == family);
    let words = |group: Group| match group {
        Group::Cpu => "arithmetic in user mode",
        Group::Workload => "servers and programs under load",
        other => GROUP_CAUSES.iter().find(|c| c.group == other).map_or("other rows", |c| c.words),
    };
    group.map_or_else(String::new, |group| words(group).to_owned())
}

/// The cause that a family points at by itself.
pub(crate) fn cause_of(unit: Unit, rows: &[Row]) -> Option<&'static GroupCause> {
    let of = match unit {
        Unit::All => return None,
        Unit::Family(family) => rows.iter().map(|row| row.group).find(|g| *g as u8 == family)?,
        Unit::Row(row) => rows[row as usize].group,
    };
    GROUP_CAUSES.iter().find(|cause| cause.group == of)
}

/// A unit as a person calls it.
pub(crate) fn unit_name(unit: Unit, rows: &[Row]) -> String {
    match unit {
        Unit::All => "all rows".to_owned(),
        Unit::Family(family) => family_name(family, rows),
        Unit::Row(row) => rows[row as usize].name(),
    }
}
