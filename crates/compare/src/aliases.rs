//! What of ours stands for what a published system had: MariaDB for MySQL, an object database of today for Frontier's,
//! a browser for a browser. Rows that match by such a pair only are compared with a note that says so.

use fingerpost_record::{Param, Params};

/// How the row's name begins, a parameter, a published value, and the values that may stand for it.
type Alias = (
    &'static str,
    &'static str,
    &'static str,
    &'static [&'static str],
);

/// Every pair. A value that ends in `*` stands for all that begin with the rest.
const ALIASES: &[Alias] = &[
    ("database.", "engine", "mysql", &["mariadb"]),
    ("web.", "server", "apache-1.3", &["apache"]),
    (
        "web.",
        "server",
        "apache-2.0",
        &["apache", "nginx", "embedded"],
    ),
    ("site.", "store", "files", &["files-open"]),
    (
        "site.",
        "store",
        "object-database",
        &["lmdb*", "sqlite*", "redb*"],
    ),
    ("zerofill.", "api", "vm_allocate", &["mmap"]),
    ("launch.", "placement", "default", &["none", "file*"]),
    ("launch.", "placement", "single", &["single:*", "loop*"]),
    ("launch.", "placement", "dual", &["dual:*"]),
    ("launch.", "app", "Internet Connect", &["curl", "wget"]),
    (
        "launch.",
        "app",
        "OmniWeb",
        &["firefox", "chromium", "google-chrome"],
    ),
    (
        "launch.",
        "app",
        "Terminal",
        &["sh", "bash", "xterm", "gnome-terminal"],
    ),
    (
        "launch.",
        "app",
        "TextEdit Plus",
        &[
            "editor", "gedit", "kate", "mousepad", "vim", "nano", "emacs",
        ],
    ),
    (
        "launch.",
        "app",
        "Mail",
        &["mail", "thunderbird", "evolution", "mutt", "neomutt"],
    ),
    ("launch.", "app", "iTunes", &["rhythmbox", "vlc", "mpv"]),
    (
        "launch.",
        "app",
        "QuickTime Pro",
        &["totem", "vlc", "ffplay", "ffmpeg"],
    ),
    ("launch.", "app", "PhotoLine 32XL", &["gimp", "krita"]),
    (
        "launch.",
        "app",
        "GraphicConverter 4.08",
        &["convert", "magick", "gm"],
    ),
    (
        "launch.",
        "app",
        "System Preferences",
        &["gnome-control-center", "systemsettings", "sysctl"],
    ),
];

/// Pairs for rows of ours where none is what the published one is: the same questions asked of the same data, by
/// another part of the server. They are compared, and are no measurement of the published table.
const NEAR: &[Alias] = &[("database.", "storage", "myisam", &["innodb", "aria"])];

/// How a row of ours meets a published one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// Parameters that match by an alias: name, published value, ours.
    pub aliased: Vec<(String, Param, Param)>,
    /// Parameters of ours that the published row does not state.
    pub unstated: Vec<String>,
}

