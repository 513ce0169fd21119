//! Which setting sets what rows state: a lab's, a server's own, or one that only the user may choose.

use fingerpost_record::unstated::{DIR_FS, SERVER_PREFIX};

use crate::ab::pair;

/// What a side has of a parameter that its rows do not state.
const UNSTATED: [&str; 2] = ["none", "default"];
/// Settings of which `none` is a value like others.
const OR_NONE: [&str; 2] = ["pressure", "placements"];

/// Whether a value says that rows do not state the parameter that this setting sets.
pub(super) fn is_unstated(setting: &str, value: &str) -> bool {
    UNSTATED.contains(&value) && !(value == "none" && OR_NONE.contains(&setting))
}

/// The setting that a parameter of rows is set by, where its name is another.
pub(super) fn of_rows(what: &str) -> &str {
    pair::OF_ROWS
        .iter()
        .find(|(_, of_rows)| *of_rows == what)
        .map_or(what, |(setting, _)| setting)
}

/// The lab's setting of this name; a server's own setting, that it told of itself, by the prefix for those.
pub(super) fn key_of(lab: &fingerpost_labs::Lab, what: &str) -> Option<String> {
    // What only the user may choose is no variable of a server either.
    if by_the_user(what).is_some() {
        return None;
    }
    let own = |key: &str| {
        lab.settings
            .iter()
            .any(|s| s.key == key || (s.key.ends_with('.') && key.starts_with(s.key)))
    };
    let told = format!("server.{what}");
    [what.to_owned(), told, of_rows(what).to_owned()]
        .into_iter()
        .find(|key| own(key) && what != "version")
}

/// What only the user may choose, a program and a place for files, by the parameter that states it: in words, and how
/// `ab` takes it.
pub(super) fn by_the_user(what: &str) -> Option<(&'static str, &'static str)> {
    match what {
        SERVER_PREFIX => Some((
            "the server was started behind other words",
            "server-prefix=",
        )),
        DIR_FS => Some(("the data lay in a directory that was named", "dir=")),
        _ => None,
    }
}

/// Why what changed cannot be set for a lab or probe of this name.
pub(super) fn no_setting(what: &str, name: &str) -> String {
    match by_the_user(what) {
        Some((words, setting)) => {
            format!(
                "{words}, which a record may not choose: fingerpost ab {name} --a {setting}… --b {setting}… measures it"
            )
        }
        None => format!("{what} is no setting of {name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_setting_is_set_by_prefix_and_its_version_not() {
        let lab = fingerpost_labs::courses()
            .find(|lab| lab.name == "database")
            .unwrap();
        assert_eq!(key_of(lab, "storage").as_deref(), Some("storage"));
        assert_eq!(
            key_of(lab, "server.log_bin").as_deref(),
            Some("server.log_bin")
        );
        assert_eq!(key_of(lab, "log_bin").as_deref(), Some("server.log_bin"));
        assert_eq!(key_of(lab, "version"), None);
        let launch = fingerpost_labs::courses()
            .find(|lab| lab.name == "launch")
            .unwrap();
        assert_eq!(key_of(launch, "placement").as_deref(), Some("placements"));
    }
}
