"""What all parts of bench/follow share."""

import subprocess

import lib


class Failed(Exception):
    """A measurement could not be made: one sentence."""


def example(name):
    """Builds an example of the labs for release and gives its path."""
    subprocess.run(["cargo", "build", "--release", "-q", "--locked", "-p", "fingerpost-labs", "--example", name],
                   cwd=lib.ROOT, check=True)
    return str(lib.built(f"examples/{name}", f"the example {name}"))
