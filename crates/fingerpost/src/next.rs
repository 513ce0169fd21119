//! What a person at a terminal can do next, said after a command that went well.

use std::io::IsTerminal;

use crate::cli::Command;
use crate::exit::{say, words};
use crate::runs::plain;

/// After what is kept in a file of the user's choice.
const IN_A_FILE: &str = "as a page: fingerpost report ./FILE -o run.html; beside another run: fingerpost compare OTHER ./FILE";

/// The next step after a command; nothing after those that are an end in themselves. What the command named, it names
/// again.
fn after(command: &Command) -> Option<String> {
    let next = match command {
        // A run in a file of its own is not the archive's latest, and what is seen of a command is not kept.
        Command::Run(args) if args.output.is_some() => IN_A_FILE,
        Command::Explain(args) if args.output.is_some() => IN_A_FILE,
        Command::Explain(args) if !args.command.is_empty() => return None,
        Command::Run(_) => {
            "see it: fingerpost serve; beside the run before: fingerpost compare latest~1"
        }
        Command::Explain(args) => {
            let run = args.run.as_deref().map_or(Some("latest"), plain)?;
            return Some(format!(
                "see it: fingerpost serve; as a file to mail: fingerpost report {run} -o run.html"
            ));
        }
        Command::Show(args) => return plain(&args.run).map(after_show),
        Command::Compare(args) => {
            let (base, new) = (plain(args.sides().0)?, plain(args.sides().1)?);
            return Some(format!(
                "as a file to mail: fingerpost report {base} {new} -o comparison.html"
            ));
        }
        Command::Ab(_) => {
            "both sides are kept: fingerpost archive list; see them: fingerpost serve"
        }
        Command::List(args) => return args.next(),
        Command::Doctor(_) => "measure, when the machine is quiet: fingerpost run --profile quick",
        Command::Zerofill(_) => {
            "every way to get memory: fingerpost run zerofill; as a page: fingerpost serve"
        }
        Command::Replay(_) => "as a page: fingerpost replay -o published.html",
        Command::Report(_) => "open it in a browser: it is one file, which can be mailed",
        Command::Archive(args) => args.next()?,
        Command::Load(_) => {
            "beside what the service saw: fingerpost explain latest --client FILE, on the service's host"
        }
        Command::Prove(_) => "in real servers, as root: fingerpost prove --servers --trials 10",
        Command::Fleet(args) => return args.next(),
        Command::Serve(_) | Command::Site(_) | Command::Completions(_) | Command::Man(_) => {
            return None;
        }
    };
    Some(next.to_owned())
}

/// After this run was shown.
fn after_show(run: &str) -> String {
    match run {
        "latest" => "see it: fingerpost serve; beside the run before: fingerpost compare latest~1"
            .to_owned(),
        _ if run.starts_with("ref:") => {
            format!("beside the latest run of this machine: fingerpost compare {run}")
        }
        _ => format!(
            "as a page: fingerpost report {run} -o run.html; beside another run: fingerpost compare {run} OTHER"
        ),
    }
}

/// What is said after this command, for whom that helps: a person who reads both outputs, and asked for neither quiet
/// nor another format.
pub fn sentence(command: &Command) -> Option<String> {
    let people = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
    let silent = |word: &str| {
        matches!(word, "-q" | "--quiet" | "--progress") || word.starts_with("--format")
    };
    after(command).filter(|_| people && !words().any(|word| silent(&word)))
}

/// Says it.
pub fn tell(sentence: &str) {
    say(&format!("next: {sentence}"));
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use crate::cli::Cli;

    fn after(words: &[&str]) -> Option<String> {
        super::after(
            &Cli::try_parse_from(["fingerpost"].iter().chain(words))
                .expect("they can be parsed")
                .command,
        )
    }

    #[test]
    fn the_next_step_is_about_what_was_kept() {
        let latest = |words: &[&str]| after(words).is_some_and(|next| next.contains("latest"));
        assert!(
            latest(&["run"])
                && latest(&["explain", "latest"])
                && latest(&["explain", "--port", "80"])
        );
        for kept_elsewhere in [
            &["run", "-o", "r.json"][..],
            &["explain", "--port", "80", "-o", "r.json"],
        ] {
            assert!(
                !latest(kept_elsewhere)
                    && after(kept_elsewhere).is_some_and(|next| next.contains("./FILE")),
                "{kept_elsewhere:?}"
            );
        }
        assert_eq!(after(&["explain", "--", "true"]), None);
    }

    #[test]
    fn the_next_step_names_what_the_command_named() {
        for (words, has) in [
            (
                &["explain", "20260101T"][..],
                "fingerpost report 20260101T -o run.html",
            ),
            (&["show", "./a.json"], "fingerpost compare ./a.json OTHER"),
            (
                &["show", "ref:g5-2.7-darwin"],
                "fingerpost compare ref:g5-2.7-darwin",
            ),
            (
                &["compare", "latest~3"],
                "fingerpost report latest~3 latest -o comparison.html",
            ),
            (
                &["compare", "a", "ref:b"],
                "fingerpost report a ref:b -o comparison.html",
            ),
            (&["list"], "fingerpost list NAME"),
            (&["list", "syscall.*"], "fingerpost run 'syscall.*'"),
            (&["list", "vm.fault_anon"], "fingerpost run vm.fault_anon"),
            (&["list", "cpu.quota"], "fingerpost prove cpu.quota"),
            (
                &["fleet", "show", "monday"],
                "fingerpost serve --sweep monday",
            ),
            (
                &["fleet", "show", "monday", "-o", "monday.html"],
                "in a browser",
            ),
            (
                &["archive", "export", "latest", "x.json"],
                "fingerpost archive import FILE",
            ),
        ] {
            let next = after(words).unwrap_or_default();
            assert!(next.contains(has), "{words:?}: {next}");
        }
        // Of these no next step is known that could be typed as it stands.
        for words in [
            &["compare", "a,b", "c"][..],
            &["compare", "a[api=mmap]"],
            &["show", "-"],
            &["explain", "it's"],
            &["list", "app.build"],
        ] {
            assert_eq!(after(words), None, "{words:?}");
        }
    }
}
