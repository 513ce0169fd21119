//! From a sample to the names of its frames: the kernel's chain, then the user's frames unwound by the tables that
//! exceptions use.

use std::collections::HashMap;
use std::sync::Arc;

use fingerpost_record::stacks::MOST_FRAMES;
use fingerpost_sys::kallsyms;
use fingerpost_sys::perf::stacks::Registers;
use framehop::{ExplicitModuleSectionInfo, Module, Unwinder};

use super::image::Image;
use super::jit::Jit;
use super::maps::{self, Mapping};

#[cfg(target_arch = "aarch64")]
use framehop::aarch64::{
    CacheAarch64 as Cache, UnwindRegsAarch64 as Regs, UnwinderAarch64 as Native,
};
#[cfg(target_arch = "x86_64")]
use framehop::x86_64::{CacheX86_64 as Cache, UnwindRegsX86_64 as Regs, UnwinderX86_64 as Native};

/// Frames that are unwound of one sample.
const DEEPEST: usize = 100;
/// Added to the names of the kernel's functions.
pub const KERNEL: &str = " (kernel)";

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

/// A process as its frames are unwound and named.
pub struct Process {
    mappings: Vec<Mapping>,
    /// The image of each mapping, and by how much it lies above the stated addresses.
    images: HashMap<u64, (Arc<Image>, u64)>,
    jit: Jit,
    unwinder: Native<Arc<[u8]>>,
}

impl Process {
    /// A process with these mappings, and the files that they are of.
    pub fn new(mappings: Vec<Mapping>, files: &HashMap<FileKey, Arc<Image>>, jit: Jit) -> Process {
        let (mut images, mut unwinder) = (HashMap::new(), Native::new());
        for mapping in &mappings {
            let Some(image) = files.get(&mapping.file) else {
                continue;
            };
            let Some(bias) = image.bias(mapping.start, mapping.offset) else {
                continue;
            };
            images.insert(mapping.start, (Arc::clone(image), bias));
            unwinder.add_module(module(mapping, image, bias));
        }
        Process {
            mappings,
            images,
            jit,
            unwinder,
        }
    }

    /// The addresses of a sample's user frames, innermost first.
    fn frames(&self, registers: &Registers, stack: &[u8], cache: &mut Cache) -> Vec<u64> {
        let mut read = |address: u64| {
            let at =
                usize::try_from(address.checked_sub(registers.stack).ok_or(())?).map_err(|_| ())?;
            let bytes = stack.get(at..at.checked_add(8).ok_or(())?).ok_or(())?;
            Ok(u64::from_ne_bytes(bytes.try_into().map_err(|_| ())?))
        };
        let mut frames =
            self.unwinder
                .iter_frames(registers.instruction, regs(registers), cache, &mut read);
        let mut found = Vec::new();
        while let (true, Ok(Some(frame))) = (found.len() < DEEPEST, frames.next()) {
            found.push(frame.address_for_lookup());
        }
        found
    }

    /// The name of the function at an address: the file's, the program's own for code that it made, else file and
    /// offset.
    fn name(&self, address: u64) -> String {
        let Some(mapping) = maps::at(&self.mappings, address) else {
            return "unknown code".to_owned();
        };
        if let Some(name) = self.jit.at(address) {
            return name.to_owned();
        }
        let short = mapping
            .name
            .trim_end_matches(" (deleted)")
            .rsplit('/')
            .next()
            .filter(|n| !n.is_empty());
        let Some((image, bias)) = self.images.get(&mapping.start) else {
            return short.map_or_else(|| "code made at run time".to_owned(), str::to_owned);
        };
        let stated = address.wrapping_sub(*bias);
        match image.function(stated) {
            Some(name) => demangled(name),
            None => format!("{}+{stated:#x}", short.unwrap_or("file")),
        }
    }
}

