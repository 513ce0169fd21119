//! What a person at a terminal can do next, said after a command that went well.

use std::io::IsTerminal;

use crate::cli::Command;
use crate::exit::{say, words};

/// After what is kept in a file of the user's choice.
const IN_A_FILE: &str = "as a page: fingerpost report ./FILE -o run.html; beside another run: fingerpost compare OTHER ./FILE";

/// The next step after a command; nothing after those that are an end in themselves.
fn after(command: &Command) -> Option<&'static str> {
    Some(match command {
        // A run in a file of its own is not the archive's latest, and what is seen of a command is not kept.
        Command::Run(args) if args.is_to_file() => IN_A_FILE,
        Command::Explain(args) if args.is_to_file() => IN_A_FILE,
        Command::Explain(args) if args.is_of_command() => return None,
        Command::Run(_) => "see it: fingerpost serve; beside the run before: fingerpost compare latest~1",
        Command::Explain(_) => "see it: fingerpost serve; as a file to mail: fingerpost report latest -o run.html",
        Command::Show(_) => "see it: fingerpost serve; beside the run before: fingerpost compare latest~1",
        Command::Compare(_) => "as a file to mail: fingerpost report BASE NEW -o comparison.html",
        Command::Ab(_) => "both sides are kept: fingerpost archive list; see them: fingerpost serve",
        Command::List(_) => "what one measures: fingerpost list NAME; to measure it: fingerpost run NAME",
        Command::Doctor(_) => "measure, when the machine is quiet: fingerpost run --profile quick",
        Command::Zerofill(_) => "every way to get memory: fingerpost run zerofill; as a page: fingerpost serve",
        Command::Replay(_) => "as a page: fingerpost replay -o mysteries.html",
        Command::Report(_) => "open it in a browser: it is one file, which can be mailed",
        Command::Archive(_) => "look at them: fingerpost serve",
        Command::Load(_) => "beside what the service saw: fingerpost explain latest --client FILE, on the service's host",
        Command::Prove(_) => "in real servers, as root: fingerpost prove --servers --trials 10",
        Command::Serve(_) | Command::Site(_) | Command::Completions(_) | Command::Man(_) | Command::Fleet(_) => return None,
    })
}

/// What is said after this command, for whom that helps: a person who reads both outputs, and asked for neither quiet nor another format.
pub fn sentence(command: &Command) -> Option<&'static str> {
    let people = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
    let silent = |word: &str| matches!(word, "-q" | "--quiet" | "--progress") || word.starts_with("--format");
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

    fn after(words: &[&str]) -> Option<&'static str> {
        super::after(&Cli::try_parse_from(["fingerpost"].iter().chain(words)).expect("they can be parsed").command)
    }

    #[test]
    fn the_next_step_is_about_what_was_kept() {
        let latest = |words: &[&str]| after(words).is_some_and(|next| next.contains("latest"));
        assert!(latest(&["run"]) && latest(&["explain", "latest"]) && latest(&["explain", "--port", "80"]));
        for kept_elsewhere in [&["run", "-o", "r.json"][..], &["explain", "--port", "80", "-o", "r.json"]] {
            assert!(!latest(kept_elsewhere) && after(kept_elsewhere).is_some_and(|next| next.contains("./FILE")), "{kept_elsewhere:?}");
        }
        assert_eq!(after(&["explain", "--", "true"]), None);
    }
}
