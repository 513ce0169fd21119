//! The kernel's own type information (BTF): where fields lie, and the numbers of types.

use std::fs;
use std::path::Path;

use super::error::BpfError;

/// Types of the running kernel.
pub struct Btf {
    bytes: Vec<u8>,
    /// Where each type's description begins; the first type has number 1.
    types: Vec<usize>,
    /// Numbers of those that are looked for by name: of a hundred thousand types some thousands.
    structures: Vec<u32>,
    typedefs: Vec<u32>,
    functions: Vec<u32>,
    strings: usize,
}

/// One step into a type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// To a field, by its name.
    Field(Vec<u8>),
    /// To an element of an array.
    Element(u32),
}

const POINTER: u32 = 2;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const TYPEDEF: u32 = 8;
const FUNCTION: u32 = 12;
const PROTOTYPE: u32 = 13;
/// Of a type, that it is another's name, or is constant or volatile or tagged.
const SAME: [u32; 5] = [TYPEDEF, 9, 10, 11, 18];
/// Structures that lie in structures in structures, at most.
const DEEPEST: u32 = 8;

impl Btf {
    /// Reads the running kernel's.
    ///
    /// # Errors
    /// They cannot be read, or are of a kind that is not known.
    pub fn read() -> Result<Btf, BpfError> {
        let path = Path::new("/sys/kernel/btf/vmlinux");
        let bytes = fs::read(path).map_err(|error| BpfError::Unreadable {
            path: path.to_owned(),
            error,
        })?;
        Btf::parse(bytes).ok_or_else(|| BpfError::NoTypes(path.to_owned()))
    }

    /// Takes a description apart: a header, types one after the other, and their names.
    pub fn parse(bytes: Vec<u8>) -> Option<Btf> {
        let mut btf = Btf {
            bytes,
            types: Vec::new(),
            structures: Vec::new(),
            typedefs: Vec::new(),
            functions: Vec::new(),
            strings: 0,
        };
        if btf.word(0)? & 0xffff != 0xeb9f {
            return None;
        }
        let header = btf.word(4)? as usize;
        let (mut at, length) = (
            header.checked_add(btf.word(8)? as usize)?,
            btf.word(12)? as usize,
        );
        let end = at.checked_add(length)?;
        btf.strings = header.checked_add(btf.word(16)? as usize)?;
        while at < end {
            btf.types.push(at);
            let number = btf.types.len() as u32;
            match btf.kind(at) {
                STRUCT => btf.structures.push(number),
                TYPEDEF => btf.typedefs.push(number),
                FUNCTION => btf.functions.push(number),
                _ => (),
            }
            let parts = (btf.word(at + 4)? & 0xffff) as usize;
            at += 12
                + match btf.kind(at) {
                    1 | 14 | 17 => 4,
                    3 => 12,
                    4 | 5 | 15 | 19 => 12 * parts,
                    6 | 13 => 8 * parts,
                    _ => 0,
                };
        }
        Some(btf)
    }

    fn word(&self, at: usize) -> Option<u32> {
        self.bytes
            .get(at..at.checked_add(4)?)?
            .try_into()
            .ok()
            .map(u32::from_ne_bytes)
    }

    fn kind(&self, at: usize) -> u32 {
        self.word(at + 4).unwrap_or_default() >> 24 & 0x1f
    }

    /// The name of a type or member, and all strings behind it.
    fn strings_from(&self, at: usize) -> &[u8] {
        self.bytes
            .get(self.strings + self.word(at).unwrap_or_default() as usize..)
            .unwrap_or_default()
    }

    fn name(&self, at: usize) -> &[u8] {
        self.strings_from(at)
            .split(|&b| b == 0)
            .next()
            .unwrap_or_default()
    }

