"""One look of `fingerpost explain` at a server."""

import json
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from follow_parts.common import Failed  # noqa: E402


class Look:
    """A run of explain: begun at once, waited for by `end`."""

    def __init__(self, program, server, seconds, work, *words):
        self.record = pathlib.Path(f"{work}/run-{time.monotonic_ns()}.json")
        named = ["--pid", str(server)] if isinstance(server, int) else list(server)
        self.begun = time.time()
        # Output into files: a pipe that is full would hold it up.
        self.out, self.err = (open(f"{self.record}.{name}", "w+") for name in ("out", "err"))
        command = [program, "explain", *named, "--seconds", str(seconds), "-q", "-o", str(self.record), *words]
        self.process = subprocess.Popen(command, stdout=self.out, stderr=self.err)
        self.peak = 0

    def end(self):
        """Waits for it. Then `took` is how long it lived, `peak` its memory at most in bytes, `text` the screen, `run`
        the record."""
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.took, self.peak, self.cpu = (time.time() - self.begun, usage.ru_maxrss * 1024,
                                          usage.ru_utime + usage.ru_stime)
        self.out.seek(0)
        self.err.seek(0)
        self.text, told = self.out.read(), self.err.read()
        self.out.close()
        self.err.close()
        if self.process.returncode:
            raise Failed(f"explain ended with {self.process.returncode}: {told.strip()[-300:]}")
        self.run = json.loads(self.record.read_text())
        return self

    def total(self, name):
        found = [o["totals"][name] for o in self.run["observations"] if name in o["totals"]]
        return found[0] if found else None

    def sentences(self):
        """What the screen says before its figures: the answer."""
        lines = self.text.splitlines()[1:]
        ends = next((n for n, line in enumerate(lines)
                     if "requests/s, median" in line or line.startswith("No request came")), 3)
        return [line.strip() for line in lines[:ends]]

    def accused(self):
        """Causes that are confirmed or likely, the largest share first."""
        return [(f["cause"], f["status"]) for f in self.run["findings"] if f["status"] in ("confirmed", "likely")]
