"""load.py [--minutes M] [--load N] [--silence TIME] [--stopped TIME]: no death where none dies. A job of four nodes and
a spare communicates all the time on a machine whose processors N busy loops fight for. Fails if anybody is declared
dead.

What is printed tells how the machine did: the load, and how late a thread with real-time priority woke up at most,
which is how long the machine itself stood still. Nobody can tell a node from a dead one that stands still for longer
than the limit."""
import argparse
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from cluster import Cluster

SUM = os.environ.get("KEEL_SUM", "build/tests/fault/sum")
NODES, SPARES, TASKS, COMPUTE_US = 4, 1, 400, 400
METER = """
import ctypes, os, time
ctypes.CDLL(None).prctl(1, 9)  # die with the parent
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(90))
except PermissionError:
    pass
while True:
    before = time.monotonic()
    time.sleep(0.005)
    late = (time.monotonic() - before) * 1e3 - 5
    if late > 20:
        print("%.0f" % late, flush=True)
"""
BUSY = "import ctypes; ctypes.CDLL(None).prctl(1, 9)\nwhile True: pass"


def report(job, loads, late, seconds):
    job.poll()
    said = {name: len(job.has(name)) for name in ("suspect", "cleared", "verdict", "view")}
    print("%.1f minutes, load %.1f to %.1f (mean %.1f), machine late by at most %.0f ms (%d times more than 20 ms); round %d; %s" % (
        seconds / 60, min(loads), max(loads), sum(loads) / len(loads), max(late, default=0), len(late), job.phase(),
        ", ".join("%s: %d" % item for item in said.items())))
    for e in job.has("verdict") + job.has("view"):
        print(e)
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--load", type=int, default=8)
    parser.add_argument("--silence", help="keelrun's, as --stopped")
    parser.add_argument("--stopped")
    options = parser.parse_args()
    limits = [word for name in ("silence", "stopped") if vars(options)[name] for word in ("--" + name, vars(options)[name])]
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(options.load)]
    meter = subprocess.Popen([sys.executable, "-c", METER], stdout=subprocess.PIPE)
    os.set_blocking(meter.stdout.fileno(), False)
    late, loads, ended = [], [], False
    seconds = options.minutes * 60
    try:
        with Cluster(NODES, [SUM, str(TASKS), "1000000", str(COMPUTE_US)], spares=SPARES, options=limits,
                     seconds=seconds + 120) as job:
            assert job.started(), job.stderr()
            begin = time.monotonic()
            while time.monotonic() - begin < seconds and not ended:
                time.sleep(1)
                job.poll()
                late += [float(line) for line in (meter.stdout.read() or b"").split()]
                loads.append(os.getloadavg()[0])
                ended = job.process.poll() is not None
            report(job, loads, late, time.monotonic() - begin)
            dead = job.false_deaths() or job.has("verdict")
            if not ended:
                job.process.send_signal(signal.SIGINT)
                job.wait()
    finally:
        for child in busy + [meter]:
            child.kill()
            child.wait()
    if dead or ended:
        print("FAILED: %s" % ("declared dead: %s" % dead if dead else "the job ended by itself: " + job.stderr()))
        sys.exit(1)


main()
