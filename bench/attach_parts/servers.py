"""Servers as their packages run them, on free ports with data in a temporary directory, and the tools that load them.

Each is a context manager that yields what is started: its process, and a function that loads it for so many seconds and tells the
requests, and the 50th and 99th percentile of the latency in seconds where the tool tells them.
"""

import contextlib
import dataclasses
import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from follow_parts.common import Failed  # noqa: E402
from follow_parts.server import free_port  # noqa: E402

PATHS = os.environ["PATH"] + ":/usr/sbin:/usr/local/sbin"
SECONDS_TO_START = 60
CONNECTIONS = 4
# Requests a second of a steady load: far below what any of them can do, so that events that cost a request a little do not lower its rate.
STEADY = 400


@dataclasses.dataclass
class Load:
    """What a tool told."""

    requests: float
    seconds: float
    p50: float | None = None
    p99: float | None = None


@dataclasses.dataclass
class Started:
    pid: int
    load: object
    port: int = 0


def find(name):
    """A program, or Failed."""
    extra = ":".join(str(p) for p in sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), reverse=True))
    extra += "".join(f":{p}" for p in sorted(pathlib.Path("/usr/lib/jvm").glob("*/bin"), reverse=True))
    program = shutil.which(name, path=f"{PATHS}:{extra}")
    if not program:
        raise Failed(f"{name} is not installed")
    return program


def until(what, holds, process):
    end = time.time() + SECONDS_TO_START
    while not holds():
        if time.time() > end or process.poll() is not None:
            raise Failed(f"{what} does not answer")
        time.sleep(0.05)


def answers(command):
    return lambda: subprocess.run(command, capture_output=True).returncode == 0


@contextlib.contextmanager
def started(command, ready, what, stop=signal.SIGTERM, **options):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
    try:
        until(what, ready, process)
        yield process
    finally:
        process.send_signal(stop)
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def tool(command, **options):
    result = subprocess.run(command, capture_output=True, text=True, timeout=600, **options)
    if result.returncode:
        raise Failed(f"{command[0]} failed: {(result.stderr or result.stdout).strip()[-300:]}")
    return result.stdout + result.stderr


UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0}


def span(text):
    number, unit = re.fullmatch(r"([\d.]+)(us|ms|s|m)", text).groups()
    return float(number) * UNITS[unit]


