//! From a sample to the addresses of its frames, by the tables that exceptions use, and what compilers make of names.

use std::collections::HashSet;
use std::fmt::{self, Write};

use fingerpost_sys::perf::stacks::Registers;
use framehop::{ExplicitModuleSectionInfo, FrameAddress, Module, Unwinder};

use super::image::{Bytes, Image};
use super::reader::NONE;

#[cfg(target_arch = "aarch64")]
use framehop::aarch64::{
    CacheAarch64 as Cache, UnwindRegsAarch64 as Regs, UnwinderAarch64 as Native,
};
#[cfg(target_arch = "x86_64")]
use framehop::x86_64::{CacheX86_64 as Cache, UnwindRegsX86_64 as Regs, UnwinderX86_64 as Native};

/// Frames that are unwound of one sample.
pub const DEEPEST: usize = 100;
/// Bytes of a name that a compiler's name stands for.
const MOST_NAME: usize = 500;

/// A file of code, by device and inode.
pub type FileKey = (String, u64);

/// A [`StackSample`](fingerpost_sys::perf::stacks::StackSample) that is kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timed {
    pub pid: i32,
    pub tid: i32,
    pub time: u64,
    /// Of so many it is one.
    pub one_in: u64,
    pub kernel: Vec<u64>,
    pub user: Option<Registers>,
    pub stack: Vec<u8>,
}

/// Files by number, read when one of their frames is met.
pub trait Files {
    fn image(&mut self, number: u32) -> Option<&Image>;
    /// Notes by which file's tables something is about to be unwound.
    fn in_hand(&self, number: Option<u32>);
}

/// A mapping with code: addresses, where in its file it begins, and the number of that.
struct Mapping {
    start: u64,
    end: u64,
    offset: u64,
    file: u32,
}

/// A process as its frames are unwound.
#[derive(Default)]
pub struct Process {
    /// In the order of addresses.
    mappings: Vec<Mapping>,
    /// Those whose tables the unwinder has, by their first address.
    loaded: HashSet<u64>,
    unwinder: Native<Bytes>,
    /// There from the first sample on.
    cache: Option<Box<Cache>>,
}

impl Process {
    /// Adds a mapping, those with lower addresses before.
    pub fn map(&mut self, start: u64, end: u64, offset: u64, file: u32) {
        self.mappings.push(Mapping {
            start,
            end,
            offset,
            file,
        });
    }

    /// Has the unwinder know how far addresses go before it has any tables: it takes that for all that a pointer has of
    /// an address (the rest of one may be its signature, on Arm).
    fn begin(&mut self) {
        if let (None, Some(last)) = (&self.cache, self.mappings.last()) {
            let empty = ExplicitModuleSectionInfo::default();
            let range = last.start..last.end;
            self.unwinder
                .add_module(Module::new(String::new(), range, last.start, empty));
        }
    }

    /// The addresses of a sample's user frames, innermost first.
    pub fn frames(
        &mut self,
        registers: &Registers,
        stack: &[u8],
        files: &mut impl Files,
    ) -> Vec<u64> {
        let mut read = |address: u64| {
            let at =
                usize::try_from(address.checked_sub(registers.stack).ok_or(())?).map_err(|_| ())?;
            let bytes = stack.get(at..at.checked_add(8).ok_or(())?).ok_or(())?;
            Ok(u64::from_ne_bytes(bytes.try_into().map_err(|_| ())?))
        };
        self.begin();
        let mut cache = self.cache.take().unwrap_or_default();
        let mut regs = regs(registers);
        let mut address = FrameAddress::from_instruction_pointer(registers.instruction);
        let mut found = vec![address.address_for_lookup()];
        while found.len() < DEEPEST {
            let file = self.load(address.address_for_lookup(), files);
            files.in_hand(file);
            let next = self
                .unwinder
                .unwind_frame(address, &mut regs, &mut *cache, &mut read);
            let Ok(Some(next)) = next else { break };
            let Some(next) = FrameAddress::from_return_address(next) else {
                break;
            };
            address = next;
            found.push(address.address_for_lookup());
        }
        files.in_hand(None);
        self.cache = Some(cache);
        found
    }

