"""Sums of the same seconds by perf, which nobody here wrote.

nginx with one worker and one connection: each system call belongs to one request. perf trace -s has the time within
each call, perf sched timehist how long the worker was ready before it had a CPU. Calls in which the answer goes out are
left out: from the moment it has arrived at the client the path goes on there, while perf counts the rest of the call.
"""

import contextlib
import json
import os
import re
import subprocess
import tempfile
import time

import lib

from . import common, server

ASKS = "Followed requests against perf's sums of the same seconds"
WITHIN = 0.10
# Calls between the request's reading and its answer; `writev` has the head, which waits for the file that `sendfile`
# sends.
CALLS = ("openat", "fstat", "newfstatat", "writev")
# A share of the latency below which perf's sums are rounding: three digits of milliseconds by call.
LEAST = 0.005
SETTLE = 0.5


def syscalls(text):
    """Calls and seconds of each system call, from the summaries of perf trace -s."""
    sums = {}
    for line in text.splitlines():
        m = re.match(r"\s+(\w+)\s+(\d+)\s+(\d+)\s+([\d.]+)\s+[\d.]+\s+[\d.]+\s+[\d.]+\s+[\d.]+%", line)
        if m:
            count, ms = sums.get(m[1], (0, 0.0))
            sums[m[1]] = (count + int(m[2]), ms + float(m[4]))
    return {name: (count, ms / 1e3) for name, (count, ms) in sums.items()}


def delays(text, tids):
    """Seconds that these threads were ready and had no CPU, from perf sched timehist --state: woken, or taken off it
    while they could go on."""
    total, left = 0.0, {}
    for line in text.splitlines():
        # time [cpu] task[tid/pid] wait-time sch-delay run-time state; the state is that in which it then leaves the CPU
        m = re.match(r"\s*[\d.]+\s+\[\d+\]\s+.*\[(\d+)(?:/\d+)?\]\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+(\S+)\s*$", line)
        if m and int(m[1]) in tids:
            total += float(m[3]) / 1e3 + (float(m[2]) / 1e3 if left.get(m[1], "").startswith("R") else 0.0)
            left[m[1]] = m[5]
    return total


@contextlib.contextmanager
def never_idle(wanted):
    """A loop on each CPU that runs where nothing else would (SCHED_IDLE): perf loses wake-ups while a CPU is idle on
    some kernels."""
    code = "import os\nos.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))\nwhile True: pass"
    loops = [subprocess.Popen(["taskset", "-c", str(cpu), "python3", "-c", code])
             for cpu in os.sched_getaffinity(0)] if wanted else []
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def same_seconds(program, seconds, idle):
    """One look by all three."""
    with server.nginx(1) as (master, url), tempfile.TemporaryDirectory() as work, never_idle(not idle):
        worker, = server.workers(master)
        load = server.Wrk(url, 1, int(seconds + server.SPARE + 3))
        time.sleep(SETTLE)
        follow = subprocess.Popen([program, f"{master},{worker}", str(load.pid), str(seconds)],
                                  stdout=subprocess.PIPE, text=True)
        trace = subprocess.Popen(["perf", "trace", "record", "-q", "-p", str(worker), "-o", f"{work}/trace",
                                  "--", "sleep", str(seconds)],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        sched = subprocess.Popen(["perf", "sched", "record", "-q", "-a", "-o", f"{work}/sched",
                                  "--", "sleep", str(seconds)],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        out, _ = follow.communicate(timeout=600)
        status = [p.wait(timeout=600) for p in (trace, sched)]
        load.rate()
        if follow.returncode or any(status):
            raise common.Failed(f"follow ended with {follow.returncode}, perf with {status}")
        sums = subprocess.run(["perf", "trace", "-s", "-i", f"{work}/trace"], capture_output=True, text=True)
        hist = subprocess.run(["perf", "sched", "timehist", "--state", "-i", f"{work}/sched"], capture_output=True,
                              text=True)
        return json.loads(out), syscalls(sums.stdout + sums.stderr), delays(hist.stdout, {worker})


def seconds_of(paths, wanted):
    return sum(leaf["all"]["seconds"] for leaf in paths["leaves"] if wanted(leaf))


def pairs(paths, calls, delay):
    """Seconds of a request by us and by perf, by what was measured."""
    requests = calls.get("writev", (0, 0))[0]
    if not requests or not paths["followed"]:
        raise common.Failed(f"nothing to compare: {requests} requests by perf trace, {paths['followed']} followed, "
                            f"{paths['lost']} events lost")
    latency = paths["latency"]["mean"]
    for name in CALLS:
        count, seconds = calls.get(name, (0, 0.0))
        if count and seconds / requests >= LEAST * latency:
            yield (f"kernel: {name}", seconds_of(paths, lambda l, n=name: l["class"] == {"system_call": n} and l["side"] != "client"),
                   seconds / requests)
    ready = seconds_of(paths, lambda l: l["class"] == "cpu" and l["side"] != "client")
    if max(ready, delay / requests) >= LEAST * latency:
        yield "waiting for a CPU", ready, delay / requests


def arguments(parser):
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--idle", action="store_true",
                        help="let CPUs idle between requests, though perf may lose what happens then")


def run(args, result):
    program = common.example("follow")
    ratios = {}
    for _ in range(args.rounds):
        for name, ours, theirs in pairs(*same_seconds(program, args.seconds, args.idle)):
            ratios.setdefault(name, []).append(ours / theirs if theirs else float("inf"))
            print(f"{name}: {1e6 * ours:.2f} µs a request, by perf {1e6 * theirs:.2f} µs", flush=True)
    if not ratios:
        raise common.Failed("nothing was large enough to be compared")
    for name, values in ratios.items():
        median, low, high = lib.median(values)
        good = result.row(f"{name}, of perf's, {len(values)} rounds", median, low=low, high=high,
                          aim=f"within {lib.percent(WITHIN, 0)}", met=abs(median - 1) <= WITHIN)
        print(f"{name}: {median:.3f} of perf's ({low:.3f} to {high:.3f}, {len(values)} rounds): "
              f"{'reached' if good else 'MISSED'}")
    result.details = ratios
