"""What detection costs: detect.py KEELRUN PROGRAM [--seconds S] [--rounds N]    PROGRAM: bench/onesided.c

First the processor time of an agent (with its witness) while its job sleeps, in per cent of one processor, for 2, 4, 8
and 16 nodes on this machine: the mean and the most of all agents' medians over windows of half a second, with the
default period and with one so long that hardly anything is read. Then puts of 8 bytes between two nodes with and
without detection (the same two), a job each, in turns: the median of the rounds' medians, and of the ratios of
neighbouring rounds, with their geometric mean and its 95 % interval. --nodes: only these, "" for none; --rounds 0: no
puts."""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

from collectives import Side, guarded

WINDOW = 0.5
WITHOUT = ["--silence", "600s", "--stopped", "never"]


def own_and_children(pid):
    """The agent and its witness: processes of the same program."""
    program = os.readlink(f"/proc/{pid}/exe")
    with open(f"/proc/{pid}/task/{pid}/children") as f:
        return [pid] + [c for c in map(int, f.read().split()) if os.readlink(f"/proc/{c}/exe") == program]


def used(pids):
    ns = 0
    for pid in pids:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/schedstat") as f:
                ns += int(f.read().split()[0])
    return ns / 1e9


def window(groups):
    """Per cent of a processor of each agent, for half a second."""
    begin, before = time.monotonic(), [used(g) for g in groups]
    time.sleep(WINDOW)
    after, end = [used(g) for g in groups], time.monotonic()
    return [100 * (b - a) / (end - begin) for a, b in zip(before, after)]


def idle(keelrun, nodes, options, seconds):
    """Per cent of a processor of each agent: the median of the windows. A virtual machine whose host takes its
    processors away counts that as time of whoever ran: for seconds each wake-up seems to take twenty times as long."""
    with tempfile.TemporaryDirectory() as directory:
        log = os.path.join(directory, "log")
        job = subprocess.Popen([keelrun, "--event-log", log, "-n", str(nodes), "--nodes", str(nodes), *options, "sleep", "10000"], stderr=subprocess.DEVNULL)
        try:
            agents, started = {}, 0
            while started < nodes:
                time.sleep(0.1)
                assert job.poll() is None
                with open(log) as f:
                    events = [json.loads(line) for line in f.read().split("\n")[:-1]]
                agents = {e["node"]: e["pid"] for e in events if e["event"] == "start"}
                started = sum(e["event"] == "rank_start" for e in events)
            time.sleep(4) # in the first three seconds nodes may only be starting
            groups = [own_and_children(pid) for pid in agents.values()]
            windows = [window(groups) for _ in range(int(seconds / WINDOW))]
        finally:
            job.terminate()
            job.wait()
    return [statistics.median(agent) for agent in zip(*windows)]


def put(keelrun, program, options):
    side = Side([keelrun, "-n", "2", "--nodes", "2", *options, program], 2, os.environ, False)
    got = statistics.median(side.measure("put", 8, 1000) for _ in range(9))
    assert side.end() == 0
    return got


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("keelrun")
    parser.add_argument("program")
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--nodes", default="2,4,8,16")
    args = parser.parse_args()
    print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f}\nnodes   per cent of a processor for each agent: mean, most; without detection")
    for nodes in map(int, filter(None, args.nodes.split(","))):
        own, none = (idle(args.keelrun, nodes, options, args.seconds) for options in ([], WITHOUT))
        print(f"{nodes:5} {statistics.mean(own):10.2f} {max(own):6.2f} {statistics.mean(none):8.2f}", flush=True)
    pairs = []
    for number in range(args.rounds):
        first = put(args.keelrun, args.program, WITHOUT if number % 2 else [])
        second = put(args.keelrun, args.program, [] if number % 2 else WITHOUT)
        pairs.append((second, first) if number % 2 else (first, second))
    if len(pairs) < 2:
        return
    logs = [math.log(a / b) for a, b in pairs]
    mean, error = statistics.mean(logs), 1.96 * statistics.stdev(logs) / math.sqrt(len(logs))
    print(f"put of 8 bytes, {args.rounds} pairs of jobs: {statistics.median(a for a, _ in pairs):.2f} us with detection, "
          f"{statistics.median(b for _, b in pairs):.2f} without; ratio: median {math.exp(statistics.median(logs)):.3f}, "
          f"mean {math.exp(mean):.3f}, 95 %: {math.exp(mean - error):.3f} to {math.exp(mean + error):.3f}")


if __name__ == "__main__":
    sys.exit(guarded(main))
