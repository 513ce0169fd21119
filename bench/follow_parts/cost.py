"""What following costs: the throughput with observers attached and without, in turns."""

import fnmatch
import random
import subprocess

import lib

from . import common

ASKS = "Throughput lost to following"
DEFAULT, WORST = 0.02, 0.05
SECONDS = 3
# Pairs within one load, before the next server has its turn, so that drift of the host hits all alike.
TURN = 5
# Name, the most that it may cost, and what is loaded.
SERVERS = {
    "nginx keep-alive": (DEFAULT, ["web", "server=nginx", "connections=100"]),
    "nginx without keep-alive": (WORST, ["web", "server=nginx", "connections=100", "keepalive=off"]),
    "embedded": (DEFAULT, ["web", "server=embedded", "connections=10"]),
    "mariadb points": (DEFAULT, ["database", "engine=mariadb", "mix=point", "clients=8"]),
    "postgresql points": (DEFAULT, ["database", "engine=postgresql", "mix=point", "clients=8"]),
    "sqlite points": (WORST, ["database", "engine=sqlite", "mix=point", "clients=1"]),
}


def pairs(program, words, level, count, seconds):
    """Ratios of the throughput observed over that without."""
    lab, *settings = words
    command = [program, lab, level, str(count), str(seconds), *settings]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise common.Failed(f"{' '.join(words)}: {done.stderr.strip()[-300:]}")
    return [float(line) for line in done.stdout.split()]


def arguments(parser):
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"length of a stretch ({SECONDS})")
    parser.add_argument("--only", default="*", metavar="PATTERN", help=f"of {', '.join(SERVERS)}")
    parser.add_argument("--level", default="tracing", choices=["nothing", "counting", "sampling", "tracing"],
                        help="what observes: nothing shows what the machine itself does from stretch to stretch "
                             "(tracing)")


def run(args, result):
    wanted = [n for n in SERVERS if fnmatch.fnmatch(n, args.only)]
    if not wanted:
        raise common.Failed(f"nothing matches {args.only}; it is one of {', '.join(SERVERS)}")
    program = common.example("cost")
    ratios = {name: [] for name in wanted}
    while len(ratios[wanted[-1]]) < args.pairs:
        count = min(TURN, args.pairs - len(ratios[wanted[-1]]))
        turn = random.sample(wanted, len(wanted))
        for name in turn:
            new = pairs(program, SERVERS[name][1], args.level, count, args.seconds)
            ratios[name] += new
            print(f"{name}: {' '.join(f'{r:.3f}' for r in new)}", flush=True)
    for name, values in ratios.items():
        most = SERVERS[name][0]
        median, low, high = lib.median([1 - v for v in values])
        good = result.row(f"{name}: less throughput, {len(values)} pairs of {args.seconds:g} s by {args.level}",
                          100 * median, "%", 100 * low, 100 * high, f"at most {lib.percent(most, 0)}", median <= most)
        print(f"{name}: {100 * median:.1f} % less throughput ({100 * low:.1f} to {100 * high:.1f}, "
              f"{len(values)} pairs; at most {100 * most:.0f}): "
              f"{'reached' if good else 'MISSED'}")
    result.details = ratios
