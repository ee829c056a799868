"""keel_abort while other ranks compute, wait and communicate: the whole job ends with its code, says who did it, and
leaves nothing; also when the node of whoever called it dies in the middle of it."""
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import keeltest
from cluster import QUICK, Cluster
from keeltest import HANG_S, KEELCTL

ABORT = os.environ.get("KEEL_ABORT", "build/tests/fault/abort")
NODES, CODE = 4, 7


def cluster(who, code=CODE, how=(), **kw):
    return Cluster(NODES, [ABORT, ",".join(map(str, who)), str(code)] + list(how), options=QUICK, **kw)


def said(job, by="keelrun"):
    """What it says of the end; deaths and their outcome are told beside it."""
    lines = [line for line in job.stderr().splitlines() if line.startswith(by + ": ")]
    return [line for line in lines if " died " not in line and "the job ended with" not in line and " was killed " not in line]


def expect_aborted(job, rank, code=CODE, heard=True):
    """The code, the caller's message (unless its node took it along), one line that names it, and nobody ended by
    itself."""
    got = job.wait()
    assert got == code, (got, job.stderr())
    assert not heard or "abort: rank %d gives up" % rank in job.stderr().splitlines(), job.stderr()
    assert said(job) == ["keelrun: rank %d ended the job with code %d" % (rank, code)], job.stderr()
    assert not job.stdout(), job.stdout()


def nodes_that_killed(job):
    """Those whose agents have waited for a second after SIGTERM and then killed their ranks."""
    return {e["node"] for e in job.events("kill")}


def nodes_with_killed(job):
    """Those of which a rank was ended by SIGKILL."""
    return {e["node"] for e in job.events("exit") if e["signal"] == signal.SIGKILL}


def seconds_to_end(job):
    """From the first process's end, the caller's, to the last node's."""
    return (max(e["t_ns"] for e in job.events("over")) - min(e["t_ns"] for e in job.events("exit"))) / 1e9


def test_each_rank_ends_the_job():
    for rank in range(NODES):
        with cluster([rank]) as job:
            expect_aborted(job, rank)
            # a rank that gets no processor for a second is killed; nobody waits where nobody is left
            assert nodes_that_killed(job) <= nodes_with_killed(job), job.events_text()


def test_those_who_ignore_sigterm_end_after_a_second():
    with cluster([2], how=["stubborn"], spares=1) as job:
        expect_aborted(job, 2)
        assert seconds_to_end(job) > 0.9, seconds_to_end(job)
        assert nodes_with_killed(job) and nodes_that_killed(job) <= nodes_with_killed(job), job.events_text()


def test_several_ranks_on_a_node():
    for rank in (0, 5):
        with cluster([rank], ranks=2 * NODES) as job:
            expect_aborted(job, rank)


def test_two_at_once():
    with cluster([1, 2]) as job:
        code = job.wait()
        assert code == CODE, (code, job.stderr())
        assert len(said(job)) == 1 and said(job)[0].endswith("ended the job with code %d" % CODE), job.stderr()


def test_codes_that_no_exit_code_can_be():
    """They end the job as a failure all the same."""
    for code in (0, 256, -256):
        with cluster([2], code) as job:
            expect_aborted(job, 2, 1)
    with cluster([2], 300) as job:
        expect_aborted(job, 2, 300 & 255)


def test_before_init():
    with cluster([2], how=["early"]) as job:
        code = job.wait()
        assert code == CODE, (code, job.stderr())
        assert "abort: rank 2 gives up" in job.stderr() and len(said(job)) == 1 and "rank 2" in said(job)[0], job.stderr()


def test_without_keelrun():
    with cluster([3]) as job:
        job.id()
        assert job.started()
        job.process.kill()
        job.process.wait()
        watch = subprocess.run([KEELCTL, "attach", job.id()], capture_output=True, timeout=HANG_S)
        assert watch.returncode == CODE and b"rank 3 ended the job" in watch.stderr, (watch.returncode, watch.stderr)
        job.check_leftovers()


def test_its_node_dies_with_the_call():
    """With a spare another process takes the rank's place and ends the job again, if the first word was lost with the
    node."""
    for fault in ("rank.aborting:1:node:rank=%d", "rank.aborted:1:node:rank=%d", "recover.prepare_received:1:kill:node=%d",
                  "recover.answered:1:kill:node=%d", "recover.commit_received:1:kill:node=%d"):
        for rank in (0, 3):
            with cluster([rank], spares=1, env={"KEEL_FAULT": fault % rank}) as job:
                expect_aborted(job, rank, heard=False)


def test_its_node_dies_with_the_call_and_nobody_takes_its_place():
    """The word may be lost with the node, and the job go on; it ends either way."""
    for point in ("rank.aborting", "rank.aborted"):
        for rank in (0, 3):
            with cluster([rank], on_failure="degrade", env={"KEEL_FAULT": "%s:1:node:rank=%d" % (point, rank), "WORK_S": "1"}) as job:
                code = job.wait()
                assert code in (0, CODE), (code, job.stderr())
                if code == CODE:
                    assert said(job) == ["keelrun: rank %d ended the job with code %d" % (rank, CODE)], job.stderr()
                else:
                    assert len(job.stdout().splitlines()) == NODES - 1 and not said(job), (job.stdout(), job.stderr())


def test_another_node_dies_at_the_same_time():
    for point in ("recover.prepare_received", "recover.answered", "recover.commit_received", "recover.committed"):
        for node in (0, 2):
            with cluster([3], env={"KEEL_FAULT": "%s:1:kill:node=%d" % (point, node)}) as job:
                expect_aborted(job, 3)


def test_another_node_is_frozen():
    for node in (0, 2):
        with cluster([3]) as job:
            assert job.started()
            time.sleep(0.02)
            job.signal_node(node, signal.SIGSTOP)
            code = job.wait()
            assert code == CODE and "keelrun: rank 3 ended the job with code %d" % CODE in said(job), (code, job.stderr())


keeltest.main(globals())
