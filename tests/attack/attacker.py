#!/usr/bin/env python3
"""What another user of the machine does against a run, for tests/attack and bench/kill.

    attacker.py KIND [ARGUMENT…]

It says “ready” when it has done what it does at once, and goes on until its standard input is closed. Kinds:

    environment      its environment is 40 GB long (PR_SET_MM_MAP), in a process that may be looked at and in one that
                     may not (PR_SET_DUMPABLE), which makes /proc/PID root's
    marks            it gives its processes, which start others for ever, the limit that marks what a run has started
    locks DIRECTORY  it tries to lock what it can open there and in the directory of runs, in every way there is
    twice            a service, “ready PID”, that starts processes while its nice value is lower than it was: by forking
                     twice, in sessions of their own; every other one takes off what could mark it, and raises its nice
                     value by one
    chain            a process that does nothing but fork, again and again, and ends then
"""

import ctypes
import fcntl
import os
import resource
import select
import socket
import struct
import sys
import time

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
PR_SET_DUMPABLE, PR_SET_MM, PR_SET_MM_MAP = 4, 35, 14
RLIMIT_LOCKS = 10
RUNS = "/run/fingerpost"
# A process of its own that is left behind ends after this time, whatever happens.
LONGEST = 600


def over(seconds=0.0):
    """Whether who started us has had enough, within so many seconds."""
    return bool(select.select([0], [], [], seconds)[0])


def ready():
    print("ready", flush=True)


def long_environment():
    size = 40 << 30
    # MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, readable: reading it takes no memory of ours.
    at = LIBC.mmap(None, size, 1, 0x2 | 0x20 | 0x4000, -1, 0)
    fields = open("/proc/self/stat").read().rpartition(")")[2].split()
    field = lambda number: int(fields[number - 3])
    bounds = [field(n) for n in (26, 27, 45, 46, 47, 47, 28, 48, 49)] + [at, at + size]
    text = struct.pack("<11QQII", *bounds, 0, 0, 0xFFFFFFFF)
    told = ctypes.create_string_buffer(text, len(text))
    if LIBC.prctl(PR_SET_MM, PR_SET_MM_MAP, ctypes.byref(told), ctypes.c_ulong(len(text)), 0) != 0:
        sys.exit(f"the kernel does not let its environment be long: {os.strerror(ctypes.get_errno())}")


def environment():
    hidden, done = os.pipe()
    first = os.fork() != 0
    if not first:
        LIBC.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    long_environment()
    # So low that it could not be given the mark: the variable would be looked for.
    resource.setrlimit(RLIMIT_LOCKS, (7, 7))
    if first:
        os.read(hidden, 1)
        ready()
    else:
        os.write(done, b"x")
    over(LONGEST)


def marks():
    ready()
    end = time.monotonic() + LONGEST
    while not over(0.01) and time.monotonic() < end:
        # What carries a mark can be read of everybody's limits.
        for pid in (name for name in os.listdir("/proc") if name.isdigit()):
            try:
                text = open(f"/proc/{pid}/limits").read()
            except OSError:
                continue
            line = next((line for line in text.splitlines() if line.startswith("Max file locks")), "")
            soft = line.split()[3:4]
            if soft and soft[0].isdigit() and int(soft[0]) >= 1 << 61:
                carry(int(soft[0]))
                break


def carry(limit):
    """Starts a process that carries a mark and starts its like for a quarter of a second."""
    if os.fork():
        os.wait()
        return
    if os.fork():
        os._exit(0)
    resource.setrlimit(RLIMIT_LOCKS, (limit, limit))
    end = time.monotonic() + 0.25
    while time.monotonic() < end:
        if os.fork():
            os._exit(0)
    os._exit(0)


def locks(directory):
    ready()
    end = time.monotonic() + LONGEST
    held = []
    while not over(0.02) and time.monotonic() < end:
        held = held[-200:]
        for place in (directory, RUNS):
            for at, below, files in os.walk(place):
                for name in below + files:
                    path = os.path.join(at, name)
                    try:
                        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
                    except OSError:
                        continue
                    held.append(open(file, "rb", closefd=True) if os.path.isfile(path) else os.close(file))
                    if held[-1] is None:
                        held.pop()
                        continue
                    for lock in (lambda: fcntl.flock(held[-1], fcntl.LOCK_SH | fcntl.LOCK_NB),
                                 lambda: fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB),
                                 lambda: fcntl.lockf(held[-1], fcntl.LOCK_SH | fcntl.LOCK_NB)):
                        try:
                            lock()
                        except OSError:
                            pass


def twice():
    listener = socket.create_server(("127.0.0.1", 0))
    server = os.fork()
    if server == 0:
        serve(listener)
        os._exit(0)
    # Its client, which is no child of its.
    with socket.create_connection(listener.getsockname()) as connection:
        listener.close()
        print(f"ready {server}", flush=True)
        end = time.monotonic() + LONGEST
        while time.monotonic() < end and not over(0.0005):
            connection.sendall(b"x")
            connection.recv(1)
    os.waitpid(server, 0)


def serve(listener):
    """Answers each byte; those that have a lower nice value from us live on for a while, not more than a hundred."""
    connection, _ = listener.accept()
    left, last = 0, 0.0
    while connection.recv(1):
        connection.sendall(b"y")
        if os.getpriority(os.PRIO_PROCESS, 0) < 0 and left < 100 and time.monotonic() > last + 0.01:
            left, last = left + 1, time.monotonic()
            daemon(left % 2 == 1)


def daemon(hides):
    """A process that descends from nobody."""
    between = os.fork()
    if between:
        os.waitpid(between, 0)
        return
    if os.fork():
        os._exit(0)
    os.setsid()
    if hides:
        resource.setrlimit(RLIMIT_LOCKS, (7, 7))
        os.nice(1)
    for fd in range(3):
        os.dup2(os.open("/dev/null", os.O_RDWR), fd)
    os.execvp("sleep", ["sleep", "20.531"])


def chain():
    ready()
    end = time.monotonic() + LONGEST
    while time.monotonic() < end:
        if os.fork():
            os._exit(0)
        os.setsid()
        if over():
            return


def main():
    kind, *rest = sys.argv[1:]
    kinds = {"environment": environment, "marks": marks, "locks": locks, "twice": twice, "chain": chain}
    kinds[kind](*rest)


if __name__ == "__main__":
    main()
