//! Programs that a compiler made (`bpf/`), made ready for the running kernel: the maps that they use are made, and each
//! place of a field in the kernel's structures is set to where this kernel has it (CO-RE).

use std::collections::HashMap;
use std::os::fd::{AsRawFd, OwnedFd};

use object::read::elf::ElfFile64;
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, RelocationTarget, SectionIndex};

use super::btf::Btf;
use super::calls::{MAP_ARRAY, READ_ONLY, freeze, map, update};
use super::error::BpfError;

/// Bytes of an instruction, and the operation that loads a constant of 64 bits, which is two of them.
const INSTRUCTION: usize = 8;
const LOAD_CONSTANT: u8 = 0x18;
/// What such a constant may be, in the place of its source register: a map, or a map's value.
const A_MAP: u8 = 1;
const A_MAP_VALUE: u8 = 2;
/// A call of a helper that there is not: the kernel refuses a program that could come there, and takes one that cannot.
const CALL: u8 = 0x85;
const NO_HELPER: i32 = 0x0bad_2310;
/// What is asked of a place in a structure (`enum bpf_core_relo_kind`).
const FIELD_OFFSET: u32 = 0;
const FIELD_EXISTS: u32 = 2;
/// Where the programs' maps are described, with 20 bytes each.
const MAPS: &str = "maps";
const MAP_BYTES: u64 = 20;
const CONSTANTS: &str = ".rodata";

type Elf<'a> = ElfFile64<'a, object::Endianness>;

/// By a program's section: the offsets of instructions that have a place in the kernel's structures, and the place;
/// nothing where the kernel has none.
type Places = HashMap<String, Vec<(usize, Option<i32>)>>;

/// What is told before programs are loaded.
#[derive(Default)]
pub struct Settings<'a> {
    /// Values of constants, by name; the others are as the programs have them.
    pub constants: Vec<(&'a str, Vec<u8>)>,
    /// How many entries maps have of which the programs do not say it.
    pub entries: Vec<(&'a str, u32)>,
    /// The map that an array of maps has an example of.
    pub inner: Option<&'a OwnedFd>,
}

/// Programs with their maps.
pub struct Object<'a> {
    elf: Elf<'a>,
    maps: HashMap<String, OwnedFd>,
    /// Data, by its section.
    data: HashMap<usize, OwnedFd>,
    places: Places,
}

/// Of programs that are part of this binary.
fn broken(what: &str) -> BpfError {
    BpfError::Broken(what.to_owned())
}

