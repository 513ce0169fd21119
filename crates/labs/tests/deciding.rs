//! Experiments on a real process: what is changed is undone by the guardian, also when the conductor is killed in the middle or stopped.
//!
//! This file is its own `main`: the guardian of a test is this binary.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use fingerpost_diagnose::deciding::Offer;
use fingerpost_labs::deciding::levers::{Act, Lever, Pulled};
use fingerpost_record::Change;
use fingerpost_sys::child::signal;
use fingerpost_sys::scratch::Scratch;
use fingerpost_sys::{guardian, sample, threads};
use libtest_mimic::{Arguments, Trial};

/// The argument that makes this binary a conductor of one change.
const CONDUCTOR: &str = "__conductor";

fn main() -> ExitCode {
    if let Some(code) = guardian::dispatch() {
        return code;
    }
    let mut args = std::env::args().skip(1);
    if args.next().as_deref() == Some(CONDUCTOR) {
        conduct(args.next().and_then(|pid| pid.parse().ok()).expect("the process to change"));
    }
    let trials = vec![
        Trial::test("killed_in_the_middle_of_a_stretch_it_is_undone", || undone_after(libc::SIGKILL)),
        Trial::test("stopped_in_the_middle_of_a_stretch_it_is_undone", || undone_after(libc::SIGSTOP)),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Makes a change, says so, and never ends.
fn conduct(pid: i32) -> ! {
    let mut scratch = Scratch::create_guarded().expect("a journal");
    let acts = vec![Act::Threads(vec![pid], threads::To::Nice(19)), Act::Stop(vec![pid])];
    let lever = Lever { offer: Offer { change: Change::Hold, what: "it held".into(), hindrance: None }, acts };
    let mut pulled = Pulled::default();
    pulled.pull(&lever, &mut scratch, Duration::from_millis(300)).expect("the change");
    println!("changed");
    loop {
        std::thread::park();
    }
}

struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn undone_after(sent: i32) -> Result<(), libtest_mimic::Failed> {
    let neighbour = Ends(Command::new("sleep").arg("600").spawn()?);
    let pid = neighbour.0.id() as i32;
    let now = || sample::stat(Path::new(&format!("/proc/{pid}"))).map(|s| (s.nice, s.state == 'T'));
    let before = now().ok_or("the neighbour lives")?;
    let mut command = Command::new(std::env::current_exe()?);
    let mut conductor = Ends(command.args([CONDUCTOR, &pid.to_string()]).stdout(Stdio::piped()).spawn()?);
    let mut line = String::new();
    BufReader::new(conductor.0.stdout.take().ok_or("its output")?).read_line(&mut line)?;
    if line.trim() != "changed" {
        return Err("the change was not made".into());
    }
    signal(conductor.0.id() as i32, sent)?;
    // The nice value can be lowered again by root alone; letting go on is everybody's.
    let is_root = fingerpost_sys::system::is_root();
    let whole = |(nice, held): (i32, bool)| !held && (nice == before.0 || !is_root);
    let deadline = Instant::now() + Duration::from_secs(20);
    while !now().is_some_and(whole) {
        if Instant::now() > deadline {
            return Err(format!("it was not undone: {:?} was {before:?}", now()).into());
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(())
}
