//! A program or library: where its code lies, how its frames are unwound, what its functions are called.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use object::Endianness;
use object::elf::{PF_X, PT_LOAD, STT_FUNC, STT_GNU_IFUNC};
use object::read::elf::{ElfFile64, ProgramHeader, Sym};
use object::read::{Object, ObjectSection, ReadCache};

/// A longer file is not looked into, and a section that is longer than this is not read.
const MOST_BYTES: u64 = 2 << 30;
const MOST_SECTION: u64 = 128 << 20;
/// Functions that are kept of one file.
const MOST_FUNCTIONS: usize = 2_000_000;
/// Bytes of a function's name that are kept.
const MOST_NAME: usize = 500;
/// Where debug files are installed, by build id.
const DEBUG: &str = "/usr/lib/debug/.build-id";

/// A file of code.
#[derive(Debug, Default)]
pub struct Image {
    /// Segments with code: where in the file, and at which stated address.
    segments: Vec<Segment>,
    /// Sections for the unwinder, with their stated addresses.
    pub eh_frame: Option<(Range<u64>, Arc<[u8]>)>,
    pub eh_frame_hdr: Option<(Range<u64>, Arc<[u8]>)>,
    /// The stated addresses of `.text` and `.got`.
    pub text: Option<Range<u64>>,
    pub got: Option<Range<u64>>,
    functions: Functions,
}

#[derive(Debug)]
struct Segment {
    offset: u64,
    size: u64,
    address: u64,
}

type Elf<'a> = ElfFile64<'a, Endianness, &'a ReadCache<File>>;

impl Image {
    /// Reads what is needed of a file, whoever made it. A file that is no such is an image of which nothing is known.
    pub fn read(file: File) -> Image {
        let whole = file
            .metadata()
            .is_ok_and(|m| m.is_file() && m.len() <= MOST_BYTES);
        if !whole {
            return Image::default();
        }
        let cache = ReadCache::new(file);
        let Ok(elf) = Elf::parse(&cache) else {
            return Image::default();
        };
        let mut image = Image {
            segments: segments(&elf),
            ..Image::default()
        };
        let section = |name: &str| {
            elf.section_by_name(name)
                .map(|s| (s.address()..s.address().saturating_add(s.size()), s))
        };
        let data = |name: &str| {
            let (range, section) = section(name).filter(|(_, s)| s.size() <= MOST_SECTION)?;
            Some((range, Arc::from(section.data().ok()?)))
        };
        (image.eh_frame, image.eh_frame_hdr) = (data(".eh_frame"), data(".eh_frame_hdr"));
        (image.text, image.got) = (section(".text").map(|s| s.0), section(".got").map(|s| s.0));
        let debug = elf
            .build_id()
            .ok()
            .flatten()
            .and_then(debug_file)
            .map(ReadCache::new);
        let named = debug
            .as_ref()
            .and_then(|cache| Some(Functions::of(&Elf::parse(cache).ok()?)));
        image.functions = named
            .filter(|f| !f.by_address.is_empty())
            .unwrap_or_else(|| Functions::of(&elf));
        image
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

    /// The function at a stated address, as the file names it.
    pub fn function(&self, address: u64) -> Option<&str> {
        self.functions.at(address)
    }
}

fn segments(elf: &Elf) -> Vec<Segment> {
    let endian = elf.endian();
    let code = elf
        .elf_program_headers()
        .iter()
        .filter(|p| p.p_type(endian) == PT_LOAD && p.p_flags(endian) & PF_X != 0);
    code.map(|p| Segment {
        offset: p.p_offset(endian),
        size: p.p_filesz(endian),
        address: p.p_vaddr(endian),
    })
    .take(64)
    .collect()
}

/// The installed debug file of a build id. Only root may have put it there.
fn debug_file(id: &[u8]) -> Option<File> {
    let hexadecimal: String = id
        .iter()
        .take(64)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let file = File::open(format!(
        "{DEBUG}/{}/{}.debug",
        hexadecimal.get(..2)?,
        hexadecimal.get(2..)?
    ))
    .ok()?;
    let meta = file.metadata().ok()?;
    (meta.is_file() && meta.uid() == 0 && meta.mode() & 0o022 == 0 && meta.len() <= MOST_BYTES)
        .then_some(file)
}

/// Functions by stated address.
#[derive(Debug, Default)]
struct Functions {
    /// Address, length (0 where it is not stated), place of the name.
    by_address: Vec<(u64, u64, u32)>,
    names: Arc<[u8]>,
}

impl Functions {
    /// The symbol table's, else those that others may link to.
    fn of(elf: &Elf) -> Functions {
        let endian = elf.endian();
        for table in [elf.elf_symbol_table(), elf.elf_dynamic_symbol_table()] {
            let function = |s: &&object::elf::Sym64<Endianness>| {
                matches!(s.st_type(), STT_FUNC | STT_GNU_IFUNC)
                    && !s.is_undefined(endian)
                    && s.st_value(endian) > 0
            };
            let of_symbol = |s: &object::elf::Sym64<Endianness>| {
                (s.st_value(endian), s.st_size(endian), s.st_name(endian))
            };
            let mut by_address: Vec<_> = table
                .symbols()
                .iter()
                .filter(function)
                .map(of_symbol)
                .take(MOST_FUNCTIONS)
                .collect();
            let names = names(elf, table.string_section());
            if let (false, Some(names)) = (by_address.is_empty(), names) {
                by_address.sort_unstable();
                by_address.dedup_by_key(|f| f.0);
                return Functions { by_address, names };
            }
        }
        Functions::default()
    }

