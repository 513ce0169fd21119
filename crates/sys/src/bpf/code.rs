//! Instructions of a program that runs in the kernel at a tracepoint, as far as they are needed to write records.
//!
//! r6 holds the tracepoint's arguments throughout, r7 the thread and process, r8 the record.

use std::os::fd::{AsRawFd, OwnedFd};

/// Helpers of the kernel, by their numbers.
const LOOKUP: i32 = 1;
const KTIME: i32 = 5;
const CPU: i32 = 8;
const PID_TGID: i32 = 14;
const RESERVE: i32 = 131;
const SUBMIT: i32 = 132;
const NO_WAKEUP: i32 = 1;
/// Operations: of memory, of registers, and jumps.
pub(super) const LOAD16: u8 = 0x69;
const LOAD32: u8 = 0x61;
pub(super) const LOAD64: u8 = 0x79;
const STORE32: u8 = 0x63;
const STORE64: u8 = 0x7b;
const LOAD_CONSTANT: u8 = 0x18;
pub(super) const ADD: u8 = 0xdb;
const MOV32: u8 = 0xbc;
const OR: u8 = 0x47;
const OR_REGISTER: u8 = 0x4f;
pub(super) const AND: u8 = 0x57;
const SHIFT_LEFT: u8 = 0x67;
pub(super) const JUMP: u8 = 0x05;
pub(super) const JUMP_IF_EQUAL: u8 = 0x15;
pub(super) const JUMP_IF_NOT_EQUAL: u8 = 0x55;
pub(super) const JUMP_IF_NOT_EQUAL_32: u8 = 0x56;
/// Bytes of a record before its values: time, thread and process, kind (8 bits), whether in an interrupt (8), CPU (16),
/// first value (32).
pub const HEADER: usize = 24;

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// The tracepoint's argument, itself.
    Argument(i16),
    /// What lies behind an argument: the offset of a pointer in it, of a pointer in what that one points to, and so on;
    /// the last offset is the value's, and this many bytes are read there: 2, 4 or 8.
    Behind(i16, Vec<i16>, u8),
    /// The lower halves of two values: the first in the lower half, the second in the upper one.
    Halves(Box<Place>, Box<Place>),
}

/// What all programs of a set share.
pub struct Shared {
    /// The array of one value of 32 bits: programs record nothing while it is 0.
    pub switch: OwnedFd,
    /// The array of one ring per CPU.
    pub rings: OwnedFd,
    /// The array of one counter, of records that did not fit.
    pub lost: OwnedFd,
    /// The array in which each CPU keeps what interrupt it is in, a bit for each kind, and at [`STOPPED`] when its ring
    /// was full.
    pub cpus: OwnedFd,
}

/// Where a CPU's element has the time of the first record that did not fit, 0 before that.
pub const STOPPED: usize = 8;

/// What one program records.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The number that its records begin with.
    pub kind: u8,
    /// Events of these threads are left out.
    pub but_threads: Vec<i32>,
    /// Events whose first argument is one of these are left out (but an interrupt's beginning and end count).
    pub but_first: Vec<i32>,
    /// That a kind of interrupt, 0 to 7, begins (true) or ends here.
    pub interrupt: Option<(u8, bool)>,
    /// The value of 32 bits in the header, if any.
    pub small: Option<Place>,
    /// The values of 64 bits that follow the header.
    pub values: Vec<Place>,
    /// Where the header's value is this, as many others follow instead.
    pub instead: Option<(i32, Vec<Place>)>,
}

/// A program's instructions.
#[derive(Default)]
pub struct Code(pub Vec<u64>);

impl Code {
    /// One instruction.
    pub(super) fn put(&mut self, op: u8, dst: u8, src: u8, off: i16, imm: i32) {
        self.0.push(
            u64::from(op)
                | u64::from(src << 4 | dst) << 8
                | u64::from(off as u16) << 16
                | u64::from(imm as u32) << 32,
        );
    }

    pub(super) fn mov(&mut self, dst: u8, src: u8) {
        self.put(0xbf, dst, src, 0, 0);
    }

    pub(super) fn set(&mut self, dst: u8, imm: i32) {
        self.put(0xb7, dst, 0, 0, imm);
    }

