//! Programs that others have attached to trace the kernel or programs: each pass of what they are attached to runs
//! them.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use super::calls::{command, descriptor};
use crate::system::there;

const PROG_GET_NEXT_ID: libc::c_long = 11;
const PROG_GET_FD_BY_ID: libc::c_long = 13;
const OBJ_GET_INFO_BY_FD: libc::c_long = 15;
const LINK_GET_FD_BY_ID: libc::c_long = 30;
const LINK_GET_NEXT_ID: libc::c_long = 31;

/// Kinds of programs that are loaded for nothing but tracing (`enum bpf_prog_type`): at kernel and user probes,
/// tracepoints, perf events, raw tracepoints and writable ones. They may be attached without a link, which nothing
/// lists.
const TRACING: [u32; 5] = [2, 5, 7, 17, 24];
/// Links of raw tracepoints, and of what is attached by the kernel's types (`enum bpf_link_type`).
const LINK_RAW_TRACEPOINT: u32 = 1;
const LINK_TRACING: u32 = 2;
/// Of the latter, those at a function's entry and exit (`enum bpf_attach_type`). Security modules and what changes a
/// function's answer are attached in the same way, and trace nothing.
const AT_FUNCTIONS: [u32; 2] = [24, 25];

/// How many programs of others trace, this process's own left out.
///
/// # Errors
/// What the kernel said: it needs `CAP_SYS_ADMIN`.
pub fn tracing_programs() -> io::Result<usize> {
    let mut found = BTreeSet::new();
    each(PROG_GET_NEXT_ID, PROG_GET_FD_BY_ID, |[kind, id, ..]| {
        found.extend(TRACING.contains(&kind).then_some(id));
    })?;
    each(
        LINK_GET_NEXT_ID,
        LINK_GET_FD_BY_ID,
        |[kind, _, program, _, attached, ..]| {
            let traces = kind == LINK_RAW_TRACEPOINT
                || kind == LINK_TRACING && AT_FUNCTIONS.contains(&attached);
            found.extend(traces.then_some(program));
        },
    )?;
    Ok(found.difference(&own_programs()).count())
}

/// The beginning of what the kernel tells of a program, link or map, in words of 32 bits.
pub(super) type Info = [u32; 16];

/// Looks at every object of a kind. Those that go away meanwhile are left out.
fn each(next: libc::c_long, open: libc::c_long, mut take: impl FnMut(Info)) -> io::Result<()> {
    let mut id = 0u32;
    loop {
        let mut attributes = [u64::from(id), 0];
        if there(command(next, &mut attributes))?.is_none() {
            return Ok(());
        }
        id = (attributes[0] >> 32) as u32;
        if let Some(object) = there(command(open, &mut [u64::from(id), 0]).map(descriptor))? {
            take(info(&object)?);
        }
    }
}

pub(super) fn info(object: &OwnedFd) -> io::Result<Info> {
    let mut info: Info = [0; 16];
    let length = size_of_val(&info) as u64;
    command(
        OBJ_GET_INFO_BY_FD,
        &mut [
            object.as_raw_fd() as u64 | length << 32,
            info.as_mut_ptr() as u64,
        ],
    )?;
    Ok(info)
}

/// The programs that this process has open, as the kernel tells with its descriptors.
fn own_programs() -> BTreeSet<u32> {
    let Ok(entries) = fs::read_dir("/proc/self/fdinfo") else {
        return BTreeSet::new();
    };
    let texts = entries
        .flatten()
        .filter_map(|entry| fs::read_to_string(entry.path()).ok());
    texts.filter_map(|text| program_of(&text)).collect()
}

/// The program of a descriptor, by its `fdinfo`.
fn program_of(text: &str) -> Option<u32> {
    text.lines()
        .find_map(|line| line.strip_prefix("prog_id:")?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_descriptor_tells_its_program() {
        assert_eq!(
            program_of("pos:\t0\nflags:\t02000002\nprog_type:\t26\nprog_id:\t41\n"),
            Some(41)
        );
        assert_eq!(program_of("pos:\t0\nflags:\t02\n"), None);
    }

    #[test]
    fn own_programs_do_not_count_and_without_the_right_none_do() {
        match tracing_programs() {
            Ok(before) => {
                // The smallest program there is: it ends with 0.
                let code = [0xb7u64, 0x95];
                let program = super::super::calls::command(
                    super::super::calls::PROG_LOAD,
                    &mut super::super::calls::to_load(TRACING[3], &code),
                )
                .map(descriptor)
                .unwrap();
                assert_eq!(tracing_programs().unwrap(), before, "it is ours");
                // Another process gets it as its standard input; our copy goes with the command.
                let mut command = std::process::Command::new("sleep");
                command.arg("600").stdin(std::process::Stdio::from(program));
                let mut child = crate::child::die_with_parent(&mut command).spawn().unwrap();
                drop(command);
                let counted = tracing_programs().unwrap();
                crate::child::signal_group(child.id() as i32, libc::SIGKILL).unwrap();
                child.wait().unwrap();
                assert!(counted > before, "another process has it");
            }
            Err(e) => assert_eq!(e.raw_os_error(), Some(libc::EPERM), "{e}"),
        }
    }
}
