//! What can be set.

use std::path::PathBuf;

use fingerpost_record::{Param, Params, Profile, suggest};
use fingerpost_workloads::site::Access;

use crate::LabError;

/// One part of the laboratory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Rounds of random URLs over the whole site; space and import time on the way.
    Rounds,
    /// Pages of one size each, from 1 KB to 1 MB.
    Sizes,
    /// Many files in one folder.
    Folders,
    Depth,
    /// Several readers at a time.
    Readers,
    /// Served over HTTP.
    Served,
}

const PARTS: [(&str, Part); 6] = [
    ("rounds", Part::Rounds),
    ("sizes", Part::Sizes),
    ("folders", Part::Folders),
    ("depth", Part::Depth),
    ("readers", Part::Readers),
    ("served", Part::Served),
];

/// Whether caches are full or empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Everything was read before, and the pages of a round just before it.
    Warm,
    /// Every round begins with empty caches.
    Cold,
    /// The first round begins with empty caches, and each finds what those before it have loaded.
    Warming,
}

impl State {
    /// The value of the parameter `state`.
    pub fn name(self) -> &'static str {
        match self {
            State::Warm => "warm",
            State::Cold => "cold",
            State::Warming => "warming",
        }
    }
}

/// All settings, read.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The user's own site.
    pub site: Option<PathBuf>,
    /// Pages of the one that is made.
    pub pages: usize,
    /// URLs in a round.
    pub urls: usize,
    /// Contestants in the order of a table.
    pub stores: Vec<Access>,
    /// Whether the user chose the contestants.
    pub stores_chosen: bool,
    pub states: Vec<State>,
    /// Memory that a warming reader may have: all, or so many bytes.
    pub memory: Vec<Option<u64>>,
    pub parts: Vec<Part>,
    /// Files in one folder.
    pub folders: Vec<usize>,
    /// Readers at a time.
    pub readers: Vec<usize>,
    /// Directories of the user's to measure in.
    pub dirs: Vec<PathBuf>,
    /// File systems to make.
    pub filesystems: Vec<String>,
}

/// The least memory with which a reader does not end at once, and more than there is.
const LEAST_MEMORY: i64 = 2 << 20;
const MOST_MEMORY: i64 = 1 << 40;

/// File systems that can be made.
pub const FILESYSTEMS: [&str; 4] = ["ext4", "xfs", "btrfs", "tmpfs"];

impl Settings {
    /// Reads the values of `--set`.
    pub fn new(params: &Params, profile: Profile) -> Result<Settings, LabError> {
        let stores = if params.text("store") == Some("all") {
            None
        } else {
            stores(params)?
        };
        let parts = match params.text("parts") {
            Some("all") => PARTS.map(|(_, part)| part).to_vec(),
            Some(_) => words(params, "parts")
                .iter()
                .map(|w| part(w))
                .collect::<Result<_, _>>()?,
            None if profile == Profile::Quick => vec![Part::Rounds, Part::Sizes],
            None => PARTS.map(|(_, part)| part).to_vec(),
        };
        let states = match params.text("state") {
            None | Some("warm") => vec![State::Warm],
            Some("cold") => vec![State::Cold],
            Some("both") => vec![State::Warm, State::Cold],
            Some("warming") => vec![State::Warming],
            Some(other) => return wrong("state", other, "warm, cold, both or warming"),
        };
        let memory = memory(params)?;
        if memory.iter().any(Option::is_some) && states != [State::Warming] {
            return Err(LabError::Setting(
                "memory= is for rounds from the start: add --set state=warming".into(),
            ));
        }
        let filesystems = words(params, "filesystems");
        if let Some(bad) = filesystems
            .iter()
            .find(|f| !FILESYSTEMS.contains(&f.as_str()))
        {
            return wrong("filesystems", bad, &FILESYSTEMS.join(", "));
        }
        let site = params.get("site").map(|dir| PathBuf::from(dir.to_string()));
        if let Some(dir) = site.as_ref().filter(|dir| !dir.is_dir()) {
            return wrong("site", dir.display(), "a directory that exists");
        }
        let most = if profile == Profile::Thorough {
            100_000
        } else {
            10_000
        };
        let folders = [10, 100, 1000, 10_000, 100_000]
            .into_iter()
            .filter(|n| *n <= most)
            .collect();
        Ok(Settings {
            site,
            pages: number(params, "pages", 1, 1_000_000)?.unwrap_or(1000),
            urls: number(params, "urls", 1, 100_000)?.unwrap_or(100),
            stores_chosen: stores.is_some(),
            stores: stores.unwrap_or_else(Access::all),
            states,
            memory,
            parts,
            folders: numbers(params, "folder", 1, 1_000_000)?.unwrap_or(folders),
            readers: numbers(params, "readers", 1, 256)?.unwrap_or_else(|| vec![1, 2, 4, 8]),
            dirs: words(params, "dirs")
                .into_iter()
                .map(PathBuf::from)
                .collect(),
            filesystems,
        })
    }

    /// The parameters that tell rows of another site or another round from the usual ones.
    pub fn unusual(&self) -> Params {
        let mut params = Params::new();
        match &self.site {
            Some(site) => params = params.with("site", site.to_string_lossy().into_owned()),
            None if self.pages != 1000 => params = params.with("pages", self.pages as i64),
            None => {}
        }
        if self.urls != 100 {
            params.with("urls", self.urls as i64)
        } else {
            params
        }
    }
}