def wrk(url, keep_alive=True):
    def load(seconds, steady=False):
        header = [] if keep_alive else ["-H", "Connection: close"]
        with tempfile.TemporaryDirectory() as work:
            script = pathlib.Path(f"{work}/pause.lua")
            script.write_text(f"function delay() return {1000 * CONNECTIONS // STEADY} end\n")
            pauses = ["-s", str(script)] if steady else []
            out = tool([find("wrk"), "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "--latency", *pauses, *header, url])
        count, took = re.search(r"(\d+) requests in ([\d.]+\w+)", out).groups()
        p50, p99 = (span(re.search(rf"{p}%\s+([\d.]+\w+)", out)[1]) for p in (50, 99))
        return Load(float(count), span(took), p50, p99)
    return load


@contextlib.contextmanager
def nginx(keep_alive=True):
    with tempfile.TemporaryDirectory() as work:
        port = free_port()
        pathlib.Path(f"{work}/html").mkdir()
        pathlib.Path(f"{work}/html/f").write_bytes(bytes(1024))
        pathlib.Path(f"{work}/nginx.conf").write_text(
            f"worker_processes auto; daemon off; pid {work}/pid; error_log {work}/log; user {pwd.getpwuid(os.getuid()).pw_name};\n"
            f"events {{ worker_connections 768; }}\n"
            f"http {{ access_log {work}/access; sendfile on; keepalive_requests 1000000000; server {{ listen 127.0.0.1:{port}; root {work}/html; }} }}\n")
        url = f"http://127.0.0.1:{port}/f"
        command = [find("nginx"), "-p", work, "-c", f"{work}/nginx.conf"]
        with started(command, answers(["curl", "-sf", "-o", "/dev/null", url]), "nginx") as process:
            yield Started(process.pid, wrk(url, keep_alive), port)


@contextlib.contextmanager
def apache():
    modules = pathlib.Path("/usr/lib/apache2/modules")
    with tempfile.TemporaryDirectory() as work:
        port = free_port()
        pathlib.Path(f"{work}/html").mkdir()
        pathlib.Path(f"{work}/html/f").write_bytes(bytes(1024))
        os.chmod(work, 0o755)
        load = "".join(f"LoadModule {m}_module {modules}/mod_{m}.so\n" for m in ("mpm_event", "authz_core", "mime") if (modules / f"mod_{m}.so").exists())
        pathlib.Path(f"{work}/apache.conf").write_text(
            f"{load}ServerName localhost\nListen 127.0.0.1:{port}\nPidFile {work}/pid\nErrorLog {work}/log\nDocumentRoot {work}/html\nTypesConfig /dev/null\n"
            f"User www-data\nGroup www-data\nKeepAlive On\nMaxKeepAliveRequests 0\n")
        url = f"http://127.0.0.1:{port}/f"
        command = [find("apache2"), "-f", f"{work}/apache.conf", "-DFOREGROUND"]
        with started(command, answers(["curl", "-sf", "-o", "/dev/null", url]), "apache2") as process:
            yield Started(process.pid, wrk(url))


@contextlib.contextmanager
def mariadb():
    with tempfile.TemporaryDirectory() as work:
        port, user = free_port(), pwd.getpwuid(os.getuid()).pw_name
        data, socket = f"{work}/data", f"{work}/s"
        tool([find("mariadb-install-db"), "--no-defaults", f"--datadir={data}", f"--user={user}", "--auth-root-authentication-method=normal", "--skip-test-db"])
        command = [find("mariadbd"), "--no-defaults", f"--datadir={data}", f"--socket={socket}", f"--port={port}", "--bind-address=127.0.0.1", f"--user={user}",
                   f"--pid-file={work}/pid", "--skip-name-resolve"]
        client = [find("mariadb"), "--no-defaults", f"--socket={socket}", "-uroot"]
        with started(command, answers([*client, "-e", "select 1"]), "mariadbd") as process:
            tool([*client, "-e", "create database sbtest; create user sb@'127.0.0.1'; grant all on sbtest.* to sb@'127.0.0.1'"])
            sysbench = [find("sysbench"), "oltp_point_select", f"--mysql-host=127.0.0.1", f"--mysql-port={port}", "--mysql-user=sb", "--tables=1",
                        "--table-size=10000", f"--threads={CONNECTIONS}", "--db-ps-mode=disable"]
            tool([*sysbench, "prepare"])

            def load(seconds, steady=False):
                out = tool([*sysbench, f"--time={seconds}", "--percentile=99", *([f"--rate={STEADY}"] if steady else []), "run"])
                count = float(re.search(r"total:\s+(\d+)", out)[1])
                took = float(re.search(r"total time:\s+([\d.]+)s", out)[1])
                p99 = float(re.search(r"99th percentile:\s+([\d.]+)", out)[1]) * 1e-3
                return Load(count, took, None, p99)
            yield Started(process.pid, load)


@contextlib.contextmanager
def postgresql():
    with tempfile.TemporaryDirectory() as work:
        port, data = free_port(), f"{work}/data"
        account = pwd.getpwnam("postgres") if os.geteuid() == 0 else pwd.getpwuid(os.getuid())
        options = {"user": account.pw_uid, "group": account.pw_gid, "cwd": "/"} if os.geteuid() == 0 else {}
        os.chmod(work, 0o755)
        os.mkdir(data, 0o700)
        os.chown(data, account.pw_uid, account.pw_gid)
        tool([find("initdb"), "-D", data, "-A", "trust", "-U", "bench"], **options)
        command = [find("postgres"), "-D", data, "-p", str(port), "-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={data}"]
        where = ["-h", "127.0.0.1", "-p", str(port), "-U", "bench"]
        with started(command, answers([find("pg_isready"), *where]), "postgres", stop=signal.SIGINT, **options) as process:
            tool([find("pgbench"), *where, "-i", "-q", "postgres"])

            def load(seconds, steady=False):
                log = tempfile.mkdtemp()
                rate = [f"-R{STEADY}"] if steady else []
                out = tool([find("pgbench"), *where, "-S", "-n", f"-c{CONNECTIONS}", "-j1", f"-T{seconds}", *rate, "-l", f"--log-prefix={log}/l", "postgres"])
                count = float(re.search(r"actually processed: (\d+)", out)[1])
                times = sorted(float(line.split()[2]) * 1e-6 for f in pathlib.Path(log).iterdir() for line in f.read_text().splitlines())
                shutil.rmtree(log)
                return Load(count, float(seconds), times[len(times) // 2], times[len(times) * 99 // 100])
            yield Started(process.pid, load)


@contextlib.contextmanager
def redis():
    with tempfile.TemporaryDirectory() as work:
        port = free_port()
        ping = answers([find("redis-cli"), "-p", str(port), "ping"])
        with started([find("redis-server"), "--port", str(port), "--dir", work, "--save", "900 1"], ping, "redis-server") as process:
            def load(seconds, steady=False):
                if steady:
                    count, begun = STEADY // CONNECTIONS * seconds, time.time()
                    asks = [subprocess.Popen([find("redis-cli"), "-p", str(port), "-r", str(count), "-i", str(CONNECTIONS / STEADY), "get", "k"],
                                             stdout=subprocess.DEVNULL) for _ in range(CONNECTIONS)]
                    if any(ask.wait() for ask in asks):
                        raise Failed("redis-cli failed")
                    return Load(count * CONNECTIONS, time.time() - begun)

                # It takes a number of requests and no time: as many as a short look says.
                def bench(n):
                    begun = time.time()
                    out = tool([find("redis-benchmark"), "-p", str(port), "-c", str(CONNECTIONS), "-n", str(int(n)), "-t", "get", "--precision", "3"])
                    return out, time.time() - begun
                _, took = bench(20_000)
                n = max(20_000, 20_000 / took * seconds)
                out, took = bench(n)
                # avg min p50 p95 p99 max, in milliseconds
                values = re.findall(r"^\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s*$", out, re.M)
                p50, p99 = (float(values[-1][i]) * 1e-3 for i in (2, 4)) if values else (None, None)
                return Load(int(n), took, p50, p99)
            yield Started(process.pid, load)


@contextlib.contextmanager
def memcached():
    port = free_port()
    user = ["-u", pwd.getpwuid(os.getuid()).pw_name]
    ping = answers(["bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{port}"])
    with started([find("memcached"), "-l", "127.0.0.1", "-p", str(port), *user], ping, "memcached") as process:
        def load(seconds, steady=False):
            if steady:
                raise Failed("memcslap has no steady load")
            program, total, begun = find("memcslap"), 0, time.time()
            each = 5_000
            while time.time() - begun < seconds:
                tool([program, f"--servers=127.0.0.1:{port}", f"--concurrency={CONNECTIONS}", f"--execute-number={each}", "--test=get", "--initial-load=100"])
                total += each * CONNECTIONS
            return Load(total, time.time() - begun)
        yield Started(process.pid, load)


@contextlib.contextmanager
def proxy():
    """nginx before another nginx."""
    with nginx() as backend, tempfile.TemporaryDirectory() as work:
        port = free_port()
        pathlib.Path(f"{work}/nginx.conf").write_text(
            f"worker_processes auto; daemon off; pid {work}/pid; error_log {work}/log; user {pwd.getpwuid(os.getuid()).pw_name};\n"
            f"events {{ worker_connections 768; }}\n"
            f"http {{ access_log off; keepalive_requests 1000000000; upstream b {{ server 127.0.0.1:{backend.port}; keepalive 16; }}\n"
            f"server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://b; proxy_http_version 1.1; proxy_set_header Connection ''; }} }} }}\n")
        url = f"http://127.0.0.1:{port}/f"
        with started([find("nginx"), "-p", work, "-c", f"{work}/nginx.conf"], answers(["curl", "-sf", "-o", "/dev/null", url]), "nginx") as process:
            yield Started(process.pid, wrk(url))


@contextlib.contextmanager
def http(command):
    """A program that answers HTTP at the port that stands in its words."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/"
    with started([find(command[0]), *(word.format(port=port) for word in command[1:])], answers(["curl", "-sf", "-o", "/dev/null", url]), command[0]) as process:
        yield Started(process.pid, wrk(url))


NODE = "require('http').createServer((q, a) => a.end('answered')).listen({port}, '127.0.0.1')"
SERVERS = {
    "nginx before nginx": proxy,
    "gunicorn": lambda: http(["gunicorn", "-w2", "-b127.0.0.1:{port}", "wsgiref.simple_server:demo_app"]),
    "node": lambda: http(["node", "-e", NODE]),
    "java": lambda: http(["jwebserver", "-b", "127.0.0.1", "-p", "{port}", "-d", "/usr/share/doc/bash", "-o", "none"]),
    "nginx": nginx,
    "nginx without keep-alive": lambda: nginx(keep_alive=False),
    "apache": apache,
    "mariadb": mariadb,
    "postgresql": postgresql,
    "redis": redis,
    "memcached": memcached,
}


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
