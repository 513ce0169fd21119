"""Types into a shell on a terminal of its own: typing.py FILE, which is {"shell": [words], "steps": [[keys, file]]}.

After the keys of a step it waits until the file is there. What the shell says goes to standard output; status 1 where
a file does not come.
"""
import json
import os
import pty
import select
import sys
import time

SECONDS = 30

with open(sys.argv[1]) as file:
    asked = json.load(file)
child, terminal = pty.fork()
if child == 0:
    os.execvp(asked["shell"][0], asked["shell"])


def read(seconds):
    """Reads what there is, so that the shell does not wait for its terminal."""
    if select.select([terminal], [], [], seconds)[0]:
        try:
            sys.stdout.buffer.write(os.read(terminal, 65536))
        except OSError:
            sys.exit("the shell has ended")


def come(file):
    """Whether the file came in time."""
    until = time.monotonic() + SECONDS
    while not os.path.exists(file):
        if time.monotonic() > until:
            return False
        read(0.005)
    return True


for keys, file in asked["steps"]:
    os.write(terminal, keys.encode())
    if not come(file):
        sys.stdout.flush()
        sys.exit(f"after {keys!r} there is no {file}")
os.close(terminal)
