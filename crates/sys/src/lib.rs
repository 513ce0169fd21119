//! Thin safe wrappers over the kernel. `unsafe` lives here, in the probes and in the binding to LMDB (`lmdb`), nowhere else.
//!
//! Parsers take text, so that they are tested on made-up `/proc` files; readers that open the files stand beside them.
//! An `io::Error` is what the kernel said, where a function says no more of it.

#![allow(unsafe_code)]

pub mod affinity;
pub mod audit;
pub mod autogroup;
pub mod beneath;
pub mod blocked;
pub mod bpf;
pub mod cgroup;
pub mod child;
pub mod compilers;
pub mod disks;
pub mod jail;
pub mod kallsyms;
pub mod listening;
pub mod loopdev;
pub mod map;
pub mod memory;
pub mod mount;
mod netlink;
pub mod network;
pub mod packets;
pub mod perf;
pub mod procfs;
pub mod random;
pub mod sample;
pub mod search;
pub mod shm;
pub mod sockdiag;
pub mod spawn;
pub mod stamps;
pub mod subjects;
pub mod sum;
pub mod swap;
pub mod system;
pub mod task;
pub mod taskstats;
pub mod threads;
pub mod trace;
pub mod tracefs;
pub mod turn;
pub mod uring;
pub mod wait;
pub mod zram;
