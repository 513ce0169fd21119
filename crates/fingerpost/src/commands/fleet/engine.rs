//! What `srun` and `ssh` are told. Pure: words from words.

use fingerpost_fleet::nodes;

/// What is passed on to Slurm.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Slurm {
    /// Slurm: the partition
    #[arg(long)]
    pub partition: Option<String>,
    /// Slurm: the account
    #[arg(long)]
    pub account: Option<String>,
    /// Slurm: the reservation
    #[arg(long)]
    pub reservation: Option<String>,
    /// Slurm: the job's time limit, as sbatch writes it; else the most that a host may take, and two minutes
    #[arg(long, value_name = "TIME")]
    pub time: Option<String>,
    /// Slurm: copy the program to this directory of each node, where there is no shared path, and remove it there
    #[arg(long, value_name = "DIR")]
    pub bcast: Option<String>,
}

impl Slurm {
    /// The options as `srun` and `sbatch` take them. Without a time limit of the user's the job has the run's own: a
    /// short job is fitted in between others, and one of the partition's default might end before its runs.
    fn options(&self, timeout: u64) -> Vec<String> {
        let time = self
            .time
            .clone()
            .unwrap_or_else(|| (timeout + STARTING).div_ceil(60).to_string());
        let given = [
            ("partition", &self.partition),
            ("account", &self.account),
            ("reservation", &self.reservation),
            ("time", &Some(time)),
        ];
        given
            .into_iter()
            .filter_map(|(name, value)| value.as_ref().map(|value| format!("--{name}={value}")))
            .collect()
    }
}

/// The file beside the records in which a batch script says which nodes it was asked for.
pub const ASKED: &str = "fingerpost-nodes";

/// Seconds that starting on a node and sending the record may take, on top of the run.
const STARTING: u64 = 120;

/// Slurm's words for it.
pub const PREEMPTED: &str = "has been preempted";

/// Whether a child's complaint says that Slurm took the node for a job of higher priority, or gave the job back to the
/// queue. Nothing is known of the host by that, and it is to be tried again.
pub fn was_preempted(reason: &str) -> bool {
    let reason = reason.to_ascii_lowercase();
    ["due to preemption", "due to job requeue", PREEMPTED]
        .iter()
        .any(|words| reason.contains(words))
}

/// One job for one node or many, under a name by which it alone can be cancelled.
pub struct Job<'a> {
    /// The job's name, the sweep's own.
    pub name: &'a str,
    /// The nodes.
    pub nodes: &'a [String],
    /// The program's file, as the nodes see it.
    pub program: &'a str,
    /// The most seconds a run may take.
    pub timeout: u64,
    /// Words after `run`.
    pub words: &'a [String],
}

