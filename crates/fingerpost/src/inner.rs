//! An inner process: this program again with the same arguments, told by the name that it is started under.

use std::os::unix::process::CommandExt;
use std::process::Command;

use fingerpost_sys::child;

/// Whether this process is the inner one of this name.
pub fn is(name: &str) -> bool {
    std::env::args_os().next().is_some_and(|own| own == name)
}

/// Starts the inner process of this name, which dies with the thread that spawns it.
pub fn command(name: &str) -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.arg0(name).args(std::env::args_os().skip(1));
    child::die_with_parent(&mut command);
    command
}
