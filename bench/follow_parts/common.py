"""What all parts of bench/follow share."""

import pathlib
import random
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class Failed(Exception):
    """A measurement could not be made: one sentence."""


def binary(given):
    """The release binary."""
    if given:
        return given
    found = sorted((ROOT / "target").glob("*/release/fingerpost"))
    if not found:
        raise Failed("there is no release binary; build it with make build")
    return str(found[0])


def example(name):
    """Builds an example of the labs for release and gives its path."""
    subprocess.run(["cargo", "build", "--release", "-q", "--locked", "-p", "fingerpost-labs", "--example", name], cwd=ROOT, check=True)
    found = sorted((ROOT / "target").glob(f"*/release/examples/{name}"))
    if not found:
        raise Failed(f"the example {name} was built and is not there")
    return str(found[0])


def interval(values, of=statistics.median, draws=2000):
    """Low and high end of the 95 % interval of a statistic: a bootstrap over the values."""
    if len(values) < 2:
        return (values[0], values[0]) if values else (0.0, 0.0)
    drawn = sorted(of(random.choices(values, k=len(values))) for _ in range(draws))
    return drawn[int(draws * 0.025)], drawn[int(draws * 0.975)]


def percent(x):
    return f"{100 * x:.1f} %"
