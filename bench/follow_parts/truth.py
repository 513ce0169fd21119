"""Leaves against the log of a server that stamps its own stages."""

import json
import statistics
import subprocess
import tempfile

import lib

from . import common

ASKS = "Followed requests against the log of a server that stamps its own stages"
MEDIAN, WORST = 0.03, 0.10
LOCKS = {"lock_works", "lock_syncs", "lock_starves"}
PEERS = {"peer_sleeps", "peer_works"}

LEAVES = ("work", "calls", "lock: held working", "lock: held syncing", "lock: held waiting for a CPU", "disk", "timer",
          "peer", "memory")


def expected(cls):
    """The share of each leaf by the server's log. What a stage was neither on a CPU nor ready for one, it waited for
    what it is named after.

    Waiting for a CPU is judged where a lock's holder does it: the request does it outside its stages too, which the
    server does not log.
    """
    shares = dict.fromkeys(LEAVES, 0.0)
    for kind, stage in cls["kinds"].items():
        wall, cpu, ready, *own = (stage[k] / cls["seconds"]
                                  for k in ("seconds", "cpu", "ready", "own_ready", "own_cpu"))
        blocked = max(wall - sum(own), 0.0)
        rest = max(blocked - cpu - ready, 0.0)
        if kind in ("work", "calls"):
            shares[kind] += cpu
        elif kind == "memory":
            # No event tells when a fault is over: what it does on a CPU is part of the code that it interrupts.
            shares["work"] += cpu
            shares[kind] += rest
        elif kind in LOCKS:
            # The request waits for the lock only while its own thread is blocked. A holder that does not sync either
            # has a CPU or waits for one.
            shares["lock: held working"] += min(cpu, blocked)
            shares["lock: held waiting for a CPU"] += ready if kind == "lock_syncs" else max(blocked - cpu, 0.0)
            shares["lock: held syncing"] += rest if kind == "lock_syncs" else 0
        else:
            shares["peer" if kind in PEERS else kind] += rest
    return shares


def unsure(cls, leaves, which):
    """What the server's log leaves open: by leaf, how much more and how much less of it than the log has is none of our
    error.

    The peer that a thread wakes by its sending may take that thread's CPU: the thread is ready then, and the request is
    at work at the peer; or it is ready when the answer has come. The log does not tell which.

    A thread that is woken for an idle CPU gets it some microseconds later, when the CPU is awake. The kernel's account
    has that time as the thread's work where the wake-up sets the run queue's clock and the switch skips that
    (rq_clock_skip_update in kernel/sched), and nowhere where the other CPU does the wake-up's work; it is never in its
    account of waiting. The leaves have it as what it is.
    """
    ready = sum(stage["ready"] for kind, stage in cls["kinds"].items() if kind in PEERS) / cls["seconds"]
    holder = woken(leaves, which, lambda chain: "lock" in chain)
    own = woken(leaves, which, lambda chain: not chain)
    ends = {"peer": (ready, 0.0), "lock: held working": (0.0, holder), "lock: held syncing": (0.0, holder)}
    ends |= dict.fromkeys(("disk", "timer", "memory"), (0.0, own))
    if "memory" in cls["kinds"]:
        # Whose CPU time is expected as work.
        ends["work"] = (0.0, own)
    return ends


def woken(leaves, which, chains):
    """The share of waiting for a CPU that idled, in these chains."""
    return sum(leaf[which]["share"] for leaf in leaves if waits_for_idle(leaf) and chains(leaf.get("chain", [])))


def waits_for_idle(leaf):
    return leaf["class"] == "cpu" and leaf["side"] != "client" and leaf.get("blocker") == "idle"


def found(leaves, which):
    """The same by the leaves of the followed requests."""
    shares = dict.fromkeys(LEAVES, 0.0)
    for leaf in leaves:
        share = leaf[which]["share"]
        name = group(leaf)
        if name and not (name == "lock: held waiting for a CPU" and waits_for_idle(leaf)):
            shares[name] += share
    return shares


def group(leaf):
    kind, chain, client = leaf["class"], leaf.get("chain", []), leaf["side"] == "client"
    own = kind == "user_code" and leaf["side"] == "server"
    on_cpu = own or (not client and (kind == "interrupt" or isinstance(kind, dict)))
    disk = kind in ("disk_held", "disk_queue", "disk_device", "disk_file_system")
    if "peer" in chain or kind == "peer":
        return "peer"
    if "lock" in chain or (kind == "lock" and leaf["side"] == "server"):
        return ("lock: held working" if on_cpu else "lock: held syncing" if disk else
                "lock: held waiting for a CPU" if kind == "cpu" and not client else None)
    if kind == "memory" and not client:
        return "memory"
    if disk:
        return "disk"
    if kind == "timer" and leaf["side"] == "server":
        return "timer"
    if own:
        return "work"
    if kind == {"system_call": "read"} and not client:
        return "calls"
    return None


