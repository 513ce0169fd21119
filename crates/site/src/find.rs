//! Finding what a path leads to: in a directory, or in an object database.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use fingerpost_odb::{Database, Entry, Error, Kind, Part, Reader};
use fingerpost_sys::beneath::{Links, Root};
use fingerpost_sys::sum::checksum;
use hyper::body::Bytes;

use crate::clients::Client;

/// What is served.
pub enum Source {
    /// A directory.
    Files(Root),
    /// An object database.
    Odb(Database),
}

impl Source {
    /// Opens a directory, with what is done about symbolic links in it.
    pub fn directory(from: &Path, links: Links) -> Result<Source, String> {
        Root::open(from, links)
            .map(Source::Files)
            .map_err(|e| format!("{} cannot be served: {e}", from.display()))
    }
}

/// Bytes that are read and sent at a time; what is no larger is read at once.
pub(crate) const PIECE: usize = 64 << 10;

/// The same for a larger cell. An engine finds each piece from the beginning of the cell (SQLite goes along a chain of
/// pages), so a large one is read in fewer of them.
pub(crate) fn piece(size: u64) -> usize {
    (size / 128).clamp(PIECE as u64, 1 << 20) as usize
}

/// Something that was found.
pub(crate) struct Found {
    pub size: u64,
    pub modified: i64,
    pub kind: Option<Kind>,
    /// Its entity tag.
    pub tag: String,
    pub content: Content,
}

/// Where the content of what was found is.
pub(crate) enum Content {
    /// All of it, where it is small.
    Whole(Bytes),
    /// In a larger file.
    File(File),
    /// In a larger cell at this path, with the sum over its pieces.
    Cell(Vec<u8>, u64),
}

/// What a path leads to.
pub(crate) enum Way {
    Found(Found),
    /// A folder without the slash at the end: relative links in its index would lead astray.
    Folder,
    Nothing,
}

/// Finds things; each worker has its own, because a database's reader belongs to one thread.
pub(crate) struct Finder {
    source: Arc<Source>,
    reader: Option<RefCell<Box<dyn Reader>>>,
}

/// The sum over a cell's pieces, one after the other.
pub(crate) fn add(sum: u64, piece: &[u8]) -> u64 {
    (sum.rotate_left(7) ^ checksum(piece)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Finder {
    pub(crate) fn new(source: Arc<Source>) -> io::Result<Finder> {
        let reader = match &*source {
            Source::Files(_) => None,
            Source::Odb(database) => {
                Some(RefCell::new(database.reader().map_err(io::Error::other)?))
            }
        };
        Ok(Finder { source, reader })
    }

    pub(crate) async fn find(&self, path: &[u8], client: &Client) -> io::Result<Way> {
        let inner = path.strip_prefix(b"/").unwrap_or(path);
        let wanted = if inner.is_empty() || inner.ends_with(b"/") {
            [inner, b"index.html"].concat()
        } else {
            inner.to_vec()
        };
        match &self.reader {
            None => self.file(wanted),
            Some(reader) => self.cell(reader, wanted, client).await,
        }
    }

    fn file(&self, path: Vec<u8>) -> io::Result<Way> {
        let Source::Files(root) = &*self.source else {
            return Ok(Way::Nothing);
        };
        // The kernel takes several slashes for one; here they would be several addresses of one page.
        if path.starts_with(b"/") || path.windows(2).any(|w| w == b"//") {
            return Ok(Way::Nothing);
        }
        let Some(file) = root.file(&path)? else {
            return Ok(
                if root.is_directory(&path)?
                    && root.file(&[&path[..], b"/index.html"].concat())?.is_some()
                {
                    Way::Folder
                } else {
                    Way::Nothing
                },
            );
        };
        let meta = file.metadata()?;
        // What was read counts, if the file changed in between.
        let (content, size) = if meta.len() <= PIECE as u64 {
            let mut body = Vec::with_capacity(meta.len() as usize + 1);
            let read = file.take(PIECE as u64).read_to_end(&mut body)?;
            (Content::Whole(body.into()), read as u64)
        } else {
            (Content::File(file), meta.len())
        };
        let tag = format!(
            "\"{size:x}-{:x}.{:x}-{:x}.{:x}\"",
            meta.mtime(),
            meta.mtime_nsec(),
            meta.ctime(),
            meta.ctime_nsec()
        );
        Ok(Way::Found(Found {
            size,
            modified: meta.mtime(),
            kind: None,
            tag,
            content,
        }))
    }

    async fn cell(
        &self,
        reader: &RefCell<Box<dyn Reader>>,
        path: Vec<u8>,
        client: &Client,
    ) -> io::Result<Way> {
        let mut room = vec![0; PIECE];
        let Some(first) = self.part(&path, 0, &mut room)? else {
            return Ok(match reader.borrow_mut().entry(&path) {
                Ok(Some(Entry::Table)) => Way::Folder,
                _ => Way::Nothing,
            });
        };
        let found = |sum: u64, content: Content| {
            let tag = format!("\"{:x}-{sum:016x}\"", first.size);
            Way::Found(Found {
                size: first.size,
                modified: first.modified,
                kind: Some(first.kind),
                tag,
                content,
            })
        };
        if first.read as u64 == first.size {
            room.truncate(first.read);
            return Ok(found(add(0, &room), Content::Whole(room.into())));
        }
        room.resize(piece(first.size), 0);
        let (mut sum, mut at) = (0, 0);
        while at < first.size {
            match self.part(&path, at, &mut room)? {
                Some(part) if part.read > 0 && part.size == first.size => {
                    sum = add(sum, &room[..part.read]);
                    at += part.read as u64;
                }
                _ => return Err(io::Error::other("the cell changed while it was read")),
            }
            client.active();
            // Others are served meanwhile.
            tokio::task::yield_now().await;
        }
        Ok(found(sum, Content::Cell(path, sum)))
    }

    /// Reads a part of a cell; `None` when there is no such cell.
    pub(crate) fn part(
        &self,
        path: &[u8],
        offset: u64,
        room: &mut [u8],
    ) -> io::Result<Option<Part>> {
        let Some(reader) = &self.reader else {
            return Ok(None);
        };
        match reader.borrow_mut().part(path, offset, room) {
            Ok(part) => Ok(part),
            // A path that cannot be leads nowhere.
            Err(Error::Path(..)) => Ok(None),
            Err(e) => Err(io::Error::other(e)),
        }
    }
}
