//! A program or library: where its code lies, how its frames are unwound, what its functions are called.
//!
//! The file is whoever's it is. It is read in a process without rights (`reader`), in pieces, never mapped: one that is
//! cut off meanwhile would end us.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::{Deref, Range};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use object::Endianness;
use object::elf::{
    ELF_NOTE_GNU, FileHeader64, NT_GNU_BUILD_ID, PF_X, PT_LOAD, SHT_DYNSYM, SHT_SYMTAB, STT_FUNC,
    STT_GNU_IFUNC,
};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, SectionTable};
use object::read::{ReadCache, SectionIndex};

use super::nearest::Nearest;

/// Sections and segments of a file that is looked into.
const MOST_SECTIONS: usize = 2_000;
const MOST_SEGMENTS: usize = 1_000;
/// Bytes of notes.
const MOST_NOTES: u64 = 64 << 10;
/// Bytes of a function's name that are kept.
const MOST_NAME: usize = 500;
/// Bytes that are read at a time: whole symbols.
const PIECE: usize = SYMBOL * 2_048;
/// Bytes of a symbol.
const SYMBOL: usize = 24;

/// A file that came as an open descriptor, and how long it was then.
#[derive(Debug)]
pub struct Source {
    pub file: File,
    pub bytes: u64,
}

/// The same with a place in it.
#[derive(Debug)]
struct Reading<'a> {
    of: &'a Source,
    at: u64,
}

impl Read for Reading<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let n = self.of.file.read_at(into, self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}

impl Seek for Reading<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let (from, by) = match to {
            SeekFrom::Start(at) => (at, 0),
            SeekFrom::Current(by) => (self.at, by),
            SeekFrom::End(by) => (self.of.bytes, by),
        };
        self.at = from
            .checked_add_signed(by)
            .ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

impl Source {
    /// Reads as many bytes as there are from a place on; true where the place is full.
    pub fn fill(&self, at: u64, into: &mut [u8]) -> usize {
        let mut done = 0;
        while done < into.len() {
            match self.file.read_at(&mut into[done..], at + done as u64) {
                Ok(n) if n > 0 => done += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                _ => break,
            }
        }
        done
    }

    /// A part, if it is all there and takes no more than half of the room that is left: no file takes all of it from
    /// those that come after.
    fn part(&self, offset: u64, bytes: u64, room: &mut u64) -> Option<Bytes> {
        offset.checked_add(bytes).filter(|end| *end <= self.bytes)?;
        (bytes <= *room / 2).then_some(())?;
        *room -= bytes;
        let mut part = vec![0; bytes as usize];
        (self.fill(offset, &mut part) == part.len()).then(|| Bytes(Arc::new(part)))
    }
}

/// Bytes that several processes' tables share.
#[derive(Clone, Debug, Default)]
pub struct Bytes(Arc<Vec<u8>>);

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// A file of code.
#[derive(Debug, Default)]
pub struct Image {
    /// Segments with code: where in the file, and at which stated address.
    segments: Vec<Segment>,
    /// Sections for the unwinder, with their stated addresses.
    pub eh_frame: Option<(Range<u64>, Bytes)>,
    pub eh_frame_hdr: Option<(Range<u64>, Bytes)>,
    /// The stated addresses of `.text` and `.got`.
    pub text: Option<Range<u64>>,
    pub got: Option<Range<u64>>,
    pub build_id: Vec<u8>,
    /// Its tables of symbols, the fullest first.
    tables: Vec<Table>,
}

#[derive(Debug)]
struct Segment {
    offset: u64,
    size: u64,
    address: u64,
}

/// A table of symbols, and the strings that name them: places in the file and lengths.
#[derive(Clone, Copy, Debug)]
struct Table {
    symbols: (u64, u64),
    names: (u64, u64),
}

/// A function: its length (0 where it is not stated), and the place of its name.
type Function = (u64, u32);

impl Image {
    /// Reads what is needed of a file but its symbols, whoever made it, `room` bytes of tables at most, which is then
    /// less. A file that is no such is an image of which nothing is known.
    pub fn read(source: &Source, room: &mut u64) -> Image {
        Image::of(source, room).unwrap_or_default()
    }

