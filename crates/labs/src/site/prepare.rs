//! A site in a directory, and in the file of every object database that is asked for.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fingerpost_odb::Store;
use fingerpost_undo::scratch::Scratch;
use fingerpost_workloads::site::tree::{self, Page, Plan};
use fingerpost_workloads::site::{Access, making};

use crate::LabError;

/// Times that a site is imported, unless one takes longer than this.
const IMPORTS: usize = 3;
const LONG: Duration = Duration::from_secs(2);

/// A site that can be read.
pub struct Prepared {
    /// Its own directory, which holds all of the following.
    base: PathBuf,
    /// The pages as files.
    pub dir: PathBuf,
    /// The list of pages for readers.
    pub list: PathBuf,
    /// The databases, or why one could not be made.
    files: BTreeMap<&'static str, Result<PathBuf, String>>,
    /// How long it took until all pages were in each database, and on disk; each time.
    pub imports: BTreeMap<&'static str, Vec<Duration>>,
}

/// Makes a site, or takes the user's.
pub fn prepare(
    base: PathBuf,
    site: Option<&Path>,
    plan: &Plan,
    stores: &[Access],
    scratch: &mut Scratch,
) -> Result<Prepared, LabError> {
    let failed = |what: &'static str| {
        move |e: io::Error| LabError::Failed(format!("the site could not be {what}: {e}"))
    };
    fs::create_dir(&base).map_err(failed("made"))?;
    let (dir, pages) = match site {
        Some(site) => (
            site.canonicalize().map_err(failed("found"))?,
            tree::survey(site).map_err(failed("read"))?,
        ),
        None => {
            let dir = base.join("site");
            let pages = tree::generate(&dir, plan).map_err(failed("made"))?;
            (dir, pages)
        }
    };
    if pages.is_empty() {
        return Err(LabError::Setting(format!(
            "{} holds no files; name a directory with pages",
            dir.display()
        )));
    }
    let list = base.join("list");
    tree::write_list(&pages, &list).map_err(failed("listed"))?;
    let mut this = Prepared {
        base,
        dir,
        list,
        files: BTreeMap::new(),
        imports: BTreeMap::new(),
    };
    let mut wanted: Vec<Store> = stores.iter().filter_map(|a| a.store()).collect();
    wanted.sort_by_key(|s| s.name());
    wanted.dedup();
    for store in wanted {
        let file = this.base.join(store.name());
        let imported = making::import(store, &this.dir, &file, false, scratch);
        this.imports.extend(
            imported
                .as_ref()
                .ok()
                .map(|took| (store.name(), vec![*took])),
        );
        this.files.insert(
            store.name(),
            imported.map(|_| file).map_err(|e| e.to_string()),
        );
    }
    Ok(this)
}

impl Prepared {
    /// Imports again, so that there is a figure; a large site is not waited for. Tells why where that failed: the first
    /// file stays.
    pub fn import_again(&mut self, scratch: &mut Scratch) -> Vec<String> {
        let mut told = Vec::new();
        for (name, times) in &mut self.imports {
            let (Ok(store), Some(Ok(file))) = (name.parse::<Store>(), self.files.get(name)) else {
                continue;
            };
            while times.len() < IMPORTS && times[0] <= LONG {
                match making::import(store, &self.dir, file, true, scratch) {
                    Ok(took) => times.push(took),
                    Err(e) => {
                        told.push(e.to_string());
                        break;
                    }
                }
            }
        }
        told
    }

    /// What a contestant opens, or why it cannot.
    pub fn source(&self, access: Access) -> Result<&Path, String> {
        match access.store() {
            None => Ok(&self.dir),
            Some(store) => match self.files.get(store.name()) {
                Some(file) => file.as_ref().map(PathBuf::as_path).map_err(Clone::clone),
                None => Err("it was not made".to_owned()),
            },
        }
    }

    /// Bytes on disk of the site as files, and in each database.
    pub fn space(&self) -> io::Result<Vec<(&'static str, u64)>> {
        let mut all = vec![("files", tree::disk_bytes(&self.dir)?)];
        for (name, file) in self
            .files
            .iter()
            .filter_map(|(name, file)| Some((*name, file.as_ref().ok()?)))
        {
            all.push((name, tree::disk_bytes(file)?));
        }
        Ok(all)
    }

    /// How long it takes to put the pages into another directory, and on disk: what an import is for files.
    pub fn copy_files(&self, pages: &[Page]) -> io::Result<Vec<Duration>> {
        let mut times = vec![self.copy_once(pages)?];
        while times.len() < IMPORTS && times[0] < LONG {
            times.push(self.copy_once(pages)?);
        }
        Ok(times)
    }

    fn copy_once(&self, pages: &[Page]) -> io::Result<Duration> {
        let to = self.base.join("copy");
        let begun = Instant::now();
        for page in pages {
            let file = tree::file_of(&to, page);
            if let Some(folder) = file.parent() {
                fs::create_dir_all(folder)?;
            }
            fs::copy(tree::file_of(&self.dir, page), file)?;
        }
        rustix::fs::syncfs(File::open(&to)?)?;
        let took = begun.elapsed();
        fs::remove_dir_all(to)?;
        Ok(took)
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        // The scratch directory is removed anyway; a part that is over need not fill the disk until then.
        let _ = fs::remove_dir_all(&self.base);
    }
}