    /// Adds a number to a register.
    pub(super) fn add(&mut self, dst: u8, imm: i32) {
        self.put(0x07, dst, 0, 0, imm);
    }

    /// Ends the program, with 0.
    pub(super) fn end(&mut self) {
        self.set(0, 0);
        self.put(0x95, 0, 0, 0, 0);
    }

    pub(super) fn call(&mut self, helper: i32) {
        self.put(0x85, 0, 0, 0, helper);
    }

    /// The address of the value in an array of one element (Linux 5.2).
    pub(super) fn map_value(&mut self, dst: u8, map: &OwnedFd) {
        self.put(LOAD_CONSTANT, dst, 2, 0, map.as_raw_fd());
        self.put(0, 0, 0, 0, 0);
    }

    /// r0 becomes the address of a map's element, by the number that lies at r10 - 4.
    fn lookup(&mut self, map: &OwnedFd) {
        self.put(LOAD_CONSTANT, 1, 1, 0, map.as_raw_fd());
        self.put(0, 0, 0, 0, 0);
        self.mov(2, 10);
        self.add(2, -4);
        self.call(LOOKUP);
    }

    /// A jump, by what a register is compared with; its target is known when it [`Code::land`]s.
    pub(super) fn jump(&mut self, op: u8, register: u8, imm: i32) -> usize {
        self.put(op, register, 0, 0, imm);
        self.0.len() - 1
    }

    /// Lets a jump go to the next instruction.
    pub(super) fn land(&mut self, jump: usize) {
        self.0[jump] |= ((self.0.len() - jump - 1) as u64 & 0xffff) << 16;
    }

    /// A tracepoint's argument, which r6 has the address of, into a register.
    pub(super) fn argument(&mut self, dst: u8, number: i16) {
        self.put(LOAD64, dst, 6, 8 * number, 0);
    }

    /// A value into r1.
    pub(super) fn value(&mut self, place: &Place) {
        match place {
            Place::Argument(n) => self.argument(1, *n),
            Place::Behind(n, path, bytes) => {
                self.argument(1, *n);
                let (last, pointers) = path.split_last().unwrap_or((&0, &[]));
                pointers
                    .iter()
                    .for_each(|&at| self.put(LOAD64, 1, 1, at, 0));
                let load = match bytes {
                    2 => LOAD16,
                    4 => LOAD32,
                    _ => LOAD64,
                };
                self.put(load, 1, 1, *last, 0);
            }
            Place::Halves(low, high) => {
                self.value(high);
                self.put(SHIFT_LEFT, 1, 0, 0, 32);
                self.mov(2, 1);
                self.value(low);
                // A move of 32 bits clears the upper half.
                self.put(MOV32, 1, 1, 0, 0);
                self.put(OR_REGISTER, 1, 2, 0, 0);
            }
        }
    }

    /// The program that writes these records.
    pub fn recorder(what: &Recorded, shared: &Shared) -> Code {
        let mut c = Code::default();
        c.mov(6, 1);
        let mut to_end = Vec::new();
        // First of all: a program that stays attached between windows costs hardly more than its call.
        c.map_value(1, &shared.switch);
        c.put(LOAD32, 1, 1, 0, 0);
        to_end.push(c.jump(JUMP_IF_EQUAL, 1, 0));
        c.call(CPU);
        c.mov(9, 0);
        c.put(STORE32, 10, 9, -4, 0);
        c.mark(what, shared, &mut to_end);
        if !what.but_first.is_empty() {
            c.put(LOAD64, 1, 6, 0, 0);
            to_end.extend(what.but_first.iter().map(|&n| c.jump(JUMP_IF_EQUAL, 1, n)));
        }
        c.call(PID_TGID);
        c.mov(7, 0);
        if !what.but_threads.is_empty() {
            // The lower half is the thread.
            c.put(MOV32, 0, 0, 0, 0);
            to_end.extend(
                what.but_threads
                    .iter()
                    .map(|&tid| c.jump(JUMP_IF_EQUAL, 0, tid)),
            );
        }
        c.lookup(&shared.rings);
        let no_ring = c.jump(JUMP_IF_EQUAL, 0, 0);
        c.mov(1, 0);
        c.set(2, (HEADER + 8 * what.values.len()) as i32);
        c.set(3, 0);
        c.call(RESERVE);
        let room = c.jump(JUMP_IF_NOT_EQUAL, 0, 0);
        c.land(no_ring);
        c.stop(shared, &mut to_end);
        c.count_lost(shared, &mut to_end);
        c.land(room);
        c.fill(what);
        to_end.into_iter().for_each(|j| c.land(j));
        c.end();
        c
    }

