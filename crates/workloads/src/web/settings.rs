//! What the web workload can be told, checked before anything is started.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::num::NonZeroU16;

use fingerpost_record::{Param, Params, secret, suggest};

use super::apache::Mpm;
use crate::WorkloadError::{self, Setting};

/// Which server is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Server {
    /// The static server within this program.
    Embedded,
    /// nginx, with a private configuration.
    Nginx,
    /// Apache 2.4, with a private configuration.
    Apache(Mpm),
    /// A server of the user's own.
    Url(Url),
}

/// A server on this host and what to ask it for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// As the user wrote it, without a token or password that it may hold.
    pub text: String,
    /// Address and port.
    pub address: SocketAddr,
    /// What the Host field says.
    pub host: String,
    /// Path and query.
    pub path: String,
}

/// Which servers may be put under load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reach {
    /// Those of this host alone.
    #[default]
    Host,
    /// Those in private networks too (RFC 1918, RFC 4193, RFC 6598, link-local): a client machine beside its server.
    Private,
    /// Any: the user has said that the server is theirs.
    Anywhere,
}

impl Reach {
    fn allows(self, ip: IpAddr) -> bool {
        match self {
            Reach::Host => ip.is_loopback(),
            Reach::Private => ip.is_loopback() || is_private(ip),
            Reach::Anywhere => !ip.is_unspecified() && !ip.is_multicast(),
        }
    }

    /// Why an address is refused.
    fn refusal(self) -> &'static str {
        match self {
            Reach::Host => {
                "load is put only on addresses of this host: 127.0.0.1, [::1] or localhost; for another host see \
                 `fingerpost load`"
            }
            Reach::Private => {
                "its address is a public one; where you may load that server, say so with --public"
            }
            Reach::Anywhere => "no server has such an address",
        }
    }
}

fn is_private(ip: IpAddr) -> bool {
    match ip {
        // 100.64.0.0/10 is what RFC 6598 sets aside for use within networks.
        IpAddr::V4(v4) => {
            v4.is_private()
                || v4.is_link_local()
                || (v4.octets()[0] == 100 && v4.octets()[1] & 0xc0 == 64)
        }
        IpAddr::V6(v6) => v6.is_unique_local() || v6.is_unicast_link_local(),
    }
}

/// Everything that can be set.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The server.
    pub server: Server,
    /// The numbers of connections, one step each.
    pub connections: Vec<usize>,
    /// Whether a connection carries more than one request; both when both are to be measured.
    pub keep_alive: Vec<bool>,
    /// Bytes of the file that is asked for, of a private server.
    pub size: u64,
    /// Requests a second of an open loop.
    pub rate: Option<f64>,
    /// Answers after which a step ends.
    pub requests: Option<u64>,
    /// Worker processes, or threads, of a private server; its own kind's choice when unset.
    pub workers: Option<usize>,
    /// The length of a private server's accept queue.
    pub backlog: usize,
    /// Whether connections come from many source addresses.
    pub spread: bool,
    /// Whether a private nginx is a proxy before the embedded server, which has the file.
    pub proxy: bool,
    /// Load generator processes; as many as turn out to be needed when unset.
    pub generators: Option<usize>,
}

/// The most connections of a step.
pub const MAX_CONNECTIONS: usize = 1000;
/// A private server's accept queue has room for every connection of the largest step: the servers' own 511 would turn
/// away some of 1000 that come at once, which then come again after a second.
const BACKLOG: i64 = 1024;
/// The largest file.
const MAX_SIZE: i64 = 1 << 30;

impl Settings {
    /// Reads the values of `--set`. Only servers of this host can be named.
    pub fn from_params(params: &Params) -> Result<Settings, WorkloadError> {
        Settings::within(Reach::Host, params)
    }