impl Match {
    /// What to know about the comparison with what states less (`the imported figure`); nothing where every parameter
    /// is equal.
    pub fn note(&self, with: &str) -> Option<String> {
        let mut parts: Vec<String> = self
            .aliased
            .iter()
            .map(|(key, published, ours)| {
                format!("{key} {ours} stands for the published {published}")
            })
            .collect();
        if !self.unstated.is_empty() {
            parts.push(format!(
                "{with} does not state its {}",
                self.unstated.join(" and ")
            ));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// Whether a row of ours of this probe is what a published row is, or stands for it. Every parameter that the published
/// row states must be equal or an alias.
pub fn matches(probe: &str, published: &Params, ours: &Params) -> Option<Match> {
    matches_by(&[ALIASES], probe, published, ours)
}

/// The same where what a server does the work with may be another part of it, such as another storage engine of a
/// database.
pub fn matches_nearly(probe: &str, published: &Params, ours: &Params) -> Option<Match> {
    matches_by(&[ALIASES, NEAR], probe, published, ours)
}

/// Whether a row of ours is what an older record of ours has, which states less: nothing stands for anything else
/// there.
pub fn equal_as_far_as_stated(probe: &str, older: &Params, ours: &Params) -> Option<Match> {
    matches_by(&[], probe, older, ours)
}

fn matches_by(
    aliases: &[&[Alias]],
    probe: &str,
    published: &Params,
    ours: &Params,
) -> Option<Match> {
    let mut found = Match::default();
    for (key, value) in published.iter() {
        match ours.get(key) {
            Some(own) if own == value => {}
            Some(own)
                if stands_for(aliases, probe, key, value, own)
                    && like_process(key, value, own, ours)
                    && !in_turns(own) =>
            {
                found
                    .aliased
                    .push((key.to_owned(), value.clone(), own.clone()));
            }
            _ => return None,
        }
    }
    found.unstated = ours
        .iter()
        .map(|(key, _)| key)
        .filter(|key| published.get(key).is_none())
        .map(str::to_owned)
        .collect();
    Some(found)
}

fn stands_for(
    aliases: &[&[Alias]],
    probe: &str,
    key: &str,
    published: &Param,
    own: &Param,
) -> bool {
    let (Param::Text(published), Param::Text(own)) = (published, own) else {
        return false;
    };
    let is = |pattern: &&str| {
        pattern
            .strip_suffix('*')
            .map_or(own == pattern, |start| own.starts_with(start))
    };
    aliases
        .iter()
        .copied()
        .flatten()
        .any(|a| a.1 == key && a.2 == published && probe.starts_with(a.0) && a.3.iter().any(is))
}

/// Whether it is two places that are filled in turns, which an earlier version called `dual:A+B`.
fn in_turns(own: &Param) -> bool {
    matches!(own, Param::Text(text) if text.starts_with("dual:") && text.contains('+'))
}

/// Apache 1.3 had a process for each connection and nothing else, so only such a server of today stands for it, and
/// others for 2.0.
fn like_process(key: &str, published: &Param, own: &Param, ours: &Params) -> bool {
    let apache = key == "server" && *own == Param::from("apache");
    !apache || (*published == Param::from("apache-1.3")) == (ours.text("mpm") == Some("prefork"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_for_what_is_said() {
        let published = Params::new()
            .with("engine", "mysql")
            .with("storage", "myisam")
            .with("clients", 5);
        let ours = Params::new()
            .with("engine", "mariadb")
            .with("storage", "myisam")
            .with("clients", 5)
            .with("scale", 2);
        let found = matches("database.throughput", &published, &ours).unwrap();
        assert_eq!(
            found.note("the imported figure").unwrap(),
            "engine mariadb stands for the published mysql; the imported figure does not state its scale"
        );
        assert_eq!(
            matches(
                "database.throughput",
                &published,
                &ours.clone().with("clients", 4)
            ),
            None
        );
        assert_eq!(
            matches("web.throughput", &published, &ours),
            None,
            "an alias belongs to its own rows"
        );
        assert_eq!(
            matches("database.throughput", &published, &published)
                .unwrap()
                .note("the imported figure"),
            None
        );
    }

    #[test]
    fn another_storage_engine_is_near_and_not_the_same() {
        let published = Params::new()
            .with("engine", "mysql")
            .with("storage", "myisam")
            .with("mix", "read");
        let ours = Params::new()
            .with("engine", "mariadb")
            .with("storage", "innodb")
            .with("mix", "read");
        assert_eq!(matches("database.throughput", &published, &ours), None);
        let note = matches_nearly("database.throughput", &published, &ours)
            .unwrap()
            .note("the imported figure")
            .unwrap();
        assert_eq!(
            note,
            "engine mariadb stands for the published mysql; storage innodb stands for the published myisam"
        );
        assert_eq!(
            matches_nearly(
                "database.throughput",
                &published,
                &ours.with("mix", "write")
            ),
            None,
            "another mix is another question"
        );
    }

    #[test]
    fn a_server_stands_for_the_one_that_works_like_it() {
        let published = |server: &str| Params::new().with("server", server);
        let apache = |mpm: &str| Params::new().with("server", "apache").with("mpm", mpm);
        let meets = |a: &Params, b: &Params| matches("web.throughput", a, b).is_some();
        assert!(
            meets(&published("apache-1.3"), &apache("prefork"))
                && !meets(&published("apache-1.3"), &apache("event"))
        );
        assert!(
            meets(&published("apache-2.0"), &apache("event"))
                && !meets(&published("apache-2.0"), &apache("prefork"))
        );
        assert!(meets(
            &published("apache-2.0"),
            &Params::new().with("server", "nginx")
        ));
    }

    #[test]
    fn stores_and_applications_have_their_kin() {
        let one = |key: &str, value: &str| Params::new().with(key, value);
        assert!(
            matches(
                "site.round",
                &one("store", "object-database"),
                &one("store", "lmdb-loaded")
            )
            .is_some()
        );
        assert!(matches("site.round", &one("store", "files"), &one("store", "lmdb")).is_none());
        assert!(
            matches(
                "launch.time",
                &one("app", "OmniWeb"),
                &one("app", "chromium")
            )
            .is_some()
        );
        assert!(matches("launch.time", &one("app", "OmniWeb"), &one("app", "perl")).is_none());
    }
}
