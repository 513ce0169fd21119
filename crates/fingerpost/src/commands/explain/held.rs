//! Who is to be held for a moment: processes that the user names, and only such as holding does no harm to.

use std::path::Path;

use fingerpost_sys::cgroup::members;
use fingerpost_sys::threads::with_descendants;
use fingerpost_sys::{child, sample};

use crate::exit::usage;

/// The parent of all threads of the kernel, and its own number.
const KTHREADD: i32 = 2;

/// The processes that `--hold` names: a process, or all of a control group.
pub fn find(words: &[String], service: &[i32]) -> anyhow::Result<Vec<i32>> {
    let mut all = Vec::new();
    for word in words {
        match word.parse::<i32>() {
            Ok(pid) => all.push(pid),
            Err(_) => all.extend(of_group(word)?),
        }
    }
    all.iter().try_for_each(|&pid| may_be_held(pid, service))?;
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

fn of_group(word: &str) -> anyhow::Result<Vec<i32>> {
    let path = Path::new(word);
    if !word.starts_with('/') || word.len() < 2 {
        return usage(format!(
            "--hold {word}: name a process by its number, or a control group by its path"
        ));
    }
    let named = || {
        members::at(word)
            .map(|found| found.pids)
            .unwrap_or_default()
    };
    let pids = if members::is_directory(path) {
        members::of_directory(path)
    } else {
        named()
    };
    if pids.is_empty() {
        usage(format!(
            "--hold {word}: no process here is in that control group"
        ))
    } else {
        Ok(pids)
    }
}

fn may_be_held(pid: i32, service: &[i32]) -> anyhow::Result<()> {
    let Some(of) = sample::process(pid).filter(|of| pid > 0 && !matches!(of.state, 'Z' | 'X'))
    else {
        return usage(format!("--hold {pid}: there is no such process"));
    };
    let refuse = |why: &str| {
        usage(format!(
            "--hold {pid} ({}): {why}; name a neighbour of the service",
            of.name
        ))
    };
    if pid == 1 {
        return refuse("the first process of the system is never held");
    }
    if pid == KTHREADD || of.parent == KTHREADD {
        return refuse("a thread of the kernel cannot be held");
    }
    // What is held is held with all that descends from it.
    let held = with_descendants(&[pid]);
    if held.contains(&(std::process::id() as i32)) {
        return refuse("this command descends from it");
    }
    if service.iter().any(|pid| held.contains(pid)) {
        return refuse("it is the service itself, or the service descends from it");
    }
    if child::signal(pid, 0).is_err() {
        return refuse("it belongs to another user; root may hold it");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(word: &str, service: &[i32]) -> String {
        find(&[word.to_owned()], service).unwrap_err().to_string()
    }

    #[test]
    fn what_must_go_on_is_not_held() {
        let own = std::process::id() as i32;
        assert!(refused("1", &[]).contains("never held"));
        assert!(refused(&own.to_string(), &[]).contains("this command descends from it"));
        assert!(
            refused("0", &[]).contains("no such process")
                && refused("-5", &[]).contains("no such process")
        );
        assert!(refused("2147483647", &[]).contains("no such process"));
        assert!(refused("nginx", &[]).contains("by its number"));
        assert!(
            refused("/no/such/group", &[]).contains("no process here is in that control group")
        );
        assert!(refused("/", &[]).contains("by its number"));
        let mut sleeper = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = sleeper.id() as i32;
        assert!(refused(&pid.to_string(), &[pid]).contains("the service itself"));
        assert_eq!(
            find(&[pid.to_string(), pid.to_string()], &[own]).unwrap(),
            [pid]
        );
        sleeper.kill().unwrap();
        sleeper.wait().unwrap();
    }
}