    /// As [`Settings::from_params`], with servers within `reach`.
    pub fn within(reach: Reach, params: &Params) -> Result<Settings, WorkloadError> {
        let server = server(params, reach)?;
        let ways: [(&str, &[bool]); 3] =
            [("on", &[true]), ("off", &[false]), ("both", &[true, false])];
        let keep_alive = one_of(params, "keepalive", "on, off or both", ways)?.to_vec();
        let sensible = |value: &Param| match value.to_string().parse::<f64>() {
            Ok(rate) if (0.1..=1e7).contains(&rate) => Ok(rate),
            _ => wrong("rate", value, "a number of requests a second"),
        };
        let rate = params.get("rate").map(sensible).transpose()?;
        let spread = one_of(
            params,
            "source",
            "one or spread",
            [("one", false), ("spread", true)],
        )?;
        let elsewhere = |url: &Url| url.address.is_ipv6() || !url.address.ip().is_loopback();
        if spread && matches!(&server, Server::Url(url) if elsewhere(url)) {
            return refused(
                "source=spread uses the addresses of 127.0.0.0/8; it reaches neither another host nor an IPv6 address",
            );
        }
        let proxy = one_of(
            params,
            "backend",
            "none or embedded",
            [("none", false), ("embedded", true)],
        )?;
        if proxy && server != Server::Nginx {
            return refused("backend makes a proxy of nginx; set server=nginx too");
        }
        if rate.is_some() && params.get("requests").is_some() {
            return refused(
                "rate and requests exclude each other: an open loop is measured for a time",
            );
        }
        Ok(Settings {
            connections: connections(params, &server)?,
            keep_alive,
            size: number(params, "size", 0, MAX_SIZE)?.unwrap_or(1024) as u64,
            rate,
            requests: number(params, "requests", 1, 1_000_000_000)?.map(|n| n as u64),
            workers: number(params, "workers", 1, 4096)?.map(|n| n as usize),
            backlog: number(params, "backlog", 1, 65_535)?.unwrap_or(BACKLOG) as usize,
            spread,
            proxy,
            generators: number(params, "generators", 1, 64)?.map(|n| n as usize),
            server,
        })
    }

    /// The parameters of each step, in the order of a table.
    pub fn steps(&self) -> Vec<Params> {
        let mut common = Params::new();
        common = match &self.server {
            Server::Embedded => common
                .with("server", "embedded")
                .with("size", self.size as i64),
            Server::Nginx => common
                .with("server", "nginx")
                .with("size", self.size as i64),
            Server::Apache(mpm) => common
                .with("server", "apache")
                .with("mpm", mpm.name())
                .with("size", self.size as i64),
            Server::Url(url) => common.with("server", url.text.as_str()),
        };
        if let Some(rate) = self.rate {
            common = common.with("rate", Param::parse(&rate.to_string()));
        }
        for (key, set) in [
            ("requests", self.requests),
            ("workers", self.workers.map(|n| n as u64)),
        ] {
            common = set
                .into_iter()
                .fold(common, |common, n| common.with(key, n as i64));
        }
        if self.backlog != BACKLOG as usize && !matches!(self.server, Server::Url(_)) {
            common = common.with("backlog", self.backlog as i64);
        }
        if self.proxy {
            common = common.with("backend", "embedded");
        }
        if self.spread {
            common = common.with("source", "spread");
        }
        let keep_alive = self
            .keep_alive
            .iter()
            .map(|&on| if on { "on" } else { "off" });
        keep_alive
            .flat_map(|on| self.connections.iter().map(move |&n| (on, n)))
            .map(|(on, n)| {
                common
                    .clone()
                    .with("keepalive", on)
                    .with("connections", n as i64)
            })
            .collect()
    }

    /// The largest number of connections of any step.
    pub fn most_connections(&self) -> usize {
        self.connections.iter().copied().max().unwrap_or(1)
    }
}

fn text(params: &Params, key: &str) -> Option<String> {
    params.get(key).map(ToString::to_string)
}

fn refused<T>(sentence: &str) -> Result<T, WorkloadError> {
    Err(Setting(sentence.to_owned()))
}

fn wrong<T>(key: &str, value: impl std::fmt::Display, wanted: &str) -> Result<T, WorkloadError> {
    let near = suggest::of_listed(&value.to_string(), wanted);
    refused(&format!(
        "{key}={value} is not a valid value; it takes {wanted}{near}"
    ))
}

/// What the value of a setting stands for, which is one of a few words; the first where it is not set.
fn one_of<T, const N: usize>(
    params: &Params,
    key: &str,
    wanted: &str,
    words: [(&str, T); N],
) -> Result<T, WorkloadError> {
    let value = text(params, key);
    let meant = words
        .into_iter()
        .find(|(word, _)| value.as_ref().is_none_or(|value| value == word));
    meant.map_or_else(
        || wrong(key, value.unwrap_or_default(), wanted),
        |(_, meant)| Ok(meant),
    )
}

fn number(params: &Params, key: &str, low: i64, high: i64) -> Result<Option<i64>, WorkloadError> {
    match params.get(key) {
        None => Ok(None),
        Some(&Param::Int(n)) if (low..=high).contains(&n) => Ok(Some(n)),
        Some(other) => wrong(key, other, &format!("a whole number from {low} to {high}")),
    }
}

/// One number, or several with commas between.
fn connections(params: &Params, server: &Server) -> Result<Vec<usize>, WorkloadError> {
    let Some(value) = params.get("connections") else {
        // With prefork each connection is a process: a thousand of them are for those who ask for it.
        let most = if *server == Server::Apache(Mpm::Prefork) {
            100
        } else {
            MAX_CONNECTIONS
        };
        return Ok([1, 10, 100, MAX_CONNECTIONS]
            .into_iter()
            .filter(|n| *n <= most)
            .collect());
    };
    let refuse = || {
        wrong(
            "connections",
            value,
            &format!("numbers from 1 to {MAX_CONNECTIONS} with commas between"),
        )
    };
    crate::numbers(&value.to_string(), MAX_CONNECTIONS).map_or_else(refuse, Ok)
}

