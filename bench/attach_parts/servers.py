"""Ten servers as their packages run them, on free ports with data in a temporary directory, and the tools that load
them.

Each is a context manager that yields what is started. It has two loads: `light`, of requests that cost the server as
little as any, and `heavy`, of requests that keep the server for a millisecond and more, so that its own latency and the
client's are the same but for a few per cent. Both ask as fast as they are answered.
"""

import contextlib
import dataclasses
import os
import pathlib
import pwd
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from follow_parts.common import Failed  # noqa: E402
from follow_parts.server import free_port  # noqa: E402

from . import loads  # noqa: E402
from .loads import find, tool, wrk  # noqa: E402

SECONDS_TO_START = 60
# Text that takes a millisecond or two to compress.
TEXT_BYTES = 64 << 10
GZIP = "Accept-Encoding: gzip"
HERE = pathlib.Path(__file__).resolve().parent


@dataclasses.dataclass
class Started:
    """A server that answers."""

    pid: int
    port: int
    light: object
    heavy: object
    # Its data, for a neighbour that writes on the same disk.
    data: str = "/var/tmp"
    # A load with pauses, of so many milliseconds: nothing is scarce.
    calm: object = None
    # Loads with one slow request in a hundred, whose requests wait for the disk, and for pages of files; of those that
    # have such.
    mixed: object = None
    committing: object = None
    reading: object = None
    # Connects as a client and runs statements there: of databases.
    session: object = None
    # Another service that it asks.
    backend: object = None