impl Job<'_> {
    /// What each node runs, after the program.
    fn node_words(&self, slurm: &Slurm) -> Vec<String> {
        let mut words = vec![
            "fleet".to_owned(),
            "node".into(),
            "--name-from".into(),
            "SLURMD_NODENAME".into(),
        ];
        words.push(format!("--timeout={}", self.timeout));
        words.extend(slurm.bcast.as_ref().map(|_| "--remove-self".to_owned()));
        words.push("--".into());
        words.extend(self.words.iter().cloned());
        words
    }

    /// The words of `srun`: one exclusive task a node. A node that dies ends nobody else's task. Of several nodes each
    /// line is labelled by Slurm with its task's number, and the tasks are numbered in the order of the list: what a
    /// task prints about another node is not that node's.
    pub fn srun(&self, slurm: &Slurm, low_priority: bool) -> Vec<String> {
        let mut words = self.common(slurm);
        words.extend(
            [
                "--no-kill",
                "--kill-on-bad-exit=0",
                "--wait=0",
                "--input=none",
                "--quiet",
            ]
            .map(str::to_owned),
        );
        if self.nodes.len() > 1 {
            words.extend(["--distribution=arbitrary", "--label"].map(str::to_owned));
        }
        words.extend(low_priority.then(|| "--nice=10000".to_owned()));
        words.extend(
            slurm
                .bcast
                .as_ref()
                .map(|dir| format!("--bcast={}/{}", dir.trim_end_matches('/'), self.name)),
        );
        words.push(self.program.to_owned());
        words.extend(self.node_words(slurm));
        words
    }

    fn common(&self, slurm: &Slurm) -> Vec<String> {
        let mut words = vec![
            format!("--job-name={}", self.name),
            format!("--nodelist={}", nodes::fold(self.nodes)),
        ];
        words.extend([
            format!("--nodes={}", self.nodes.len()),
            "--ntasks-per-node=1".into(),
            "--exclusive".into(),
        ]);
        words.extend(slurm.options(self.timeout));
        words
    }

    /// The batch script that does the same, and writes a file for each node into the directory that it is started in.
    /// The files are the nodes' own: `srun`'s placeholder `%N` is the name of the machine, which Slurm may know by
    /// another, and a requeued job would write over what came before.
    pub fn script(&self, slurm: &Slurm) -> String {
        let options: String = self
            .common(slurm)
            .iter()
            .map(|word| format!("#SBATCH {word}\n"))
            .collect();
        let mut words = self.node_words(slurm);
        words.splice(2..2, ["--into".to_owned(), ".".into()]);
        let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
        let given: String = self
            .words
            .iter()
            .map(|word| format!(" {}", quoted(word).replace(['\n', '\r'], " ")))
            .collect();
        let given = if given.is_empty() {
            given
        } else {
            format!(" --{given}")
        };
        let bcast = slurm
            .bcast
            .as_ref()
            .map(|dir| format!("{}/{}", dir.trim_end_matches('/'), self.name));
        let copy = bcast.as_ref().map_or(String::new(), |to| {
            format!("sbcast --force {} {}\n", quoted(self.program), quoted(to))
        });
        let program = quoted(bcast.as_deref().unwrap_or(self.program));
        format!(
            "#!/bin/sh\n{options}#SBATCH --no-kill\n#SBATCH --requeue\n#SBATCH --open-mode=append\n#SBATCH \
             --output=fingerpost-%j.log\n\
            # A file NODE.json.gz from each node. A requeued job, or another one in the same directory, goes on with \
             the nodes that have none.\n\
            # Afterwards: fingerpost fleet gather . -o SWEEP{}\n\
            echo {} >> {ASKED}\n{copy}srun --no-kill --kill-on-bad-exit=0 --wait=0 {program} {}\n",
            given,
            quoted(&nodes::fold(self.nodes)),
            words.join(" ")
        )
    }
}

/// The words of `ssh` for one host. The program comes on standard input, `bytes` long, into a directory that only the
/// user may enter; what stays open of the input tells the node that this end is still there.
///
/// When this end goes meanwhile, the program has come in part and is not started, and a complaint of the shell meets a
/// closed pipe: neither may keep the directory.
pub fn ssh(host: &str, bytes: u64, timeout: u64, run: &[String]) -> Vec<String> {
    let run: Vec<String> = run.iter().map(|word| quoted(word)).collect();
    let script = format!(
        "umask 077; d=$(mktemp -d \"${{TMPDIR:-/tmp}}/fingerpost-fleet.XXXXXXXXXX\") || exit 1; trap 'rm -rf \"$d\"' \
         EXIT; trap 'exit 1' HUP INT PIPE TERM; \
        head -c {bytes} > \"$d/fingerpost\" && [ \"$(wc -c < \"$d/fingerpost\")\" -eq {bytes} ] && chmod \
         700 \"$d/fingerpost\" && \
        \"$d/fingerpost\" fleet node --name {host} --while-stdin --timeout={timeout} -- {}",
        run.join(" ")
    );
    // A shared connection would outlive the child, and hold its standard error open.
    let options = "-T -S none -o BatchMode=yes -o ConnectTimeout=15 -o ServerAliveInterval=15 -o ServerAliveCountMax=4";
    // The user's shell may be any: sh is asked for.
    let sh = format!("exec sh -c {}", quoted(&script));
    options
        .split(' ')
        .map(str::to_owned)
        .chain(["--".to_owned(), host.to_owned(), sh])
        .collect()
}

/// The line that drains a node, as a shell takes it: the reason has names from records and from the sweep's manifest.
pub fn drain_line(node: &str, reason: &str) -> String {
    let words = [
        "scontrol",
        "update",
        &format!("NodeName={node}"),
        "State=DRAIN",
    ];
    let words: Vec<String> = words.into_iter().map(quoted).collect();
    format!("{} Reason={}", words.join(" "), quoted(reason))
}

