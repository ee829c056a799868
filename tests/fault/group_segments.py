"""Segments of a group whose members die at each named step of their allocation, alone and with their node."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import keeltest
from cluster import Cluster

PROGRAM = os.environ.get("KEEL_GROUP_SEGMENTS", "build/tests/fault/group_segments")
POINTS = ["segment.group_entering", "segment.group_number", "segment.group_placed", "segment.group_made", "segment.group_agreed"]
RANKS, NODES = 6, 4  # 2, 2, 1 and 1; rank 5 is no member


def run(fault, killed):
    with Cluster(NODES, [PROGRAM, "2"], ranks=RANKS, on_failure="degrade", options=["--start-timeout", "600"], env={"KEEL_FAULT": fault} if fault else None, seconds=600) as job:
        code, out, said = job.wait(), job.stdout(), job.stderr()
        assert code == 0, (fault, code, said)
        assert out.count(": right\n") == RANKS - killed, (fault, out, said)


def test_nobody_dies():
    run(None, 0)


def test_a_rank_dies_at_each_step():
    for point in POINTS:
        run("%s:2:kill:rank=0" % point, 1)  # who draws the number; the first time is the memory that it makes alone
        run("%s:2:kill:rank=3" % point, 1)


def test_a_node_dies_at_each_step():
    for point in POINTS:
        run("%s:2:node:rank=0" % point, 2)
        run("%s:2:node:rank=4" % point, 1)


keeltest.main(globals())
