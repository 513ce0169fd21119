//! A private sshd and a private Slurm of this test's own.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::common::until;

/// Where a daemon is, or nothing when it is not installed; with CI=true that is a failure. All of these need root.
fn found(name: &str) -> Option<PathBuf> {
    let path = ["/usr/sbin", "/usr/bin"]
        .iter()
        .map(|dir| Path::new(dir).join(name))
        .find(|path| path.exists());
    let here = path.is_some() && fingerpost_testing::is_root();
    let needs = format_args!("{name}, as root: tests/install-tools");
    path.filter(|_| fingerpost_testing::can(here, needs))
}

/// Ports that are free now.
fn free_ports(n: usize) -> Vec<u16> {
    let held: Vec<TcpListener> = (0..n)
        .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
        .collect();
    held.iter()
        .map(|l| l.local_addr().unwrap().port())
        .collect()
}

/// A child that is ended when it goes out of scope.
struct Daemon(Child);

impl Daemon {
    fn start(command: &mut Command, log: &Path) -> Daemon {
        let file = std::fs::File::create(log).unwrap();
        Daemon(
            command
                .stdin(Stdio::null())
                .stdout(file.try_clone().unwrap())
                .stderr(file)
                .spawn()
                .unwrap(),
        )
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An OpenSSH server on 127.0.0.1 with throw-away keys.
pub struct Sshd {
    dir: PathBuf,
    port: u16,
    _daemon: Daemon,
}

impl Sshd {
    pub fn start(home: &Path) -> Option<Sshd> {
        let sshd = found("sshd")?;
        let dir = home.join("sshd");
        std::fs::create_dir_all(dir.join("tmp")).unwrap();
        // Debian's start script makes it; sshd refuses to start without.
        if !Path::new("/run/sshd").exists() {
            std::fs::create_dir("/run/sshd").unwrap();
        }
        for key in ["host", "user"] {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(dir.join(key))
                .status()
                .unwrap();
            assert!(made.success());
        }
        let port = free_ports(1)[0];
        let at = |name: &str| dir.join(name).display().to_string();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nPidFile none\nAuthorizedKeysFile {}\nStrictModes no\n\
             UsePAM no\n\
            PermitRootLogin prohibit-password\nPasswordAuthentication no\nSetEnv TMPDIR={}\n",
            at("host"),
            at("user.pub"),
            at("tmp")
        );
        std::fs::write(dir.join("sshd_config"), config).unwrap();
        let mut command = Command::new(sshd);
        command
            .args(["-D", "-e", "-f"])
            .arg(dir.join("sshd_config"));
        let daemon = Daemon::start(&mut command, &dir.join("log"));
        until("sshd listens", || {
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        Some(Sshd {
            dir,
            port,
            _daemon: daemon,
        })
    }

    /// Writes the client's configuration: hosts that are this server, and hosts where nobody listens.
    pub fn config(&self, hosts: &[&str], dead: &[&str]) {
        let closed = free_ports(1)[0];
        let host = |name: &&str, port: u16| {
            format!("Host {name}\n  HostName 127.0.0.1\n  HostKeyAlias {name}\n  Port {port}\n")
        };
        let mut text: String = hosts
            .iter()
            .map(|name| host(name, self.port))
            .chain(dead.iter().map(|name| host(name, closed)))
            .collect();
        text += &format!(
            "Host *\n  User root\n  IdentitiesOnly yes\n  IdentityFile {0}/user\n  UserKnownHostsFile {0}/known\n  \
             StrictHostKeyChecking accept-new\n",
            self.dir.display()
        );
        std::fs::write(self.config_path(), text).unwrap();
    }

    pub fn config_path(&self) -> PathBuf {
        self.dir.join("config")
    }

    /// The temporary directory of what runs on the hosts.
    pub fn remote_tmp(&self) -> PathBuf {
        self.dir.join("tmp")
    }
}

/// One slurmctld and several slurmd on this machine, in the foreground.
pub struct SlurmCluster {
    conf: PathBuf,
    nodes: Vec<Option<Daemon>>,
    _others: Vec<Daemon>,
}

impl SlurmCluster {
    pub fn start(home: &Path, count: usize) -> Option<SlurmCluster> {
        let (munged, ctld, slurmd) = (found("munged")?, found("slurmctld")?, found("slurmd")?);
        let dir = home.join("slurm");
        std::fs::create_dir_all(dir.join("state")).unwrap();
        let conf = dir.join("slurm.conf");
        std::fs::write(&conf, configuration(&dir, count)).unwrap();
        let key: Vec<u8> = (0..128)
            .map(|_| 0)
            .map(|_: u8| std::time::UNIX_EPOCH.elapsed().unwrap().subsec_nanos() as u8)
            .collect();
        std::fs::write(dir.join("key"), key).unwrap();
        std::fs::set_permissions(
            dir.join("key"),
            std::os::unix::fs::PermissionsExt::from_mode(0o600),
        )
        .unwrap();
        let at = |name: &str| dir.join(name).display().to_string();
        let mut command = Command::new(munged);
        command.args(["--foreground", "--force"]).args([
            format!("--socket={}", at("munge.sock")),
            format!("--key-file={}", at("key")),
            format!("--pid-file={}", at("munge.pid")),
            format!("--log-file={}", at("munge.log")),
            format!("--seed-file={}", at("munge.seed")),
        ]);
        let mut others = vec![Daemon::start(&mut command, &dir.join("munge.out"))];
        until("munged listens", || dir.join("munge.sock").exists());
        others.push(Daemon::start(
            Command::new(ctld).arg("-D").env("SLURM_CONF", &conf),
            &dir.join("ctld.out"),
        ));
        let node = |n: usize| {
            let mut command = Command::new(&slurmd);
            command
                .args(["-D", "-N", &format!("n{n}")])
                .env("SLURM_CONF", &conf);
            Some(Daemon::start(&mut command, &dir.join(format!("n{n}.out"))))
        };
        let cluster = SlurmCluster {
            nodes: (1..=count).map(node).collect(),
            conf,
            _others: others,
        };
        until("all nodes are idle", || {
            (1..=count).all(|n| cluster.state(n) == "idle")
        });
        Some(cluster)
    }

    pub fn conf(&self) -> &Path {
        &self.conf
    }

    fn says(&self, program: &str, words: &[&str]) -> String {
        let output = Command::new(program)
            .args(words)
            .env("SLURM_CONF", &self.conf)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Slurm's word for a node's state.
    pub fn state(&self, node: usize) -> String {
        self.says("sinfo", &["-h", "-n", &format!("n{node}"), "-o", "%T"])
    }

    /// Ends a node's daemon, and tells Slurm, which would find out by itself half a minute later.
    pub fn stop_node(&mut self, node: usize) {
        self.nodes[node - 1] = None;
        self.says(
            "scontrol",
            &[
                "update",
                &format!("NodeName=n{node}"),
                "State=DOWN",
                "Reason=stopped",
            ],
        );
    }

    /// Submits a job that waits, on one node, and gives its id.
    pub fn submit(&self, node: usize) -> String {
        self.says(
            "sbatch",
            &[
                "--parsable",
                "-o",
                "/dev/null",
                &format!("--nodelist=n{node}"),
                "--wrap",
                "sleep 600",
            ],
        )
    }

    /// Submits a job that takes a node from those of lower priority, for so many seconds, and gives its id.
    pub fn submit_urgent(&self, node: usize, seconds: u32) -> String {
        let (node, wrap) = (format!("--nodelist=n{node}"), format!("sleep {seconds}"));
        self.says(
            "sbatch",
            &[
                "--parsable",
                "-o",
                "/dev/null",
                "-p",
                "urgent",
                "--exclusive",
                &node,
                "--wrap",
                &wrap,
            ],
        )
    }

    /// Submits a script that lies in a directory, there, and gives the job's id.
    pub fn submit_script(&self, dir: &Path, script: &str) -> String {
        let output = Command::new("sbatch")
            .args(["--parsable", script])
            .current_dir(dir)
            .env("SLURM_CONF", &self.conf)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Slurm's word for a job's state; nothing for one that has ended.
    pub fn job_state(&self, job: &str) -> String {
        let jobs = self.says("squeue", &["-h", "-o", "%i %T"]);
        jobs.lines()
            .find_map(|line| line.strip_prefix(job)?.strip_prefix(' '))
            .unwrap_or_default()
            .to_owned()
    }

    /// The steps that run.
    pub fn steps(&self) -> Vec<String> {
        self.says("squeue", &["-h", "-s", "-o", "%i"])
            .lines()
            .map(str::to_owned)
            .collect()
    }

    /// Lets a job that waits for its time begin.
    pub fn start_now(&self, job: &str) {
        self.says(
            "scontrol",
            &["update", &format!("JobId={job}"), "StartTime=now"],
        );
    }

    /// Whether the job was put into the queue again once. Its log does not always say so: on a busy node it is ended
    /// before it can.
    pub fn requeued(&self, job: &str) -> bool {
        self.says("scontrol", &["show", "job", job])
            .contains("Restarts=1 ")
    }

    /// The jobs that run, by id.
    pub fn running_jobs(&self) -> Vec<String> {
        self.says("squeue", &["-h", "-t", "RUNNING", "-o", "%i"])
            .lines()
            .map(str::to_owned)
            .collect()
    }

    /// Slurm's word for why a node is as it is.
    pub fn reason(&self, node: usize) -> String {
        self.says("sinfo", &["-h", "-n", &format!("n{node}"), "-o", "%E"])
    }
}

impl Drop for SlurmCluster {
    fn drop(&mut self) {
        // What jobs still run are ended by their nodes before those are.
        let jobs = self.says("squeue", &["-h", "-o", "%i"]);
        for job in jobs.lines() {
            self.says("scancel", &["--signal=KILL", "--full", job]);
            self.says("scancel", &[job]);
        }
        let ended = || self.says("squeue", &["-h", "-o", "%i"]).is_empty();
        let began = std::time::Instant::now();
        while !ended() && began.elapsed() < std::time::Duration::from_secs(60) {
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}

fn configuration(dir: &Path, count: usize) -> String {
    let host = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .split('.')
        .next()
        .unwrap()
        .to_owned();
    let ports = free_ports(count + 1);
    let dir = dir.display();
    let mut text = format!(
        "ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser=root\nSlurmdUser=root\nAuthType=auth/munge\n\
        AuthInfo=socket={dir}/munge.sock\nCredType=cred/munge\nSlurmctldPort={}\nStateSaveLocation={dir}/state\n\
         SlurmdSpoolDir={dir}/%n\n\
        SlurmctldPidFile={dir}/ctld.pid\nSlurmdPidFile={dir}/%n.pid\nSlurmctldLogFile={dir}/ctld.log\n\
         SlurmdLogFile={dir}/%n.log\n\
        ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSelectType=select/linear\n\
         SlurmdParameters=config_overrides\n\
        ReturnToService=2\nMpiDefault=none\nSwitchType=switch/none\nSlurmdTimeout=5\nKillWait=2\n\
        PreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\n\
        PartitionName=all Nodes=n[1-{count}] Default=YES MaxTime=INFINITE PriorityTier=1 State=UP\n\
        PartitionName=urgent Nodes=n[1-{count}] MaxTime=INFINITE PriorityTier=2 State=UP\n",
        ports[0]
    );
    for (n, port) in ports[1..].iter().enumerate() {
        let n = n + 1;
        text += &format!(
            "NodeName=n{n} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1 RealMemory=100 State=UNKNOWN\n"
        );
    }
    text
}
