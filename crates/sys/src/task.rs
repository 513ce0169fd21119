//! Settings of one task that a command starts with, and that its children inherit.
//!
//! Each is made between fork and exec, so that it holds from the program's first instruction on and for nobody else.

use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::process::SpeculationFeature::SpeculativeStoreBypass;
use rustix::process::{
    SpeculationFeatureControl, SpeculationFeatureState, control_speculative_feature,
    speculative_feature_state,
};
use rustix::thread::{disable_transparent_huge_pages, set_no_new_privs};

use crate::affinity;
use crate::system::done;

/// Has the command do without transparent huge pages, whatever the system's setting. Needs no privilege.
pub fn no_huge_pages(command: &mut Command) -> &mut Command {
    // SAFETY: the closure runs between fork and exec and calls only prctl, which is async-signal-safe.
    unsafe { command.pre_exec(|| Ok(disable_transparent_huge_pages(true)?)) }
}

/// Has the command run with the mitigation of Speculative Store Bypass. Needs no privilege; fails where the kernel or
/// the CPU leaves no choice.
pub fn no_store_bypass(command: &mut Command) -> &mut Command {
    // SAFETY: the closure runs between fork and exec and calls only prctl, which is async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            Ok(control_speculative_feature(
                SpeculativeStoreBypass,
                SpeculationFeatureControl::DISABLE,
            )?)
        })
    }
}

/// Whether a task may choose the mitigation of Speculative Store Bypass for itself here.
pub fn store_bypass_can_be_chosen() -> bool {
    let state = speculative_feature_state(SpeculativeStoreBypass)
        .ok()
        .flatten();
    // That it can be set, and that speculation is on now.
    state.is_some_and(|state| {
        state.contains(SpeculationFeatureState::PRCTL | SpeculationFeatureState::ENABLE)
    })
}

/// Puts a filter of this many instructions before every system call of the command. It allows them all, after long
/// thought.
///
/// Needs no privilege: the command gives up gaining any.
pub fn seccomp_filter(command: &mut Command, instructions: usize) -> &mut Command {
    // Loads of the architecture word, which no optimiser of the kernel drops, and a last word that allows the call. The
    // kernel keeps a bitmap of calls that a filter always allows, and then does not run it; that the verdict depends on
    // an argument keeps it running.
    let load = libc::sock_filter {
        code: BPF_LD_W_ABS,
        jt: 0,
        jf: 0,
        k: 16,
    };
    let mut program = vec![load; instructions.clamp(2, 4094)];
    program.push(libc::sock_filter {
        code: BPF_JEQ,
        jt: 0,
        jf: 0,
        k: 0x7fff_fff1,
    });
    program.push(libc::sock_filter {
        code: BPF_RET,
        jt: 0,
        jf: 0,
        k: libc::SECCOMP_RET_ALLOW,
    });
    // SAFETY: the closure runs between fork and exec; prctl is async-signal-safe, and the program it points to lives in
    // the closure.
    unsafe {
        command.pre_exec(move || {
            set_no_new_privs(true)?;
            let filter = libc::sock_fprog {
                len: program.len() as u16,
                filter: program.as_mut_ptr(),
            };
            done(libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                std::ptr::from_ref(&filter),
            ))
            .map(drop)
        })
    }
}

const BPF_LD_W_ABS: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const BPF_JEQ: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const BPF_RET: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// Has the command run on these CPUs only.
pub fn on_cpus<'a>(command: &'a mut Command, cpus: &[usize]) -> &'a mut Command {
    let set = affinity::set_of(cpus);
    // SAFETY: the closure runs between fork and exec and calls only sched_setaffinity, on a set of its own.
    unsafe { command.pre_exec(move || affinity::confine(0, &set)) }
}

/// Has the command run with this nice value, 0 to 19. Raising it needs no privilege.
pub fn nice(command: &mut Command, value: i32) -> &mut Command {
    // SAFETY: the closure runs between fork and exec and calls only setpriority.
    unsafe {
        command.pre_exec(move || {
            done(libc::setpriority(libc::PRIO_PROCESS, 0, value.clamp(0, 19))).map(drop)
        })
    }
}

/// Gives the command a network of its own: a loopback interface that is down, and nothing else. Needs root.
pub fn own_network(command: &mut Command) -> &mut Command {
    // SAFETY: the closure runs between fork and exec and calls only unshare.
    unsafe { command.pre_exec(|| done(libc::unshare(libc::CLONE_NEWNET)).map(drop)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of the status file that a shell started with a setting sees of itself.
    fn status_of(set: impl Fn(&mut Command) -> &mut Command, line: &str) -> String {
        let mut command = Command::new("grep");
        let output = set(command.args([line, "/proc/self/status"]))
            .output()
            .unwrap();
        String::from_utf8(output.stdout)
            .unwrap()
            .split_once(':')
            .map_or(String::new(), |(_, v)| v.trim().to_owned())
    }

    #[test]
    fn a_setting_holds_for_the_command_and_not_for_us() {
        assert_eq!(status_of(|c| c, "THP_enabled"), "1");
        assert_eq!(status_of(|c| no_huge_pages(c), "THP_enabled"), "0");
        assert_eq!(status_of(|c| seccomp_filter(c, 500), "Seccomp:"), "2");
        let first = crate::affinity::allowed_cpus().unwrap()[0];
        assert_eq!(
            status_of(|c| on_cpus(c, &[first]), "Cpus_allowed_list"),
            first.to_string()
        );
        if store_bypass_can_be_chosen() {
            assert_eq!(
                status_of(|c| no_store_bypass(c), "Speculation_Store_Bypass"),
                "thread mitigated"
            );
            assert!(store_bypass_can_be_chosen(), "ours is as it was");
        }
    }

    #[test]
    fn a_nice_value_holds_for_the_command() {
        let mut command = Command::new("nice");
        let output = nice(&mut command, 7).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "7");
    }
}
