"""Plain stores into replicated memory (keel/update.h): what reaches the other copies, and what is lost with a node."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import keeltest
from cluster import Cluster

UPDATE = os.environ.get("KEEL_UPDATE", "build/tests/fault/update")
RANKS, NODES = 5, 3


def update(redundancy):
    return Cluster(NODES, [UPDATE, redundancy], ranks=RANKS, on_failure="degrade")


def at_phase(job, phase):
    assert job.until(lambda c: "phase %d\n" % phase in c.stdout(), "phase %d" % phase), job.stderr()


def go_on(job):
    job.process.stdin.write(b"go\n")
    job.process.stdin.flush()


def run(redundancy, node):
    """A node dies while it has stores that no other copy has; those that it has brought there stay."""
    with update(redundancy) as job:
        for phase in (1, 2):
            at_phase(job, phase)
            job.expect_equal()
            go_on(job)
        at_phase(job, 3)
        assert job.verify(3)["result"] == "differs"
        gone = sorted(job.rank_pids[node].values())
        assert gone and 0 not in gone
        job.kill_node(node)
        assert job.until(lambda c: c.redundant(), "the copies to be made again"), job.stderr()
        go_on(job)
        code, lines = job.wait(), job.stdout().splitlines()
        assert code == 0, (code, job.stderr())
        for rank in range(1, RANKS):
            assert "rank %d: %s" % (rank, "lost" if rank in gone else "kept") in lines, (gone, lines)


def test_stores_brought_to_a_shadow_outlive_their_node():
    run("shadow", 1)


def test_stores_brought_to_two_more_copies_outlive_their_node():
    run("triple", 2)


keeltest.main(globals())
