//! Making a database of a site in a process of its own: an import may take memory that the conducting process must not
//! be short of, and where the kernel kills for want of memory, it is one row that fails.

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use fingerpost_odb::{Store, transfer};
use fingerpost_undo::scratch::Scratch;

use crate::WorkloadError::{self, Failed};
use crate::worker::{self, Ended, Link, NoAnswer};

/// The worker's name.
pub const NAME: &str = "site-import";

/// The process: `STORE DIRECTORY FILE new|again`. Prints `ok NANOSECONDS`.
pub fn main(args: Vec<OsString>) -> Ended {
    let [store, dir, file, how] = args.as_slice() else {
        return Err("it takes STORE DIRECTORY FILE new|again".into());
    };
    let store: Store = store.to_str().unwrap_or_default().parse()?;
    let begun = Instant::now();
    transfer::import(dir.as_ref(), file.as_ref(), store, how == "again", &|| {
        false
    })?;
    Ok(worker::say(&format!("ok {}", begun.elapsed().as_nanos()))?)
}

/// Makes a database of a directory, and tells how long that took. `again` replaces the file.
///
/// # Errors
/// Why it could not be made; also when the process was killed.
pub fn import(
    store: Store,
    dir: &Path,
    file: &Path,
    again: bool,
    scratch: &mut Scratch,
) -> Result<Duration, WorkloadError> {
    let failed = |why: String| {
        Failed(format!(
            "the {} database could not be made: {why}",
            store.name()
        ))
    };
    let mut command = worker::command(NAME);
    command
        .arg(store.name())
        .args([dir, file])
        .arg(if again { "again" } else { "new" });
    let mut link = Link::within(&mut command, scratch).map_err(|e| failed(e.to_string()))?;
    let result = match link.line(None) {
        Ok(line) => line
            .strip_prefix("ok ")
            .and_then(|ns| ns.parse().ok())
            .ok_or("it told no time".to_owned()),
        Err(NoAnswer::Ended) => Err(format!("its process {}", link.end())),
        Err(why) => Err(why.to_string()),
    };
    // What cannot be ended here is ended with the scratch directory.
    let _ = scratch.stop(link.process);
    result.map(Duration::from_nanos).map_err(failed)
}
