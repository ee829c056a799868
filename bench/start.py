"""How long a job takes to start and end: keelrun with a program that does nothing, from the command to the prompt. The median of five.

usage: start.py BIN [PROGRAM]    BIN: folder of keelrun; PROGRAM: one that calls keel_init and keel_finalize"""
import os
import statistics
import subprocess
import sys
import time

keelrun, repeats = os.path.join(sys.argv[1], "keelrun"), 5


def measure(label, *args):
    walls = []
    for _ in range(repeats):
        begin = time.monotonic()
        subprocess.run([keelrun, *args], stdout=subprocess.DEVNULL, check=True)
        walls.append(time.monotonic() - begin)
    print("%-44s %7.3f s   (%.3f to %.3f)" % (label, statistics.median(walls), min(walls), max(walls)), flush=True)


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
