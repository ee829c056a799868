"""survivors.py [--full]: ranks, agents and nodes die or freeze at each named step of groups and collectives, at the
1st, 4th, 16th ... time (with --full at each) that they come by, until nobody does any more; then several one after the
other, until one rank is left. The program compares each result with what its members gave; here: all who return from a
call have returned the same, the dead included, but for what returns early (docs/protocols/collectives.md): there all
who live have."""
import argparse
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from cluster import Cluster

PROGRAM = os.environ.get("KEEL_SURVIVORS", "build/tests/fault/survivors")
NODES = 4
RANK_POINTS = ["coll.entering", "coll.left", "parcel.sending", "parcel.sent", "group.creating", "group.created"]
AGENT_POINTS = ["parcel.passing"]
EARLY = ["allreduce", "allgather"]


def run(fault, **kw):
    """The number of ranks that died."""
    for _ in range(3):
        dead = once(fault, **kw)
        if dead is not None:
            return dead
    sys.exit("this machine stands still for longer than nodes may be silent")


def once(fault, nodes=NODES, ranks=None, calls=30, length=3000, left=1000, on_failure="degrade", spares=0):
    """None: a node was declared dead because it got no processor."""
    stops = ["--stopped", "3s"] if ":stop" in fault else []  # so long all wait for who stands still
    with Cluster(nodes, [PROGRAM, str(calls), str(length), str(left)], ranks=ranks, spares=spares, on_failure=on_failure, seconds=600,
                 options=stops, env={"KEEL_FAULT": fault}) as job:
        code = job.wait()
        job.poll()
        if ":stop" not in fault and job.has("verdict", evidence="silent"):
            return None
        lines = [line.split(" ", 1) for line in job.stdout().splitlines()]
        live = [rank for rank, rest in lines if rest == "end"]
        what = (fault, code, job.stderr()[-2000:])
        said = {}
        for rank, rest in lines:
            if rest != "end":
                call, name, _ = rest.split(" ", 2)
                if rank in live or name not in EARLY:
                    assert said.setdefault((call, name), rest) == rest, (said[(call, name)], rank, rest, what)
        assert code == 0 and live, what
        return job.size - len(live)


def sweep(point, action, full, **kw):
    """At the 1st, 2nd, ... time, by each rank in turn, until nobody comes by any more."""
    times, n, runs = 0, 1, 0
    while n < 200:
        where = "node=%d" % (runs % NODES) if point in AGENT_POINTS else "rank=%d" % (runs % NODES)
        dead = run("%s:%d:%s:%s" % (point, n, action, where), **kw)
        runs += 1
        if dead == 0:
            break
        times += 1
        n = n + 1 if full else 4 * n
    print("%s %s: %d runs, somebody died in %d" % (point, action, runs, times))
    assert times > 0, "nobody came by %s" % point


def one_after_the_other():
    """The 3rd call of rank 0, the 5th of rank 1, ...: until one is left, which goes on alone."""
    size = 8
    fault = ",".join("coll.left:%d:kill:rank=%d" % (3 + 3 * r, r) for r in range(size - 1))
    assert run(fault, ranks=size, calls=40) == size - 1
    # two in the same step, and another while they are being found
    assert run("parcel.sent:25:kill:rank=1,parcel.sent:25:kill:rank=2,coll.view_seen:1:kill:rank=0") == 3


def connections():
    """Who dies while two ranks make a connection of their own, as the one that is asked and the one that asks; whenever
    that comes about."""
    for fault in "direct.asked:1:kill:rank=0", "direct.connected:1:kill:rank=0", "direct.connected:1:kill:rank=3", "direct.connected:2:node:rank=2":
        assert run(fault, left=NODES - 1) == 1, fault


def substituted():
    """A process takes the dead rank's place: it is no member, and the others go on without it."""
    for point in "coll.entering", "parcel.sent":
        run("%s:9:node:rank=2" % point, spares=1, on_failure="substitute")


def on_one_node(full):
    """Members that meet in shared memory: one dies between its post and what becomes of it, and before and after; then
    one after the other. How often a member posts depends on when the others come, so the program goes on until those
    are dead that must die."""
    for point in "coll.entering", "coll.left":
        sweep(point, "kill", full, nodes=1, ranks=NODES)
    for n in range(1, 40) if full else (1, 4, 16):
        assert run("coll.posted:%d:kill:rank=%d" % (n, n % NODES), nodes=1, ranks=NODES, left=NODES - 1) == 1
    size = 6
    fault = ",".join("coll.posted:%d:kill:rank=%d" % (2 + 2 * r, r) for r in range(size - 1))
    assert run(fault, nodes=1, ranks=size, left=1) == size - 1


parser = argparse.ArgumentParser()
parser.add_argument("--full", action="store_true")
full = parser.parse_args().full
for i, point in enumerate(RANK_POINTS):
    sweep(point, "node" if i % 2 else "kill", full)
sweep("parcel.sent", "kill", full, length=40000)
sweep("parcel.passing", "kill", full, ranks=2 * NODES)
sweep("parcel.passing", "stop", full, calls=12)
one_after_the_other()
on_one_node(full)
connections()
substituted()
