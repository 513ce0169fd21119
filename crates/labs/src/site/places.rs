//! Where the site lies: the work directory, directories of the user's, or file systems made on images in the scratch
//! directory.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use fingerpost_record::Params;
use fingerpost_record::unstated::DIR_FS;
use fingerpost_sys::{child, mount, system};
use fingerpost_undo::journal::Undo;
use fingerpost_undo::scratch::Ticket;

use super::settings::Settings;
use crate::lab::file_system;
use crate::{Context, LabError};

/// The size of an image; only what is written to it takes space.
const IMAGE: u64 = 4 << 30;
/// How long making a file system may take.
const MAKING: Duration = Duration::from_secs(60);

/// A directory on some file system.
pub struct Place {
    /// Its name in the rows, when there is more than the work directory.
    pub name: Option<String>,
    /// The kind of file system of the work directory, where the user named one; rows state that and no path.
    pub dir_fs: Option<String>,
    /// The directory; ours, and empty.
    pub dir: PathBuf,
    /// What undoes it, in the order in which it was done.
    tickets: Vec<Ticket>,
}

impl Place {
    /// What all rows of the place state of it.
    pub fn params(&self) -> Params {
        let stated = [("fs", &self.name), (DIR_FS, &self.dir_fs)];
        stated
            .into_iter()
            .filter_map(|(key, value)| Some((key, value.as_deref()?)))
            .fold(Params::new(), |all, (key, value)| all.with(key, value))
    }
}

/// Makes all places that were asked for.
pub fn make(settings: &Settings, context: &mut Context) -> Result<Vec<Place>, LabError> {
    if settings.dirs.is_empty() && settings.filesystems.is_empty() {
        let dir = context.work_dir.join("site");
        fs::create_dir(&dir)
            .map_err(|e| LabError::Failed(format!("cannot make {}: {e}", dir.display())))?;
        let own = !context.work_dir.starts_with(context.scratch.path());
        return Ok(vec![Place {
            name: None,
            dir_fs: own.then(|| file_system(context.work_dir)),
            dir,
            tickets: Vec::new(),
        }]);
    }
    let mut places = Vec::new();
    for dir in &settings.dirs {
        places.push(in_directory(dir, context)?);
    }
    for kind in &settings.filesystems {
        match on_image(kind, context) {
            Ok(place) => places.push(place),
            // One file system that cannot be made here does not keep the others from being measured.
            Err(LabError::Missing(why)) => context.sink.warn(&format!("{kind} was skipped: {why}")),
            Err(e) => return Err(e),
        }
    }
    if places.is_empty() {
        return Err(LabError::Missing(
            "none of the file systems could be made".to_owned(),
        ));
    }
    Ok(places)
}

/// Undoes what was made, last first. What cannot be undone here is undone with the scratch directory.
pub fn end(places: Vec<Place>, context: &mut Context) {
    for place in places {
        for ticket in place.tickets.into_iter().rev() {
            if let Err(why) = context.scratch.undo(ticket) {
                context.sink.warn(&why);
            }
        }
    }
}

fn in_directory(dir: &Path, context: &mut Context) -> Result<Place, LabError> {
    let failed = |e: std::io::Error| {
        LabError::Setting(format!("dirs={} cannot be used: {e}", dir.display()))
    };
    let (own, ticket) = context.scratch.directory_in(dir).map_err(failed)?;
    Ok(Place {
        name: Some(dir.to_string_lossy().into_owned()),
        dir_fs: None,
        dir: own,
        tickets: vec![ticket],
    })
}

/// A new file system of this kind, on an image in the scratch directory.
fn on_image(kind: &str, context: &mut Context) -> Result<Place, LabError> {
    if !context.allow_system_changes || !system::is_root() {
        return Err(LabError::Missing(
            "making and mounting a file system needs root and --allow-system-changes".to_owned(),
        ));
    }
    let failed = |what: &str, e: std::io::Error| LabError::Failed(format!("{kind}: {what}: {e}"));
    let point = context
        .scratch
        .subdir(&format!("mount-{kind}"))
        .map_err(|e| failed("no directory", e))?;
    let mut tickets = Vec::new();
    if kind == "tmpfs" {
        tickets.push(
            context
                .scratch
                .record(Undo::Unmount {
                    path: point.clone(),
                })
                .map_err(|e| failed("no journal", e))?,
        );
        mount::mount(Path::new("none"), &point, kind, "size=50%")
            .map_err(|e| failed("cannot be mounted", e))?;
    } else {
        let image = context.scratch.path().join(format!("image-{kind}"));
        File::create(&image)
            .and_then(|f| f.set_len(IMAGE))
            .map_err(|e| failed("no image", e))?;
        make_filesystem(kind, &image)?;
        let attached = fingerpost_undo::loopdev::attach(context.scratch, &image)
            .map_err(|e| LabError::Missing(format!("no loop device can be had: {e}")))?;
        tickets.push(attached.ticket);
        tickets.push(
            context
                .scratch
                .record(Undo::Unmount {
                    path: point.clone(),
                })
                .map_err(|e| failed("no journal", e))?,
        );
        mount::mount(&attached.device, &point, kind, "")
            .map_err(|e| LabError::Missing(format!("it cannot be mounted: {e}")))?;
    }
    let dir = point.join("site");
    fs::create_dir(&dir).map_err(|e| failed("no directory", e))?;
    Ok(Place {
        name: Some(kind.to_owned()),
        dir_fs: None,
        dir,
        tickets,
    })
}

fn make_filesystem(kind: &str, image: &Path) -> Result<(), LabError> {
    let program = format!("mkfs.{kind}");
    let path = format!(
        "{}:/usr/sbin:/sbin",
        std::env::var("PATH").unwrap_or_default()
    );
    let quiet = if kind == "xfs" || kind == "ext4" || kind == "btrfs" {
        "-q"
    } else {
        ""
    };
    let mut command = Command::new(&program);
    child::die_with_parent(command.env("PATH", path).arg(quiet).arg(image));
    let output = child::run_bounded(&mut command, Instant::now() + MAKING).map_err(|e| {
        LabError::Missing(format!(
            "{program} cannot be run ({e}); install the tools of {kind}"
        ))
    })?;
    match output.status {
        Some(status) if status.success() => Ok(()),
        Some(_) => Err(LabError::Failed(format!(
            "{program} failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        ))),
        None => Err(LabError::Failed(format!("{program} did not end"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_state_the_kind_of_file_system_of_a_named_directory_and_not_its_path() {
        let place = |name: Option<&str>, dir_fs: Option<&str>| {
            let (name, dir_fs) = (name.map(str::to_owned), dir_fs.map(str::to_owned));
            Place {
                name,
                dir_fs,
                dir: "/srv/secret-project/site".into(),
                tickets: Vec::new(),
            }
            .params()
            .to_string()
        };
        assert_eq!(place(None, None), "", "the ordinary place");
        assert_eq!(place(None, Some("xfs")), "dir_fs=xfs");
        assert_eq!(place(Some("ext4"), None), "fs=ext4");
    }
}
