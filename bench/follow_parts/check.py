"""Followed requests against the load generator's own account, over a matrix of servers."""

import fnmatch
import json
import os
import random
import subprocess
import tempfile
import time

import lib

from . import common

ASKS = "Followed requests against the load generator's own account"
COUNT, LATENCY, STEP, MEDIAN = 0.01, 0.05, 0.10, 0.05
LENGTHS = {"budget": ["--budget", "8"], "quick": ["--profile", "quick"]}

DATABASES = {
    "mariadb": ["engine=mariadb"],
    "mariadb-pool": ["engine=mariadb", "server.thread_handling=pool-of-threads"],
    "postgresql": ["engine=postgresql"],
    "sqlite": ["engine=sqlite"],
}
WEBS = {
    "embedded": ["server=embedded"],
    "nginx-1": ["server=nginx", "workers=1"],
    "nginx-2": ["server=nginx", "workers=2"],
    "nginx-proxy": ["server=nginx", "backend=embedded"],
    "apache-event": ["server=apache", "mpm=event"],
    "apache-prefork": ["server=apache", "mpm=prefork"],
}


def matrix():
    """Name and arguments of every run."""
    for length, words in LENGTHS.items():
        for name, settings in DATABASES.items():
            for mix in ("point", "read", "write"):
                yield (f"database/{name}/{mix}/{length}",
                       ["database", *setting(settings, f"mix={mix}", "clients=1,8,50"), *words])
        for name, settings in WEBS.items():
            for size in ("1K", "1M"):
                for keep in ("on", "off"):
                    yield (f"web/{name}/{size}/keepalive={keep}/{length}",
                           ["web", *setting(settings, f"size={size}", f"keepalive={keep}", "connections=1,10,100"),
                            *words])


def setting(settings, *more):
    return [word for pair in [*settings, *more] for word in ("--set", pair)]


def judge(paths):
    """The figures of one step, and what is wrong with them, as sentences."""
    followed, cut, not_followed = paths["followed"], paths.get("cut", 0), paths["not_followed"]
    figures = {"params": paths.get("params", {}), "followed": followed, "cut": cut, "not_followed": not_followed,
               "windows": paths["windows"], "lost": paths["lost"]}
    wrong = []
    if not_followed > STEP:
        wrong.append(f"{lib.percent(not_followed)} not followed")
    if paths.get("params", {}).get("engine") == "sqlite":
        # The requests are the generator's own stretches of time, so that its account of them agrees whatever was
        # followed.
        return figures, wrong if followed else wrong + ["nothing was followed"]
    own = paths.get("generator")
    if not own or not own["count"]:
        return figures, wrong + ["the load generator has no account"]
    figures["generator"] = own["count"]
    figures["count"] = followed / own["count"] - 1
    if abs(figures["count"]) > COUNT:
        wrong.append(f"{followed} followed, {own['count']} by the generator ({100 * figures['count']:+.1f} %)")
    for q in ("p50", "p99"):
        if own[q] <= 0:
            wrong.append(f"the generator's {q} is {own[q]}")
            continue
        figures[q] = paths["latency"][q] / own[q] - 1
        if abs(figures[q]) > LATENCY:
            wrong.append(f"{q} {1e6 * paths['latency'][q]:.1f} µs, by the generator {1e6 * own[q]:.1f} µs "
                         f"({100 * figures[q]:+.1f} %)")
    return figures, wrong


def measure(binary, words):
    """Runs one entry of the matrix. Its record, or the sentence that says why it was skipped."""
    with tempfile.TemporaryDirectory() as work:
        path = f"{work}/run.json"
        done = subprocess.run([binary, "run", *words, "--quiet", "-o", path], capture_output=True, text=True,
                              timeout=600)
        if not os.path.exists(path):
            said = done.stderr.strip().splitlines()
            raise common.Failed(f"{' '.join(words)}: status {done.returncode}, {said[-1] if said else 'nothing said'}")
        record = json.loads(open(path).read())
    skipped = [m["reason"] for m in record["measurements"] if m["outcome"] == "skipped"]
    return record, skipped[0] if skipped and not record.get("paths") else None


def arguments(parser):
    parser.add_argument("--only", default="*", metavar="PATTERN",
                        help="of the matrix only what matches (database/mariadb*)")
    parser.add_argument("--minutes", type=float, default=0, help="at most so long: entries in random order until then")
    parser.add_argument("--binary")
    parser.add_argument("--list", action="store_true", help="print the matrix, and measure nothing")


def run(args, result):
    chosen = [(name, words) for name, words in matrix() if fnmatch.fnmatch(name, args.only)]
    if not chosen:
        raise common.Failed(f"nothing in the matrix matches {args.only}; see --list")
    if args.list:
        print("\n".join(f"{name}: {' '.join(words)}" for name, words in chosen))
        raise SystemExit(0)
    binary, end = str(lib.binary(args.binary)), time.time() + 60 * args.minutes
    if args.minutes:
        random.seed()
        random.shuffle(chosen)
    steps, misses, left_out = [], [], []
    for name, words in chosen:
        if args.minutes and time.time() > end:
            left_out.append(name)
            continue
        try:
            record, skipped = measure(binary, words)
        except (common.Failed, subprocess.TimeoutExpired) as e:
            misses.append(f"{name}: {e}")
            print(f"{name}: MISSED: {e}", flush=True)
            continue
        if skipped:
            left_out.append(name)
            print(f"{name}: left out: {skipped}", flush=True)
            continue
        if not record.get("paths"):
            misses.append(f"{name}: nothing was followed")
            print(f"{name}: MISSED: nothing was followed", flush=True)
        for paths in record.get("paths", []):
            figures, wrong = judge(paths)
            steps.append({"name": name, **figures})
            at = paths.get("params", {})
            label = f"{name} {at.get('clients', at.get('connections', ''))}"
            misses += [f"{label}: {w}" for w in wrong]
            shown = ", ".join(f"{k} {100 * figures[k]:+.1f} %" for k in ("count", "p50", "p99") if k in figures)
            print(f"{label}: {figures['followed']} followed, {shown}, "
                  f"{lib.percent(figures['not_followed'])} not followed"
                  + "".join(f"; MISSED: {w}" for w in wrong), flush=True)
    summary(steps, misses, left_out, result)


def summary(steps, misses, left_out, result):
    for miss in misses:
        result.note(miss, missed=True)
    if not steps and not misses:
        result.note("nothing was measured", missed=True)
    for key, name, worst in (("count", "count, off the generator's", COUNT), ("p50", "p50, off", LATENCY),
                             ("p99", "p99, off", LATENCY), ("not_followed", "not followed", STEP)):
        values = [abs(s[key]) for s in steps if key in s]
        if not values:
            continue
        median, low, high = lib.median(values)
        asked = (f"at most {lib.percent(MEDIAN, 0)}", median <= MEDIAN) if key == "not_followed" else (None, None)
        result.row(f"{name}, median of {len(values)} steps", 100 * median, "%", 100 * low, 100 * high, *asked)
        result.row(f"{name}, worst step", 100 * max(values), "%", aim=f"at most {lib.percent(worst, 0)}",
                   met=max(values) <= worst)
        print(f"{key}: median {lib.percent(median)} ({100 * low:.1f} to {100 * high:.1f}), "
              f"worst {lib.percent(max(values))}, {len(values)} steps")
    if left_out:
        print(f"left out: {', '.join(left_out)}")
        result.note(f"left out: {', '.join(left_out)}")
    result.details = {"steps": steps}
