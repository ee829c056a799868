"""How long a job takes to start and end: keelrun with a program that does nothing, from the command to the prompt. The
median of five, with the processor time of all its processes, and where the time went: until all agents have joined,
until the last rank runs, until it has ended, until the last node is over, until keelrun has heard it, until the prompt.

usage: start.py BIN [PROGRAM]    BIN: folder of keelrun; PROGRAM: one that calls keel_init and keel_finalize"""
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

keelrun, repeats = os.path.join(sys.argv[1], "keelrun"), 5


def phases(log, begin, end):
    """Where the time of one run went, in ms: all agents there, ranks started, ranks ended, nodes over, keelrun over,
    prompt."""
    last = {}
    with open(log) as f:
        for e in map(json.loads, f):
            last[e["event"], e["node"] < 0] = max(e["t_ns"] / 1e9, last.get((e["event"], e["node"] < 0), 0))
    marks = [begin, *(last[mark] for mark in (("started", True), ("rank_start", False), ("exit", False), ("over", False), ("over", True))), end]
    return [1000 * (b - a) for a, b in zip(marks, marks[1:])]


def measure(label, *args):
    walls, parts, used = [], [], []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as directory:
            log = os.path.join(directory, "log")
            before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
            subprocess.run([keelrun, "--event-log", log, *args], stdout=subprocess.DEVNULL, check=True)
            end, after = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
            walls.append(end - begin)
            parts.append(phases(log, begin, end))
            used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    print("%-44s %7.3f s   (%.3f to %.3f)   %6.2f s of processors   ms: %s" %
          (label, statistics.median(walls), min(walls), max(walls), statistics.median(used),
           " ".join("%5.0f" % statistics.median(p) for p in zip(*parts))), flush=True)


with open("/proc/loadavg") as f:
    print("load before: " + f.read().strip())
for nodes in (1, 8, 16, 32, 64):
    measure("%d nodes" % nodes, "-n", str(nodes), "--nodes", str(nodes), "true")
measure("128 ranks on 8 nodes", "-n", "128", "--nodes", "8", "true")
if len(sys.argv) > 2:
    measure("128 ranks on 8 nodes, keel_init and _finalize", "-n", "128", "--nodes", "8", sys.argv[2])
measure("8 nodes, of which agents start 6", "-n", "8", "--nodes", "8", "--fan-out", "2", "true")
repeats = 1
for fan_out in ("100", "1000"):
    measure("256 nodes, fan-out " + fan_out, "-n", "256", "--nodes", "256", "--fan-out", fan_out, "--start-timeout", "200", "true")
