//! Programs of an object, and what each is attached to.

use std::ffi::CString;
use std::fs;
use std::os::fd::{AsRawFd, OwnedFd};

use super::btf::Btf;
use super::calls::{
    ATTACH_TRACEPOINT, PROGRAM_TRACING, RAW_TRACEPOINT_OPEN, command, descriptor, load_as,
};
use super::error::BpfError;
use super::object::Object;
use crate::trace::{ANY, attributes, ioctl, perf_event_open, switch};

const PROGRAM_PROBE: u32 = 2;
/// `enum bpf_attach_type`: at a function's entry and exit.
const ATTACH_ENTRY: u32 = 24;
const ATTACH_EXIT: u32 = 25;
/// `PERF_EVENT_IOC_SET_BPF`.
const SET_PROGRAM: u32 = perf_event_open_sys::bindings::SET_BPF;
const PROBES: &str = "/sys/bus/event_source/devices/kprobe";

/// Where a program is attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Point {
    /// To the tracepoint of this name.
    Tracepoint(&'static str),
    /// The program of a section to a function, by the kernel's trampolines (`fentry`, `fexit`) or by probes
    /// (`kprobe`, `kretprobe`), which the section says. Where it is optional, a kernel may lack the function.
    Function {
        /// The section.
        section: &'static str,
        /// The function.
        function: &'static str,
        /// Whether it is no failure where it cannot be attached.
        optional: bool,
    },
}

impl Point {
    pub(super) fn is_optional(&self) -> bool {
        matches!(self, Point::Function { optional: true, .. })
    }
}

/// A program that is loaded.
pub(super) struct Program {
    point: Point,
    program: OwnedFd,
}

impl Program {
    pub(super) fn load(object: &Object, btf: &Btf, point: &Point) -> Result<Program, BpfError> {
        let program = match *point {
            Point::Tracepoint(name) => {
                let target = btf
                    .tracepoint(name)
                    .ok_or_else(|| BpfError::Unknown(format!("tracepoint {name}")))?;
                let code = object.code(&format!("tp_btf/{name}"))?;
                load_as(name, &code, PROGRAM_TRACING, ATTACH_TRACEPOINT, target)?
            }
            Point::Function {
                section, function, ..
            } => {
                let code = object.code(section)?;
                let way = match section.split('/').next() {
                    Some("fentry") => Some(ATTACH_ENTRY),
                    Some("fexit") => Some(ATTACH_EXIT),
                    _ => None,
                };
                match way {
                    None => load_as(function, &code, PROGRAM_PROBE, 0, 0)?,
                    Some(way) => {
                        let target = btf
                            .function(function)
                            .ok_or_else(|| BpfError::Unknown(format!("function {function}")))?;
                        load_as(function, &code, PROGRAM_TRACING, way, target)?
                    }
                }
            }
        };
        Ok(Program {
            point: point.clone(),
            program,
        })
    }

    /// Attaches it for as long as the answer is kept.
    pub(super) fn attach(&self) -> Result<OwnedFd, BpfError> {
        let to = || match self.point {
            Point::Tracepoint(name) => format!("tracepoint {name}"),
            Point::Function { function, .. } => format!("function {function}"),
        };
        let refused = |error| BpfError::Detached { to: to(), error };
        match self.point {
            Point::Function {
                section, function, ..
            } if section.contains("probe/") => {
                let event = probe(function, section.starts_with("kretprobe/")).map_err(refused)?;
                ioctl(&event, SET_PROGRAM, self.program.as_raw_fd() as usize).map_err(refused)?;
                switch(&event, true, 0).map_err(refused)?;
                Ok(event)
            }
            _ => command(
                RAW_TRACEPOINT_OPEN,
                &mut [0, self.program.as_raw_fd() as u64, 0],
            )
            .map(descriptor)
            .map_err(refused),
        }
    }
}

/// A probe at a function's entry or its return, as an event of perf.
fn probe(function: &str, returns: bool) -> std::io::Result<OwnedFd> {
    let number = |text: &str| text.trim().parse::<u32>().ok();
    let unknown = || std::io::Error::other("the kernel has no probes at functions");
    let kind = fs::read_to_string(format!("{PROBES}/type")).map_err(|_| unknown())?;
    let kind = number(&kind).ok_or_else(unknown)?;
    let bit = fs::read_to_string(format!("{PROBES}/format/retprobe"))?;
    let bit = bit
        .trim()
        .strip_prefix("config:")
        .and_then(number)
        .ok_or_else(unknown)?;
    let name = CString::new(function)?;
    let mut attributes = attributes(kind, u64::from(returns) << (bit & 63), 0, 0);
    attributes.__bindgen_anon_3.config1 = name.as_ptr() as u64;
    // For all CPUs: such an event is of the whole machine, whichever it is opened on.
    perf_event_open(&attributes, ANY, 0, ANY)
}
