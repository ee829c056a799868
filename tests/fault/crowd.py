"""Many threads of each rank in all kinds of calls, while a rank or a node dies at a step of one of them, or at any
moment."""
import os
import random
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import keeltest
from cluster import Cluster

CROWD = os.environ.get("KEEL_CROWD", "build/tests/fault/crowd")
RANKS = 4
ROUNDS = int(os.environ.get("KEEL_TEST_ROUNDS", "4"))
CALLS = int(os.environ.get("KEEL_CROWD_CALLS", "15"))  # of each thread; all points below are passed
SEED = int(os.environ.get("KEEL_TEST_SEED", str(random.SystemRandom().randrange(1 << 30))))


def run(nodes, fault="", rounds=CALLS, then=None):
    options = ["--silence", "600s", "--stopped", "never"]
    with Cluster(nodes, [CROWD, str(rounds)], ranks=RANKS, on_failure="degrade", options=options, env={"KEEL_FAULT": fault}) as job:
        if then:
            then(job)
        code, out, said = job.wait(), job.stdout(), job.stderr()
        assert code == 0, (fault, code, said)
        return out.count(", right\n")


def test_nobody_dies():
    assert run(4) == RANKS and run(2) == RANKS


def died(kind, nodes, points):
    for point, nth in points:
        right = run(nodes, "%s:%d:%s:rank=1" % (point, nth, kind))
        assert RANKS - RANKS // nodes <= right < RANKS, (point, right)  # and somebody has passed there


POINTS = [("op.answered", 700), ("op.put_between_copies", 60), ("op.intent_set", 90), ("mutex.locked", 60), ("mutex.waiting", 30),
          ("mutex.handed_over", 20), ("op.chunk_in_one_copy", 5)]


def test_a_rank_dies_at_a_step():
    died("kill", 4, POINTS)


def test_a_node_dies_at_a_step():
    died("node", 4, POINTS[::2])


def test_a_rank_of_two_on_a_node_dies_at_a_step():
    died("kill", 2, POINTS[1::2])


def test_a_node_and_ranks_die_at_any_moment():
    print("KEEL_TEST_SEED=%d" % SEED)
    rng = random.Random(SEED)
    for i in range(ROUNDS):
        def kill(job):
            assert job.until(lambda c: len(c.events("application")) == RANKS, "all to have begun"), job.stderr()
            pids = [e["pid"] for e in sorted(job.events("rank_start"), key=lambda e: e["rank"])]
            agents = {e["node"]: e["pid"] for e in job.events("start")}
            for victim in rng.sample([pids[1], pids[2], pids[3], agents[i % 4]], 1 + i % 2):
                time.sleep(rng.random())
                try:
                    os.kill(victim, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        assert run(4, rounds=2 * CALLS, then=kill) >= RANKS - 2


keeltest.main(globals())
