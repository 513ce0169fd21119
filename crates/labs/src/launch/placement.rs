//! Where swap is put: what the user writes in `placements`, and what it takes.

use std::path::{Path, PathBuf};

use fingerpost_record::suggest;

use super::drive::{Drive, Drives};

/// One swap area, or a part of a placement of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// A file in this directory, on its file system.
    File(PathBuf),
    /// A loop device over a file in this directory.
    Loop(PathBuf),
    /// A partition that is a swap area already and is switched off.
    Partition(PathBuf),
    /// Compressed memory.
    Zram,
}

/// A placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// As the user wrote it: its name in the table.
    pub name: String,
    /// The areas, all with the same priority, so that the kernel uses them in turns. Nothing: as the machine is.
    pub parts: Vec<Part>,
    /// Whether zswap is put in front.
    pub zswap: bool,
    /// Whether the devices are made slow.
    pub throttled: bool,
    /// The drive that it must be on.
    pub drive: Option<Drive>,
    /// Why it cannot be had on this machine.
    pub refusal: Option<String>,
}

const KINDS: &str = "none, file[:DIR], loop[:PLACE], single[:PLACE], dual[:PLACE], striped[:PLACE+PLACE], zram, \
    zswap[:DIR], throttled[:DIR]";

impl Placement {
    /// A placement of this name that leaves the machine as it is.
    pub fn as_is(name: &str) -> Placement {
        Placement {
            name: name.into(),
            parts: Vec::new(),
            zswap: false,
            throttled: false,
            drive: None,
            refusal: None,
        }
    }

    /// Whether the machine stays as it is.
    pub fn is_none(&self) -> bool {
        self.parts.is_empty() && self.drive.is_none()
    }

    /// Finds a place on the drive that is asked for, or holds the place that was named against it. What was found, in a
    /// sentence.
    pub fn resolve(&mut self, drives: &Drives) -> Option<String> {
        let drive = self.drive?;
        let (found, told) = match self.parts.first() {
            Some(Part::Partition(at) | Part::Loop(at) | Part::File(at)) => {
                (drives.check(drive, at), None)
            }
            Some(Part::Zram) => (Ok(()), None),
            None => match drives.find(drive) {
                Ok(at) => {
                    let told = format!("`{}` swaps to {}", self.name, at.display());
                    self.parts = vec![Part::Loop(at)];
                    (Ok(()), Some(told))
                }
                Err(sentence) => (Err(sentence), None),
            },
        };
        self.refusal = found.err();
        told
    }
}

/// Reads a comma list of placements. `dir` is where files go that are given no directory.
///
/// # Errors
/// A sentence that names what cannot be understood.
pub fn parse(list: &str, dir: &Path) -> Result<Vec<Placement>, String> {
    let mut placements: Vec<Placement> = Vec::new();
    for word in list
        .split(',')
        .map(str::trim)
        .filter(|word| !word.is_empty())
    {
        let placement = one(word, dir)?;
        if placements.iter().any(|p| p.name == placement.name) {
            return Err(format!("the placement `{word}` is named twice"));
        }
        placements.push(placement);
    }
    if placements.is_empty() {
        Err(format!("no placement is named; write a list of {KINDS}"))
    } else {
        Ok(placements)
    }
}

fn one(word: &str, dir: &Path) -> Result<Placement, String> {
    let (kind, place) = word
        .split_once(':')
        .map_or((word, None), |(kind, place)| (kind, Some(place)));
    if place == Some("") || word.contains(char::is_control) {
        return Err(format!("`{word}` names no place after the colon"));
    }
    let here = || place.map_or(dir.to_owned(), PathBuf::from);
    let drive = [Drive::Same, Drive::Other]
        .into_iter()
        .find(|drive| drive.word() == kind);
    let parts = match kind {
        "none" if place.is_none() => vec![],
        "file" | "zswap" => vec![Part::File(here())],
        "loop" => vec![device(place, dir)],
        "dual" if place.is_some_and(|place| place.contains('+')) => {
            return Err(format!(
                "`{word}` names two places: what is filled in turns is `striped`, and `dual` is one place on another \
                 drive"
            ));
        }
        // Without a place it is looked for.
        "single" | "dual" => place
            .map(|place| device(Some(place), dir))
            .into_iter()
            .collect(),
        "striped" => striped(word, place, dir)?,
        "zram" if place.is_none() => vec![Part::Zram],
        "throttled" => vec![Part::Loop(here())],
        _ => {
            return Err(format!(
                "`{word}` is no placement; write a list of {KINDS}{}",
                suggest::of_listed(kind, KINDS)
            ));
        }
    };
    Ok(Placement {
        parts,
        zswap: kind == "zswap",
        throttled: kind == "throttled",
        drive,
        ..Placement::as_is(word)
    })
}

