//! The process without rights that reads what a service made: its programs' tables and symbols, its lists of functions,
//! its threads' stacks. It has open files, memory and CPU time up to a bound, and nothing else (`sys::jail`).
//!
//! It answers what it is asked and trusts nothing of it to be harmless: what makes it end, whatever that is, costs the
//! names of one file, and it is started again without that (`naming`).

use std::collections::HashMap;
use std::fs::File;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fingerpost_sys::packets::{LONGEST, Packets};
use fingerpost_sys::perf::stacks::Registers;
use fingerpost_sys::{child, jail};

use super::image::{Image, Source};
use super::unwind::{Files, Process, demangled};
use super::wire::{In, Out};
use super::{image, jit};

/// Memory beyond what the program takes when it starts, of which tables for unwinding may take so much.
const MEMORY: u64 = 112 << 20;
const TABLES: u64 = 48 << 20;
/// CPU seconds in all; and what one answer may take: the frames of a sample, a file's tables, the names in a file.
const CPU_SECONDS: u64 = 3;
const FRAMES: Duration = Duration::from_millis(50);
const FILE: Duration = Duration::from_millis(300);
const NAMES: Duration = Duration::from_millis(400);
/// Bytes of a packet of names.
const PACKET: usize = 32 << 10;

/// What is asked, and what is told.
pub mod word {
    /// A file, the next by number; a process, the next by number; more of a process's mappings.
    pub const FILE: u8 = b'f';
    pub const PROCESS: u8 = b'p';
    pub const MAPPINGS: u8 = b'm';
    /// The frames of a sample; the build id of a file; the names in a file; the names in a list of functions.
    pub const FRAMES: u8 = b'u';
    pub const BUILD_ID: u8 = b'b';
    pub const NAMES: u8 = b'n';
    pub const FUNCTIONS: u8 = b'j';
    /// A file is about to be read; names; the end of an answer.
    pub const READING: u8 = b'r';
    pub const NAMED: u8 = b'N';
    pub const END: u8 = b'e';
}

/// No file.
pub const NONE: u32 = u32::MAX;
/// A file that is not to be unwound by.
pub const NOT_UNWOUND: u32 = 1;

/// Whether this is a process of its own, which a timer may end.
static ALONE: AtomicBool = AtomicBool::new(false);

fn allow(time: Duration) {
    if ALONE.load(Ordering::Relaxed) {
        jail::allow_cpu(time);
    }
}

/// The process.
pub fn main(packets: Packets) -> ExitCode {
    ALONE.store(true, Ordering::Relaxed);
    std::panic::set_hook(Box::new(|_| jail::end()));
    let taken = fingerpost_sys::sample::mapped_bytes().unwrap_or(64 << 20);
    if jail::enter(taken + MEMORY, CPU_SECONDS).is_err() {
        return ExitCode::FAILURE;
    }
    serve(&packets);
    // What a process does when it returns from its main function needs calls that this one may no longer make.
    child::leave(0)
}

/// Answers until nobody asks.
pub fn serve(packets: &Packets) {
    let mut reader = Reader {
        packets,
        files: Vec::new(),
        images: HashMap::new(),
        processes: Vec::new(),
        room: TABLES,
    };
    let mut packet = vec![0; LONGEST];
    while let Ok(came) = packets.receive(&mut packet, None) {
        jail::in_hand(0);
        if reader
            .answer(In(&packet[..came.bytes]), came.file.map(File::from))
            .is_none()
        {
            return;
        }
    }
}

struct Reader<'a> {
    packets: &'a Packets,
    files: Vec<(Option<Source>, u32)>,
    images: HashMap<u32, Image>,
    processes: Vec<Process>,
    /// Bytes of tables that may still be read.
    room: u64,
}

/// What a file's tables are read with.
struct Loading<'a> {
    packets: &'a Packets,
    files: &'a [(Option<Source>, u32)],
    images: &'a mut HashMap<u32, Image>,
    room: &'a mut u64,
}

impl Loading<'_> {
    fn image(&mut self, number: u32) -> Option<&Image> {
        if !self.images.contains_key(&number) {
            let source = self.files.get(number as usize)?.0.as_ref()?;
            jail::in_hand(number + 1);
            self.packets
                .send(&Out::new(word::READING).u32(number).0, None, None)
                .ok()?;
            allow(FILE);
            self.images.insert(number, Image::read(source, self.room));
            allow(FRAMES);
        }
        self.images.get(&number)
    }
}

impl Files for Loading<'_> {
    fn image(&mut self, number: u32) -> Option<&Image> {
        let flags = self.files.get(number as usize)?.1;
        if flags & NOT_UNWOUND != 0 {
            return None;
        }
        Loading::image(self, number)
    }

    fn in_hand(&self, number: Option<u32>) {
        jail::in_hand(number.map_or(0, |number| number.wrapping_add(1)));
    }
}

