"""A segment for which one node has no memory: who allocates it hears so, and that node lives on."""
import os
import resource
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import keeltest
from cluster import Cluster
from keeltest import kill_any

PROGRAM = os.environ.get("KEEL_REFUSED", "build/tests/fault/refused")
FILE_MAX = 2000 * 1024  # one part of the program's large segments, and not two


def small_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_MAX, FILE_MAX))


def ends_well(job, deaths=()):
    code = job.wait()
    assert code == 0, (code, job.stderr())
    job.poll()
    assert {e["dead_node"] for e in job.has("view") if "dead_node" in e} == set(deaths), job.stderr()


def test_of_a_group_by_a_node_none_of_whose_ranks_is_a_member():
    with Cluster(2, [PROGRAM, "group"], ranks=3, before=small_files) as job:
        ends_well(job)


def has_begun(job, **kw):
    assert job.started(), job.stderr()
    assert job.until(lambda c: len(c.has("application", name="begun")) == 6, "all ranks to begin", **kw), job.stderr()


def may_write_no_more(job, node):
    resource.prlimit(job.agents[node], resource.RLIMIT_FSIZE, (FILE_MAX, FILE_MAX))


def test_of_all_by_a_node_whose_ranks_are_dead():
    with Cluster(3, [PROGRAM, "all"], ranks=6, on_failure="degrade") as job:
        has_begun(job)
        for pid, rank in list(job.rank_pids[1].items()):
            assert rank in (2, 3), job.rank_pids
            kill_any(pid, signal.SIGKILL)
        assert job.until(lambda c: c.has("view", dead_rank=2) and c.has("view", dead_rank=3), "their deaths")
        may_write_no_more(job, 1)
        job.process.stdin.close()
        ends_well(job)


def test_of_all_by_a_spare_that_has_copies_and_no_ranks():
    with Cluster(3, [PROGRAM, "all"], ranks=6, spares=1, on_failure="copies") as job:
        has_begun(job)
        job.kill_node(1)
        assert job.until(lambda c: c.redundant(), "redundancy"), job.stderr()
        may_write_no_more(job, 3)
        job.process.stdin.close()
        ends_well(job, deaths=[1])


if __name__ == "__main__":
    keeltest.main(globals())
