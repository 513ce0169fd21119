//! The contestants: every way to get at the whole content of a page.
//!
//! All are given the same URL and hand the whole content to the same consumer, which looks at every byte of it. Where
//! the content lies by then is the contestant's matter, and is what the contest is about: a file has to be copied out
//! of the kernel by a read into a buffer (or mapped); an engine whose values lie in memory in one piece hands them over
//! where they lie. What each does around that is the best honest use of it: one open, one read into a buffer that is
//! larger than any page, one close; statements prepared once; one read transaction for each page.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::str::FromStr;

use fingerpost_odb::{Database, Reader, Store};
use fingerpost_record::suggest;
use fingerpost_sys::{map, uring};
use rustix::fs::{Mode, OFlags};

/// A way to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// open, read, close, with the path from the root.
    FilesOpen,
    /// openat, relative to the site's directory.
    FilesOpenat,
    /// openat, fstat, mmap with all pages populated, munmap, close.
    FilesMmap,
    /// open, read, close as one chain of requests to io_uring: one system call.
    FilesUring,
    /// An object database.
    Odb(Store),
    /// LMDB with nested tables that are kept in memory once they were walked through, as Frontier kept its.
    Loaded,
}

/// LMDB with nested keys, which the loaded reader reads.
const LMDB: Store = Store::ALL[0];

impl Access {
    /// Every one, in the order of a table.
    pub fn all() -> Vec<Access> {
        let files = [
            Access::FilesOpen,
            Access::FilesOpenat,
            Access::FilesMmap,
            Access::FilesUring,
            Access::Loaded,
        ];
        files
            .into_iter()
            .chain(Store::ALL.map(Access::Odb))
            .collect()
    }

    /// Its name, the value of the parameter `store`.
    pub fn name(self) -> &'static str {
        match self {
            Access::FilesOpen => "files-open",
            Access::FilesOpenat => "files-openat",
            Access::FilesMmap => "files-mmap",
            Access::FilesUring => "files-uring",
            Access::Odb(store) => store.name(),
            Access::Loaded => "lmdb-loaded",
        }
    }

    /// The database that it reads; nothing for files.
    pub fn store(self) -> Option<Store> {
        match self {
            Access::Odb(store) => Some(store),
            Access::Loaded => Some(LMDB),
            _ => None,
        }
    }

    /// Opens it: a directory for files, a database's file otherwise; with so many bytes of memory for all, page cache
    /// included, where that is limited.
    pub fn open(self, source: &Path, memory: Option<u64>) -> Result<Box<Contestant>, String> {
        let files = |e: io::Error| {
            format!(
                "{} cannot be used for {}: {e}",
                source.display(),
                self.name()
            )
        };
        let opened = || {
            memory.map_or_else(
                || Database::open(source),
                |bytes| Database::open_within(source, bytes),
            )
        };
        let database = || opened().map_err(|e| e.to_string());
        Ok(match self {
            Access::FilesOpen => {
                let mut path = PathBuffer::new(source);
                reading(move |url, buffer, see| {
                    read_whole(File::open(OsStr::from_bytes(path.with(url)))?, buffer, see)
                })
            }
            Access::FilesOpenat => {
                let dir = directory(source).map_err(files)?;
                reading(move |url, buffer, see| read_whole(open_in(&dir, url)?, buffer, see))
            }
            Access::FilesMmap => {
                let dir = directory(source).map_err(files)?;
                reading(move |url, _, see| {
                    let file = open_in(&dir, url)?;
                    let length = rustix::fs::fstat(&file)?.st_size as usize;
                    map::with_mapped(&file, length, see)
                })
            }
            Access::FilesUring => {
                let mut ring = uring::FileReader::new()
                    .map_err(|e| format!("io_uring is not available here ({e})"))?;
                let mut path = PathBuffer::new(source);
                reading(move |url, buffer, see| {
                    let n = ring.read(&CString::new(path.with(url))?, buffer)?;
                    whole(n, buffer, see)
                })
            }
            Access::Odb(_) => cells(database()?.reader().map_err(|e| e.to_string())?),
            Access::Loaded => {
                let reader = database()?.loaded_reader().map_err(|e| e.to_string())?;
                cells(
                    reader
                        .ok_or("only LMDB with nested tables can be read with tables in memory")?,
                )
            }
        })
    }
}

impl FromStr for Access {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Access::all()
            .into_iter()
            .find(|a| a.name() == name)
            .ok_or_else(|| {
                let names: Vec<&str> = Access::all().into_iter().map(Access::name).collect();
                let listed = names.join(", ");
                format!(
                    "there is no store “{name}”; take some of {listed}, or all{}",
                    suggest::of_listed(name, &listed)
                )
            })
    }
}