/// Sizes, or `none` for no limit.
fn memory(params: &Params) -> Result<Vec<Option<u64>>, LabError> {
    let one = |word: &String| match Param::parse(word) {
        _ if word == "none" => Ok(None),
        Param::Int(n) if (LEAST_MEMORY..=MOST_MEMORY).contains(&n) => Ok(Some(n as u64)),
        _ => wrong("memory", word, "none, or sizes from 2M to 1T"),
    };
    let list: Vec<Option<u64>> = words(params, "memory")
        .iter()
        .map(one)
        .collect::<Result<_, _>>()?;
    Ok(if list.is_empty() { vec![None] } else { list })
}

fn part(word: &str) -> Result<Part, LabError> {
    match PARTS.iter().find(|(name, _)| *name == word) {
        Some((_, part)) => Ok(*part),
        None => wrong(
            "parts",
            word,
            &format!("{}, or all", PARTS.map(|(name, _)| name).join(", ")),
        ),
    }
}

fn words(params: &Params, key: &str) -> Vec<String> {
    let text = params.get(key).map(Param::to_string).unwrap_or_default();
    text.split(',')
        .map(str::trim)
        .filter(|w| !w.is_empty())
        .map(str::to_owned)
        .collect()
}

fn stores(params: &Params) -> Result<Option<Vec<Access>>, LabError> {
    let values: Result<Vec<Access>, String> =
        words(params, "store").iter().map(|w| w.parse()).collect();
    values
        .map(|v| (!v.is_empty()).then_some(v))
        .map_err(LabError::Setting)
}

fn wrong<T>(key: &str, value: impl std::fmt::Display, wanted: &str) -> Result<T, LabError> {
    let near = suggest::of_listed(&value.to_string(), wanted);
    Err(LabError::Setting(format!(
        "{key}={value} is not a valid value; it takes {wanted}{near}"
    )))
}

fn numbers(
    params: &Params,
    key: &str,
    low: usize,
    high: usize,
) -> Result<Option<Vec<usize>>, LabError> {
    let mut values = Vec::new();
    for word in words(params, key) {
        match Param::parse(&word) {
            Param::Int(n) if (low as i64..=high as i64).contains(&n) => values.push(n as usize),
            _ => return wrong(key, word, &format!("whole numbers from {low} to {high}")),
        }
    }
    Ok((!values.is_empty()).then_some(values))
}

fn number(params: &Params, key: &str, low: usize, high: usize) -> Result<Option<usize>, LabError> {
    match numbers(params, key, low, high)?.as_deref() {
        None => Ok(None),
        Some([one]) => Ok(Some(*one)),
        Some(_) => wrong(key, "several numbers", "one"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Result<Settings, String> {
        let params = pairs
            .iter()
            .fold(Params::new(), |p, (k, v)| p.with(k, Param::parse(v)));
        Settings::new(&params, Profile::Quick).map_err(|e| e.to_string())
    }

    #[test]
    fn what_cannot_be_is_refused_with_what_can() {
        assert!(
            of(&[("store", "lmdb,files")])
                .unwrap_err()
                .contains("files-open")
        );
        assert!(
            of(&[("state", "hot")])
                .unwrap_err()
                .contains("warm, cold, both or warming")
        );
        assert!(of(&[("parts", "rounds,x")]).unwrap_err().contains("sizes"));
        assert!(of(&[("pages", "0")]).unwrap_err().contains("pages=0"));
        assert!(
            of(&[("site", "/nonexistent")])
                .unwrap_err()
                .contains("exists")
        );
        assert!(
            of(&[("filesystems", "ntfs")])
                .unwrap_err()
                .contains("btrfs")
        );
    }

    #[test]
    fn memory_is_limited_while_a_site_loads_and_only_then() {
        let s = of(&[("state", "warming"), ("memory", "none,4M")]).unwrap();
        assert_eq!(
            (s.states, s.memory),
            (vec![State::Warming], vec![None, Some(4 << 20)])
        );
        assert_eq!(of(&[("state", "warming")]).unwrap().memory, [None]);
        assert!(
            of(&[("memory", "4M")])
                .unwrap_err()
                .contains("state=warming")
        );
        for bad in ["1024", "much", "-5"] {
            assert!(
                of(&[("state", "warming"), ("memory", bad)])
                    .unwrap_err()
                    .contains(bad)
            );
        }
    }

    #[test]
    fn defaults_and_lists() {
        let s = of(&[]).unwrap();
        assert_eq!(
            (s.pages, s.urls, s.stores.len(), s.parts.len()),
            (1000, 100, 11, 2)
        );
        assert!(s.unusual().is_empty());
        let s = of(&[
            ("store", "sqlite,lmdb"),
            ("folder", "10,1K"),
            ("urls", "50"),
        ])
        .unwrap();
        assert_eq!((s.stores.len(), s.folders), (2, vec![10, 1024]));
        assert_eq!(
            of(&[("urls", "50")]).unwrap().unusual().int("urls"),
            Some(50)
        );
    }
}
