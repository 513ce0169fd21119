"""What the scripts under bench/ share: where the binary is, the statistics of a few values, and the result that each of
them ends with. `python3 bench/lib.py` holds the statistics and the document against answers that are known."""

import argparse
import datetime
import fcntl
import json
import math
import os
import pathlib
import platform
import pty
import random
import re
import select
import shlex
import statistics
import struct
import subprocess
import sys
import tempfile
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


def counted_quantile(counted, q):
    """The same of an ascending list of values with their numbers: the first that the share q does not exceed."""
    rank, seen = max(1, q * sum(n for _, n in counted)), 0
    for value, n in counted:
        seen += n
        if seen >= rank:
            return value
    sys.exit(f"{script()}: nothing was counted")


def interval(values, of=statistics.median, draws=2000, rng=random):
    """Low and high end of the 95 % interval of a statistic: a bootstrap over the values."""
    values = list(values)
    if len(values) < 2:
        return (of(values), of(values)) if values else (0.0, 0.0)
    drawn = sorted(of(rng.choices(values, k=len(values))) for _ in range(draws))
    return drawn[int(draws * 0.025)], drawn[int(draws * 0.975)]


def median(values, rng=random):
    """The median, with the low and the high end of its interval."""
    return statistics.median(values), *interval(values, rng=rng)


def ratio(pairs, rng=random):
    """The median of the first of each pair over that of the second, with its interval by the bootstrap over pairs."""
    def of(some):
        return statistics.median(a for a, _ in some) / statistics.median(b for _, b in some)

    return of(pairs), *interval(pairs, of, rng=rng)


def percent(x, places=1):
    return f"{100 * x:.{places}f} %"


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


def parser(text, **more):
    """A parser of a script's words: shows its description as it stands, and knows where the result is to be written."""
    made = argparse.ArgumentParser(prog=script(), description=text,
                                   formatter_class=argparse.RawDescriptionHelpFormatter, **more)
    made.add_argument("--json", metavar="FILE", help="write the result here, as one JSON document")
    return made


def machine():
    """The computer of a result."""
    said = pathlib.Path("/proc/cpuinfo").read_text()
    known = dict(line.split(":", 1) for line in said.split("\n\n")[0].splitlines() if ":" in line)
    known = {name.strip(): value.strip() for name, value in known.items()}
    model = known.get("model name") or known.get("Hardware") or platform.machine()
    # A cloud's host calls all its processors alike.
    if "cpu family" in known:
        model += f" (family {known['cpu family']}, model {known.get('model')})"
    memory = re.search(r"MemTotal:\s+(\d+)", pathlib.Path("/proc/meminfo").read_text())[1]
    return {"cpu": model, "cpus": len(os.sched_getaffinity(0)), "memory_gib": round(int(memory) / 2**20, 1),
            "kernel": platform.release(), "guest": " hypervisor " in said}


def commit():
    """The checkout's commit, `-dirty` behind it where files differ from it that measure: results and texts do not."""
    def git(*asked):
        return subprocess.run(["git", *asked], cwd=ROOT, capture_output=True, text=True)
    same = git("diff", "--quiet", "HEAD", "--", ".", ":!bench/results.d", ":!*.md").returncode == 0
    found = git("describe", "--always", "--abbrev=10").stdout.strip()
    return found + "-dirty" * (not same) if found else None


def command():
    """What was typed, but for where the result goes."""
    words = [word for word in sys.argv[1:] if not word.startswith("--json=")]
    if "--json" in words:
        at = words.index("--json")
        words = words[:at] + words[at + 2:]
    return shlex.join([script(), *words])


def short(value):
    """A figure in six digits: more of it says nothing."""
    return float(f"{value:.6g}") if isinstance(value, float) and math.isfinite(value) else value


