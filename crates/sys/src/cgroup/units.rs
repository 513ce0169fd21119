//! Whose a control group is that has the name of a service: the system's, a user's own, or that of something within
//! another service.
//!
//! Below `user@UID.service` a user makes groups at will, and so does whoever is root in a container: with the names of
//! the system's services, too. The rule is systemd's own (`cg_path_get_unit`): a unit of the system lies below nothing
//! but slices, and a user's below that user's manager and slices.

use std::collections::BTreeMap;
use std::fs;

use super::members::{Found, container, find_in, most, texts, user_of};
use crate::system;

/// Who made a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Maker {
    /// The system's manager, or a container engine of root's: above it are only slices, or plain groups of root's.
    System,
    /// This user, below the own manager.
    User(u32),
    /// Who is within a service or a container.
    Within,
}

impl Maker {
    /// Whether that can have been anybody but root and the user as whom we work.
    pub fn is_foreign(self) -> bool {
        match self {
            Maker::System => false,
            Maker::User(uid) => uid != system::uid(),
            Maker::Within => true,
        }
    }

    /// Who it is, in words that follow “of”.
    pub fn words(self) -> String {
        match self {
            Maker::System => "the system".into(),
            Maker::User(uid) => format!("user {uid}"),
            Maker::Within => "something within another service or a container".into(),
        }
    }
}

/// The groups of living processes that are a unit of this name, each with who made it, the system's first.
pub fn named(unit: &str) -> Vec<(Maker, Found)> {
    let root = root_of_manager();
    by_maker(
        |path| {
            let below = path.strip_prefix(root.as_str())?;
            let (end, maker) = unit_in(below, |name| name == unit)?;
            Some((root.len() + end, maker))
        },
        texts(),
    )
}

/// The names of the system's services that have a process here.
pub fn services() -> Vec<String> {
    let root = root_of_manager();
    let service = |path: &str| {
        let below = path.strip_prefix(root.as_str())?;
        let (end, maker) = unit_in(below, |name| name.ends_with(".service"))?;
        (maker == Maker::System).then_some(root.len() + end)
    };
    let found = find_in(texts(), |path| {
        service(path).map(|end| path[..end].to_owned())
    });
    let name = |found: &Found| {
        found
            .path
            .rsplit('/')
            .next()
            .map(|part| unescaped(part).to_owned())
    };
    found.iter().filter_map(name).collect()
}

/// The groups of living processes of containers whose number is `wanted`, each with who made it. A container within one
/// that is meant is a part of that.
pub fn containers(wanted: impl Fn(&str) -> bool) -> Vec<(Maker, Found)> {
    by_maker(|path| container_in(path, &wanted), texts())
}

fn by_maker(
    group: impl Fn(&str) -> Option<(usize, Maker)>,
    texts: impl Iterator<Item = (i32, String)>,
) -> Vec<(Maker, Found)> {
    let makers = std::cell::RefCell::new(BTreeMap::new());
    let found = find_in(texts, |path| {
        let (end, maker) = group(path)?;
        let path = path[..end].to_owned();
        makers.borrow_mut().insert(path.clone(), maker);
        Some(path)
    });
    let makers = makers.into_inner();
    let mut found: Vec<(Maker, Found)> = found.into_iter().map(|f| (makers[&f.path], f)).collect();
    found.sort_by(|a, b| (a.0, &a.1.path).cmp(&(b.0, &b.1.path)));
    found
}

/// Where the first part of a path ends that is the wanted unit, and who made it.
fn unit_in(path: &str, wanted: impl Fn(&str) -> bool) -> Option<(usize, Maker)> {
    let mut maker = Maker::System;
    for (end, part) in parts(path) {
        if wanted(unescaped(part)) {
            return Some((end, maker));
        }
        maker = below(maker, part, part.ends_with(".slice"));
    }
    None
}

/// The same of a container. Above those of root may be any groups but a user's or another container's: engines that do
/// not ask systemd use plain ones (`/docker/ID`), and some are services with groups of their own.
fn container_in(path: &str, wanted: impl Fn(&str) -> bool) -> Option<(usize, Maker)> {
    let mut maker = Maker::System;
    for (end, part) in parts(path) {
        let number = container(part);
        if number.is_some_and(&wanted) {
            return Some((end, maker));
        }
        maker = match maker {
            // Podman without root: the user's own slices and scopes.
            Maker::User(uid) if number.is_none() => Maker::User(uid),
            _ => below(maker, part, number.is_none() && user_of(part).is_none()),
        };
    }
    None
}

