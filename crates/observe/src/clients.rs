//! What stops the load generator: a quota of a control group that it does not share with the server. A client that is
//! stopped asks late and acknowledges late, which looks like a slow server or a slow network.

use fingerpost_sys::cgroup::{Hierarchies, Throttlings};
use fingerpost_sys::procfs::Paths;

use crate::machine::{Totals, groups_of};

/// The control groups of the clients, as they were when watching began.
/// Nothing where the clients are in the server's own groups: what stops both is the server's.
pub(crate) struct ClientGroups(Option<(Hierarchies, Throttlings)>);

impl ClientGroups {
    /// Of the process that loads the server; nothing where there is none.
    pub(crate) fn begin(
        paths: &Paths,
        client: Option<i32>,
        of_server: &Hierarchies,
    ) -> Option<ClientGroups> {
        let groups = groups_of(paths, Some(client?));
        let before = groups.throttlings();
        Some(ClientGroups(
            (groups != *of_server).then_some((groups, before)),
        ))
    }

    /// `client.throttle.seconds`: for how long quotas that are not the server's stopped it since then, added up over
    /// CPUs as the kernel does.
    pub(crate) fn since(&self) -> Totals {
        let seconds = match &self.0 {
            Some((groups, before)) => groups
                .throttlings()
                .since(before)
                .map(|(stopped, _)| stopped.throttled_seconds),
            None => Some(0.0),
        };
        seconds
            .map(|s| ("client.throttle.seconds".to_owned(), s))
            .into_iter()
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clients_quota_is_told_where_it_is_not_the_servers() {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("proc/7/cgroup", "0::/server\n");
        write("proc/8/cgroup", "0::/client\n");
        write(
            "proc/self/mountinfo",
            "1 0 0:1 / /cg rw - cgroup2 cgroup2 rw\n",
        );
        write("cg/cgroup.controllers", "cpu\n");
        write(
            "cg/server/cpu.stat",
            "nr_periods 0\nnr_throttled 0\nthrottled_usec 0\n",
        );
        write(
            "cg/client/cpu.stat",
            "nr_periods 10\nnr_throttled 5\nthrottled_usec 100000\n",
        );
        let paths = Paths::under(dir.path());
        let server = groups_of(&paths, Some(7));
        assert!(ClientGroups::begin(&paths, None, &server).is_none());
        let alike = ClientGroups::begin(&paths, Some(7), &server).unwrap();
        assert_eq!(
            alike.since()["client.throttle.seconds"],
            0.0,
            "what both share is the server's"
        );
        let client = ClientGroups::begin(&paths, Some(8), &server).unwrap();
        write(
            "cg/client/cpu.stat",
            "nr_periods 30\nnr_throttled 20\nthrottled_usec 400000\n",
        );
        let stopped = client.since();
        assert!(
            (stopped["client.throttle.seconds"] - 0.3).abs() < 1e-9 && stopped.len() == 1,
            "{stopped:?}"
        );
    }
}
