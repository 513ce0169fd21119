"""Eight kinds of trouble outside of a service, on each server where it can act, and services without any.

A trial is a server, a kind and its strength, drawn by a seed. Every third is kept apart: rules are not worked on it,
and its first result stands in RESULTS. Another seed than the usual one has other strengths, neighbours and an order of
its own, and is kept apart whole. A trial is right when the sentences that the screen begins with name what the trouble
makes requests wait for, and where somebody else makes it, who that is.
"""

import contextlib
import fnmatch
import pathlib
import random
import re
import shutil
import tempfile
import time

import lib
from follow_parts.common import Failed

from . import around
from .around import Group
from .loads import During, tool
from .look import Look
from .servers import SERVERS, before, http

BEFORE, AFTER = 1.5, 1
# Chosen once, before any rule was looked at.
SEED = 20261124
HOGS = ("sha256sum", "md5sum", "sha512sum", "gzip")
WEB = ("nginx", "nginx before nginx", "apache", "gunicorn", "node", "tomcat")
SLEEPER = ("const wait = {wait}; require('http').createServer((q, a) => q.url == '/' && q.headers['x-fast'] ? a.end() "
           ": setTimeout(() => a.end('answered'), wait))"
           ".listen({port}, '127.0.0.1')")


class Trouble:
    """One kind: where it can act, what it does, what a right sentence says."""

    def __init__(self, servers, act, says, neighbour=None, load="light", server=None):
        self.servers, self.act, self.says, self.neighbour, self.load, self.server = (
            servers, act, says, neighbour, load, server)


@contextlib.contextmanager
def hog(started, chance, told):
    told["neighbour"] = chance.choice(HOGS)
    with around.running(*around.burning(told["neighbour"], chance.randint(4, 8))):
        yield


@contextlib.contextmanager
def hog_apart(started, chance, told):
    told["neighbour"] = chance.choice(HOGS)
    with Group(chance.choice(["noisy-batch", "nightly", "reports"]), "cpu") as group:
        told["group"] = group.dir.name
        with around.running(*around.burning(told["neighbour"], chance.randint(4, 6)), group=group):
            yield


@contextlib.contextmanager
def quota(started, chance, told):
    with Group("shop", "cpu") as group:
        group.take(started.pid)
        told["cpus"] = chance.uniform(0.15, 0.4)
        group.quota(told["cpus"])
        yield


@contextlib.contextmanager
def writer(started, chance, told):
    told["neighbour"] = "dd"
    with tempfile.TemporaryDirectory(dir="/var/tmp") as work, around.running(
            *[around.writing(work, f"file{n}") for n in range(chance.randint(1, 3))]):
        yield


@contextlib.contextmanager
def memory(started, chance, told):
    """The server and a neighbour share a group's memory, of which the neighbour takes what the server's files were kept
    in."""
    held = chance.randint(60, 90)
    told["neighbour"] = "python3"
    with Group("shared", "memory") as group:
        group.take(started.pid)
        group.memory((held + 40) * around.MEBIBYTE)
        around.evict(f"{started.data}/html/big")
        with around.running(around.holding_memory(held * around.MEBIBYTE), group=group):
            yield


@contextlib.contextmanager
def none(started, chance, told):
    yield


def slow_backend(chance, told):
    told["neighbour"] = "node"
    wait = chance.randint(5, 40)
    return before(lambda: http(["node", "-e", SLEEPER.replace("{wait}", str(wait))]))


@contextlib.contextmanager
def lock(started, chance, told):
    held = chance.uniform(0.02, 0.08)
    with around.running(around.locking(told["server"], started.session, held, held / 2)):
        yield


# That a client or the server itself had the CPU is no answer.
CPU = r"waiting for a CPU used by {neighbour}|run queue: other processes"
KINDS = {
    "hog": Trouble(tuple(SERVERS), hog, CPU, neighbour=True),
    "hog in another group": Trouble(tuple(SERVERS), hog_apart, CPU, neighbour=True),
    "quota": Trouble(tuple(SERVERS), quota, r"quota"),
    "writer on the disk": Trouble(("mariadb", "postgresql", "redis"), writer, r"disk", neighbour=True,
                                  load="committing"),
    "memory pressure": Trouble(("nginx", "apache"), memory, r"memory", neighbour=True, load="reading"),
    "slow backend": Trouble(("nginx before node",), none, r"another (service|process)", neighbour=True,
                            server=slow_backend),
    "lock inside": Trouble(("mariadb", "postgresql"), lock, r"\block\b"),
    "one slow in a hundred": Trouble((*WEB, "postgresql"), none, r"own code", load="mixed"),
}
# What is right for one server alone: nginx before nginx has the one behind it compress.
SAYS = {("one slow in a hundred", "nginx before nginx"): r"another process's code of nginx"}
TRIALS_EACH = 3
# Requests that take so many times as long are slower than a load varies by itself.
LEAST_EFFECT = 1.15
# Of trials that must be right.
SHARE = 0.9


def trials(seed=SEED):
    """All of them, in an order by the seed; of each kind every third is kept apart, of another seed than the usual one
    all."""
    found, chance = [], random.Random(seed)
    for kind, trouble in KINDS.items():
        of_kind = [(kind, server, chance.randrange(1 << 30)) for server in trouble.servers for _ in range(TRIALS_EACH)]
        chance.shuffle(of_kind)
        found += [(*trial, n % 3 == 2 or seed != SEED) for n, trial in enumerate(of_kind)]
    chance.shuffle(found)
    return found


