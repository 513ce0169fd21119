"""How long attaching takes and how much memory watching, and what `kill -9` leaves."""

import ctypes
import errno
import fnmatch
import os
import pathlib
import platform
import random
import signal
import statistics
import tempfile
import time

from follow_parts.common import Failed

from . import loads
from .loads import During
from .look import Look
from .servers import SERVERS

LONGEST_ATTACH, MOST_MEMORY = 1.0, 200e6
THREADS = 500


def attach(args, program, result):
    """Time from the command's start until the first window may open, as its record tells, and its memory at most, as
    the kernel tells."""
    cases = [(name, SERVERS[name], None) for name in args.wanted()]
    if any(fnmatch.fnmatch("mariadb", only) for only in args.only.split(",")):
        cases.append((f"mariadb with {THREADS} connections", SERVERS["mariadb"], THREADS))
    for name, server, threads in cases:
        try:
            with server() as started, tempfile.TemporaryDirectory() as work:
                load = started.light
                if threads:
                    _, load = loads.sysbench(started.port, "oltp_point_select", "--rate=400", threads=threads)
                load = During(load, args.seconds + 5)
                time.sleep(2)
                try:
                    running = len(os.listdir(f"/proc/{started.pid}/task"))
                    look = Look(program, started.pid, args.seconds, work).end()
                finally:
                    load.told()
        except Failed as e:
            print(f"{name}: skipped: {e}", flush=True)
            continue
        seconds, beyond = look.total("attach.seconds"), look.took - args.seconds
        print(f"{name}: attached after {seconds:.2f} s ({running} threads in its first process), "
              f"{beyond:.1f} s beyond the watching in all, "
              f"{look.peak / 1e6:.0f} MB at most, {look.cpu:.1f} CPU seconds", flush=True)
        result.row(f"{name}: attached after", seconds, "s", aim=f"at most {LONGEST_ATTACH:g}",
                   met=seconds <= LONGEST_ATTACH)
        result.row(f"{name}: memory at most", look.peak / 1e6, "MB", aim=f"at most {MOST_MEMORY / 1e6:g}",
                   met=look.peak <= MOST_MEMORY)


BPF = {"x86_64": 321, "aarch64": 280}
PROG_GET_NEXT_ID = 11


def kernel_programs():
    """Programs that are loaded in the kernel, whoever did."""
    number = BPF.get(platform.machine())
    libc, found, at = ctypes.CDLL(None, use_errno=True), set(), 0
    while True:
        attributes = (ctypes.c_uint32 * 3)(at, 0, 0)
        if libc.syscall(number, PROG_GET_NEXT_ID, ctypes.byref(attributes), 12) != 0:
            if ctypes.get_errno() != errno.ENOENT:
                raise Failed(f"the kernel does not tell which programs are loaded: {os.strerror(ctypes.get_errno())}")
            return found
        at = attributes[1]
        found.add(at)


def traces():
    """What a watching command may leave on the system: processes of ours, directories, groups, switches of tracing,
    programs."""
    processes = set()
    for p in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.path.basename(os.readlink(p / "exe")).startswith("fingerpost"):
                processes.add(f"process {p.name}")
        except OSError:
            continue
    places = ["/run/fingerpost/run-*", f"{tempfile.gettempdir()}/fingerpost-*", "/sys/fs/cgroup/**/fingerpost*",
              "/sys/kernel/tracing/instances/*"]
    found = {str(f) for place in places for f in pathlib.Path("/").glob(place.lstrip("/"))}
    events = pathlib.Path("/sys/kernel/tracing/set_event")
    found |= set(events.read_text().split()) if events.exists() else set()
    return processes | found, kernel_programs()


def kill(args, program, result):
    """The command is killed at any moment of its life; a moment later nothing is left, and the server answers."""
    chance, clean, took = random.Random(7), 0, []
    with SERVERS["nginx"]() as started, tempfile.TemporaryDirectory() as work:
        load = During(started.light, args.kills * 7 + 5)
        time.sleep(1)
        before, programs = traces()
        try:
            for n in range(args.kills):
                look = Look(program, started.pid, 4, work)
                time.sleep(chance.uniform(0.02, 5))
                at = time.time() - look.begun
                held = len(kernel_programs() - programs)
                look.process.send_signal(signal.SIGKILL)
                look.process.wait()
                dead, left = time.time(), None
                while time.time() - dead < 5:
                    now, loaded = traces()
                    left = (now - before, loaded - programs)
                    if not any(left):
                        break
                    time.sleep(0.02)
                took.append(time.time() - dead)
                print(f"killed after {at:.2f} s, with {held} programs in the kernel: "
                      f"{'nothing left' if not any(left) else f'LEFT {left}'} after {1e3 * took[-1]:.0f} ms",
                      flush=True)
                clean += not any(left)
                if any(left):
                    result.note(f"killed after {at:.2f} s: {sorted(left[0])} and {len(left[1])} programs are left")
        finally:
            tool = load.told()
    print(f"{args.kills} kills, clean after {1e3 * statistics.median(took):.0f} ms in the median, "
          f"{1e3 * max(took):.0f} ms at most; the load went on: {tool.requests:.0f} requests", flush=True)
    result.share("kills that left nothing", clean, args.kills, "all", clean == args.kills)
    for what, value in (("median", statistics.median(took)), ("longest", max(took))):
        result.row(f"until nothing was left, {what}", 1e3 * value, "ms")
