//! Tells the program which commit it is built from.

use std::process::Command;

fn main() {
    let commit = Command::new("git").args(["describe", "--always", "--dirty", "--abbrev=12"]).output();
    let commit = commit.ok().filter(|o| o.status.success()).map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned());
    println!("cargo::rustc-env=FINGERPOST_COMMIT={}", commit.filter(|c| !c.is_empty()).unwrap_or_else(|| "unknown".to_owned()));
    // The commit moves with HEAD and with the branch that it names.
    for path in ["../../.git/HEAD", "../../.git/index"] {
        println!("cargo::rerun-if-changed={path}");
    }
}
