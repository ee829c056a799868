"""What the checks of the models share: spin searches every run within bounds, then with a rule taken away."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time


def search(model, defines, level, depth):
    """(the property that fails or None, states, seconds)"""
    with tempfile.TemporaryDirectory() as where:
        subprocess.run(["spin", "-a", *(f"-D{k}={v}" for k, v in defines.items()), model], cwd=where, check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["gcc", level, "-w", "-DSAFETY", "-DCOLLAPSE", "-o", "pan", "pan.c"], cwd=where, check=True)
        start = time.monotonic()
        out = subprocess.run(["./pan", f"-m{depth}", "-n"], cwd=where, capture_output=True, text=True).stdout
    took = time.monotonic() - start
    found = re.search(r"pan:1: (.*) \(at depth", out)
    states = re.search(r"(\S+) states, stored", out)
    if not states or "max search depth too small" in out or (not found and "Search not completed" in out):
        sys.exit(f"the search is incomplete:\n{out}")
    return found and found.group(1), int(float(states.group(1))), took


def check(names, bounds, full, broken, describe, level="-O2", depth=1000000):
    """names: the model's constants, in the order of each tuple of bounds; broken: (number, bounds, rule). Does not
    return."""
    model, every = os.path.abspath(sys.argv[1]), "--full" in sys.argv
    if not shutil.which("spin"):
        print("SKIP: no spin")
        sys.exit(77)
    bad, level = 0, "-O2" if every else level
    for b in bounds + (full if every else []):
        error, states, took = search(model, dict(zip(names, b), BREAK=0), level, depth)
        print("%s: %d states, %.1f s: %s" % (describe(*b), states, took, error or "every property holds"), flush=True)
        bad += error is not None
    for number, b, rule in broken:
        error, states, took = search(model, dict(zip(names, b), BREAK=number), level, depth)
        print(f"without \"{rule}\": {error or 'NOTHING FOUND'} ({states} states, {took:.1f} s)", flush=True)
        bad += error is None
    sys.exit(1 if bad else 0)
