//! What lmbench calls the operations that it and we measure: in its summary, and in its result files.
//!
//! A probe says the first in its descriptor, and so do its rows. This list is for what states none (records of before,
//! published tables, imported files); it is as closed as lmbench's own, and a test holds it against the descriptors.

use std::borrow::Cow;

/// An operation of lmbench's.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// The probe whose rows it is; `lmbench.*` where no probe measures it as lmbench gives it.
    pub probe: &'static str,
    /// Its name in the summary, with a parameter in the place of each `{parameter}` ([`name`]).
    pub name: &'static str,
    /// The words before its figure in a result file, and the unit behind it; none where a file has it otherwise (as a
    /// curve, or with a number among the words), or has something else by that name: its integers have 32 bits, and
    /// those of `cpu.int` and `cpu.div` 64.
    pub line: Option<(&'static str, &'static str)>,
}

impl Operation {
    const fn us(self, words: &'static str) -> Operation {
        Operation {
            line: Some((words, "microseconds")),
            ..self
        }
    }

    const fn rate(self, words: &'static str) -> Operation {
        Operation {
            line: Some((words, "MB/sec")),
            ..self
        }
    }
}

const fn of(probe: &'static str, name: &'static str) -> Operation {
    Operation {
        probe,
        name,
        line: None,
    }
}

/// All that are known.
pub static OPERATIONS: &[Operation] = &[
    of("syscall.null", "null call").us("Simple syscall"),
    of("syscall.read", "null I/O").us("Simple read"),
    of("syscall.write", "null I/O").us("Simple write"),
    of("lmbench.null_io", "null I/O"),
    of("syscall.stat", "stat").us("Simple stat"),
    of("syscall.fstat", "fstat").us("Simple fstat"),
    of("syscall.open_close", "open clos").us("Simple open/close"),
    of("syscall.select", "slct TCP"),
    of("lmbench.select_files", "Select on {fds} fd's"),
    of("signal.install", "sig inst").us("Signal handler installation"),
    of("signal.handle", "sig hndl").us("Signal handler overhead"),
    of("signal.fault", "Prot Fault").us("Protection fault"),
    of("process.fork", "fork proc").us("Process fork+exit"),
    // Its program is linked dynamically.
    of("process.exec_dynamic", "exec proc").us("Process fork+execve"),
    of("process.shell", "sh proc").us("Process fork+/bin/sh -c"),
    of("switch.ring", "{tasks}p/{footprint}K ctxsw"),
    of("ipc.pipe", "Pipe").us("Pipe latency"),
    of("ipc.unix", "AF UNIX").us("AF_UNIX sock stream latency"),
    of("ipc.udp", "UDP").us("UDP latency using"),
    of("ipc.tcp", "TCP").us("TCP latency using"),
    of("ipc.tcp_connect", "TCP conn").us("TCP/IP connection cost to"),
    of("bandwidth.pipe", "Pipe (bw)").rate("Pipe bandwidth"),
    of("bandwidth.unix", "AF UNIX (bw)").rate("AF_UNIX sock stream bandwidth"),
    of("bandwidth.tcp", "TCP (bw)"),
    of("bandwidth.file_reread", "File reread"),
    of("bandwidth.mmap_reread", "Mmap reread"),
    of("fs.create", "{size}K File Create"),
    of("fs.delete", "{size}K File Delete"),
    of("vm.mmap", "Mmap Latency"),
    of("vm.fault_file", "Page Fault").us("Pagefaults on"),
    of("memory.latency", "lat_mem_rd"),
    of("memory.read", "Mem read"),
    of("memory.write", "Mem write"),
    of("memory.copy", "Bcopy"),
    of("cpu.int", "integer add, mul"),
    of("cpu.div", "integer div"),
];

/// The one that rows of this name are.
pub fn operation(probe: &str) -> Option<&'static Operation> {
    OPERATIONS.iter().find(|operation| operation.probe == probe)
}

/// What lmbench calls a row with these parameters: a name, with a parameter in the place of each `{parameter}` of it;
/// one that `K` follows is told in KiB. Nothing where a parameter is missing, and for files of other sizes than
/// lmbench's own, 0 and 10 KiB.
pub fn name(name: &'static str, int: impl Fn(&str) -> Option<i64>) -> Option<Cow<'static, str>> {
    let mut parts = name.split('{');
    let mut words = Cow::Borrowed(parts.next()?);
    for part in parts {
        let (key, rest) = part.split_once('}')?;
        let value = int(key).filter(|value| key != "size" || matches!(value, 0 | 10_240))?;
        words.to_mut().push_str(
            &if rest.starts_with('K') {
                value / 1024
            } else {
                value
            }
            .to_string(),
        );
        words += rest;
    }
    Some(words)
}
