//! Tells the program which commit it is built from, and the linker to make the release small.

use std::path::Path;
use std::process::Command;

fn main() {
    let commit = Command::new("git")
        .args(["describe", "--always", "--dirty", "--abbrev=12"])
        .output();
    let commit = commit
        .ok()
        .filter(|o| o.status.success())
        .map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned());
    println!(
        "cargo::rustc-env=FINGERPOST_COMMIT={}",
        commit
            .filter(|c| !c.is_empty())
            .unwrap_or_else(|| "unknown".to_owned())
    );
    // The commit moves with HEAD and with the branch that it names.
    for path in ["../../.git/HEAD", "../../.git/index"] {
        println!("cargo::rerun-if-changed={path}");
    }
    if variable("PROFILE") == "release" {
        SMALL
            .iter()
            .filter(|argument| links_with(argument))
            .for_each(|argument| println!("cargo::rustc-link-arg-bins={argument}"));
    }
}

/// Functions whose code is the same become one, a twentieth of the binary, which the linker that comes with rustc can
/// do and GNU ld cannot. The index of the tables for unwinding is left out: nothing is unwound (`panic = "abort"`), and
/// debuggers read the tables themselves.
const SMALL: [&str; 3] = ["-Wl,--icf=all", "-Wl,--no-eh-frame-hdr", "-Wl,--strip-all"];

/// Whether a program can be linked with this argument here.
fn links_with(argument: &str) -> bool {
    let out = variable("OUT_DIR");
    let source = Path::new(&out).join("empty.rs");
    let mut rustc = Command::new(variable("RUSTC"));
    rustc
        .args([
            "--target",
            &variable("TARGET"),
            "--out-dir",
            &out,
            "-C",
            &format!("link-arg={argument}"),
        ])
        .arg(&source);
    rustc.args(
        variable("CARGO_ENCODED_RUSTFLAGS")
            .split('\x1f')
            .filter(|flag| !flag.is_empty()),
    );
    std::fs::write(&source, "fn main() {}").is_ok()
        && rustc.output().is_ok_and(|done| done.status.success())
}

/// What Cargo tells of the build.
fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}