    fn find(&self, among: &[u32], name: &str) -> Option<u32> {
        // Without a look for the end of each name: there are tens of thousands.
        let is_named = |&at: &usize| {
            self.strings_from(at)
                .strip_prefix(name.as_bytes())
                .is_some_and(|rest| rest.first() == Some(&0))
        };
        let named = |number: &u32| self.types.get(*number as usize - 1).is_some_and(is_named);
        among.iter().copied().find(named)
    }

    /// The number of the type of a tracepoint's arguments.
    pub fn tracepoint(&self, name: &str) -> Option<u32> {
        self.find(&self.typedefs, &format!("btf_trace_{name}"))
    }

    /// How many arguments a tracepoint has.
    pub fn tracepoint_arguments(&self, name: &str) -> Option<u32> {
        let typedef = self.at(self.tracepoint(name)?)?;
        let pointer = self.at(self.word(typedef + 8)?)?;
        let prototype = self.at(self.word(pointer + 8)?)?;
        let known = self.kind(pointer) == POINTER && self.kind(prototype) == PROTOTYPE;
        // The first is the tracepoint's own.
        known.then(|| (self.word(prototype + 4).unwrap_or_default() & 0xffff).saturating_sub(1))
    }

    /// The number of a function.
    pub fn function(&self, name: &str) -> Option<u32> {
        self.find(&self.functions, name)
    }

    /// Where a type's description begins.
    fn at(&self, number: u32) -> Option<usize> {
        self.types.get((number as usize).checked_sub(1)?).copied()
    }

    /// The type that another one is a name of.
    fn real(&self, mut number: u32) -> Option<u32> {
        for _ in 0..DEEPEST {
            let at = self.at(number)?;
            if !SAME.contains(&self.kind(at)) {
                break;
            }
            number = self.word(at + 8)?;
        }
        Some(number)
    }

    /// What an access to a type (`0:2:1`: numbers of members and elements) goes through: the type's name without what
    /// tells its shapes apart, and the steps.
    pub(super) fn access(&self, number: u32, access: &str) -> Option<(String, Vec<Step>)> {
        let mut number = self.real(number)?;
        let name = String::from_utf8_lossy(self.name(self.at(number)?));
        let name = name.split("___").next().unwrap_or_default().to_owned();
        let mut steps = Vec::new();
        for part in access.split(':').skip(1) {
            let part: u32 = part.parse().ok()?;
            let at = self.at(number)?;
            if self.kind(at) == ARRAY {
                steps.push(Step::Element(part));
                number = self.real(self.word(at + 12)?)?;
                continue;
            }
            let member = at + 12 + 12 * part as usize;
            if part >= self.word(at + 4)? & 0xffff {
                return None;
            }
            let name = self.name(member);
            if !name.is_empty() {
                steps.push(Step::Field(name.to_vec()));
            }
            number = self.real(self.word(member + 4)?)?;
        }
        Some((name, steps))
    }

    /// The offset in bytes to which steps into a structure of this name lead. There may be several of the name.
    pub(super) fn lead(&self, name: &str, steps: &[Step]) -> Option<u32> {
        let named = |number: &&u32| {
            self.at(**number)
                .is_some_and(|at| self.name(at) == name.as_bytes())
        };
        let lead = |&number: &u32| {
            let (mut bits, mut number) = (0, number);
            for step in steps {
                let (more, next) = match step {
                    Step::Field(name) => self.member(number, name, 0)?,
                    Step::Element(n) => {
                        let at = self.at(number).filter(|&at| self.kind(at) == ARRAY)?;
                        let element = self.real(self.word(at + 12)?)?;
                        (n * 8 * self.word(self.at(element)? + 8)?, element)
                    }
                };
                bits += more;
                number = self.real(next)?;
            }
            Some(bits / 8)
        };
        self.structures.iter().filter(named).find_map(lead)
    }

    /// A string by its place among all of them.
    pub(super) fn string(&self, at: u32) -> &[u8] {
        let rest = self.bytes.get(self.strings + at as usize..);
        rest.unwrap_or_default()
            .split(|&b| b == 0)
            .next()
            .unwrap_or_default()
    }

