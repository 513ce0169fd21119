"""A private nginx under wrk, for the parts that want a load from outside."""

import contextlib
import os
import pathlib
import pwd
import re
import shutil
import socket
import subprocess
import tempfile
import time

from . import common

SECONDS_TO_START = 20
# wrk ends by itself this long after what is measured within it.
SPARE = 2


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def nginx(workers):
    """Its master's process and the address of a file of 1 KiB."""
    program = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
    if not program or not shutil.which("wrk"):
        raise common.Failed("nginx and wrk are needed")
    with tempfile.TemporaryDirectory() as work:
        port = free_port()
        pathlib.Path(f"{work}/html").mkdir()
        pathlib.Path(f"{work}/html/f").write_bytes(bytes(1024))
        user = f"user {pwd.getpwuid(os.getuid()).pw_name};"
        pathlib.Path(f"{work}/nginx.conf").write_text(
            f"worker_processes {workers}; daemon off; pid {work}/pid; error_log {work}/log; {user}\n"
            f"events {{ worker_connections 2048; }}\n"
            f"http {{ access_log off; sendfile on; keepalive_requests 1000000000; "
            f"server {{ listen 127.0.0.1:{port}; root {work}/html; }} }}\n")
        server = subprocess.Popen([program, "-p", work, "-c", f"{work}/nginx.conf"], stderr=subprocess.DEVNULL)
        try:
            end = time.time() + SECONDS_TO_START
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    if time.time() > end or server.poll() is not None:
                        raise common.Failed("nginx does not answer") from None
                    time.sleep(0.02)
            yield server.pid, f"http://127.0.0.1:{port}/f"
        finally:
            server.terminate()
            server.wait()


def workers(master):
    """Its worker processes."""
    return [int(p) for p in open(f"/proc/{master}/task/{master}/children").read().split()]


class Wrk:
    """A load for so long."""

    def __init__(self, url, connections, seconds, keep_alive=True):
        header = [] if keep_alive else ["-H", "Connection: close"]
        self.process = subprocess.Popen(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", *header, url],
                                        stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid

    def rate(self):
        """Requests a second, once it has ended."""
        out, _ = self.process.communicate(timeout=600)
        rate = re.search(r"Requests/sec:\s*([0-9.]+)", out)
        if self.process.returncode or not rate:
            raise common.Failed(f"wrk failed: {out.strip()[-200:]}")
        return float(rate[1])
