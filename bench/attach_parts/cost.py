"""What a service loses while it is explained: the throughput of a look's watching over that of the stretches beside it,
under one load.

Throughput is counted in TCP segments of this network name space, a hundred times a second: nothing else should speak
TCP meanwhile. A host that is shared changes its pace by a tenth and more from second to second. A real-time task on
each CPU measures that (bench/pace.c), and what throughput follows of it, by the straight line through all half-seconds
in which nobody watched, is taken out of every stretch. Stretches of the same length in which `sleep` runs in place of
`explain` are measured in the same way, in random order: what they lose is what the method gets wrong.

That leaves some per cent of noise for a look. What a window of events costs can be told more closely: the throughput
about each window, of which the record says when it was open, is held against that of the moments before and after it,
when the same look watches without events. The same about moments half-way between windows is what that method gets
wrong.
"""

import bisect
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import lib  # noqa: E402
from follow_parts.common import Failed  # noqa: E402

from .loads import During  # noqa: E402
from .look import Look  # noqa: E402
from .servers import SERVERS  # noqa: E402

COST = 0.02
# What the ratios of `server_cost` are called.
WORDS = {"watched": "while watched", "whole": "from start to end of the command", "without": "where nobody watched",
         "windows": "by windows", "between": "by as many moments between windows"}
# Between stretches nobody watches for as long as a stretch, and as long again as a command takes to begin or end.
MARGIN = 0.3
EVERY = 0.01
# About a window: switching on before it, and what the account of when watching began is off by; reading and switching
# off after it. Then the moments that it is held against, on either side.
BEFORE, AFTER, BESIDE = 0.06, 0.1, 0.25
PIECE = 0.5
LEAST_PIECES = 10


class Throughput(threading.Thread):
    """TCP segments that came in, by time."""

    def __init__(self):
        super().__init__()
        self.times, self.counts, self.over = [], [], threading.Event()
        self.start()

    def run(self):
        while not self.over.wait(EVERY):
            names, values = (line.split() for line in pathlib.Path("/proc/net/snmp").read_text().splitlines()
                             if line.startswith("Tcp:"))
            self.times.append(time.monotonic())
            self.counts.append(int(values[names.index("InSegs")]))

    def rate(self, begin, end):
        first, last = bisect.bisect_left(self.times, begin), bisect.bisect_right(self.times, end) - 1
        return (self.counts[last] - self.counts[first]) / (self.times[last] - self.times[first])


class Pace:
    """How fast the CPUs are, by time."""

    def __init__(self, work, seconds):
        program = f"{work}/pace"
        subprocess.run(["cc", "-O1", "-o", program, str(lib.ROOT / "bench" / "pace.c")], check=True)
        self.files = [f"{work}/pace-{cpu}" for cpu in sorted(os.sched_getaffinity(0))]
        self.tasks = [subprocess.Popen([program, f.rsplit("-", 1)[1], str(int(seconds)), "beside"], stdout=open(f, "w"))
                      for f in self.files]

    def end(self):
        for task in self.tasks:
            task.wait()
        # The last line of a task that was ended is cut.
        lines = [[line.split() for line in pathlib.Path(f).read_text().splitlines()[:-1]] for f in self.files]
        self.cpus = [([int(at) * 1e-9 for at, _ in cpu], [1 / int(ns) for _, ns in cpu]) for cpu in lines]

    def between(self, begin, end):
        """The sum of the CPUs' paces."""
        return sum(statistics.mean(pace[bisect.bisect(at, begin):bisect.bisect(at, end)]) for at, pace in self.cpus)


def stretch(program, started, seconds, work):
    """One look, or the same time without one where there is no program: its beginning, that and the end of the
    watching, its end, and its windows."""
    begun = time.monotonic()
    if program is None:
        time.sleep(seconds)
        return begun, begun, time.monotonic(), time.monotonic(), []
    look = Look(program, started.pid, seconds, work).end()
    watching = begun + look.total("attach.seconds")
    windows = next(s["points"] for o in look.run["observations"] for s in o["series"] if s["name"] == "trace.window")
    return begun, watching, watching + seconds, time.monotonic(), [(watching + at, length) for at, length in windows]