    fn of(source: &Source, room: &mut u64) -> Option<Image> {
        let cache = ReadCache::new(Reading { of: source, at: 0 });
        let header = FileHeader64::<Endianness>::parse(&cache).ok()?;
        let endian = header.endian().ok()?;
        // Both architectures that are watched are little-endian.
        let fits = endian == Endianness::Little
            && header.shnum(endian, &cache).ok()? <= MOST_SECTIONS
            && header.phnum(endian, &cache).ok()? <= MOST_SEGMENTS;
        fits.then_some(())?;
        let segments = header.program_headers(endian, &cache).ok()?;
        let segments = segments
            .iter()
            .filter(|p| p.p_type(endian) == PT_LOAD && p.p_flags(endian) & PF_X != 0)
            .map(|p| Segment {
                offset: p.p_offset(endian),
                size: p.p_filesz(endian),
                address: p.p_vaddr(endian),
            })
            .take(64)
            .collect();
        let mut image = Image {
            segments,
            ..Image::default()
        };
        let Ok(sections) = header.sections(endian, &cache) else {
            return Some(image);
        };
        let range = |name: &[u8]| {
            let (_, section) = sections.section_by_name(endian, name)?;
            let (address, size) = (section.sh_addr(endian), section.sh_size(endian));
            Some((address..address.saturating_add(size), section))
        };
        let mut data = |name: &[u8]| {
            let (range, section) = range(name)?;
            let part = source.part(section.sh_offset(endian), section.sh_size(endian), room)?;
            Some((range, part))
        };
        image.eh_frame = data(b".eh_frame");
        image.eh_frame_hdr = image
            .eh_frame
            .is_some()
            .then(|| data(b".eh_frame_hdr"))
            .flatten();
        image.text = range(b".text").map(|r| r.0);
        image.got = range(b".got").map(|r| r.0);
        image.build_id = build_id(&sections, endian, &cache).unwrap_or_default();
        image.tables = [SHT_SYMTAB, SHT_DYNSYM]
            .into_iter()
            .filter_map(|kind| table(&sections, endian, kind))
            .collect();
        Some(image)
    }

    /// By how much a mapping that begins at this place of the file lies above the stated addresses.
    pub fn bias(&self, start: u64, offset: u64) -> Option<u64> {
        let segment = self
            .segments
            .iter()
            .find(|s| (s.offset & !0xfff..s.offset.saturating_add(s.size)).contains(&offset))?;
        let stated = offset
            .wrapping_sub(segment.offset)
            .wrapping_add(segment.address);
        Some(start.wrapping_sub(stated))
    }

    /// The names of the functions at stated addresses, as the file has them: by its symbol table, else by those that
    /// others may link to. Nothing where it has neither.
    pub fn functions(&self, source: &Source, wanted: &[u64]) -> Option<Vec<Option<String>>> {
        let (table, nearest) = self.tables.iter().find_map(|table| {
            let mut nearest: Nearest<Function> = Nearest::to(wanted.iter().copied());
            table.read(source, &mut nearest).then_some((table, nearest))
        })?;
        let name = |address: &u64| {
            let &(start, (size, name)) = nearest.below(*address)?;
            // A function without a length reaches as far as the next one.
            (size == 0 || address - start < size).then_some(())?;
            table.name(source, name)
        };
        Some(wanted.iter().map(name).collect())
    }
}

type Cache<'a> = ReadCache<Reading<'a>>;
type Sections<'c, 'a> = SectionTable<'c, FileHeader64<Endianness>, &'c Cache<'a>>;

fn build_id(sections: &Sections, endian: Endianness, cache: &Cache) -> Option<Vec<u8>> {
    for section in sections.iter().filter(|s| s.sh_size(endian) <= MOST_NOTES) {
        let Ok(Some(mut notes)) = section.notes(endian, cache) else {
            continue;
        };
        while let Ok(Some(note)) = notes.next() {
            if note.name() == ELF_NOTE_GNU && note.n_type(endian) == NT_GNU_BUILD_ID {
                return Some(note.desc().iter().take(64).copied().collect());
            }
        }
    }
    None
}

fn table(sections: &Sections, endian: Endianness, kind: u32) -> Option<Table> {
    let section = sections.iter().find(|s| s.sh_type(endian) == kind)?;
    let strings = SectionIndex(section.sh_link(endian) as usize);
    let strings = sections.section(strings).ok()?;
    Some(Table {
        symbols: (section.sh_offset(endian), section.sh_size(endian)),
        names: (strings.sh_offset(endian), strings.sh_size(endian)),
    })
}