impl<'a> Object<'a> {
    /// Takes the programs apart, makes their maps, and finds where the kernel has what they read.
    ///
    /// # Errors
    /// They are not complete, or the kernel makes no maps.
    pub fn new(bytes: &'a [u8], kernel: &Btf, settings: &Settings) -> Result<Object<'a>, BpfError> {
        let elf: Elf = ElfFile64::parse(bytes).map_err(|e| broken(&e.to_string()))?;
        let made = BpfError::Refused;
        let places = places(&elf, kernel).ok_or_else(|| broken("their types"))?;
        let maps = maps(&elf, settings)?;
        let mut data = HashMap::new();
        for section in elf.sections() {
            let name = section.name().unwrap_or_default();
            if name != CONSTANTS && !name.starts_with(".bss") {
                continue;
            }
            let constant = name == CONSTANTS;
            let size = section.size() as u32;
            let flags = if constant { READ_ONLY } else { 0 };
            let value = map(MAP_ARRAY, [4, size, 1], flags, None).map_err(made)?;
            if constant {
                let mut bytes = section.data().unwrap_or_default().to_vec();
                for (name, constant) in &settings.constants {
                    set(&elf, section.index(), name, constant, &mut bytes)
                        .ok_or_else(|| broken(name))?;
                }
                update(&value, 0, &bytes).map_err(made)?;
                freeze(&value).map_err(made)?;
            }
            data.insert(section.index().0, value);
        }
        Ok(Object {
            elf,
            maps,
            data,
            places,
        })
    }

    /// A map by its name, or the map whose one value a variable is alone in.
    pub fn map(&self, name: &str) -> Result<&OwnedFd, BpfError> {
        let variable = || {
            let symbol = self.elf.symbols().find(|s| s.name() == Ok(name))?;
            self.data.get(&symbol.section_index()?.0)
        };
        self.maps
            .get(name)
            .or_else(variable)
            .ok_or_else(|| broken(name))
    }

    /// Whether there is a program in this section.
    pub fn has(&self, section: &str) -> bool {
        self.elf.section_by_name(section).is_some()
    }

    /// The instructions of the program in a section.
    ///
    /// # Errors
    /// There is none, or it is not complete.
    pub fn code(&self, section: &str) -> Result<Vec<u64>, BpfError> {
        let missing = || broken(section);
        let found = self.elf.section_by_name(section).ok_or_else(missing)?;
        let mut code = found.data().map_err(|_| missing())?.to_vec();
        for (at, value) in self.places.get(section).into_iter().flatten() {
            place(&mut code, *at, *value).ok_or_else(missing)?;
        }
        for (at, relocation) in found.relocations() {
            let RelocationTarget::Symbol(symbol) = relocation.target() else {
                return Err(missing());
            };
            let symbol = self.elf.symbol_by_index(symbol).map_err(|_| missing())?;
            self.refer(&mut code, at as usize, &symbol)
                .ok_or_else(missing)?;
        }
        Ok(code
            .chunks_exact(INSTRUCTION)
            .map(|i| u64::from_ne_bytes(i.try_into().expect("eight bytes")))
            .collect())
    }

    /// Sets a constant to the map, or to a place in the data, that a symbol is.
    fn refer(
        &self,
        code: &mut [u8],
        at: usize,
        symbol: &impl object::ObjectSymbol<'a>,
    ) -> Option<()> {
        let instructions = code.get_mut(at..at + 2 * INSTRUCTION)?;
        if instructions[0] != LOAD_CONSTANT {
            return None;
        }
        let section = symbol.section_index()?;
        let (fd, kind, offset) = match self.data.get(&section.0) {
            Some(data) => {
                let addend = u32::from_ne_bytes(instructions[4..8].try_into().ok()?);
                (data, A_MAP_VALUE, symbol.address() as u32 + addend)
            }
            None => (self.maps.get(symbol.name().ok()?)?, A_MAP, 0),
        };
        instructions[1] = instructions[1] & 0xf | kind << 4;
        instructions[4..8].copy_from_slice(&fd.as_raw_fd().to_ne_bytes());
        instructions[12..16].copy_from_slice(&offset.to_ne_bytes());
        Some(())
    }
}

fn maps(elf: &Elf, settings: &Settings) -> Result<HashMap<String, OwnedFd>, BpfError> {
    let made = BpfError::Refused;
    let Some(section) = elf.section_by_name(MAPS) else {
        return Ok(HashMap::new());
    };
    let of_maps = |s: &object::read::elf::ElfSymbol64<'_, '_, object::Endianness>| {
        s.section_index() == Some(section.index()) && !s.name().unwrap_or_default().is_empty()
    };
    let mut maps = HashMap::new();
    for symbol in elf.symbols().filter(of_maps) {
        let name = symbol.name().unwrap_or_default();
        let data = section.data_range(symbol.address(), MAP_BYTES);
        let Some(data) = data.ok().flatten() else {
            return Err(broken(name));
        };
        let word = |n: usize| {
            let bytes = data.get(4 * n..4 * n + 4).and_then(|b| b.try_into().ok());
            bytes.map_or(0, u32::from_ne_bytes)
        };
        let told = settings.entries.iter().find(|(of, _)| *of == name);
        let entries = told.map_or(word(3), |(_, entries)| *entries);
        let inner = (word(0) == super::calls::MAP_ARRAY_OF_MAPS)
            .then_some(settings.inner)
            .flatten();
        let fd = map(word(0), [word(1), word(2), entries], word(4), inner).map_err(made)?;
        maps.insert(name.to_owned(), fd);
    }
    Ok(maps)
}

/// Sets the value of a constant among those of its section.
fn set(elf: &Elf, section: SectionIndex, name: &str, value: &[u8], bytes: &mut [u8]) -> Option<()> {
    let symbol = elf.symbols().find(|s| s.name() == Ok(name))?;
    let at = symbol.address() as usize;
    let fits = symbol.section_index() == Some(section) && value.len() as u64 <= symbol.size();
    bytes
        .get_mut(at..at + value.len())
        .filter(|_| fits)?
        .copy_from_slice(value);
    Some(())
}

/// Where the programs name a field of the kernel's, and where this kernel has it.
fn places(elf: &Elf, kernel: &Btf) -> Option<Places> {
    let types = Btf::parse(elf.section_by_name(".BTF")?.data().ok()?.to_vec())?;
    let described = elf.section_by_name(".BTF.ext")?.data().ok()?;
    let word = |at: usize| -> Option<u32> {
        let bytes = described.get(at..at.checked_add(4)?)?;
        bytes.try_into().ok().map(u32::from_ne_bytes)
    };
    let header = word(4)? as usize;
    let (from, length) = (word(24)? as usize, word(28)? as usize);
    let (mut at, end) = (header + from + 4, header + from + length);
    let size = word(header + from)? as usize;
    let (mut known, mut found) = (HashMap::new(), HashMap::new());
    while at < end {
        let section = String::from_utf8(types.string(word(at)?).to_vec()).ok()?;
        let count = word(at + 4)? as usize;
        at += 8;
        let places: &mut Vec<(usize, Option<i32>)> = found.entry(section).or_default();
        for _ in 0..count {
            let asked = (word(at + 4)?, word(at + 8)?, word(at + 12)?);
            let value = match known.get(&asked) {
                Some(value) => *value,
                None => {
                    let (number, access, kind) = asked;
                    let access = std::str::from_utf8(types.string(access)).ok()?;
                    let (name, steps) = types.access(number, access)?;
                    let offset = kernel.lead(&name, &steps);
                    let value = match kind {
                        FIELD_OFFSET => offset.map(|o| o as i32),
                        FIELD_EXISTS => Some(offset.is_some().into()),
                        _ => return None,
                    };
                    known.insert(asked, value);
                    value
                }
            };
            places.push((word(at)? as usize, value));
            at += size;
        }
    }
    Some(found)
}

/// Sets a place in an instruction; one that the kernel has not must not be reached.
fn place(code: &mut [u8], at: usize, value: Option<i32>) -> Option<()> {
    let instruction = code.get_mut(at..at + INSTRUCTION)?;
    match (instruction[0] & 7, value) {
        (_, None) => {
            instruction.fill(0);
            instruction[0] = CALL;
            instruction[4..8].copy_from_slice(&NO_HELPER.to_ne_bytes());
        }
        // Memory is read and written at an offset of 16 bits.
        (1..=3, Some(value)) => {
            let value = i16::try_from(value).ok()?;
            instruction[2..4].copy_from_slice(&value.to_ne_bytes());
        }
        (_, Some(value)) => instruction[4..8].copy_from_slice(&value.to_ne_bytes()),
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::link::{Point, Program};
    use super::*;
    use object::read::elf::FileHeader;

    #[repr(C, align(8))]
    struct Aligned<T: ?Sized>(T);
    static RECORD: &Aligned<[u8]> = &Aligned(*include_bytes!("../../../../bpf/record.bpf.o"));
    static COUNT: &Aligned<[u8]> = &Aligned(*include_bytes!("../../../../bpf/count.bpf.o"));

    fn name(name: &str) -> &'static str {
        Box::leak(name.to_owned().into_boxed_str())
    }

    /// The points at which a section's program is attached in the tests.
    fn point(section: &str) -> Option<Point> {
        let (kind, of) = section.split_once('/')?;
        let function = match of {
            "sendmsg" | "send" | "message" => "inet_sendmsg",
            "recvmsg" => "inet_recvmsg",
            "readable" => "sock_def_readable",
            // What Linux has until 6.5.
            "sendpage" => "inet_sendpage",
            _ => "",
        };
        match kind {
            "tp_btf" => Some(Point::Tracepoint(name(of))),
            "fentry" | "fexit" | "kprobe" | "kretprobe" => Some(Point::Function {
                section: name(section),
                function,
                optional: false,
            }),
            _ => None,
        }
    }

    #[test]
    fn this_kernel_takes_every_program_for_what_it_has() {
        let Ok(btf) = Btf::read() else { return };
        for object in [&RECORD.0, &COUNT.0] {
            let inner = map(super::super::calls::MAP_RINGBUF, [0, 0, 4096], 0, None).ok();
            let settings = Settings {
                constants: vec![("own_count", 1u32.to_ne_bytes().to_vec())],
                entries: vec![("rings", 1), ("cpus", 1), ("connections", 10)],
                inner: inner.as_ref(),
            };
            let settings = Settings {
                constants: if object.len() == RECORD.0.len() {
                    settings.constants
                } else {
                    Vec::new()
                },
                ..settings
            };
            let made = match Object::new(object, &btf, &settings) {
                Ok(made) => made,
                Err(sentence) => {
                    return fingerpost_testing::skipped(format_args!("{sentence}"));
                }
            };
            let mut taken = 0;
            for section in made.elf.sections() {
                let Some(point) = section.name().ok().and_then(point) else {
                    continue;
                };
                let there = match &point {
                    Point::Tracepoint(name) => btf.tracepoint(name).is_some(),
                    Point::Function { function, .. } => btf.function(function).is_some(),
                };
                if !there {
                    continue;
                }
                match Program::load(&made, &btf, &point) {
                    Ok(_) => taken += 1,
                    // Some kernels allow no programs at functions.
                    Err(refused) => {
                        let code = refused.error().and_then(std::io::Error::raw_os_error);
                        assert!(matches!(code, Some(libc::EPERM | 524)), "{refused}");
                    }
                }
            }
            assert!(taken >= 4, "{taken}");
        }
    }

    #[test]
    fn what_is_cut_is_refused_with_a_sentence() {
        let Ok(btf) = Btf::read() else { return };
        for length in (0..COUNT.0.len()).step_by(997) {
            // Only what is complete may be taken, and no map is made of half an object.
            let cut = &COUNT.0[..length];
            if object::elf::FileHeader64::<object::Endianness>::parse(cut).is_ok() {
                let refused = Object::new(cut, &btf, &Settings::default()).err();
                assert!(matches!(refused, Some(BpfError::Broken(_))), "{refused:?}");
            }
        }
    }
}