    /// The offset in bytes of a structure's field; a field of a field is named `outer.inner`. Structures without a name
    /// are looked through.
    pub fn offset(&self, structure: &str, field: &str) -> Option<i16> {
        let mut id = self.find(&self.structures, structure)?;
        let mut offset = 0;
        for name in field.split('.') {
            let (bits, next) = self.member(id, name.as_bytes(), 0)?;
            offset += bits / 8;
            id = next;
        }
        i16::try_from(offset).ok()
    }

    /// A member's offset in bits and type.
    fn member(&self, id: u32, name: &[u8], depth: u32) -> Option<(u32, u32)> {
        let at = self.at(self.real(id)?)?;
        if depth > DEEPEST || !matches!(self.kind(at), STRUCT | UNION) {
            return None;
        }
        let parts = (self.word(at + 4)? & 0xffff) as usize;
        (0..parts).find_map(|i| {
            let m = at + 12 + 12 * i;
            // The upper byte is the size of a bit field, where the structure has any.
            let bits = self.word(m + 8)? & 0xff_ffff;
            let kind = self.word(m + 4)?;
            match self.name(m) {
                b"" => self
                    .member(kind, name, depth + 1)
                    .map(|(inner, kind)| (bits + inner, kind)),
                n if n == name => Some((bits, kind)),
                _ => None,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `struct outer { int a; union { long b; struct inner c; }; }` with `struct inner { int x; int y; }`, a typedef
    /// and a variable.
    fn made_up() -> Vec<u8> {
        let mut names = vec![0u8];
        let mut name = |n: &str| {
            let at = names.len() as u32;
            names.extend(n.as_bytes());
            names.push(0);
            at
        };
        let int = [name("int"), 1 << 24, 4, 0x20];
        let inner = [
            name("inner"),
            STRUCT << 24 | 2,
            8,
            name("x"),
            1,
            0,
            name("y"),
            1,
            32,
        ];
        let union = [0, UNION << 24 | 2, 8, name("b"), 1, 0, name("c"), 2, 0];
        let outer = [
            name("outer"),
            STRUCT << 24 | 2,
            16,
            name("a"),
            1,
            0,
            0,
            3,
            64,
        ];
        let rest = [
            name("variable"),
            14 << 24,
            1,
            1,
            name("btf_trace_sys_enter"),
            TYPEDEF << 24,
            1,
        ];
        let types: Vec<u8> = [&int[..], &inner, &union, &outer, &rest]
            .concat()
            .iter()
            .flat_map(|w| w.to_ne_bytes())
            .collect();
        let header = [
            0x1_eb9f,
            24,
            0,
            types.len() as u32,
            types.len() as u32,
            names.len() as u32,
        ];
        [
            header.iter().flat_map(|w| w.to_ne_bytes()).collect(),
            types,
            names,
        ]
        .concat()
    }

    #[test]
    fn fields_are_found_through_structures_with_and_without_names() {
        let btf = Btf::parse(made_up()).unwrap();
        assert_eq!(btf.offset("outer", "a"), Some(0));
        assert_eq!(btf.offset("outer", "b"), Some(8));
        assert_eq!(btf.offset("outer", "c.y"), Some(12));
        assert_eq!(btf.offset("outer", "y"), None, "inner has a name");
        assert_eq!(btf.offset("outer", "a.x"), None);
        assert_eq!(btf.offset("none", "a"), None);
        assert_eq!(
            (btf.tracepoint("sys_enter"), btf.tracepoint("sys_exit")),
            (Some(6), None)
        );
    }

    #[test]
    fn what_is_cut_is_refused_and_never_read_past() {
        let whole = made_up();
        for n in 0..whole.len() {
            if let Some(btf) = Btf::parse(whole[..n].to_vec()) {
                btf.offset("outer", "c.y");
            }
        }
        assert!(Btf::parse(whole[..80].to_vec()).is_none());
        assert!(Btf::parse(vec![0; 100]).is_none());
    }
}