    /// Gives the unwinder the tables of the file that an address lies in, if it has not had them; that file.
    fn load(&mut self, address: u64, files: &mut impl Files) -> Option<u32> {
        let before = self.mappings.partition_point(|m| m.start <= address);
        let mapping = self.mappings[..before].last()?;
        (address < mapping.end && mapping.file != NONE).then_some(())?;
        if self.loaded.insert(mapping.start)
            && let Some(image) = files.image(mapping.file)
            && let Some(bias) = image.bias(mapping.start, mapping.offset)
        {
            self.unwinder.remove_module(mapping.start);
            self.unwinder.add_module(module(mapping, image, bias));
        }
        Some(mapping.file)
    }
}

fn module(mapping: &Mapping, image: &Image, bias: u64) -> Module<Bytes> {
    let info = ExplicitModuleSectionInfo {
        base_svma: 0,
        text_svma: image.text.clone(),
        got_svma: image.got.clone(),
        eh_frame_svma: image.eh_frame.as_ref().map(|s| s.0.clone()),
        eh_frame: image.eh_frame.as_ref().map(|s| s.1.clone()),
        eh_frame_hdr_svma: image.eh_frame_hdr.as_ref().map(|s| s.0.clone()),
        eh_frame_hdr: image.eh_frame_hdr.as_ref().map(|s| s.1.clone()),
        ..ExplicitModuleSectionInfo::default()
    };
    Module::new(String::new(), mapping.start..mapping.end, bias, info)
}

#[cfg(target_arch = "x86_64")]
fn regs(r: &Registers) -> Regs {
    Regs::new(r.instruction, r.stack, r.frame)
}

#[cfg(target_arch = "aarch64")]
fn regs(r: &Registers) -> Regs {
    Regs::new(r.link, r.stack, r.frame)
}

/// Text that ends what is written when it is long enough: a name of three hundred bytes may stand for one of two hundred
/// million.
struct Short(String);

impl Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = MOST_NAME.saturating_sub(self.0.len());
        self.0.push_str(&text[..text.floor_char_boundary(room)]);
        if text.len() > room {
            self.0.push('…');
            return Err(fmt::Error);
        }
        Ok(())
    }
}

/// A function's name as its source has it, without what it takes and gives.
pub fn demangled(name: &str) -> String {
    let mut short = Short(String::new());
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        let _ = write!(short, "{rust:#}");
        return short.0;
    }
    // Versions of a symbol (`@GLIBC_2.34`) and parts that a compiler split off (`.cold`) do not belong to the mangled
    // name.
    let plain = name.split(['@', '.']).next().unwrap_or(name);
    let options = cpp_demangle::DemangleOptions::new()
        .no_params()
        .no_return_type()
        .recursion_limit(64);
    let cpp = cpp_demangle::Symbol::new(plain.as_bytes())
        .ok()
        .filter(|_| plain.starts_with("_Z"));
    if let Some(symbol) = cpp {
        let done = symbol.structured_demangle(&mut short, &options);
        if done.is_ok() || short.0.len() > MOST_NAME {
            return short.0;
        }
    }
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_source() {
        assert_eq!(demangled("_ZN3net6server5writeEv"), "net::server::write");
        assert_eq!(
            demangled("_Z15row_search_mvccPh15page_cur_mode_tP14row_prebuilt_tmm"),
            "row_search_mvcc"
        );
        assert_eq!(demangled("_RNvCs1234_7mycrate3foo"), "mycrate::foo");
        for plain in ["main", "_Znonsense", "", "__GI___poll@GLIBC_2.2.5"] {
            assert_eq!(demangled(plain), plain);
        }
    }

    /// A type that has itself twice as often at each step, by back references: its name in full has 2^n parts.
    #[test]
    fn a_short_name_that_stands_for_a_very_long_one_is_cut() {
        let mut name = "_Z1fI1aE".to_owned();
        for n in 0..40 {
            let one = if n == 0 {
                "S_".to_owned()
            } else {
                format!(
                    "S{}_",
                    std::char::from_digit(n - 1, 36)
                        .unwrap_or('Z')
                        .to_ascii_uppercase()
                )
            };
            name = format!("{}1bI{one}{one}EE", &name[..name.len() - 1]);
        }
        let begun = std::time::Instant::now();
        let shown = demangled(&name);
        assert!(
            shown.len() <= name.len().max(MOST_NAME + 3),
            "{}",
            shown.len()
        );
        assert!(begun.elapsed().as_secs() < 20);
    }
}