class Result:
    """What a script measured, and against which aims.

    Its document has `schema`, `name`, `asks` (one line: what is measured), `command`, `date` (UTC), `commit`,
    `machine`, `seconds`, `load_before` (the load average as it began), `status` (0, or 1 where an aim is missed),
    `rows` and `notes`. A row has `what`, `value` (null where there is none), `low` and `high` (its interval, or null),
    `unit`, `aim` (in words, or null) and `met` (null where nothing is asked). `details` are what a script has besides,
    in its own form; `bench/results` does not keep them.
    """

    SCHEMA = "fingerpost/bench/1"

    def __init__(self, name, asks):
        self.name, self.asks, self.rows, self.notes, self.details = name, asks, [], [], None
        self.began, self.load = datetime.datetime.now(datetime.timezone.utc), os.getloadavg()[0]
        self.command, self.missed = command(), False
        # Not for what this script starts.
        self.file = os.environ.pop("BENCH_JSON", None)

    def row(self, what, value, unit="", low=None, high=None, aim=None, met=None):
        """A figure; gives `met` back, True where nothing is asked."""
        met = None if met is None else bool(met)
        self.rows.append({"what": what, "value": short(value), "low": short(low), "high": short(high), "unit": unit,
                          "aim": aim, "met": met})
        self.missed |= met is False
        return met is not False

    def share(self, what, part, whole, aim=None, met=None):
        """So many of so many."""
        return self.row(what, part, f"of {whole}", aim=aim, met=met)

    def note(self, sentence, missed=False):
        """What no figure says; a miss is one of an aim that no row has."""
        self.notes.append(f"Missed: {sentence}" if missed else sentence)
        self.missed |= missed

    def document(self):
        now = datetime.datetime.now(datetime.timezone.utc)
        return {"schema": self.SCHEMA, "name": self.name, "asks": self.asks, "command": self.command,
                "date": self.began.strftime("%Y-%m-%d %H:%M UTC"), "commit": commit(), "machine": machine(),
                "seconds": round((now - self.began).total_seconds(), 1), "load_before": round(self.load, 2),
                "status": int(self.missed), "rows": self.rows, "notes": self.notes,
                **({"details": self.details} if self.details is not None else {})}

    def print(self):
        """The rows, for a script that has no table of its own."""
        wide = max((len(row["what"]) for row in self.rows), default=0)
        for row in self.rows:
            asked = f"   asked: {row['aim']}" if row["aim"] else ""
            verdict = {None: "", True: ": reached", False: ": MISSED"}[row["met"]]
            print(f"{row['what']:{wide}}  {figure(row)} {row['unit']}".rstrip() + asked + verdict)

    def end(self, file=None):
        """Writes the document where that is wanted, by a name or by BENCH_JSON of the environment; gives the status of
        the script."""
        file = file or self.file
        if file:
            pathlib.Path(file).write_text(json.dumps(self.document(), indent=1, ensure_ascii=False) + "\n")
        return int(self.missed)


def figure(row):
    """A row's value with its interval, in thousandths at the finest where that says anything."""
    values = [row["value"], row["low"], row["high"]]
    if not isinstance(row["value"], (int, float)):
        return "–" if row["value"] is None else str(row["value"])
    largest = max((abs(v) for v in values if v is not None and math.isfinite(v)), default=0)
    whole = all(v is None or isinstance(v, int) for v in values)
    # As many places as the largest needs to have four digits.
    places = 0 if whole or not largest else max(0, 3 - math.floor(math.log10(largest)))
    places = min(places, 3 if largest >= 0.01 else 6)
    value, low, high = (None if v is None else f"{v:,.{places}f}" for v in values)
    return value if low is None else f"{value} ({low} to {high})"


def check():
    """Known answers."""
    assert quantile([4, 1, 3, 2], 0.5) == 2.5 and quantile([1, 2, 3, 4, 5], 0.1) == 1.4
    assert counted_quantile([(10, 1), (20, 8), (30, 1)], 0.5) == 20 and counted_quantile([(7, 3)], 0.01) == 7
    assert interval([]) == (0.0, 0.0) and interval([3]) == (3, 3) and interval([5, 5, 5]) == (5, 5)
    # By the binomial distribution the median of 40 lies between the 14th and the 27th with 96 %.
    low, high = interval(range(1, 41), rng=random.Random(1))
    assert 13 <= low <= 15 and 26 <= high <= 28, (low, high)
    assert ratio([(2, 1), (4, 2), (6, 3)], random.Random(1))[0] == 2 and ratio([(3, 2)]) == (1.5, 1.5, 1.5)
    assert numbered("n[1-3,7],n9") == ["n1", "n2", "n3", "n7", "n9"]
    for row, said in (((0.97312, 0.957, 0.972), "0.973 (0.957 to 0.972)"), ((16777216, None, None), "16,777,216"),
                      ((0.0, 0.0, 0.0), "0 (0 to 0)"), ((1459.04, None, None), "1,459"), ((None, None, None), "–")):
        assert figure(dict(zip(("value", "low", "high"), row))) == said, (row, figure(dict(zip(
            ("value", "low", "high"), row))))
    result = Result("known", "Known answers")
    assert result.row("a time", 1.23456789, "ms") and result.share("found", 9, 10, "all", True)
    assert result.end(os.devnull) == 0
    assert not result.row("a size", 17, "bytes", aim="at most 16", met=False)
    with tempfile.NamedTemporaryFile("r") as file:
        assert result.end(file.name) == 1
        found = json.load(file)
    assert (found["schema"], found["status"], found["rows"][0]["value"]) == (Result.SCHEMA, 1, 1.23457)
    assert [row["met"] for row in found["rows"]] == [None, True, False] and found["machine"]["cpus"] >= 1
    print("bench/lib.py: as known")


if __name__ == "__main__":
    check()