fn server(params: &Params, reach: Reach) -> Result<Server, WorkloadError> {
    let mpm = one_of(
        params,
        "mpm",
        "prefork, worker or event",
        Mpm::ALL.map(|mpm| (mpm.name(), mpm)),
    )?;
    if let Some(url) = text(params, "url") {
        for key in ["server", "mpm", "size", "workers", "backlog", "backend"] {
            if params.get(key).is_some() {
                return refused(&format!(
                    "{key} is for servers that are started privately; leave it out together with url"
                ));
            }
        }
        return Ok(Server::Url(parse_url(&url, reach)?));
    }
    if params.get("mpm").is_some() && text(params, "server").as_deref() != Some("apache") {
        return refused("mpm is Apache's; set server=apache too");
    }
    let servers = [
        ("embedded", Server::Embedded),
        ("nginx", Server::Nginx),
        ("apache", Server::Apache(mpm)),
    ];
    one_of(params, "server", "embedded, nginx or apache", servers)
}

/// Reads `http://127.0.0.1:8080/path`. Only addresses within reach are accepted: nothing else may be put under load.
pub fn parse_url(text: &str, reach: Reach) -> Result<Url, WorkloadError> {
    let refuse = |why: &str| Setting(format!("url={} cannot be loaded: {why}", secret::cut(text)));
    if text.starts_with("https://") {
        return Err(refuse(
            "only http is spoken; put the server's plain port there",
        ));
    }
    let rest = text
        .strip_prefix("http://")
        .ok_or_else(|| refuse("it must begin with http://"))?;
    if !text.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(refuse(
            "it may hold only printable ASCII without blanks; write others as %XX",
        ));
    }
    let (host, path) = match rest.find(['/', '?']) {
        Some(at) if rest.as_bytes()[at] == b'/' => (&rest[..at], rest[at..].to_owned()),
        Some(at) => (&rest[..at], format!("/{}", &rest[at..])),
        None => (rest, "/".to_owned()),
    };
    let path = path.split('#').next().unwrap_or("/").to_owned();
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => {
            let port = port
                .parse::<NonZeroU16>()
                .map_err(|_| refuse("the port is no number from 1 to 65535"))?;
            (name, port.get())
        }
        _ => (host, 80),
    };
    let bare = name
        .strip_prefix('[')
        .and_then(|n| n.strip_suffix(']'))
        .unwrap_or(name);
    let ip = match bare.parse::<IpAddr>() {
        _ if name == "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
        Ok(ip) => ip,
        // A name of another host is asked for only where such a host may be loaded.
        Err(_) if reach == Reach::Host || name.contains('@') => {
            return Err(refuse(reach.refusal()));
        }
        Err(_) => resolved(name, port)
            .map_err(|e| refuse(&format!("the name “{name}” has no address here ({e})")))?,
    };
    if !reach.allows(ip) {
        return Err(refuse(reach.refusal()));
    }
    Ok(Url {
        text: secret::cut(text).into_owned(),
        address: SocketAddr::new(ip, port),
        host: host.to_owned(),
        path,
    })
}

