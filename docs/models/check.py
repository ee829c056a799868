#!/usr/bin/env python3
"""check.py MODEL [--full]: spin searches every run of the model within bounds; then rules are broken, and it must find each out.

Prints states and time per search. --full: the bounds named in README.md, minutes and 2 GB instead of seconds."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

# members, deaths, false verdicts, messages held back
BOUNDS = [(2, 1, 2, 1), (3, 0, 3, 0), (3, 2, 1, 1), (4, 1, 1, 0)]
FULL = [(3, 2, 2, 1), (4, 1, 1, 1), (4, 2, 1, 1)]
# the rule taken away, and bounds within which that shows
BROKEN = [
    (1, (3, 0, 3, 0), "a decision needs a majority"),
    (2, (2, 0, 2, 0), "of two halves only that with the lowest id decides"),
    (3, (5, 1, 1, 0), "what COLLECT finds accepted is proposed again"),
    (4, (5, 1, 1, 0), "settled is said when the whole view has committed"),
    (5, (5, 1, 1, 0), "a ballot below the promised one is refused"),
]


def search(model, bounds, broken=0):
    """(the property that fails or None, states, seconds)"""
    nodes, deaths, false, stray = bounds
    with tempfile.TemporaryDirectory() as where:
        defines = [f"-DNODES={nodes}", f"-DDEATHS={deaths}", f"-DFALSE={false}", f"-DSTRAY={stray}", f"-DBREAK={broken}"]
        subprocess.run(["spin", "-a", *defines, model], cwd=where, check=True)
        subprocess.run(["gcc", "-O2" if "--full" in sys.argv else "-O0", "-w", "-DSAFETY", "-DCOLLAPSE", "-o", "pan", "pan.c"], cwd=where, check=True)
        start = time.monotonic()
        out = subprocess.run(["./pan", "-m200000", "-n"], cwd=where, capture_output=True, text=True).stdout
    took = time.monotonic() - start
    states = int(re.search(r"(\d+) states, stored", out).group(1))
    if "max search depth too small" in out or "Search not completed" in out and "errors: 0" in out:
        sys.exit(f"the search is incomplete:\n{out}")
    error = re.search(r"pan:1: (.*) \(at depth", out)
    return error and error.group(1), states, took


def main():
    model = os.path.abspath(sys.argv[1])
    if not shutil.which("spin"):
        print("SKIP: no spin")
        return 77
    bad = 0
    for bounds in BOUNDS + (FULL if "--full" in sys.argv else []):
        error, states, took = search(model, bounds)
        print("%d members, %d deaths, %d false verdicts, %d late messages: %d states, %.1f s: %s"
              % (*bounds, states, took, error or "every property holds"), flush=True)
        bad += error is not None
    for broken, bounds, rule in BROKEN:
        error, states, took = search(model, bounds, broken)
        print(f"without \"{rule}\": {error or 'NOTHING FOUND'} ({states} states, {took:.1f} s)", flush=True)
        bad += error is None
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