def arguments(parser):
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--seed", type=int, default=1, help="of the first trial; the next ones follow")
    parser.add_argument("--from", dest="saved", metavar="FILE", help="judge trials that were printed before")
    parser.add_argument("--keep", metavar="FILE", help="keep the trials' lines")
    parser.add_argument("--dir", help="where the server's files are, on a disk (default: a temporary directory)")


def run(args, result):
    if args.saved:
        lines = open(args.saved).read().splitlines()
    else:
        lines = measured(args)
    trials = [json.loads(line) for line in lines if line.strip()]
    if not trials:
        raise common.Failed("there is no trial")
    rows = []
    for trial in trials:
        row, wrong = judge(trial)
        rows.append(row)
        for w in wrong:
            result.note(f"seed {trial['seed']}: {w}", missed=True)
        worst = max(((abs(d), k) for k, d in row["all"].items()), default=(0, ""))
        print(f"seed {trial['seed']}: {row['followed']} of {row['requests']} requests, "
              f"furthest {100 * worst[0]:.1f} points ({worst[1]})"
              + "".join(f"; MISSED: {w}" for w in wrong), flush=True)
    for which in ("all", "slow"):
        table(rows, which, result)
    result.details = rows


def measured(args):
    program = common.example("truth")
    with tempfile.TemporaryDirectory(dir=args.dir) as work:
        command = [program, str(args.seed), str(args.trials), str(args.seconds), work]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60 + args.trials * (args.seconds + 20))
    if args.keep:
        open(args.keep, "w").write(done.stdout)
    if done.returncode:
        raise common.Failed(done.stderr.strip() or f"the trials ended with status {done.returncode}")
    return done.stdout.splitlines()


def judge(trial):
    """Differences of one trial by leaf, for all and for the slow requests; and what is wrong besides shares."""
    truth, paths = trial["truth"], trial["paths"]
    row = {"seed": trial["seed"], "requests": truth["all"]["requests"], "followed": paths["followed"],
           "not_followed": paths["not_followed"],
           "all": {}, "slow": {}, "open": {}}
    wrong = []
    if not paths["followed"]:
        return row, [f"nothing was followed ({paths['lost']} events lost)"]
    if trial["unpaired"] > 0.01 * max(truth["all"]["requests"], 1):
        wrong.append(f"{trial['unpaired']} requests are not in the server's log")
    if abs(paths["followed"] / max(truth["all"]["requests"], 1) - 1) > 0.01:
        wrong.append(f"{paths['followed']} followed of {truth['all']['requests']}")
    for which in ("all", "slow"):
        if not truth[which]["seconds"]:
            continue
        known, seen = expected(truth[which]), found(paths["leaves"], which)
        open_ends = unsure(truth[which], paths["leaves"], which)
        row["open"][which] = max(most for ends in open_ends.values() for most in ends)
        for leaf in known:
            # What neither account has says nothing.
            if known[leaf] or seen[leaf] > 0.001:
                more = seen[leaf] - known[leaf]
                above, below = open_ends.get(leaf, (0.0, 0.0))
                row[which][leaf] = max(more - above, 0.0) if more > 0 else min(more + below, 0.0)
                if abs(row[which][leaf]) > WORST:
                    wrong.append(f"{leaf}, {which}: {lib.percent(seen[leaf])}, "
                                 f"by the server {lib.percent(known[leaf])}")
    return row, wrong


def table(rows, which, result):
    for leaf in LEAVES:
        values = [abs(row[which][leaf]) for row in rows if leaf in row[which]]
        if not values:
            continue
        median, low, high = lib.median(values)
        good = [result.row(f"{which}, {leaf}: median of {len(values)} trials", 100 * median, "points", 100 * low,
                           100 * high, f"at most {100 * MEDIAN:g}", median <= MEDIAN),
                result.row(f"{which}, {leaf}: worst trial", 100 * max(values), "points",
                           aim=f"at most {100 * WORST:g}", met=max(values) <= WORST)]
        verdict = "reached" if all(good) else "MISSED"
        print(f"{which}, {leaf}: median {100 * median:.2f} points ({100 * low:.2f} to {100 * high:.2f}), "
              f"worst {100 * max(values):.1f}, "
              f"{len(values)} trials: {verdict}")
    left_open = [row["open"][which] for row in rows if which in row["open"]]
    if left_open:
        result.row(f"{which}: what the server's log leaves open of a leaf, median trial",
                   100 * statistics.median(left_open), "points")
        print(f"{which}: what the server's log leaves open of a leaf is "
              f"{100 * statistics.median(left_open):.2f} points in the median trial, "
              f"{100 * max(left_open):.1f} at most")
