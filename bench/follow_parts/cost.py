"""What following costs: the throughput with observers attached and without, in turns."""

import fnmatch
import random
import statistics
import subprocess

from . import check, common, server

DEFAULT, WORST = 0.02, 0.05
SECONDS = 4
# Name, the most that it may cost, and what is loaded.
WEBS = {
    "nginx keep-alive": (DEFAULT, 100, True),
    "nginx without keep-alive": (WORST, 100, False),
}
LABS = {
    "embedded": (DEFAULT, ["web", *check.setting(["server=embedded", "connections=10"])]),
    "mariadb points": (DEFAULT, ["database", *check.setting(["engine=mariadb", "mix=point", "clients=8"])]),
    "postgresql points": (DEFAULT, ["database", *check.setting(["engine=postgresql", "mix=point", "clients=8"])]),
    "sqlite points": (WORST, ["database", *check.setting(["engine=sqlite", "mix=point", "clients=1"])]),
}


def web_pair(watch, connections, keep_alive):
    """One steady load observed and one not, in random order: the ratio of the throughputs."""
    rates = {}
    with server.nginx(1) as (master, url):
        for observed in random.sample([True, False], 2):
            load = server.Wrk(url, connections, SECONDS, keep_alive)
            command = [watch, str(master), str(load.pid), str(connections), str(SECONDS + 1), "tracing"]
            watcher = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) if observed else None
            rates[observed] = load.rate()
            if watcher and watcher.wait(timeout=600):
                raise common.Failed(f"the observer ended with {watcher.returncode}")
    return rates[True] / rates[False]


def lab_pair(binary, words):
    """The two passes of a lab, one after the other: the ratio of the throughputs."""
    record, skipped = check.measure(binary, [*words, "--profile", "quick"])
    if skipped:
        raise common.Failed(skipped)
    for o in record.get("observations", []):
        t = o["totals"]
        if "step.measured.transactions" in t:
            plain = t["step.measured.transactions"] / t["step.measured.seconds"]
            return t["step.transactions"] / t["step.elapsed.seconds"] / plain
    raise common.Failed(f"{' '.join(words)}: the record has no pass with observers and one without")


def arguments(parser):
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--only", default="*", metavar="PATTERN", help=f"of {', '.join([*WEBS, *LABS])}")
    parser.add_argument("--binary")


def run(args):
    wanted = [n for n in [*WEBS, *LABS] if fnmatch.fnmatch(n, args.only)]
    if not wanted:
        raise common.Failed(f"nothing matches {args.only}; it is one of {', '.join([*WEBS, *LABS])}")
    watch = common.example("watch") if any(n in WEBS for n in wanted) else None
    binary = common.binary(args.binary) if any(n in LABS for n in wanted) else None
    ratios = {name: [] for name in wanted}
    # All of them in turns, so that drift of the host hits all alike.
    for _ in range(args.pairs):
        for name in random.sample(wanted, len(wanted)):
            ratio = web_pair(watch, *WEBS[name][1:]) if name in WEBS else lab_pair(binary, LABS[name][1])
            ratios[name].append(ratio)
            print(f"{name}: {ratio:.3f}", flush=True)
    told, misses = {}, []
    for name, values in ratios.items():
        most = (WEBS.get(name) or LABS[name])[0]
        loss = [1 - v for v in values]
        median, (low, high) = statistics.median(loss), common.interval(loss)
        told[name] = {"loss": median, "low": low, "high": high, "pairs": len(values), "most": most}
        good = median <= most
        print(f"{name}: {100 * median:.1f} % less throughput ({100 * low:.1f} to {100 * high:.1f}, {len(values)} pairs; at most {100 * most:.0f}): "
              f"{'reached' if good else 'MISSED'}")
        if not good:
            misses.append(f"{name}: {100 * median:.1f} % less throughput")
    return {"misses": misses, "summary": told}
