"""As many nodes as a hundred times the processors, on one machine: they start as a tree and end, and nobody is doubted
for long, given up or started twice."""
import collections
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../lib"))
import keeltest
from keeltest import Job

NODES, FAN_OUT = 256, 100


def test_256_nodes_start_and_end():
    with Job(["-n", str(NODES), "--nodes", str(NODES), "--start-timeout", "300", "true"]) as job:
        assert job.wait() == 0, job.stderr()
        assert job.stderr() == "", job.stderr()  # no node's start was begun again, nobody died
        by = job.events("started")[0]["started_by"]
        assert by[:FAN_OUT] == [-1] * FAN_OUT and min(by[FAN_OUT:]) >= 0, by
        for event in "start", "rank_start", "exit", "over":
            nodes = collections.Counter(e["node"] for e in job.events(event) if e["node"] >= 0)
            assert nodes == collections.Counter(range(NODES)), (event, nodes)
        assert len(job.events("suspect")) < 4 * NODES, len(job.events("suspect"))


keeltest.main(globals())