def server_cost(program, server, pairs, seconds, load):
    """Ratios of throughput to that beside: while watched, from the command's beginning to its end, and of the stretches
    without it; and what windows took: the share of each look, and what the same moments between windows seem to
    take."""
    with SERVERS[server]() as started, tempfile.TemporaryDirectory() as work:
        length = pairs * 2 * (2 * seconds + 2 * MARGIN + 1) + seconds + 2
        loaded, pace, throughput, stretches = (During(getattr(started, load), int(length) + 1), Pace(work, length),
                                               None, [])
        try:
            time.sleep(1)
            throughput = Throughput()
            time.sleep(seconds + MARGIN)
            for _ in range(pairs):
                for which in random.sample([program, None], 2):
                    stretches.append((which, stretch(which, started, seconds, work)))
                    time.sleep(seconds + MARGIN)
        finally:
            if throughput:
                throughput.over.set()
                throughput.join()
            loaded.told()
            pace.end()
    corrected = without_pace(throughput, pace, [times for _, times in stretches])
    ratios = {"watched": [], "whole": [], "without": [], "windows": [], "between": []}
    for which, (begun, watching, watched, ended, windows) in stretches:
        beside = statistics.mean((corrected(begun - seconds, begun - EVERY), corrected(ended + EVERY, ended + seconds)))
        ratios["watched" if which else "without"].append(corrected(watching + EVERY, watched - EVERY) / beside)
        if which:
            ratios["whole"].append(corrected(begun, ended) / beside)
            for name, lost in zip(("windows", "between"), of_windows(throughput, windows, watched)):
                ratios[name] += [1 - lost / seconds] if lost is not None else []
    if not all(ratios.values()):
        raise Failed("what windows took could not be told: longer looks, or more pairs")
    return ratios


def of_windows(throughput, windows, watched):
    """Seconds of throughput that the windows of a look took, those that could be told standing for all; and what as
    many moments half-way to the next window, of the same length, seem to take. None where none could be told."""
    def lost(begin, end):
        before, after = throughput.rate(begin - BESIDE, begin), throughput.rate(end, end + BESIDE)
        return (end - begin) * (1 - throughput.rate(begin, end) / ((before + after) / 2))
    told, between = [], []
    for n, (at, length) in enumerate(windows):
        begin, end = at - BEFORE, at + length + AFTER
        follows = windows[n + 1][0] if n + 1 < len(windows) else watched
        # Before the first one the command was beginning.
        if n == 0 or sum(windows[n - 1]) + AFTER + BESIDE > begin or end + BESIDE > follows - BEFORE:
            continue
        told.append(lost(begin, end))
        middle, half = (end + follows - BEFORE) / 2, (end - begin) / 2
        if end + BESIDE + half < middle and middle + half + BESIDE < follows - BEFORE:
            between.append(lost(middle - half, middle + half))
    return [statistics.mean(values) * len(windows) if values else None for values in (told, between)]


def without_pace(throughput, pace, stretches):
    """A function that tells the throughput between two times as it had been at the pace of the whole time."""
    free, at = [], throughput.times[0] + EVERY
    while at + PIECE < throughput.times[-1]:
        if not any(begun - EVERY < at + PIECE and at < ended + EVERY for begun, _, _, ended, _ in stretches):
            free.append((pace.between(at, at + PIECE), throughput.rate(at, at + PIECE)))
        at += PIECE
    if len(free) < LEAST_PIECES:
        raise Failed("too little time in which nobody watched: longer stretches, or more pairs")
    paces, rates = zip(*free)
    usual, line = statistics.mean(paces), statistics.linear_regression(paces, rates)
    share = line.slope * usual / statistics.mean(rates)
    return lambda begin, end: throughput.rate(begin, end) / (1 + share * (pace.between(begin, end) / usual - 1))


def cost(args, program, result):
    told = {}
    for server in args.wanted():
        try:
            ratios = server_cost(program, server, args.pairs, args.seconds, args.load)
        except Failed as e:
            print(f"{server}: skipped: {e}", flush=True)
            continue
        found = {}
        for name, values in ratios.items():
            low, high = lib.interval([1 - r for r in values], of=statistics.mean)
            found[name] = {"loss": 1 - statistics.mean(values), "low": low, "high": high, "looks": len(values)}
        told[server] = found
        words = {name: f"{100 * f['loss']:.1f} % ({100 * f['low']:.1f} to {100 * f['high']:.1f})"
                 for name, f in found.items()}
        print(f"{server}: {words['watched']} less throughput while watched, {words['whole']} from start to end of the "
              f"command, {words['without']} where nobody watched, {args.pairs} of each, {args.seconds} s; its windows "
              f"took {words['windows']}, "
              f"as many moments between windows {words['between']}", flush=True)
        for name, f in found.items():
            asked = (f"at most {lib.percent(COST, 0)}", f["loss"] <= COST) if name == "watched" else (None, None)
            if not result.row(f"{server}: less throughput, {WORDS[name]}, {f['looks']} looks", 100 * f["loss"], "%",
                              100 * f["low"], 100 * f["high"], *asked):
                print(f"MISSED {server}: {100 * f['loss']:.1f} % less throughput while watched")
    if told:
        losses = [f["watched"]["loss"] for f in told.values()]
        print(f"median of the servers: {100 * statistics.median(losses):.1f} % less throughput while watched, "
              f"at worst {100 * max(losses):.1f} %")
        result.row("median of the servers: less throughput while watched", 100 * statistics.median(losses), "%")
