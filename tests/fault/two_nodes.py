"""Two nodes die together that are next to each other: with three copies nothing is lost, and the program allocates,
draws tasks and takes mutexes as before."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import keeltest
from cluster import Cluster

PROGRAM = os.environ.get("KEEL_TWO_NODES", "build/tests/fault/two_nodes")
NODES = 5


def run(dead, right, **kw):
    with Cluster(NODES, [PROGRAM], **kw) as job:
        assert job.until(lambda c: len(c.has("application", name="here")) == NODES, "the data to be written"), job.stderr()
        for node in dead:
            job.kill_node(node)
        code, out, said = job.wait(), job.stdout(), job.stderr()
        job.poll()
        assert code == 0, (dead, code, said)
        assert out.count(": right\n") == right, (dead, out, said)
        assert not job.has("data_lost"), (dead, job.has("data_lost"))


def test_spares_take_their_place():
    for first in (0, 1, NODES - 1):
        run((first, (first + 1) % NODES), NODES, spares=2)


def test_the_others_go_on():
    for first in (0, 1, NODES - 1):
        run((first, (first + 1) % NODES), NODES - 2, on_failure="degrade")


keeltest.main(globals())
