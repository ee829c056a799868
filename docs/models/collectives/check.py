#!/usr/bin/env python3
"""check.py MODEL [--full]: spin searches every run of the model within bounds; then rules are broken, and it must find each out.

Prints states and time of each search. --full: the bounds that README.md names, minutes and some GB instead of seconds."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

KINDS = ["barrier and creation of a group", "agreement"]
# kind, members, deaths
BOUNDS = [(0, 3, 2), (1, 3, 1)]
FULL = [(1, 3, 2), (0, 4, 1), (1, 4, 1), (0, 4, 2), (0, 5, 1)]
# the rule taken away, and bounds within which that shows
BROKEN = [
    (1, (1, 3, 1), "an agreement meets twice"),
    (2, (0, 3, 1), "who has decided answers with the decision"),
    (3, (0, 3, 2), "a letter counts only in the view it was sent in"),
]


def search(model, bounds, broken=0):
    """(the property that fails or None, states, seconds)"""
    kind, members, deaths = bounds
    with tempfile.TemporaryDirectory() as where:
        defines = [f"-DKIND={kind}", f"-DMEMBERS={members}", f"-DDEATHS={deaths}", f"-DBREAK={broken}"]
        subprocess.run(["spin", "-a", *defines, model], cwd=where, check=True, stdout=subprocess.DEVNULL)
        level = "-O2" if "--full" in sys.argv else "-O1"
        subprocess.run(["gcc", level, "-w", "-DSAFETY", "-DCOLLAPSE", "-o", "pan", "pan.c"], cwd=where, check=True)
        start = time.monotonic()
        out = subprocess.run(["./pan", "-m1000000"], cwd=where, capture_output=True, text=True).stdout
    took = time.monotonic() - start
    found = re.search(r"pan:1: (.*) \(at depth", out)
    states = re.search(r"(\S+) states, stored", out)
    if not states or "max search depth too small" in out or (not found and "Search not completed" in out):
        sys.exit(f"the search is incomplete:\n{out}")
    return found and found.group(1), int(float(states.group(1))), took


def main():
    model = os.path.abspath(sys.argv[1])
    if not shutil.which("spin"):
        print("spin is not installed")
        return 77
    bad = 0
    for bounds in BOUNDS + (FULL if "--full" in sys.argv else []):
        error, states, took = search(model, bounds)
        print("%s, %d members, %d deaths: %d states, %.1f s: %s"
              % (KINDS[bounds[0]], *bounds[1:], states, took, error or "every property holds"), flush=True)
        bad += error is not None
    for broken, bounds, rule in BROKEN:
        error, states, took = search(model, bounds, broken)
        print(f"without \"{rule}\": {error or 'NOTHING FOUND'} ({states} states, {took:.1f} s)", flush=True)
        bad += error is None
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