/// The first address of a name.
fn resolved(name: &str, port: u16) -> io::Result<IpAddr> {
    let first = (name, port).to_socket_addrs()?.next();
    first
        .map(|address| address.ip())
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "none"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_url(text: &str) -> Result<Url, WorkloadError> {
        super::parse_url(text, Reach::Host)
    }

    #[test]
    fn another_host_is_loaded_where_asked_a_public_one_if_ones_own() {
        let of = |url: &str, reach| {
            super::parse_url(url, reach)
                .map(|url| url.address.to_string())
                .map_err(|e| e.to_string())
        };
        for private in [
            "10.1.2.3:80",
            "172.31.0.1:80",
            "192.168.0.1:80",
            "100.127.255.254:80",
            "169.254.1.1:80",
            "[fd00::1]:80",
            "[fe80::1]:80",
        ] {
            let url = format!("http://{private}/x");
            assert_eq!(of(&url, Reach::Private).unwrap(), private);
            assert!(
                of(&url, Reach::Host)
                    .unwrap_err()
                    .contains("fingerpost load"),
                "{url}"
            );
        }
        for public in [
            "8.8.8.8:80",
            "100.128.0.1:80",
            "172.32.0.1:80",
            "[2001:db8::1]:80",
        ] {
            let url = format!("http://{public}/x");
            assert!(
                of(&url, Reach::Private).unwrap_err().contains("--public"),
                "{url}"
            );
            assert_eq!(of(&url, Reach::Anywhere).unwrap(), public);
        }
        for none in ["http://0.0.0.0/", "http://224.0.0.1/", "http://[::]/"] {
            assert!(
                of(none, Reach::Anywhere).is_err() && of(none, Reach::Private).is_err(),
                "{none}"
            );
        }
        assert!(of("http://a@b.invalid/", Reach::Anywhere).is_err());
        assert!(
            of("http://no-such-host.invalid/", Reach::Private)
                .unwrap_err()
                .contains("has no address here")
        );
    }

    fn settings(pairs: &[(&str, &str)]) -> Result<Settings, String> {
        let params = pairs
            .iter()
            .fold(Params::new(), |p, (k, v)| p.with(k, Param::parse(v)));
        Settings::from_params(&params).map_err(|e| e.to_string())
    }

    #[test]
    fn only_this_host_can_be_loaded() {
        let url = parse_url("http://127.0.0.1:8080/a/b?c=d#e").unwrap();
        assert_eq!(
            (
                url.address.to_string().as_str(),
                url.host.as_str(),
                url.path.as_str()
            ),
            ("127.0.0.1:8080", "127.0.0.1:8080", "/a/b?c=d")
        );
        assert_eq!(
            parse_url("http://localhost").unwrap().address.to_string(),
            "127.0.0.1:80"
        );
        assert_eq!(parse_url("http://[::1]:81?x").unwrap().path, "/?x");
        assert_eq!(
            parse_url("http://[::1]/").unwrap().address.to_string(),
            "[::1]:80"
        );
        for bad in [
            "http://example.org/",
            "http://10.0.0.1/",
            "http://0.0.0.0/",
            "http://[::]/",
            "http://user@example.org:80/",
            "http://127.0.0.1@example.org/",
            "http://localhost.example.org/",
        ] {
            assert!(
                parse_url(bad)
                    .unwrap_err()
                    .to_string()
                    .contains("only on addresses of this host"),
                "{bad}"
            );
        }
        for bad in [
            "https://127.0.0.1/",
            "127.0.0.1",
            "http://127.0.0.1:0/",
            "http://127.0.0.1:99999/",
            "http://127.0.0.1/a b",
            "http://127.0.0.1/\r\nX: y",
        ] {
            assert!(parse_url(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn settings_make_steps_and_wrong_ones_a_sentence() {
        let s = settings(&[]).unwrap();
        let steps: Vec<String> = s.steps().iter().map(ToString::to_string).collect();
        assert_eq!(
            steps[0],
            "connections=1 keepalive=on server=embedded size=1K"
        );
        assert_eq!(steps.len(), 4);
        let s = settings(&[
            ("server", "apache"),
            ("mpm", "prefork"),
            ("connections", "100"),
            ("requests", "100000"),
            ("keepalive", "both"),
        ])
        .unwrap();
        let steps: Vec<String> = s.steps().iter().map(ToString::to_string).collect();
        assert_eq!(
            steps[1],
            "connections=100 keepalive=off mpm=prefork requests=100000 server=apache size=1K"
        );
        let short = settings(&[("backlog", "8"), ("connections", "1")])
            .unwrap()
            .steps();
        assert_eq!(
            short[0].to_string(),
            "backlog=8 connections=1 keepalive=on server=embedded size=1K",
            "stated when it was changed"
        );
        assert_eq!(
            settings(&[("connections", "10,1,10")]).unwrap().connections,
            [1, 10]
        );
        assert_eq!(settings(&[("rate", "0.5")]).unwrap().rate, Some(0.5));
        for (wrong, word) in [
            (&[("connections", "0")][..], "connections=0"),
            (&[("connections", "1001")], "connections=1001"),
            (&[("keepalive", "maybe")], "on, off or both"),
            (&[("server", "iis")], "embedded, nginx or apache"),
            (
                &[("server", "apache"), ("mpm", "x")],
                "prefork, worker or event",
            ),
            (
                &[("server", "apache"), ("mpm", "Worker")],
                "prefork, worker or event",
            ),
            (&[("mpm", "event")], "server=apache"),
            (&[("backend", "embedded")], "server=nginx"),
            (
                &[("server", "nginx"), ("backend", "apache")],
                "none or embedded",
            ),
            (&[("rate", "-1")], "requests a second"),
            (&[("rate", "1000"), ("requests", "5")], "exclude each other"),
            (&[("size", "-1")], "size=-1"),
            (
                &[("url", "http://127.0.0.1/"), ("size", "5")],
                "leave it out together with url",
            ),
        ] {
            let sentence = settings(wrong).unwrap_err();
            assert!(sentence.contains(word), "{sentence}");
        }
    }
}