/// A word as a shell takes it, whatever it holds.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| {
        c.is_ascii_alphanumeric()
            || matches!(c, '-' | '_' | '.' | '/' | '=' | ',' | ':' | '%' | '+')
    };
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn job<'a>(nodes: &'a [String], words: &'a [String]) -> Job<'a> {
        Job {
            name: "fingerpost-x",
            nodes,
            program: "/opt/fingerpost",
            timeout: 60,
            words,
        }
    }

    #[test]
    fn one_exclusive_task_a_node_is_asked_for() {
        let (nodes, words) = (
            ["n1", "n2", "n3"].map(str::to_owned),
            ["--profile".to_owned(), "quick".into()],
        );
        let slurm = Slurm {
            partition: Some("batch".into()),
            bcast: Some("/tmp/".into()),
            ..Slurm::default()
        };
        let said = job(&nodes, &words).srun(&slurm, false).join(" ");
        let begin = "--job-name=fingerpost-x --nodelist=n[1-3] --nodes=3 --ntasks-per-node=1 --exclusive \
            --partition=batch --time=3 --no-kill";
        assert!(said.starts_with(begin), "{said}");
        let end = "--bcast=/tmp/fingerpost-x /opt/fingerpost fleet node --name-from SLURMD_NODENAME --timeout=60 \
            --remove-self -- --profile quick";
        assert!(said.ends_with(end), "{said}");
        let script = job(&nodes, &words).script(&Slurm::default());
        assert!(
            script.starts_with(
                "#!/bin/sh\n#SBATCH --job-name=fingerpost-x\n#SBATCH --nodelist=n[1-3]\n"
            ) && script.contains("fleet node --into . --name-from")
        );
    }

    #[test]
    fn a_program_that_came_in_part_or_dies_leaves_no_directory() {
        const PROGRAM: &[u8] = b"#!/bin/sh\nkill -SEGV $$\n";
        let run = |came: &[u8], err: std::process::Stdio| {
            let dir = tempfile::tempdir().unwrap();
            let words = ssh("n1", PROGRAM.len() as u64, 60, &[]);
            let mut command = std::process::Command::new("sh");
            command
                .arg("-c")
                .arg(words.last().unwrap())
                .env("TMPDIR", dir.path());
            let mut sh = command
                .stdin(std::process::Stdio::piped())
                .stderr(err)
                .stdout(std::process::Stdio::null())
                .spawn()
                .unwrap();
            let _ = sh.stdin.take().unwrap().write_all(came);
            assert!(!sh.wait().unwrap().success());
            std::fs::read_dir(dir.path()).unwrap().count()
        };
        assert_eq!(run(&PROGRAM[..10], std::process::Stdio::null()), 0);
        // What the shell says about its death goes to a pipe that nobody reads.
        let (read, write) = std::io::pipe().unwrap();
        drop(read);
        assert_eq!(run(PROGRAM, write.into()), 0);
    }

    #[test]
    fn no_word_leaves_its_quotes() {
        assert_eq!(
            [quoted("a b"), quoted("it's"), quoted(""), quoted("x=1")],
            ["'a b'", r"'it'\''s'", "''", "x=1"]
        );
        let drained = drain_line("n1", "cause x'; reboot; '$(id), sweep s");
        let shown = std::process::Command::new("sh")
            .args([
                "-c",
                &format!("scontrol() {{ printf '[%s]' \"$@\"; }}; {drained}"),
            ])
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8(shown.stdout).unwrap(),
            "[update][NodeName=n1][State=DRAIN][Reason=cause x'; reboot; '$(id), sweep s]"
        );
        let words = ssh("n1", 10, 60, &["--set=$(reboot)".to_owned()]);
        let shown = std::process::Command::new("sh")
            .args([
                "-c",
                &format!("printf '%s' {}", &words.last().unwrap()[11..]),
            ])
            .output()
            .unwrap();
        assert!(
            String::from_utf8(shown.stdout)
                .unwrap()
                .contains("-- '--set=$(reboot)'")
        );
        assert_eq!(words[words.len() - 3..words.len() - 1], ["--", "n1"]);
    }
}
