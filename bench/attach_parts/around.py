"""What troubles a server from outside: neighbours, control groups with limits, sessions that hold locks. All of it ends
with its block."""

import contextlib
import os
import pathlib
import subprocess
import sys
import time

from follow_parts.common import Failed

from .loads import find

MEBIBYTE = 1 << 20


def tasks(pid):
    """A process with its children and theirs."""
    found = [pid]
    for one in found:
        for children in pathlib.Path(f"/proc/{one}/task").glob("*/children"):
            with contextlib.suppress(OSError):
                found += [int(n) for n in children.read_text().split()]
    return found


class Group:
    """A control group of either version, with processes and limits."""

    def __init__(self, name, controller):
        self.controller = controller
        if pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists():
            self.version, self.dir = 2, pathlib.Path(f"/sys/fs/cgroup/{name}")
        else:
            self.version, self.dir = 1, pathlib.Path(f"/sys/fs/cgroup/{controller}/{name}")

    def __enter__(self):
        if self.version == 2:
            root = pathlib.Path("/sys/fs/cgroup/cgroup.subtree_control")
            if self.controller not in root.read_text().split():
                root.write_text(f"+{self.controller}")
        self.dir.mkdir(exist_ok=True)
        return self

    def take(self, *pids):
        for pid in pids:
            for one in tasks(pid):
                with contextlib.suppress(ProcessLookupError):
                    (self.dir / "cgroup.procs").write_text(str(one))

    def quota(self, cpus):
        if self.version == 2:
            (self.dir / "cpu.max").write_text(f"{int(cpus * 100_000)} 100000")
        else:
            (self.dir / "cpu.cfs_period_us").write_text("100000")
            (self.dir / "cpu.cfs_quota_us").write_text(str(int(cpus * 100_000)))

    def memory(self, limit):
        (self.dir / ("memory.max" if self.version == 2 else "memory.limit_in_bytes")).write_text(str(limit))

    def __exit__(self, *_):
        above = self.dir.parent / "cgroup.procs"
        end = time.time() + 10
        while True:
            for pid in (self.dir / "cgroup.procs").read_text().split():
                with contextlib.suppress(OSError):
                    above.write_text(pid)
            try:
                return self.dir.rmdir()
            except OSError:
                if time.time() > end:
                    raise Failed(f"the control group {self.dir} stays") from None
                time.sleep(0.05)


@contextlib.contextmanager
def running(*commands, group=None, **options):
    """Processes beside the server, killed with all that they started at the end."""
    started = []
    try:
        for command in commands:
            started.append(subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                            start_new_session=True, **options))
            if group:
                group.take(started[-1].pid)
        yield started
        ended = [process.args[0] for process in started if process.poll() is not None]
        if ended:
            raise Failed(f"{ended[0]} ended by itself: there was no trouble")
    finally:
        for process in started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, 9)
            process.wait()


def burning(program, processes):
    """Programs that compute and write nothing: a name each that no server has."""
    return [[find(program), *(["-c"] if program == "gzip" else []), "/dev/zero"]] * processes


def writing(directory, name="neighbour"):
    """dd without end: a megabyte at a time through to the disk, as a backup or a copy does it."""
    loop = 'while :; do dd if=/dev/zero of="$1" bs=1M count=256 oflag=direct conv=notrunc; done'
    return ["sh", "-c", loop, "sh", f"{directory}/{name}"]


def evict(directory):
    """Takes files out of the page cache: whoever reads them next has them charged to its group."""
    for path in pathlib.Path(directory).iterdir():
        with open(path, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def holding_memory(bytes_held):
    """A process that holds so much memory and touches all of it again and again."""
    text = f"b = bytearray({bytes_held})\nwhile True:\n    for i in range(0, len(b), 4096): b[i] = 1\n"
    return [sys.executable, "-c", text]


def locking(engine, session, held, pause):
    """A session of the database that takes a table for so long, again and again."""
    if engine == "mariadb":
        text = f"lock tables sbtest1 write; do sleep({held}); unlock tables; do sleep({pause});\n"
    else:
        text = (f"begin; lock table pgbench_accounts in access exclusive mode; select pg_sleep({held}); commit; "
                f"select pg_sleep({pause});\n")
    return ["sh", "-c", 'text=$1; shift; while :; do printf "%s" "$text"; done | "$@"', "sh", text, *session]