    fn at(&self, address: u64) -> Option<&str> {
        let before = self.by_address.partition_point(|f| f.0 <= address);
        let &(start, size, name) = self.by_address[..before].last()?;
        // A function without a length reaches as far as the next one.
        (size == 0 || address - start < size).then_some(())?;
        let rest = self.names.get(name as usize..)?;
        let end = rest.iter().take(MOST_NAME).position(|byte| *byte == 0)?;
        std::str::from_utf8(&rest[..end])
            .ok()
            .filter(|name| !name.is_empty())
    }
}

fn names(elf: &Elf, section: object::SectionIndex) -> Option<Arc<[u8]>> {
    let section = elf
        .section_by_index(section)
        .ok()
        .filter(|s| s.size() <= 2 * MOST_SECTION)?;
    Some(Arc::from(section.data().ok()?))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[inline(never)]
    fn a_function_of_this_test() -> u64 {
        std::hint::black_box(7)
    }

    fn own() -> Vec<u8> {
        std::fs::read("/proc/self/exe").unwrap()
    }

    fn image(bytes: &[u8]) -> Image {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        Image::read(file)
    }

    #[test]
    fn functions_of_this_program_are_named_where_they_lie() {
        assert_eq!(a_function_of_this_test(), 7);
        let mappings =
            super::super::maps::parse(&std::fs::read_to_string("/proc/self/maps").unwrap());
        let address = a_function_of_this_test as *const () as u64;
        let mapping = super::super::maps::at(&mappings, address).unwrap();
        let image = Image::read(File::open("/proc/self/exe").unwrap());
        let bias = image.bias(mapping.start, mapping.offset).unwrap();
        let name = image.function(address - bias).unwrap();
        assert!(name.contains("a_function_of_this_test"), "{name}");
        assert!(image.eh_frame.is_some() && image.text.is_some());
        assert_eq!(image.function(0), None);
    }

    #[test]
    fn a_spoilt_file_is_read_to_its_end_or_not_at_all() {
        let good = own();
        let spoilt = |at: usize, value: u8| {
            let mut bytes = good[..good.len().min(1 << 20)].to_vec();
            bytes[at] = value;
            bytes
        };
        for at in 0..size_of::<object::elf::FileHeader64<Endianness>>() {
            for value in [0, 0x7f, 0xff] {
                let image = image(&spoilt(at, value));
                image.function(0x40_0000);
                image.bias(0, u64::MAX);
            }
        }
        assert!(image(b"\x7fELF").eh_frame.is_none());
        assert_eq!(image(&[]).bias(1, 1), None);
    }
}
