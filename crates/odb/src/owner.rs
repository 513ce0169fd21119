//! Whose a database's file is.
//!
//! The marker that no stranger can forge is the file's owner: only root gives a file to another user.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::{Error, Result};

/// Who can have arranged a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The caller or root alone: the file, and what stands beside it.
    Ours,
    /// The file is the caller's or root's, but others can put something beside it, as in `/tmp`.
    OpenDirectory,
    /// Others own the file, or may write to it.
    Strange,
}

/// Whose a file is.
pub fn standing(file: &Path) -> Result<Standing> {
    let link = one(file)?;
    // Engines look beside the name that they are given, or beside the file that a link leads to.
    let target = std::fs::canonicalize(file).map_err(Error::io("cannot open", file))?;
    let target = one(&target)?;
    Ok(if link == Standing::Ours || target == Standing::Strange {
        target
    } else {
        link
    })
}

/// The directory that a file stands in.
pub(crate) fn directory_of(file: &Path) -> &Path {
    file.parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

fn one(file: &Path) -> Result<Standing> {
    let directory = directory_of(file);
    let whose = |meta: Metadata| Whose {
        uid: meta.uid(),
        mode: meta.mode(),
    };
    let target = std::fs::metadata(file)
        .map_err(Error::io("cannot open", file))
        .map(whose)?;
    let link = std::fs::symlink_metadata(file)
        .map_err(Error::io("cannot open", file))
        .map(whose)?;
    let beside = std::fs::metadata(directory)
        .map_err(Error::io("cannot look at", directory))
        .map(whose)?;
    Ok(judge(
        rustix::process::geteuid().as_raw(),
        target,
        link,
        beside,
    ))
}

/// Owner and mode.
#[derive(Clone, Copy)]
struct Whose {
    uid: u32,
    mode: u32,
}

fn judge(me: u32, file: Whose, link: Whose, directory: Whose) -> Standing {
    let ours = |of: Whose| of.uid == me || of.uid == 0;
    let closed = |of: Whose| of.mode & 0o022 == 0;
    // In a directory that others write to without the sticky bit, they can put another file in its place at any moment.
    let sticky = directory.mode & 0o1000 != 0;
    match () {
        () if !ours(file) || !closed(file) || !ours(link) => Standing::Strange,
        () if ours(directory) && closed(directory) => Standing::Ours,
        () if ours(directory) && sticky => Standing::OpenDirectory,
        () => Standing::Strange,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_else_can_have_arranged_is_ours() {
        let of = |uid, mode| Whose { uid, mode };
        let (mine, home, tmp) = (of(7, 0o100644), of(7, 0o40755), of(0, 0o41777));
        assert_eq!(judge(7, mine, mine, home), Standing::Ours);
        assert_eq!(
            judge(7, of(0, 0o100644), mine, home),
            Standing::Ours,
            "root could do anything"
        );
        assert_eq!(judge(7, mine, mine, tmp), Standing::OpenDirectory);
        assert_eq!(
            judge(7, mine, mine, of(0, 0o40777)),
            Standing::Strange,
            "no sticky bit"
        );
        assert_eq!(judge(7, mine, mine, of(8, 0o40755)), Standing::Strange);
        assert_eq!(judge(7, of(8, 0o100644), mine, home), Standing::Strange);
        assert_eq!(
            judge(7, mine, of(8, 0o120777), home),
            Standing::Strange,
            "a link of another's"
        );
        assert_eq!(judge(7, of(7, 0o100664), mine, home), Standing::Strange);
    }
}