impl Reader<'_> {
    /// Answers one question; nothing where it is none, or nobody listens.
    fn answer(&mut self, mut asked: In, file: Option<File>) -> Option<()> {
        match asked.u8()? {
            word::FILE => {
                let (flags, bytes) = (asked.u32()?, asked.u64()?);
                let source = file.map(|file| Source { file, bytes });
                self.files.push((source, flags));
                Some(())
            }
            word::PROCESS => {
                self.processes.push(Process::default());
                Some(())
            }
            word::MAPPINGS => {
                let process = self.processes.get_mut(asked.u32()? as usize)?;
                while !asked.0.is_empty() {
                    let (start, end, offset) = (asked.u64()?, asked.u64()?, asked.u64()?);
                    process.map(start, end, offset, asked.u32()?);
                }
                Some(())
            }
            word::FRAMES => self.frames(asked),
            word::BUILD_ID => {
                let number = asked.u32()?;
                let id = self
                    .loading()
                    .image(number)
                    .map_or(Vec::new(), |image| image.build_id.clone());
                self.send(Out::new(word::BUILD_ID).bytes(&id))
            }
            word::NAMES => self.names(asked, file),
            word::FUNCTIONS => {
                let source = Source {
                    file: file?,
                    bytes: asked.u64()?,
                };
                let wanted = addresses(asked)?;
                allow(NAMES);
                let names = jit::names(&source, &wanted);
                self.tell(names.into_iter().map(|name| (0, name.unwrap_or_default())))
            }
            _ => None,
        }
    }

    fn loading(&mut self) -> Loading<'_> {
        Loading {
            packets: self.packets,
            files: &self.files,
            images: &mut self.images,
            room: &mut self.room,
        }
    }

    fn send(&self, out: Out) -> Option<()> {
        self.packets.send(&out.0, None, None).ok()
    }

    fn frames(&mut self, mut asked: In) -> Option<()> {
        let number = asked.u32()? as usize;
        let registers = Registers {
            instruction: asked.u64()?,
            stack: asked.u64()?,
            frame: asked.u64()?,
            link: asked.u64()?,
        };
        let stack = asked.bytes()?;
        allow(FRAMES);
        let mut loading = Loading {
            packets: self.packets,
            files: &self.files,
            images: &mut self.images,
            room: &mut self.room,
        };
        let process = self.processes.get_mut(number)?;
        let found = process.frames(&registers, stack, &mut loading);
        let out = found.into_iter().fold(Out::new(word::FRAMES), Out::u64);
        self.send(out)
    }

    /// The names in a file, of which each mapping with addresses in it is told; in its debug file where that came, too.
    fn names(&mut self, mut asked: In, debug: Option<File>) -> Option<()> {
        let (number, debug_bytes) = (asked.u32()?, asked.u64()?);
        let mut mapped = Vec::new();
        while !asked.0.is_empty() {
            mapped.push((asked.u64()?, asked.u64()?, asked.u64()?));
        }
        let mut loading = self.loading();
        let biases: Vec<Option<u64>> = match loading.image(number) {
            Some(image) => mapped
                .iter()
                .map(|(start, offset, _)| image.bias(*start, *offset))
                .collect(),
            None => vec![None; mapped.len()],
        };
        jail::in_hand(number.wrapping_add(1));
        allow(NAMES);
        let stated: Vec<Option<u64>> = mapped
            .iter()
            .zip(biases)
            .map(|((_, _, address), bias)| Some(address.wrapping_sub(bias?)))
            .collect();
        let wanted: Vec<u64> = stated.iter().copied().flatten().collect();
        let of_debug = debug.and_then(|file| {
            let source = Source {
                file,
                bytes: debug_bytes,
            };
            // Without tables for unwinding: its code lies in the other file.
            image::Image::read(&source, &mut 0).functions(&source, &wanted)
        });
        let own = || {
            let source = self.files.get(number as usize)?.0.as_ref()?;
            self.images.get(&number)?.functions(source, &wanted)
        };
        let names = of_debug
            .or_else(own)
            .unwrap_or_else(|| vec![None; wanted.len()]);
        let mut names = names.into_iter();
        let told: Vec<(u64, String)> = stated
            .into_iter()
            .map(|stated| match stated {
                Some(stated) => {
                    let name = names.next().flatten();
                    (
                        stated,
                        name.map_or_else(String::new, |name| demangled(&name)),
                    )
                }
                None => (u64::MAX, String::new()),
            })
            .collect();
        self.tell(told.into_iter())
    }

    fn tell(&self, names: impl Iterator<Item = (u64, String)>) -> Option<()> {
        let mut out = Out::new(word::NAMED);
        for (stated, name) in names {
            out = out.u64(stated).bytes(name.as_bytes());
            if out.0.len() > PACKET {
                self.send(std::mem::replace(&mut out, Out::new(word::NAMED)))?;
            }
        }
        self.send(out)?;
        self.send(Out::new(word::END))
    }
}

fn addresses(mut asked: In) -> Option<Vec<u64>> {
    let mut found = Vec::new();
    while !asked.0.is_empty() {
        found.push(asked.u64()?);
    }
    Some(found)
}