/// Something that reads pages: hands the whole content of one to the function, once. The buffer, which must be larger
/// than the page, is for those that have to copy.
pub type Contestant = dyn FnMut(&[u8], &mut [u8], &mut dyn FnMut(&[u8])) -> io::Result<()>;

/// A contestant that reads so.
fn reading(
    read: impl FnMut(&[u8], &mut [u8], &mut dyn FnMut(&[u8])) -> io::Result<()> + 'static,
) -> Box<Contestant> {
    Box::new(read)
}

/// A contestant that reads cells.
fn cells(mut reader: Box<dyn Reader>) -> Box<Contestant> {
    reading(
        move |url, _, see| match reader.cell(url, &mut |cell| see(cell.body)) {
            Ok(true) => Ok(()),
            Ok(false) => Err(io::ErrorKind::NotFound.into()),
            Err(e) => Err(io::Error::other(e)),
        },
    )
}

#[inline]
fn open_in(dir: &OwnedFd, url: &[u8]) -> io::Result<File> {
    Ok(rustix::fs::openat(dir, url, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?.into())
}

fn directory(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(
        path,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}

/// One read: for a regular file, fewer bytes than there is room for are all there are.
#[inline]
fn read_whole(mut file: File, buffer: &mut [u8], see: &mut dyn FnMut(&[u8])) -> io::Result<()> {
    let n = file.read(buffer)?;
    drop(file);
    whole(n, buffer, see)
}

#[inline]
fn whole(n: usize, buffer: &[u8], see: &mut dyn FnMut(&[u8])) -> io::Result<()> {
    // A buffer that is full may not hold all.
    let content = buffer.get(..n).filter(|_| n < buffer.len());
    see(content.ok_or_else(|| io::Error::other("a page is larger than the buffer"))?);
    Ok(())
}

/// A path that begins with the site's directory, built in place.
struct PathBuffer {
    bytes: Vec<u8>,
    base: usize,
}

impl PathBuffer {
    fn new(dir: &Path) -> PathBuffer {
        let mut bytes = dir.as_os_str().as_bytes().to_vec();
        bytes.push(b'/');
        PathBuffer {
            base: bytes.len(),
            bytes,
        }
    }

    #[inline]
    fn with(&mut self, url: &[u8]) -> &[u8] {
        self.bytes.truncate(self.base);
        self.bytes.extend_from_slice(url);
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fingerpost_sys::sum::checksum;

    use crate::site::tree::{self, Plan};

    #[test]
    fn every_contestant_reads_the_same_and_misses_what_is_not() {
        let base = tempfile::tempdir().unwrap();
        let dir = base.path().join("site");
        let pages = tree::generate(&dir, &Plan::site(60, 3)).unwrap();
        let mut buffer = vec![0; (1 << 20) + 1];
        for (access, memory) in Access::all()
            .into_iter()
            .flat_map(|access| [(access, None), (access, Some(4 << 20))])
        {
            let source = match access.store() {
                None => dir.clone(),
                Some(store) => {
                    let file = base.path().join(store.name());
                    if !file.exists() {
                        fingerpost_odb::transfer::import(&dir, &file, store, false, &|| false)
                            .unwrap();
                    }
                    file
                }
            };
            let mut contestant = match access.open(&source, memory) {
                Ok(c) => c,
                Err(why) if access == Access::FilesUring => {
                    eprintln!("skipped: {why}");
                    continue;
                }
                Err(why) => panic!("{why}"),
            };
            for page in &pages {
                let mut seen = Vec::new();
                contestant(&page.path, &mut buffer, &mut |content| {
                    seen.push((content.len() as u64, checksum(content)))
                })
                .unwrap();
                assert_eq!(seen, [(page.size, page.sum)], "{}", access.name());
            }
            assert!(
                contestant(b"section0/none.html", &mut buffer, &mut |_| panic!(
                    "nothing is there"
                ))
                .is_err(),
                "{}",
                access.name()
            );
            if matches!(
                access,
                Access::FilesOpen | Access::FilesOpenat | Access::FilesUring
            ) {
                let cut = contestant(&pages[0].path, &mut buffer[..1], &mut |_| {
                    panic!("it was cut")
                });
                assert!(cut.is_err(), "a page must fit: {}", access.name());
            }
            assert_eq!(access.name().parse(), Ok(access));
        }
    }
}
