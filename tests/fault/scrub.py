"""The scrubber (keelrun --scrub) in real processes: bytes of copies at rest are changed from outside, in memory of
agents; it tells and mends them, whatever else goes on, and nothing else."""
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import keeltest
from cluster import Cluster
from flips import copy_of, flip
from keeltest import HANG_S, KEELRUN, wait_for
from resting import PART, PROGRAM, at_rest, ends_well


def scrubbed(mode, nodes=3, options=(), **kw):
    return Cluster(nodes, [PROGRAM] + mode.split(), on_failure="degrade", options=["--scrub", "1000", *options], **kw)


def count(job, name):
    """Of all agents."""
    return sum(node["counters"]["agent"].get(name, 0) for node in job.status()["nodes"].values() if "counters" in node)


def passes(job, n=2):
    """So many more passes have gone through all copies."""
    begun = count(job, "scrubbed_bytes")
    wait_for(lambda: count(job, "scrubbed_bytes") >= begun + (n + 1) * job.nodes * 5 * PART, "%d passes" % n)


def found(job):
    job.poll()
    return job.has("scrubbed")


def await_found(job, n):
    assert job.until(lambda c: len(c.has("scrubbed")) >= n, "the scrubber to find %d" % n), job.stderr()
    assert len(found(job)) == n, found(job)


def expect_equal(job):
    verdict = wait_for(lambda: (lambda v: v if v["result"] != "busy" else None)(job.verify()), "a verdict")
    assert verdict["result"] == "equal", verdict


def test_bytes_that_change_at_rest_are_told_and_mended():
    """In memory of every node: of its own part, and of what it holds of others', of both segments."""
    with scrubbed("quiet") as job:
        at_rest(job)
        passes(job)
        for node in range(3):
            fd = copy_of(job, node, PART)
            old, _ = flip(fd, 300001 + node)
            await_found(job, node + 1)
            line = found(job)[-1]
            assert line["mended"] == "yes" and line["node"] == node and line["offset"] == 300001 + node, line
            assert line["bytes"] == 1 and line["segment"] in (1, 2) and line["rank"] == line["slot"], line
            wait_for(lambda: os.pread(fd, 1, 300001 + node)[0] == old, "the old byte")
            os.close(fd)
            expect_equal(job)
        assert job.stderr().count("changed by itself") == 3, job.stderr()
        passes(job)
        assert len(found(job)) == 3
        assert count(job, "scrub_mismatches") == count(job, "scrub_mended") == 3, job.status()
        ends_well(job)


def test_what_is_written_all_the_time_is_left_alone():
    """Rank 0 puts to rank 1's part without an end; beside it a byte changes by itself."""
    with scrubbed("busy") as job:
        at_rest(job)
        passes(job, 5)
        assert not found(job), found(job)
        fd = copy_of(job, 0, PART)
        flip(fd, PART - 1)
        job.until(lambda c: c.has("scrubbed"), "the scrubber to find it", 20)
        os.close(fd)
        assert len(found(job)) <= 1 and all(e["node"] == 0 and e["mended"] == "yes" for e in found(job)), found(job)
        ends_well(job)


def test_agents_that_stand_still_meanwhile():
    with scrubbed("quiet") as job:
        at_rest(job)
        passes(job)
        for node in range(3):
            fd = copy_of(job, 1, PART)
            flip(fd, 1000 + node)
            for _ in range(3):
                os.kill(job.agents[node], signal.SIGSTOP)
                time.sleep(0.3)  # stands still, for less than it is declared dead for
                os.kill(job.agents[node], signal.SIGCONT)
                time.sleep(0.1)
            await_found(job, node + 1)
            os.close(fd)
            expect_equal(job)
        ends_well(job)


def test_node_that_dies_while_one_is_mended():
    """Whichever comes first: copies are equal, and the program ends well."""
    for delay in 0.0, 0.2, 0.4, 0.8:
        with scrubbed("quiet", nodes=4) as job:
            at_rest(job)
            passes(job)
            fd = copy_of(job, 1, PART)
            flip(fd, 5)
            time.sleep(delay)
            job.kill_node(3)
            assert job.until(lambda c: c.has("redundancy_restored"), "copies to be restored"), job.stderr()
            passes(job)
            os.close(fd)
            expect_equal(job)
            assert all(e["node"] == 1 for e in found(job)), found(job)
            ends_well(job)


def test_without_it_nothing_is_read():
    with Cluster(3, [PROGRAM, "quiet"], on_failure="degrade") as job:
        at_rest(job)
        assert count(job, "scrubbed_bytes") == 0, job.status()
        ends_well(job)


def test_rates_that_make_no_sense_are_refused():
    for rate in "0", "-1", "fast", "10001", "1.5", "":
        run = subprocess.run([KEELRUN, "-n", "1", "--nodes", "1", "--scrub", rate, "true"], capture_output=True,
                             text=True, timeout=HANG_S)
        why = "keelrun: --scrub: %s is neither off nor a number of MB/s from 1 to 10000\n" % rate
        assert run.returncode == 2 and run.stderr == why, run


keeltest.main(globals())
