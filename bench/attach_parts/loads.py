"""Tools that load a server, as their packages have them, and what each told: requests, and percentiles of their latency
in seconds."""

import contextlib
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from follow_parts.common import Failed  # noqa: E402

PATHS = os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin"
CONNECTIONS = 4


@dataclasses.dataclass
class Load:
    """What a tool told."""

    requests: float
    seconds: float
    p50: float | None = None
    p99: float | None = None

    @property
    def rate(self):
        return self.requests / self.seconds


def find(name):
    """A program, or Failed. A Debian package's comes before one that a user installed beside it."""
    extra = ":".join(str(p) for p in sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), reverse=True))
    program = shutil.which(name, path=f"/usr/bin:{PATHS}:{extra}")
    if not program:
        raise Failed(f"{name} is not installed")
    return program


def tool(command, **options):
    result = subprocess.run(command, capture_output=True, text=True, timeout=600, **options)
    if result.returncode:
        raise Failed(f"{command[0]} failed: {(result.stderr or result.stdout).strip()[-300:]}")
    return result.stdout + result.stderr


UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}


def span(text):
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s|m)", text).groups()
    return float(number) * UNITS[unit]


def wrk(url, *headers, connections=CONNECTIONS, latency=True):
    """As many requests as are answered, on so many connections."""
    def load(seconds):
        options = [word for header in headers for word in ("-H", header)]
        out = tool([find("wrk"), "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", *options, url])
        count, took = re.search(r"(\d+) requests in ([\d.]+\w+)", out).groups()
        p50, p99 = (span(re.search(rf"{p}%\s+([\d.]+\w+)", out)[1]) for p in (50, 99))
        return Load(float(count), span(took), *((p50, p99) if latency else ()))
    return load


def mixed(url, slow, header):
    """As wrk, and one request in a hundred is for the slow address."""
    def load(seconds):
        with scripted(f"""
            math.randomseed(7)
            local quick, slow = wrk.format("GET", "{path(url)}"), nil
            function request()
                if math.random(100) > 1 then return quick end
                slow = slow or wrk.format("GET", "{path(slow)}",
                    {{["{header.split(': ')[0]}"] = "{header.split(': ')[1]}", Host = wrk.headers["Host"]}})
                return slow
            end""") as script:
            return wrk_with(script, url, seconds)
    return load


def many(url, files):
    """As wrk, from files /big/1 to /big/N at random."""
    def load(seconds):
        with scripted(f"""
            function request() return wrk.format("GET", "/big/" .. math.random({files})) end""") as script:
            return wrk_with(script, url, seconds)
    return load


def calm(url, milliseconds, *headers):
    """As wrk, each connection with a pause of about so long before each request: so that nothing is scarce."""
    def load(seconds):
        with scripted(f"function delay() return {milliseconds // 2} + math.random({milliseconds}) end") as script:
            return wrk_with(script, url, seconds, *headers)
    return load


def path(url):
    return "/" + url.split("/", 3)[3]


@contextlib.contextmanager
def scripted(text):
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(text)
        script.flush()
        yield script.name