/// Who makes what is below this part of a path; `plain` is a part that hands nothing over.
fn below(maker: Maker, part: &str, plain: bool) -> Maker {
    match (maker, user_of(part)) {
        (Maker::System, Some(uid)) => Maker::User(uid),
        (maker, _) if plain => maker,
        _ => Maker::Within,
    }
}

/// systemd puts `_` before the name of a unit that could be taken for a file of the group's directory, such as
/// `memory.service`.
fn unescaped(part: &str) -> &str {
    part.strip_prefix('_').unwrap_or(part)
}

/// Parts of a path, each with where it ends.
fn parts(path: &str) -> impl Iterator<Item = (usize, &str)> {
    path.split('/')
        .scan(0, |at, part| {
            *at += part.len() + 1;
            Some((*at - 1, part))
        })
        .filter(|(_, part)| !part.is_empty())
}

/// The group that the system's manager is below: the root, but within a container without a view of its own.
fn root_of_manager() -> String {
    let text = fs::read("/proc/1/cgroup").unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let path = most(&text).unwrap_or_default();
    let own = ["/init.scope", "/system.slice", "/system"];
    let root = own.iter().find_map(|end| path.strip_suffix(end));
    // Without systemd the first process is in some group like others.
    root.unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn maker(path: &str, unit: &str) -> Option<(String, Maker)> {
        unit_in(path, |name| name == unit).map(|(end, maker)| (path[..end].to_owned(), maker))
    }

    #[test]
    fn a_unit_is_the_systems_only_below_slices() {
        let user = "/user.slice/user-1000.slice/user@1000.service";
        for (path, unit, end, wanted) in [
            (
                "/system.slice/db.service/x",
                "db.service",
                "/system.slice/db.service",
                Maker::System,
            ),
            (
                "/a.slice/a-b.slice/db.service",
                "db.service",
                "/a.slice/a-b.slice/db.service",
                Maker::System,
            ),
            (
                "/system.slice/_memory.service",
                "memory.service",
                "/system.slice/_memory.service",
                Maker::System,
            ),
            (user, "user@1000.service", user, Maker::System),
            (
                &format!("{user}/app.slice/db.service"),
                "db.service",
                &format!("{user}/app.slice/db.service"),
                Maker::User(1000),
            ),
            (
                &format!("{user}/system.slice/db.service"),
                "db.service",
                &format!("{user}/system.slice/db.service"),
                Maker::User(1000),
            ),
            (
                &format!("{user}/x/db.service"),
                "db.service",
                &format!("{user}/x/db.service"),
                Maker::Within,
            ),
            // Another manager's name within a user's own groups is not that user's manager.
            (
                &format!("{user}/user@0.service/db.service"),
                "db.service",
                &format!("{user}/user@0.service/db.service"),
                Maker::Within,
            ),
            (
                "/machine.slice/box.scope/system.slice/db.service",
                "db.service",
                "/machine.slice/box.scope/system.slice/db.service",
                Maker::Within,
            ),
        ] {
            assert_eq!(maker(path, unit), Some((end.to_owned(), wanted)), "{path}");
        }
        assert_eq!(maker("/system.slice/db.service-other", "db.service"), None);
    }

    #[test]
    fn a_container_is_roots_unless_a_user_or_another_is_above() {
        let (a, b) = ("a".repeat(64), "b".repeat(64));
        let user = "/user.slice/user-1000.slice/user@1000.service";
        let of = |path: &str| container_in(path, |id| id == a).map(|(_, maker)| maker);
        assert_eq!(of(&format!("/docker/{a}")), Some(Maker::System));
        assert_eq!(
            of(&format!("/system.slice/k3s.service/pods/{a}/x")),
            Some(Maker::System)
        );
        assert_eq!(
            of(&format!("{user}/user.slice/libpod-{a}.scope/container")),
            Some(Maker::User(1000))
        );
        assert_eq!(of(&format!("/docker/{b}/docker/{a}")), Some(Maker::Within));
        assert_eq!(
            of(&format!("{user}/libpod-{b}.scope/docker-{a}.scope")),
            Some(Maker::Within)
        );
        assert_eq!(of(&format!("/docker/{b}")), None);
    }

    #[test]
    fn who_else_could_have_made_it_is_foreign() {
        assert!(!Maker::System.is_foreign() && Maker::Within.is_foreign());
        assert!(
            !Maker::User(system::uid()).is_foreign() && Maker::User(system::uid() + 1).is_foreign()
        );
    }
}