fn module(mapping: &Mapping, image: &Image, bias: u64) -> Module<Arc<[u8]>> {
    let info = ExplicitModuleSectionInfo {
        base_svma: 0,
        text_svma: image.text.clone(),
        got_svma: image.got.clone(),
        eh_frame_svma: image.eh_frame.as_ref().map(|s| s.0.clone()),
        eh_frame: image.eh_frame.as_ref().map(|s| Arc::clone(&s.1)),
        eh_frame_hdr_svma: image.eh_frame_hdr.as_ref().map(|s| s.0.clone()),
        eh_frame_hdr: image.eh_frame_hdr.as_ref().map(|s| Arc::clone(&s.1)),
        ..ExplicitModuleSectionInfo::default()
    };
    Module::new(mapping.name.clone(), mapping.start..mapping.end, bias, info)
}

#[cfg(target_arch = "x86_64")]
fn regs(r: &Registers) -> Regs {
    Regs::new(r.instruction, r.stack, r.frame)
}

#[cfg(target_arch = "aarch64")]
fn regs(r: &Registers) -> Regs {
    Regs::new(r.link, r.stack, r.frame)
}

/// A function's name as its source has it, without what it takes and gives.
fn demangled(name: &str) -> String {
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        return format!("{rust:#}");
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
    cpp.and_then(|symbol| symbol.demangle_with_options(&options).ok())
        .unwrap_or_else(|| name.to_owned())
}

/// Unwinds samples and names their frames, each address once.
pub struct Namer {
    processes: HashMap<i32, Process>,
    /// Stands for a process of which nothing is known.
    unknown: Process,
    kernel: HashMap<u64, String>,
    known: HashMap<(i32, u64), u32>,
    by_name: HashMap<String, u32>,
    /// The names, by their numbers.
    pub names: Vec<String>,
    cache: Cache,
}

impl Namer {
    /// For samples of these processes.
    pub fn new<'a>(
        processes: HashMap<i32, Process>,
        samples: impl Iterator<Item = &'a Timed>,
    ) -> Namer {
        Namer {
            processes,
            unknown: Process::new(Vec::new(), &HashMap::new(), Jit::default()),
            kernel: kallsyms::names(samples.flat_map(|s| s.kernel.iter().copied())),
            known: HashMap::new(),
            by_name: HashMap::new(),
            names: Vec::new(),
            cache: Cache::default(),
        }
    }

    /// The frames of a sample as numbers of names, outermost first. Of many the outermost are left out: what a flame
    /// grows from matters less than where it ends.
    pub fn frames(&mut self, sample: &Timed) -> Vec<u32> {
        let process = self.processes.get(&sample.pid).unwrap_or(&self.unknown);
        let user = sample
            .user
            .as_ref()
            .map(|registers| process.frames(registers, &sample.stack, &mut self.cache));
        let kernel = sample.kernel.iter().map(|&address| (0, address));
        let all = kernel.chain(
            user.into_iter()
                .flatten()
                .map(|address| (sample.pid, address)),
        );
        let mut frames: Vec<u32> = all.map(|key| self.number(key)).collect();
        frames.reverse();
        frames.drain(..frames.len().saturating_sub(MOST_FRAMES));
        frames
    }

    /// The number of the name of the function at an address of a process; of the kernel's, of process 0.
    fn number(&mut self, key: (i32, u64)) -> u32 {
        if let Some(number) = self.known.get(&key) {
            return *number;
        }
        let name = match key {
            (0, address) => {
                self.kernel
                    .get(&address)
                    .map_or("kernel", String::as_str)
                    .to_owned()
                    + KERNEL
            }
            (pid, address) => self
                .processes
                .get(&pid)
                .unwrap_or(&self.unknown)
                .name(address),
        };
        let next = self.names.len() as u32;
        let number = *self.by_name.entry(name).or_insert_with_key(|name| {
            self.names.push(name.clone());
            next
        });
        self.known.insert(key, number);
        number
    }
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
}
