//! Which values of a record may be set here. A record may come from anywhere, and one in the archive may be imported:
//! all are treated alike. Only what `fingerpost_labs::elsewhere` knows to be harmless is taken; whoever wants another
//! setting names it on the command line.

use fingerpost_labs::{Lab, elsewhere};
use fingerpost_record::text::clean_short;

/// How much of a name and of a value a sentence quotes.
const SHOWN: usize = 60;

/// Whether this value of a record may be set for a lab, or for a probe of this name, else why not. `key` is the
/// setting's.
pub fn taken(lab: Option<&Lab>, probe: &str, key: &str, value: &str) -> Result<(), String> {
    let told = match lab {
        Some(lab) => elsewhere::of_lab(lab, key, value),
        None => match known(probe) {
            Some(probe) => elsewhere::of_probe(probe, key, value),
            None => Err(elsewhere::Refused::Setting),
        },
    };
    let setting = format!("{key}={value}");
    told.map_err(|why| {
        format!(
            "a record may not choose {}: {why}",
            clean_short(&setting, SHOWN)
        )
    })
}

/// The probe of exactly this name; a record may hold a pattern.
pub fn known(probe: &str) -> Option<&'static fingerpost_probes::Probe> {
    fingerpost_probes::all()
        .chain(fingerpost_probes::lab_rows())
        .find(|known| known.name == probe)
}

/// How the user allows it where both sides have it: by naming it. A name that a shell would read otherwise is left out.
pub fn allowed_by(key: &str) -> String {
    format!("; if you trust it, set it yourself: --set {}=…", plain(key))
}

/// How the user measures it where it is the change itself.
pub fn measured_by(name: &str, key: &str) -> String {
    let key = plain(key);
    format!("; if you trust it, set it yourself: fingerpost ab {name} --a {key}=… --b {key}=…")
}

fn plain(key: &str) -> &str {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if key.len() <= SHOWN && key.chars().all(fits) {
        key
    } else {
        "KEY"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database() -> Option<&'static Lab> {
        fingerpost_labs::courses().find(|lab| lab.name == "database")
    }

    #[test]
    fn what_is_refused_is_named_with_what_to_do() {
        let said = taken(database(), "", "server.ARCHIVE_COMMAND", "touch x").unwrap_err();
        assert!(
            said.starts_with("a record may not choose server.ARCHIVE_COMMAND=touch x: "),
            "{said}"
        );
        assert_eq!(
            allowed_by("server.ARCHIVE_COMMAND"),
            "; if you trust it, set it yourself: --set server.ARCHIVE_COMMAND=…"
        );
        assert!(!measured_by("database", "x;reboot").contains("reboot"));
        let said = taken(database(), "", "clients", &"9".repeat(9000)).unwrap_err();
        assert!(
            said.len() < 300 && said.contains("whole numbers from 1 to 1000"),
            "{said}"
        );
        assert_eq!(taken(database(), "", "clients", "8"), Ok(()));
    }

    #[test]
    fn a_pattern_is_no_probe() {
        assert!(taken(None, "syscall.*", "fds", "3").is_err());
        assert!(taken(None, "*", "fds", "3").is_err());
        assert_eq!(taken(None, "syscall.poll", "fds", "3"), Ok(()));
        assert!(taken(None, "syscall.poll", "env.LD_PRELOAD", "x.so").is_err());
        assert!(taken(None, "syscall.poll", "dir", "x").is_err());
    }
}
