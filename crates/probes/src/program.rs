//! The programs that the process probes start: a tiny static one written as bytes, and a dynamic one found on the host.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::call::c_path;
use crate::session::Stop;

/// Where the tiny program is loaded.
const BASE: u64 = 0x40_0000;

const HEADER: usize = 64;
const SEGMENT: usize = 56;

/// The machine's number in an ELF header, and code that calls `exit(0)`.
#[cfg(target_arch = "x86_64")]
const EXIT: Option<(u16, &[u8])> = Some((
    62,
    &[
        0x31, 0xff, // xor edi, edi
        0xb8, 60, 0, 0, 0, // mov eax, 60 (exit)
        0x0f, 0x05, // syscall
    ],
));
#[cfg(target_arch = "aarch64")]
const EXIT: Option<(u16, &[u8])> = Some((
    183,
    &[
        0x00, 0x00, 0x80, 0xd2, // mov x0, #0
        0xa8, 0x0b, 0x80, 0xd2, // mov x8, #93 (exit)
        0x01, 0x00, 0x00, 0xd4, // svc #0
    ],
));
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const EXIT: Option<(u16, &[u8])> = None;

/// An ELF program of under 200 bytes for this machine (System V ABI, chapters 4 and 5): one segment that holds the file
/// itself and a header that asks for a stack which is not executable.
fn tiny_elf(machine: u16, code: &[u8]) -> Vec<u8> {
    let start = HEADER + 2 * SEGMENT;
    let size = (start + code.len()) as u64;
    let mut elf = Vec::with_capacity(size as usize);
    elf.extend(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0"); // 64 bits, little-endian, version 1
    elf.extend(2u16.to_le_bytes()); // ET_EXEC
    elf.extend(machine.to_le_bytes());
    elf.extend(1u32.to_le_bytes()); // version
    elf.extend((BASE + start as u64).to_le_bytes()); // entry
    elf.extend((HEADER as u64).to_le_bytes()); // program headers
    elf.extend(0u64.to_le_bytes()); // no section headers
    elf.extend(0u32.to_le_bytes()); // flags
    for half in [HEADER, SEGMENT, 2, 0, 0, 0] {
        elf.extend((half as u16).to_le_bytes());
    }
    // Aligned to the largest page of any of the machines.
    segment(&mut elf, 1, 5, BASE, size, 0x1_0000); // PT_LOAD, read and execute
    segment(&mut elf, 0x6474_e551, 6, 0, 0, 16); // PT_GNU_STACK, read and write
    elf.extend(code);
    elf
}

fn segment(elf: &mut Vec<u8>, kind: u32, flags: u32, address: u64, size: u64, align: u64) {
    elf.extend(kind.to_le_bytes());
    elf.extend(flags.to_le_bytes());
    for field in [0, address, address, size, size, align] {
        elf.extend(field.to_le_bytes());
    }
}

/// Writes the tiny program into the directory and closes it, so that it can be executed.
pub fn tiny(dir: &Path) -> Result<PathBuf, Stop> {
    let Some((machine, code)) = EXIT else {
        return Err(Stop::Skip(
            "the tiny program is written for x86_64 and aarch64 only".into(),
        ));
    };
    let path = dir.join("tiny");
    let written = File::options()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o755)
        .open(&path)
        .and_then(|mut file| file.write_all(&tiny_elf(machine, code)));
    written.map_err(|e| Stop::Fail(format!("cannot write the program {}: {e}", path.display())))?;
    if !executable(&path) {
        let dir = dir.display();
        return Err(Stop::Skip(format!(
            "programs may not be executed in {dir}: its file system is mounted noexec"
        )));
    }
    Ok(path)
}

/// Whether this process may execute the file; access also fails on a file system that is mounted noexec.
pub fn executable(path: &Path) -> bool {
    // SAFETY: the path ends in a zero byte.
    c_path(path).is_ok_and(|path| unsafe { libc::access(path.as_ptr(), libc::X_OK) } == 0)
}

/// Programs that do nothing and need no argument, in the order in which they are tried.
const DYNAMIC: [&str; 3] = [
    "/bin/true",
    "/usr/bin/true",
    "/run/current-system/sw/bin/true",
];

/// The first of [`DYNAMIC`] that is here, may be executed, and asks for a dynamic loader.
pub fn dynamic() -> Result<PathBuf, Stop> {
    let found = DYNAMIC
        .iter()
        .map(Path::new)
        .find(|p| executable(p) && is_dynamic(p));
    found.map(Path::to_path_buf).ok_or_else(|| {
        Stop::Skip("none of /bin/true, /usr/bin/true is a dynamically linked program here".into())
    })
}

fn is_dynamic(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(4096).read_to_end(&mut head));
    read.is_ok() && has_interpreter(&head)
}

/// Whether the ELF header at the start of `file` is followed by a program header that names a loader (PT_INTERP).
fn has_interpreter(file: &[u8]) -> bool {
    let number = |at: usize, len: usize| -> Option<u64> {
        let bytes = file.get(at..at.checked_add(len)?)?;
        Some(bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)))
    };
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return false;
    }
    let (Some(first), Some(size), Some(count)) = (number(32, 8), number(54, 2), number(56, 2))
    else {
        return false;
    };
    (0..count).any(|i| {
        let at = first
            .checked_add(i * size)
            .and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| number(at, 4)) == Some(3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tiny_program_is_what_its_headers_say() {
        for code in [&[0x90u8][..], &[0; 12][..]] {
            let elf = tiny_elf(62, code);
            let entry = u64::from_le_bytes(elf[24..32].try_into().unwrap());
            assert_eq!(&elf[(entry - BASE) as usize..], code);
            let file_size = u64::from_le_bytes(elf[HEADER + 32..HEADER + 40].try_into().unwrap());
            assert_eq!(file_size, elf.len() as u64);
            assert!(!has_interpreter(&elf));
        }
    }

    #[test]
    fn the_tiny_program_runs_and_ends_well() {
        let dir = tempfile::tempdir().unwrap();
        let status = tiny(dir.path()).map(|path| {
            // Another thread of the tests may hold the file open for writing across its own fork for a moment.
            let run = || std::process::Command::new(&path).status();
            let mut status = run();
            for _ in 0..1000 {
                match &status {
                    Err(e) if e.kind() == std::io::ErrorKind::ExecutableFileBusy => status = run(),
                    _ => break,
                }
            }
            status.unwrap()
        });
        match status {
            Ok(status) => assert!(status.success()),
            Err(Stop::Skip(reason)) => println!("skipped: {reason}"),
            Err(stop) => panic!("{stop:?}"),
        }
    }

    #[test]
    fn a_loader_is_found_and_hostile_headers_are_survived() {
        let mut elf = tiny_elf(62, &[0x90]);
        elf[HEADER + SEGMENT] = 3;
        elf[HEADER + SEGMENT + 1..HEADER + SEGMENT + 4].fill(0);
        assert!(has_interpreter(&elf));
        elf[32..40].fill(0xff);
        assert!(!has_interpreter(&elf));
        assert!(!has_interpreter(b"#!/bin/sh\n"));
        assert!(!has_interpreter(&elf[..40]));
    }
}