impl Table {
    /// Reads all symbols; whether any is a function.
    fn read(&self, source: &Source, nearest: &mut Nearest<Function>) -> bool {
        let (mut at, bytes) = self.symbols;
        let end = at.saturating_add(bytes).min(source.bytes);
        let (mut piece, mut any) = (vec![0; PIECE], false);
        while at < end {
            let most = usize::try_from(end - at).map_or(PIECE, |left| left.min(PIECE));
            let read = source.fill(at, &mut piece[..most]);
            if read < SYMBOL {
                break;
            }
            at += (read - read % SYMBOL) as u64;
            for symbol in piece[..read].chunks_exact(SYMBOL) {
                let Some((start, function)) = function(symbol) else {
                    continue;
                };
                any = true;
                nearest.offer(start, |first| *first <= function, || function);
            }
        }
        any
    }

    fn name(&self, source: &Source, place: u32) -> Option<String> {
        let (start, bytes) = self.names;
        let left = bytes.checked_sub(place.into())?;
        let mut name = vec![0; usize::try_from(left).map_or(MOST_NAME, |l| l.min(MOST_NAME))];
        let read = source.fill(start.checked_add(place.into())?, &mut name);
        let end = name[..read].iter().position(|byte| *byte == 0)?;
        name.truncate(end);
        String::from_utf8(name).ok().filter(|name| !name.is_empty())
    }
}

/// Where a symbol's function begins, if it is one that is in the file.
fn function(symbol: &[u8]) -> Option<(u64, Function)> {
    let number = |at: usize| Some(u64::from_le_bytes(symbol.get(at..at + 8)?.try_into().ok()?));
    let name = u32::from_le_bytes(symbol.get(..4)?.try_into().ok()?);
    let kind = symbol.get(4)? & 0xf;
    let defined = symbol.get(6..8)? != [0, 0];
    let (value, size) = (number(8)?, number(16)?);
    (matches!(kind, STT_FUNC | STT_GNU_IFUNC) && defined && value > 0)
        .then_some((value, (size, name)))
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write;

    use super::*;

    #[inline(never)]
    fn a_function_of_this_test() -> u64 {
        std::hint::black_box(7)
    }

    pub fn source(bytes: &[u8]) -> Source {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        Source {
            file,
            bytes: bytes.len() as u64,
        }
    }

    pub fn own() -> Source {
        let file = File::open("/proc/self/exe").unwrap();
        let bytes = file.metadata().unwrap().len();
        Source { file, bytes }
    }

    const ROOM: u64 = 64 << 20;

    #[test]
    fn functions_of_this_program_are_named_where_they_lie() {
        assert_eq!(a_function_of_this_test(), 7);
        let mappings =
            super::super::maps::parse(&std::fs::read_to_string("/proc/self/maps").unwrap());
        let address = a_function_of_this_test as *const () as u64;
        let mapping = super::super::maps::at(&mappings, address).unwrap();
        let (own, mut room) = (own(), ROOM);
        let image = Image::read(&own, &mut room);
        let bias = image.bias(mapping.start, mapping.offset).unwrap();
        let names = image.functions(&own, &[address - bias, 0]).unwrap();
        let name = names[0].as_deref().unwrap();
        assert!(name.contains("a_function_of_this_test"), "{name}");
        assert_eq!(names[1], None);
        assert!(image.eh_frame.is_some() && image.text.is_some() && room < ROOM);
        assert!(!image.build_id.is_empty());
        let mut none = 10;
        assert!(Image::read(&own, &mut none).eh_frame.is_none() && none == 10);
    }

    #[test]
    fn a_spoilt_file_is_read_to_its_end_or_not_at_all() {
        let mut good = vec![0; 1 << 20];
        let length = own().fill(0, &mut good);
        good.truncate(length);
        let image = |bytes: &[u8]| Image::read(&source(bytes), &mut ROOM.clone());
        for at in 0..size_of::<FileHeader64<Endianness>>() {
            for value in [0, 0x7f, 0xff] {
                let mut spoilt = good.clone();
                spoilt[at] = value;
                let spoilt = source(&spoilt);
                let image = Image::read(&spoilt, &mut ROOM.clone());
                image.functions(&spoilt, &[0x40_0000]);
                image.bias(0, u64::MAX);
            }
        }
        assert!(image(b"\x7fELF").eh_frame.is_none());
        assert_eq!(image(&[]).bias(1, 1), None);
    }
}
