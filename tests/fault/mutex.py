"""Mutexes whose holders, waiters and those that hand over die at each named step, alone and with their node; and are
taken over by a spare; and that stand still for longer than an operation may take."""
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import keeltest
from cluster import Cluster
from keeltest import state_of, wait_for

MUTEX = os.environ.get("KEEL_MUTEX", "build/tests/fault/mutex")
POINTS = ["mutex.waiting", "mutex.locked", "mutex.chosen", "mutex.handed_over"]
RANKS, NODES = 5, 3


def run(fault, on_failure="degrade", spares=0):
    with Cluster(NODES, [MUTEX, "12"], ranks=RANKS, spares=spares, on_failure=on_failure, env={"KEEL_FAULT": fault}) as job:
        code, out, said = job.wait(), job.stdout(), job.stderr()
        assert code == 0, (fault, code, said)
        return out.count(", right\n"), sum(int(line.split()[4]) for line in out.splitlines())


def died(kind):
    deaths = 0
    for point in POINTS:
        for nth in 1, 3:
            right, told = run("%s:%d:%s:rank=2" % (point, nth, kind))
            assert right >= 2, (point, nth, right)
            deaths += right < RANKS
            if right < RANKS and point == "mutex.locked":  # whoever got it next, if it lived, was told
                assert told == 1, (point, nth, told)
    assert deaths >= 6, deaths  # a step that nobody passes three times kills nobody


def test_a_rank_dies_at_each_step():
    died("kill")


def test_a_node_dies_at_each_step():
    died("node")


def test_a_spare_goes_on_for_the_holder_and_waits_for_nobody_that_is_gone():
    for point in "mutex.waiting", "mutex.locked":
        right, told = run("%s:2:node:rank=2" % point, "substitute", 1)
        assert right == RANKS, (point, right)
        assert told == (1 if point == "mutex.locked" else told), (point, told)


def test_who_is_not_answered_in_time_does_not_hold_a_mutex_without_knowing():
    for step in "locked:1", "handed_over:1", "handed_over:2":  # it is about to unlock, to try, to lock
        with Cluster(NODES, [MUTEX, "alone"], on_failure="degrade", options=["--silence", "600s", "--stopped", "never"],
                     env={"KEEL_FAULT": "mutex.%s:stop:rank=1" % step, "KEEL_TIMEOUT_MS": "200"}) as job:
            assert job.until(lambda c: c.stopped(), "the rank to stand still"), job.stderr()
            pid, agent = job.stopped()[1], job.agents[0]
            os.kill(agent, signal.SIGSTOP)
            wait_for(lambda: state_of(agent) == "T", "the agent to stand still")
            os.kill(pid, signal.SIGCONT)
            time.sleep(1)  # five times as long as an operation may take
            os.kill(agent, signal.SIGCONT)
            code = job.wait()
            assert code == 0, (step, code, job.stderr())


keeltest.main(globals())
