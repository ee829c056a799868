"""Nodes that fail together: half of a job, dead or cut off, and a rack. Copies half the ring away, or in another rack,
are still there; copies on the next node are not, which shows that the blow was hard enough."""
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import keeltest
from cluster import Cluster
from keeltest import IS_ROOT, Skip

SUM = os.environ.get("KEEL_SUM", "build/tests/fault/sum")
TASKS, ROUNDS = 12, 8  # more and shorter tasks would use processors, and show no more
RESULT = "sum: %d" % (ROUNDS * TASKS * (TASKS + 1) * (2 * TASKS + 1) // 6)


def cluster(nodes, options, compute_us=1300, **kw):
    return Cluster(nodes, [SUM, str(TASKS), str(ROUNDS), str(compute_us)], on_failure="degrade", options=options, rests=True, **kw)


def outcome(job, left):
    """right: no data lost, copies equal, the right sum from each rank that is left. lost: said so, by the program and
    by the event."""
    job.want_rest("last")
    job.verify_at_rest(last=True)
    code = job.wait()
    job.poll()
    assert "WRONG" not in job.stderr(), job.stderr()
    if code == 3:
        assert "no copy of the data is left" in job.stderr() and job.has("data_lost"), job.stderr()
        return "lost"
    assert code == 0 and job.stdout().splitlines() == [RESULT] * left, (code, job.stdout(), job.stderr())
    assert not job.has("data_lost"), job.has("data_lost")
    return "right"


def after_deaths(nodes, dead, options):
    with cluster(nodes, options) as job:
        assert job.started() and job.until(lambda c: c.phase() >= 2, "round 2"), job.stderr()
        for node in dead:
            job.kill_node(node)
        said = outcome(job, nodes - len(dead))
        return said, [e["why"] for e in job.has("redundancy_reduced")]


def test_half_of_the_nodes_dies():
    for nodes in (4, 6):
        for first in (0, nodes // 2):
            half = range(first, first + nodes // 2)
            assert after_deaths(nodes, half, [])[0] == "right", half
            assert after_deaths(nodes, half, ["--copies-at", "next"])[0] == "lost", half


def test_half_of_the_nodes_is_cut_off():
    """The half with node 0 goes on."""
    if not IS_ROOT:
        raise Skip("needs root")
    for nodes in (4, 6):
        for at, expected in ("half", "right"), ("next", "lost"):
            with cluster(nodes, ["--bed", "netns", "--copies-at", at], compute_us=13000) as job:
                job.id()
                assert job.started() and job.until(lambda c: c.phase() >= 2, "round 2"), job.stderr()
                for node in range(nodes // 2, nodes):
                    job.link(node, "cut")
                assert job.until(lambda c: c.has("view", dead_node=nodes - 1), "the verdict"), job.stderr()
                job.struck = job.has("view", dead_node=nodes - 1)[-1]["t_ns"] - 1
                assert outcome(job, nodes // 2) == expected, (nodes, at, job.stderr())


def racks(nodes):
    """Nodes half the ring apart share a rack: what the default would get wrong."""
    return "".join("node%d,node%d rack%d\n" % (i, i + nodes // 2, i) for i in range(nodes // 2))


def test_a_rack_dies():
    bed = ["--bed", "netns"] if IS_ROOT else []
    for nodes in (4, 6):
        with tempfile.NamedTemporaryFile("w") as f:
            f.write("# the machine room\n" + racks(nodes))
            f.flush()
            for rack in range(nodes // 2):
                dead = (rack, rack + nodes // 2)
                said, why = after_deaths(nodes, dead, bed + ["--topology-file", f.name])
                assert said == "right", dead
                assert why == (["all copies are in one rack"] if nodes == 4 else []), (dead, why)
        assert after_deaths(nodes, (0, nodes // 2), bed)[0] == "lost"


keeltest.main(globals())