    /// Leaves at r10 - 16 what interrupt the CPU is in, and notes where one begins or ends: the kernel's own count
    /// cannot be read from a program everywhere.
    fn mark(&mut self, what: &Recorded, shared: &Shared, to_end: &mut Vec<usize>) {
        self.lookup(&shared.cpus);
        to_end.push(self.jump(JUMP_IF_EQUAL, 0, 0));
        self.put(LOAD64, 1, 0, 0, 0);
        let bit = what.interrupt.map(|(kind, begin)| (1 << (kind & 7), begin));
        if let Some((bit, true)) = bit {
            self.put(OR, 1, 0, 0, bit);
            self.put(STORE64, 0, 1, 0, 0);
        }
        self.put(STORE64, 10, 1, -16, 0);
        if let Some((bit, false)) = bit {
            self.put(AND, 1, 0, 0, !bit);
            self.put(STORE64, 0, 1, 0, 0);
        }
    }

    /// Switches all programs off, and notes when that was: what the rings hold until then is whole.
    fn stop(&mut self, shared: &Shared, to_end: &mut Vec<usize>) {
        self.put(STORE32, 10, 9, -4, 0);
        self.lookup(&shared.cpus);
        to_end.push(self.jump(JUMP_IF_EQUAL, 0, 0));
        self.put(LOAD64, 1, 0, STOPPED as i16, 0);
        let known = self.jump(JUMP_IF_NOT_EQUAL, 1, 0);
        self.mov(8, 0);
        self.call(KTIME);
        self.put(STORE64, 8, 0, STOPPED as i16, 0);
        self.land(known);
        self.map_value(1, &shared.switch);
        self.set(2, 0);
        self.put(STORE32, 1, 2, 0, 0);
    }

    fn count_lost(&mut self, shared: &Shared, to_end: &mut Vec<usize>) {
        self.set(1, 0);
        self.put(STORE32, 10, 1, -4, 0);
        self.lookup(&shared.lost);
        to_end.push(self.jump(JUMP_IF_EQUAL, 0, 0));
        self.set(1, 1);
        // In one step, as the other CPUs count here too.
        self.put(ADD, 0, 1, 0, 0);
        to_end.push(self.jump(JUMP, 0, 0));
    }

    /// The values that follow the header of the record in r8.
    fn values(&mut self, places: &[Place]) {
        for (i, place) in places.iter().enumerate() {
            self.value(place);
            self.put(STORE64, 8, 1, (HEADER + 8 * i) as i16, 0);
        }
    }

    /// Fills the record at r0, with the CPU in r9, and hands it over.
    fn fill(&mut self, what: &Recorded) {
        self.mov(8, 0);
        self.put(SHIFT_LEFT, 9, 0, 0, 16);
        self.put(OR, 9, 0, 0, what.kind.into());
        self.put(LOAD64, 1, 10, -16, 0);
        let in_none = self.jump(JUMP_IF_EQUAL, 1, 0);
        self.put(OR, 9, 0, 0, 1 << 8);
        self.land(in_none);
        self.put(STORE32, 8, 9, 16, 0);
        self.put(STORE64, 8, 7, 8, 0);
        match &what.small {
            Some(place) => self.value(place),
            None => self.set(1, 0),
        }
        self.put(STORE32, 8, 1, 20, 0);
        match what
            .instead
            .as_ref()
            .filter(|(_, values)| values.len() == what.values.len())
        {
            None => self.values(&what.values),
            Some((header, values)) => {
                let others = self.jump(JUMP_IF_NOT_EQUAL, 1, *header);
                self.values(values);
                let done = self.jump(JUMP, 0, 0);
                self.land(others);
                self.values(&what.values);
                self.land(done);
            }
        }
        // The time last: nothing of this program's own is then between the stamp and the event's other stamps.
        self.call(KTIME);
        self.put(STORE64, 8, 0, 0, 0);
        self.mov(1, 8);
        self.set(2, NO_WAKEUP);
        self.call(SUBMIT);
    }
}
