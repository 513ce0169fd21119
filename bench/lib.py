"""What the scripts under bench/ share: where the binary is, and the statistics of a few values."""

import fcntl
import os
import pathlib
import pty
import random
import re
import select
import statistics
import struct
import subprocess
import sys
import termios
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent


def script():
    """The name of the script that runs, as its messages begin with it: `bench/accuracy/run`."""
    return os.path.relpath(pathlib.Path(sys.argv[0]).resolve(), ROOT)


def built(name, what="the release binary"):
    """The newest file of this name under a release build, for whatever target; ends the script with a sentence where
    there is none."""
    found = [*ROOT.glob(f"target/*/release/{name}"), *ROOT.glob(f"target/release/{name}")]
    if not found:
        sys.exit(f"{script()}: build {what} first: make build")
    return max(found, key=lambda path: path.stat().st_mtime)


def binary(given=None):
    """The release binary: the one that is given, else that of the environment's FINGERPOST, else the newest."""
    named = given or os.environ.get("FINGERPOST")
    if not named:
        return built("fingerpost")
    if not os.access(named, os.X_OK):
        sys.exit(f"{script()}: {named} is no program")
    return pathlib.Path(named).resolve()


def quantile(values, q):
    """The value below which the share q lies, between two values by straight line (type 7 of Hyndman and Fan, 1996)."""
    ordered = sorted(values)
    at = q * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def interval(values, of=statistics.median, draws=2000, rng=random):
    """Low and high end of the 95 % interval of a statistic: a bootstrap over the values."""
    values = list(values)
    if len(values) < 2:
        return (values[0], values[0]) if values else (0.0, 0.0)
    drawn = sorted(of(rng.choices(values, k=len(values))) for _ in range(draws))
    return drawn[int(draws * 0.025)], drawn[int(draws * 0.975)]


def percent(x):
    return f"{100 * x:.1f} %"


def numbered(listed):
    """The nodes of a list such as n[1-3,7],n9 (numbers without zeros in front)."""
    found = []
    for single, inside in re.findall(r"n(\d+)|n\[([\d,-]+)\]", listed):
        for part in [single] if single else inside.split(","):
            low, _, high = part.partition("-")
            found += [f"n{n}" for n in range(int(low), int(high or low) + 1)]
    return found


def at_terminal(words, columns, rows, environment, deadline):
    """What a command prints on a terminal of so many columns, with its colours, and its status; after so many seconds
    it is ended."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    environment = {**os.environ, "COLUMNS": str(columns), "LINES": str(rows), "TERM": "xterm-256color", **environment}
    process = subprocess.Popen(words, stdout=slave, stderr=slave, stdin=slave, env=environment)
    os.close(slave)
    text, end = b"", time.monotonic() + deadline
    while time.monotonic() < end:
        ready, _, _ = select.select([master], [], [], 0.2)
        if ready:
            try:
                part = os.read(master, 65536)
            except OSError:
                break
            if not part:
                break
            text += part
        elif process.poll() is not None:
            break
    os.close(master)
    try:
        status = process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        status = process.wait()
    return text.decode(errors="replace").replace("\r", ""), status
