"""Nodes that freeze for good: whoever is left goes on or ends, nobody waits for ever, and nothing frozen is left
behind."""
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import keeltest
from cluster import QUICK, Cluster
from keeltest import IS_ROOT, Skip, alive, wait_for

SUM = os.environ.get("KEEL_SUM", "build/tests/fault/sum")
TASKS, ROUNDS, COMPUTE_US = 12, 8, 3300  # more and shorter tasks would use processors, and show no more
RESULT = "sum: %d" % (ROUNDS * TASKS * (TASKS + 1) * (2 * TASKS + 1) // 6)


def cluster(nodes, options=(), **kw):
    return Cluster(nodes, [SUM, str(TASKS), str(ROUNDS), str(COMPUTE_US)], options=QUICK + list(options), **kw)


def freeze(job, node):
    """Agent and ranks stand still in the middle of the run; their pids."""
    job.id()
    assert job.started() and job.until(lambda c: c.phase() >= 2, "round 2"), job.stderr()
    pids = job.node_pids(node)
    job.signal_node(node, signal.SIGSTOP)
    return pids


def expect_gone(pids):
    for pid in pids:
        wait_for(lambda: not alive(pid), "frozen process %d to be gone" % pid)


def lower_of_two(**kw):
    """Node 1 cannot tell that it is not the one cut off, and ends; node 0 stays frozen: keelrun gives up."""
    with cluster(2, on_failure="degrade", **kw) as job:
        pids = freeze(job, 0)
        code = job.wait()
        assert code == 1, (code, job.stderr())
        said = [line for line in job.stderr().splitlines() if line.startswith("keelrun: ")]
        assert any("node 0 has not answered for" in line and "node 1" in line for line in said), job.stderr()
        assert not job.stdout(), job.stdout()
        expect_gone(pids)


def test_lower_of_two_for_good():
    lower_of_two()


def test_lower_of_two_for_good_in_namespaces():
    if not IS_ROOT:
        raise Skip("needs root")
    lower_of_two(options=["--bed", "netns"])


def test_lower_of_two_thaws_after_the_other_ended():
    """Before keelrun gives up: a kernel that refuses its probes tells node 0 that node 1 is gone, and it goes on
    alone."""
    with cluster(2, on_failure="degrade") as job:
        freeze(job, 0)
        job.until(lambda c: c.has("agent_lost", lost=1), "node 1 to end itself")
        time.sleep(1.5)
        job.signal_node(0, signal.SIGCONT)
        code = job.wait()
        assert code == 0 and job.stdout().splitlines() == [RESULT], (code, job.stdout(), job.stderr())


def test_higher_of_two_for_good():
    with cluster(2, on_failure="degrade") as job:
        pids = freeze(job, 1)
        code = job.wait()
        assert code == 0 and job.stdout().splitlines() == [RESULT], (code, job.stdout(), job.stderr())
        expect_gone(pids)


def test_each_of_four_for_good():
    for node in range(4):
        with cluster(4, spares=1) as job:
            pids = freeze(job, node)
            code = job.wait()
            assert code == 0 and job.stdout().splitlines() == [RESULT] * 4, (code, job.stdout(), job.stderr())
            expect_gone(pids)


keeltest.main(globals())