/// A partition where the place is a device, else a loop device over a file there.
fn device(place: Option<&str>, dir: &Path) -> Part {
    match place {
        Some(path) if path.starts_with("/dev/") && path != "/dev/shm" => {
            Part::Partition(path.into())
        }
        Some(path) => Part::Loop(path.into()),
        None => Part::Loop(dir.to_owned()),
    }
}

fn striped(word: &str, place: Option<&str>, dir: &Path) -> Result<Vec<Part>, String> {
    let Some(places) = place else {
        return Ok(vec![device(None, dir), device(None, dir)]);
    };
    match places.split_once('+') {
        Some((one, two)) if !one.is_empty() && !two.is_empty() && one != two => {
            Ok(vec![device(Some(one), dir), device(Some(two), dir)])
        }
        _ => Err(format!(
            "`{word}` must name two places with a plus between them, such as striped:/disk1+/disk2"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_parts() {
        let all = parse(
            "none, file,file:/a,loop,loop:/dev/sdb2,striped,striped:/a+/dev/sdc1,zram,zswap,throttled:/b",
            Path::new("/w"),
        )
        .unwrap();
        let parts: Vec<&[Part]> = all.iter().map(|p| p.parts.as_slice()).collect();
        assert_eq!(parts[0], []);
        assert_eq!(parts[1], [Part::File("/w".into())]);
        assert_eq!(parts[2], [Part::File("/a".into())]);
        assert_eq!(parts[3], [Part::Loop("/w".into())]);
        assert_eq!(parts[4], [Part::Partition("/dev/sdb2".into())]);
        assert_eq!(parts[5].len(), 2);
        assert_eq!(
            parts[6],
            [Part::Loop("/a".into()), Part::Partition("/dev/sdc1".into())]
        );
        assert_eq!(parts[7], [Part::Zram]);
        assert!(all[8].zswap && !all[8].throttled && all[9].throttled);
        assert!(all[0].is_none() && !all[1].is_none());
        assert_eq!(all[6].name, "striped:/a+/dev/sdc1");
    }

    #[test]
    fn the_sources_placements_have_a_drive_and_perhaps_a_place() {
        let all = parse("single,dual,dual:/dev/sdb1,single:/home", Path::new("/w")).unwrap();
        let told: Vec<_> = all
            .iter()
            .map(|p| (p.drive, p.parts.as_slice(), p.is_none()))
            .collect();
        assert_eq!(told[0], (Some(Drive::Same), &[][..], false));
        assert_eq!(told[1], (Some(Drive::Other), &[][..], false));
        assert_eq!(
            told[2],
            (
                Some(Drive::Other),
                &[Part::Partition("/dev/sdb1".into())][..],
                false
            )
        );
        assert_eq!(
            told[3],
            (Some(Drive::Same), &[Part::Loop("/home".into())][..], false)
        );
    }

    #[test]
    fn what_cannot_be_is_named() {
        for (list, word) in [
            ("flie", "`flie`"),
            ("file:", "`file:`"),
            ("striped:/a", "striped:/a"),
            ("dual:/a+/b", "striped"),
            ("none:/a", "none:/a"),
            ("", "no placement"),
            ("zram,zram", "twice"),
        ] {
            let sentence = parse(list, Path::new("/w")).unwrap_err();
            assert!(sentence.contains(word), "{sentence}");
        }
    }
}