def one(program, kind, server, seed, seconds, keep):
    """One trial: what was planted, what the sentences say, and whether they are right."""
    trouble, chance, told = KINDS[kind], random.Random(seed), {"server": server}
    made = trouble.server(chance, told) if trouble.server else SERVERS[server]()
    with made as started, tempfile.TemporaryDirectory() as work:
        if server == "redis" and trouble.load == "committing":
            # Each write is on the disk before its answer.
            tool([*started.session, "config", "set", "appendfsync", "always"])
        load = getattr(started, trouble.load)
        # How fast it is without: a trouble that slows nobody is none, and is no trial.
        base = load(2) if trouble.act is not none else None
        with trouble.act(started, chance, told):
            running = During(load, int(BEFORE + seconds + AFTER + 0.5))
            time.sleep(BEFORE)
            try:
                look = Look(program, started.pid, seconds, work).end()
            finally:
                loaded = running.told()
        told["slower"] = base.rate / loaded.rate if base else None
        if keep:
            kept = pathlib.Path(keep)
            kept.mkdir(parents=True, exist_ok=True)
            name = re.sub(r"\W+", "-", f"{kind}-{server}-{seed}")
            shutil.copy(look.record, kept / f"{name}.json")
            (kept / f"{name}.txt").write_text(look.text)
    return judged(trouble, SAYS.get((kind, server), trouble.says), look, told)


def judged(trouble, says, look, told):
    said = look.sentences()
    # The neighbour may be named in the sentence or below it, by name or by its group.
    wanted = [told[name] for name in ("neighbour", "group") if name in told]
    return {**told, "said": said, "accused": look.accused()[:3],
            "first": bool(said) and bool(re.search(says.replace("{neighbour}", told.get("neighbour", "-")),
                                                   " ".join(said))),
            "named": any(name in look.text for name in wanted) if trouble.neighbour else None}


def trouble(args, program, result):
    servers = args.only.split(",")
    chosen = [t for t in trials(args.seed)
              if fnmatch.fnmatch(t[0], args.kinds) and any(fnmatch.fnmatch(t[1], only) for only in servers)]
    chosen = [t for t in chosen
              if args.which == "all" or t[3] == (args.which == "apart")][args.skip:args.skip + args.most]
    rows, none = [], 0
    for kind, server, seed, apart in chosen:
        try:
            row = one(program, kind, server, seed, args.seconds, args.keep)
        except Failed as e:
            print(f"{kind}, {server}: skipped: {e}", flush=True)
            continue
        if row["slower"] and row["slower"] < LEAST_EFFECT:
            print(f"no trial: {kind}, {server} ({seed}): {row['slower']:.2f} times as slow with it", flush=True)
            none += 1
            continue
        rows.append({"kind": kind, "seed": seed, "apart": apart, **row})
        verdict = ("right" if row["first"] and row["named"] is not False else
                   "WRONG" if not row["first"] else "NEIGHBOUR NOT NAMED")
        print(f"{verdict}: {kind}, {server} ({seed}{', apart' if apart else ''}): "
              f"{' '.join(row['said'])} | {row['accused']}", flush=True)
    for apart in (False, True):
        of = [r for r in rows if r["apart"] == apart]
        if of:
            first, named = [r["first"] for r in of], [r["named"] for r in of if r["named"] is not None]
            which = "kept apart" if apart else "tuned on"
            print(f"{which}: named first in {sum(first)} of {len(first)}, the neighbour in {sum(named)} of "
                  f"{len(named)}", flush=True)
            for what, right in (("named first", first), ("the neighbour named", named)):
                result.share(f"{which}: {what}", sum(right), len(right), f"at least {lib.percent(SHARE, 0)}",
                             sum(right) >= SHARE * len(right))
    for kind in KINDS:
        if of := [r["first"] for r in rows if r["kind"] == kind]:
            result.share(f"{kind}: named first", sum(of), len(of))
    result.note(f"no trials, as nobody was slowed: {none}")
    result.details = rows


def healthy(args, program, result):
    """Services whose load leaves most of the machine idle, and that nothing troubles."""
    chance, rows = random.Random(args.seed), []
    names = args.wanted()
    for n in range(args.trials):
        server, pause = names[n % len(names)], chance.randint(6, 40)
        try:
            with SERVERS[server]() as started, tempfile.TemporaryDirectory() as work:
                running = During(started.calm(pause), args.seconds + 3)
                time.sleep(BEFORE)
                try:
                    look = Look(program, started.pid, args.seconds, work).end()
                finally:
                    running.told()
                if args.keep:
                    pathlib.Path(args.keep).mkdir(parents=True, exist_ok=True)
                    (pathlib.Path(args.keep) / f"healthy-{n}-{server}.txt").write_text(look.text)
                    shutil.copy(look.record, pathlib.Path(args.keep) / f"healthy-{n}-{server}.json")
        except Failed as e:
            print(f"{server}: skipped: {e}", flush=True)
            continue
        accused = look.accused()
        rows.append({"server": server, "pause": pause, "accused": accused, "said": look.sentences()})
        print(f"{'ACCUSED' if accused else 'nobody'}: {server}, pauses of {pause} ms: {accused or ''} "
              f"{look.sentences()[0] if look.sentences() else ''}", flush=True)
    confirmed = sum(any(status == "confirmed" for _, status in r["accused"]) for r in rows)
    some = sum(bool(r["accused"]) for r in rows)
    print(f"{len(rows)} healthy services: somebody confirmed in {confirmed}, likely or confirmed in {some}", flush=True)
    result.share("services with somebody confirmed", confirmed, len(rows))
    result.share("services with somebody confirmed or likely", some, len(rows), "none", not some)
    result.details = rows