def wrk_with(script, url, seconds, *headers):
    options = [word for header in headers for word in ("-H", header)]
    out = tool([find("wrk"), "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "-s", script, *options, url])
    count, took = re.search(r"(\d+) requests in ([\d.]+\w+)", out).groups()
    return Load(float(count), span(took))


def sysbench(port, script, *options, threads=CONNECTIONS):
    """One statement an event."""
    command = [find("sysbench"), script, "--mysql-host=127.0.0.1", f"--mysql-port={port}", "--mysql-user=sb",
               "--tables=1", "--table-size=10000",
               f"--threads={threads}", "--db-ps-mode=disable", *options]

    def load(seconds):
        out = tool([*command, f"--time={seconds}", "--percentile=99", "--histogram=on", "run"])
        count = float(re.search(r"total:\s+(\d+)", out)[1])
        took = float(re.search(r"total time:\s+([\d.]+)s", out)[1])
        # Milliseconds and how many took as long: its printed percentile is a step of this histogram.
        steps = [(float(v) * 1e-3, int(n)) for v, n in re.findall(r"^\s+([\d.]+) \|\**\s*(\d+)$", out, re.M)]
        return Load(count, took, weighted(steps, 0.50), weighted(steps, 0.99))
    return command, load


def weighted(steps, q):
    """The quantile of values that come so often each."""
    wanted, passed = q * sum(n for _, n in steps), 0
    for value, n in sorted(steps):
        passed += n
        if passed >= wanted:
            return value
    return None


def pgbench(where, *scripts, rate=None):
    """One statement a transaction, each with its time in a log. Of several scripts each comes as often as its `@weight`
    says."""
    def load(seconds):
        with tempfile.TemporaryDirectory() as work:
            words = ["-R", str(rate)] if rate else []
            for n, script in enumerate(scripts):
                text, _, weight = script.partition("@")
                pathlib.Path(f"{work}/script{n}").write_text(text)
                words += ["-f", f"{work}/script{n}" + (f"@{weight}" if weight else "")]
            out = tool([find("pgbench"), *where, "-n", *words, f"-c{CONNECTIONS}", "-j1", f"-T{seconds}", "-l",
                        f"--log-prefix={work}/l", "postgres"])
            count = float(re.search(r"actually processed: (\d+)", out)[1])
            lines = [line.split() for f in pathlib.Path(work).glob("l.*") for line in f.read_text().splitlines()]
        times = sorted(float(line[2]) * 1e-6 for line in lines)
        return Load(count, float(seconds), times[len(times) // 2], times[len(times) * 99 // 100])
    return load


def redis_benchmark(port, *words):
    """It takes a number of requests and no time: as many as a short look says."""
    def run(n):
        begun = time.time()
        out = tool([find("redis-benchmark"), "-p", str(port), "-c", str(CONNECTIONS), "-n", str(int(n)),
                    "--precision", "3", *words])
        return out, time.time() - begun

    def load(seconds):
        begun = time.time()
        first = 500
        _, took = run(first)
        n = max(first, first / took * (seconds - took))
        out, took = run(n)
        # A first look may have been slow or quick: the rest of the time is filled.
        more = 0
        while (left := seconds - (time.time() - begun)) > 0.2:
            more += int(max(10, n / took * left))
            run(max(10, n / took * left))
        # avg min p50 p95 p99 max, in milliseconds
        values = re.findall(r"^\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s*$", out, re.M)
        p50, p99 = (float(values[-1][i]) * 1e-3 for i in (2, 4)) if values else (None, None)
        return Load(int(n), took, p50, p99)
    return load


def redis_calm(port, milliseconds, *words):
    """redis-cli on several connections, each with a pause after each answer; it tells no latency."""
    def load(seconds):
        begun, count = time.time(), int(seconds * 1000 / milliseconds)
        asks = [subprocess.Popen([find("redis-cli"), "-p", str(port), "-r", str(count), "-i", str(milliseconds / 1000),
                                  *words], stdout=subprocess.DEVNULL)
                for _ in range(CONNECTIONS)]
        if any([ask.wait() for ask in asks]):
            raise Failed("redis-cli failed")
        return Load(count * CONNECTIONS, time.time() - begun)
    return load


def before_others(load):
    """The same with the tool before all others on the CPUs: what it waits for one itself is in its latencies, and no
    server's."""
    def run(seconds):
        # Of this thread, which the tool inherits it from. A nice value would not do: since Linux 6.6 whoever has the
        # CPU keeps it for a slice of 3 ms, whatever wakes, but for a real-time task
        # (Documentation/scheduler/sched-eevdf.rst).
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        return load(seconds)
    return run


class During(threading.Thread):
    """A load in the background."""

    def __init__(self, load, seconds):
        super().__init__()
        self.work, self.result, self.error = (lambda: load(seconds)), None, None
        self.start()

    def run(self):
        try:
            self.result = self.work()
        except Exception as e:  # told by whoever waits for it
            self.error = e

    def told(self):
        self.join()
        if self.error:
            raise self.error
        return self.result
