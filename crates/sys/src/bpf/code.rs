//! Instructions of small programs that run in the kernel, at a tracepoint or when they are called. r6 holds the
//! tracepoint's arguments throughout.

use std::os::fd::{AsRawFd, OwnedFd};

/// Operations: of memory, of registers, and jumps.
pub(super) const LOAD16: u8 = 0x69;
const LOAD32: u8 = 0x61;
pub(super) const LOAD64: u8 = 0x79;
const LOAD_CONSTANT: u8 = 0x18;
pub(super) const ADD: u8 = 0xdb;
const MOV32: u8 = 0xbc;
const OR_REGISTER: u8 = 0x4f;
pub(super) const AND: u8 = 0x57;
const SHIFT_LEFT: u8 = 0x67;
pub(super) const JUMP: u8 = 0x05;
pub(super) const JUMP_IF_EQUAL: u8 = 0x15;
pub(super) const JUMP_IF_NOT_EQUAL: u8 = 0x55;
pub(super) const JUMP_IF_NOT_EQUAL_32: u8 = 0x56;
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
}