def text():
    found = b"".join(p.read_bytes() for p in sorted(pathlib.Path("/usr/share/common-licenses").iterdir())
                     if p.is_file())
    return (found * (TEXT_BYTES // len(found) + 1))[:TEXT_BYTES]


def until(what, holds, process):
    end = time.time() + SECONDS_TO_START
    while not holds():
        if time.time() > end or process.poll() is not None:
            raise Failed(f"{what} does not answer")
        time.sleep(0.05)


def answers(command):
    return lambda: subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def serves(url):
    return answers(["curl", "-sf", "-o", "/dev/null", url])


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


def own_name():
    return pwd.getpwuid(os.getuid()).pw_name


@contextlib.contextmanager
def pages():
    """A directory with a small file, and text."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as work:
        os.chmod(work, 0o755)
        html = pathlib.Path(f"{work}/html")
        html.mkdir()
        (html / "f").write_bytes(bytes(1024))
        (html / "text.txt").write_bytes(text())
        yield work


def nginx_conf(work, port, server, http=""):
    """With one worker: of two, one gets three of four connections in some runs, and the median lies between two kinds
    of requests."""
    path = pathlib.Path(f"{work}/nginx-{port}.conf")
    path.write_text(
        f"worker_processes 1; daemon off; pid {work}/pid-{port}; error_log {work}/log; user {own_name()};\n"
        f"events {{ worker_connections 768; }}\n"
        f"http {{ access_log {work}/access-{port}; sendfile on; keepalive_requests 1000000000; "
        f"types {{ text/plain txt; }} {http}\n"
        f"server {{ listen 127.0.0.1:{port}; {server} }} }}\n")
    return [find("nginx"), "-p", work, "-c", str(path)]


# Files of a megabyte for loads that read many.
BIG_FILES = 200


def of_web(process, port, light, heavy, **more):
    """A server of HTTP, with a small answer at one path and compressed text at another."""
    url = f"http://127.0.0.1:{port}"
    return Started(process.pid, port, wrk(url + light), wrk(url + heavy, GZIP),
                   calm=lambda ms: loads.calm(url + light, ms),
                   mixed=loads.mixed(url + light, url + heavy, GZIP), **more)


def reading(work, port):
    """A load that reads many files, which it makes first."""
    def load(seconds):
        big = pathlib.Path(f"{work}/html/big")
        if not big.exists():
            big.mkdir()
            for n in range(1, BIG_FILES + 1):
                (big / str(n)).write_bytes(os.urandom(1 << 20))
            os.sync()
        return loads.many(f"http://127.0.0.1:{port}/f", BIG_FILES)(seconds)
    return load


@contextlib.contextmanager
def nginx():
    with pages() as work:
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        command = nginx_conf(work, port, f"root {work}/html; gzip on; gzip_types text/plain; gzip_comp_level 6;")
        with started(command, serves(f"{url}/f"), "nginx") as process:
            yield of_web(process, port, "/f", "/text.txt", data=work, reading=reading(work, port))


@contextlib.contextmanager
def proxy():
    """nginx before another nginx, that compresses; nobody compresses for the light load."""
    with nginx() as backend, pages() as work:
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        command = nginx_conf(work, port, "location / { proxy_pass http://b; proxy_http_version 1.1; "
                             "proxy_set_header Connection ''; gzip_proxied any; }",
                             f"upstream b {{ server 127.0.0.1:{backend.port}; keepalive 16; }}")
        with started(command, serves(f"{url}/f"), "nginx") as process:
            yield of_web(process, port, "/f", "/text.txt", backend=backend)


@contextlib.contextmanager
def apache():
    modules = pathlib.Path("/usr/lib/apache2/modules")
    with pages() as work:
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        wanted = ("mpm_event", "authz_core", "mime", "filter", "deflate")
        load = "".join(f"LoadModule {m}_module {modules}/mod_{m}.so\n" for m in wanted
                       if (modules / f"mod_{m}.so").exists())
        pathlib.Path(f"{work}/apache.conf").write_text(
            f"{load}ServerName localhost\nListen 127.0.0.1:{port}\nPidFile {work}/pid\nErrorLog {work}/log\n"
            f"DocumentRoot {work}/html\n"
            f"TypesConfig /etc/mime.types\nAddType text/plain .txt\nAddOutputFilterByType DEFLATE text/plain\n"
            f"User www-data\nGroup www-data\nKeepAlive On\nMaxKeepAliveRequests 0\n")
        command = [find("apache2"), "-f", f"{work}/apache.conf", "-DFOREGROUND"]
        with started(command, serves(f"{url}/f"), "apache2") as process:
            yield of_web(process, port, "/f", "/text.txt", data=work, reading=reading(work, port))


@contextlib.contextmanager
def mariadb():
    with tempfile.TemporaryDirectory(dir="/var/tmp") as work:
        port, user, data, socket = free_port(), own_name(), f"{work}/data", f"{work}/s"
        tool([find("mariadb-install-db"), "--no-defaults", f"--datadir={data}", f"--user={user}",
              "--auth-root-authentication-method=normal", "--skip-test-db"])
        command = [find("mariadbd"), "--no-defaults", f"--datadir={data}", f"--socket={socket}", f"--port={port}",
                   "--bind-address=127.0.0.1", f"--user={user}",
                   f"--pid-file={work}/pid", "--skip-name-resolve", "--max-connections=600"]
        client = [find("mariadb"), "--no-defaults", f"--socket={socket}", "-uroot"]
        with started(command, answers([*client, "-e", "select 1"]), "mariadbd") as process:
            tool([*client, "-e", "create database sbtest; create user sb@'127.0.0.1'; "
                  "grant all on sbtest.* to sb@'127.0.0.1'"])
            point, light = loads.sysbench(port, "oltp_point_select")
            tool([*point, "prepare"])
            _, heavy = loads.sysbench(port, "select_random_ranges", "--number-of-ranges=800", "--delta=500")
            _, committing = loads.sysbench(port, "oltp_update_index")
            def calm(ms):
                return loads.sysbench(port, "oltp_point_select", f"--rate={1000 * loads.CONNECTIONS // ms}")[1]
            yield Started(process.pid, port, light, heavy, data=data, calm=calm, committing=committing,
                          session=[*client, "sbtest"])


@contextlib.contextmanager
def postgresql():
    with tempfile.TemporaryDirectory(dir="/var/tmp") as work:
        port, data = free_port(), f"{work}/data"
        account = pwd.getpwnam("postgres") if os.geteuid() == 0 else pwd.getpwuid(os.getuid())
        options = {"user": account.pw_uid, "group": account.pw_gid, "cwd": "/"} if os.geteuid() == 0 else {}
        os.chmod(work, 0o755)
        os.mkdir(data, 0o700)
        os.chown(data, account.pw_uid, account.pw_gid)
        tool([find("initdb"), "-D", data, "-A", "trust", "-U", "bench"], **options)
        command = [find("postgres"), "-D", data, "-p", str(port), "-c", "listen_addresses=127.0.0.1",
                   "-c", f"unix_socket_directories={data}"]
        where = ["-h", "127.0.0.1", "-p", str(port), "-U", "bench"]
        with started(command, answers([find("pg_isready"), *where]), "postgres", stop=signal.SIGINT,
                     **options) as process:
            tool([find("pgbench"), *where, "-i", "-q", "postgres"])
            pick = "\\set a random(1, 90000)\n"
            light = loads.pgbench(where, f"{pick}select abalance from pgbench_accounts where aid = :a;\n")
            heavy = loads.pgbench(
                where, f"{pick}select sum(abalance) from pgbench_accounts where aid between :a and :a + 5000;\n")
            committing = loads.pgbench(
                where, f"{pick}update pgbench_accounts set abalance = abalance + 1 where aid = :a;\n")
            quick, slow = (f"{pick}select abalance from pgbench_accounts where aid = :a;\n",
                           "select sum(abalance * (abalance + aid)) from pgbench_accounts;\n")
            yield Started(process.pid, port, light, heavy, data=data,
                          calm=lambda ms: loads.pgbench(where, quick, rate=1000 * loads.CONNECTIONS // ms),
                          mixed=loads.pgbench(where, f"{quick}@99", f"{slow}@1"), committing=committing,
                          session=[find("psql"), *where, "-q", "postgres"])


@contextlib.contextmanager
def redis():
    with tempfile.TemporaryDirectory(dir="/var/tmp") as work:
        port = free_port()
        client = [find("redis-cli"), "-p", str(port)]
        command = [find("redis-server"), "--port", str(port), "--dir", work, "--save", "900 1", "--appendonly", "yes"]
        with started(command, answers([*client, "ping"]), "redis-server") as process:
            tool([*client, "rpush", "list", *(str(n * 7919 % 1000) for n in range(4000))])
            heavy = loads.redis_benchmark(port, "sort", "list", "limit", "0", "10")
            yield Started(process.pid, port, loads.redis_benchmark(port, "-t", "get"), heavy, data=work,
                          calm=lambda ms: loads.redis_calm(port, ms, "get", "k"),
                          committing=loads.redis_benchmark(port, "-t", "set"), session=client)


@contextlib.contextmanager
def memcached():
    """Asked by nginx's module, which makes one request of each of the load tool's: no tool of the packages tells
    memcached's own latency."""
    port = free_port()
    command = [find("memcached"), "-l", "127.0.0.1", "-p", str(port), "-u", own_name()]
    with started(command, answers(["bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{port}"]),
                 "memcached") as process, pages() as work:
        front = free_port()
        url = f"http://127.0.0.1:{front}/k"
        conf = nginx_conf(work, front,
                          "location / { set $memcached_key $uri; memcached_pass m; default_type text/plain; }",
                          f"upstream m {{ server 127.0.0.1:{port}; keepalive 16; }}")
        store = (f"exec 3<>/dev/tcp/127.0.0.1/{port}; printf 'set /k 0 0 8\\r\\nanswered\\r\\n' >&3; "
                 "read -r line <&3; [[ $line == STORED* ]]")
        tool(["bash", "-c", store])
        with started(conf, serves(url), "nginx before memcached"):
            load = wrk(url, latency=False)
            # No request keeps it for a millisecond: asked with pauses, so that what an event costs lowers no rate.
            yield Started(process.pid, port, load, loads.calm(url, 4), calm=lambda ms: loads.calm(url, ms))


@contextlib.contextmanager
def http(command, environ=None):
    """A program that answers HTTP at the port that stands in its words: a little at /, compressed text elsewhere."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with pages() as work:
        words = [word.replace("{port}", str(port)).replace("{text}", f"{work}/html/text.txt") for word in command[1:]]
        env = {**os.environ, "BENCH_TEXT": f"{work}/html/text.txt", **(environ or {})}
        with started([find(command[0]), *words], serves(f"{url}/"), command[0], env=env, cwd=HERE) as process:
            yield of_web(process, port, "/", "/text.txt")


NODE = ("const z = require('zlib'), t = require('fs').readFileSync('{text}');"
        "require('http').createServer((q, a) => "
        "q.url == '/' ? a.end('answered') : a.end(z.gzipSync(t))).listen({port}, '127.0.0.1')")


@contextlib.contextmanager
def tomcat():
    create = find("tomcat10-instance-create")
    with tempfile.TemporaryDirectory(dir="/var/tmp") as work:
        port, base = free_port(), f"{work}/tomcat"
        tool([create, "-p", str(port), "-c", str(free_port()), base])
        root = pathlib.Path(f"{base}/webapps/ROOT")
        root.mkdir()
        (root / "f").write_bytes(bytes(1024))
        (root / "text.txt").write_bytes(text())
        conf = pathlib.Path(f"{base}/conf/server.xml")
        conf.write_text(conf.read_text().replace(
            f'Connector port="{port}"',
            f'Connector port="{port}" address="127.0.0.1" compression="on" useSendfile="false"'))
        url = f"http://127.0.0.1:{port}"
        env = {**os.environ, "CATALINA_BASE": base, "CATALINA_HOME": "/usr/share/tomcat10"}
        with started(["/usr/share/tomcat10/bin/catalina.sh", "run"], serves(f"{url}/f"), "tomcat", env=env) as process:
            wrk(f"{url}/text.txt", GZIP)(3)  # until its code is compiled
            yield of_web(process, port, "/f", "/text.txt")


SERVERS = {
    "mariadb": mariadb,
    "postgresql": postgresql,
    "nginx": nginx,
    "nginx before nginx": proxy,
    "apache": apache,
    "redis": redis,
    "memcached": memcached,
    "gunicorn": lambda: http(["gunicorn", "-w2", "-b127.0.0.1:{port}", "app:app"]),
    "node": lambda: http(["node", "-e", NODE]),
    "tomcat": tomcat,
}


@contextlib.contextmanager
def before(backend):
    """nginx before a server of HTTP."""
    with backend() as behind, pages() as work:
        port = free_port()
        command = nginx_conf(work, port, "location / { proxy_pass http://b; proxy_http_version 1.1; "
                             "proxy_set_header Connection ''; }",
                             f"upstream b {{ server 127.0.0.1:{behind.port}; keepalive 16; }}")
        with started(command, serves(f"http://127.0.0.1:{port}/"), "nginx") as process:
            yield of_web(process, port, "/", "/text.txt", backend=behind)
