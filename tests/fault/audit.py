"""keelctl verify, and what it finds after mishaps: in real processes, at moments when the program rests."""
import json
import os
import re
import resource
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import keeltest
from cluster import Cluster
from flips import copy_of, flip
from keeltest import HANG_S, KEELCTL
from memory_group import MemoryGroup
from resting import PART, PROGRAM, at_rest, ends_well

HUGE = int(os.environ.get("KEEL_AUDIT_HUGE", 256 << 20))
ALIGN = 64


def audit(mode, nodes=3, **kw):
    job = Cluster(nodes, [PROGRAM] + mode.split(), on_failure="degrade", **kw)
    return job


def test_verify_says_that_copies_are_equal():
    with audit("quiet") as job:
        at_rest(job)
        verdict = job.verify()
        assert verdict["result"] == "equal" and verdict["busy"] == 0 and verdict["single"] == 0, verdict
        assert verdict["bytes"] >= 2 * 3 * PART, verdict
        text = subprocess.run([KEELCTL, "verify", job.id()], capture_output=True, text=True, timeout=HANG_S)
        assert text.returncode == 0 and re.fullmatch(r"all copies are equal: \d+ bytes compared\n", text.stdout), text
        ends_well(job)


def test_verify_names_a_byte_that_differs():
    with audit("quiet") as job:
        at_rest(job)
        fd = copy_of(job, 0, PART)
        old, new = flip(fd, 300001)
        verdict = job.verify(3)
        assert verdict["result"] == "differs" and verdict["slot_offset"] == verdict["offset"] == 300001, verdict
        assert verdict["rank"] == verdict["slot"] and verdict["segment"] in (1, 2), verdict
        assert sorted(c["byte"] for c in verdict["copies"]) == sorted((old, new)), verdict
        assert 0 in [c["node"] for c in verdict["copies"]], verdict
        text = subprocess.run([KEELCTL, "verify", job.id()], capture_output=True, text=True, timeout=HANG_S)
        assert text.returncode == 3 and text.stdout.startswith(
            "copies differ: segment %d, rank %d's part, offset 300001 (slot %d): node " %
            (verdict["segment"], verdict["rank"], verdict["slot"])), text
        flip(fd, 300001)
        assert job.verify()["result"] == "equal"
        os.close(fd)
        ends_well(job)


def test_verify_does_not_call_a_block_different_that_is_being_written():
    with audit("busy") as job:
        at_rest(job)
        for _ in range(3):
            verdict = job.verify(0, 4)
            assert verdict["result"] in ("equal", "busy"), verdict
            assert verdict["result"] == "equal" or (verdict["segment"] == 1 and verdict["rank"] == 1), verdict
        job.process.stdin.close()
        ends_well(job)


def test_verify_says_what_has_one_copy_only():
    with audit("quiet", nodes=2) as job:
        at_rest(job)
        job.kill_node(1)
        job.until(lambda c: c.redundant(), "the death to be known")
        verdict = job.verify()
        assert verdict["result"] == "equal" and verdict["single"] > 0 and verdict["bytes"] == 0, verdict
        text = subprocess.run([KEELCTL, "verify", job.id()], capture_output=True, text=True, timeout=HANG_S)
        assert "%d parts have one copy only" % verdict["single"] in text.stdout, text
        ends_well(job)


def test_verify_of_a_job_that_is_not_there_or_does_not_answer():
    gone = subprocess.run([KEELCTL, "verify", "0123456789abcdef"], capture_output=True, text=True, timeout=HANG_S)
    assert gone.returncode == 1 and gone.stdout == "", gone


def test_copies_are_equal_after_a_node_died():
    with audit("quiet", nodes=4) as job:
        at_rest(job)
        job.kill_node(2)
        job.until(lambda c: c.redundant(), "redundancy to be restored")
        job.expect_equal()
        ends_well(job)


def test_nodes_whose_memory_ends_while_they_are_filled_lose_nothing():
    groups = []
    try:
        with audit("large %d" % (48 << 20), nodes=4) as job:
            at_rest(job)
            for node in (0, 2, 3):  # a group each: one that is ended must not make room for the next
                groups.append(MemoryGroup((8 << 20) + node * 4096))
                groups[-1].add(job.agents[node])
            job.kill_node(1)
            assert job.until(lambda c: c.redundant(), "the copies to be declined"), job.stderr()
            assert job.has("redundancy_reduced") and not job.has("data_lost"), job.seen
            assert all(e["copysets"] > 0 and e["why"] for e in job.has("redundancy_reduced")), job.seen
            job.expect_equal()
            ends_well(job)
            job.poll()
            assert {e["dead_node"] for e in job.has("view") if "dead_node" in e} == {1}, job.seen
    finally:
        for group in groups:
            group.close()


def test_a_segment_for_which_an_agent_has_no_descriptor_is_refused_to_all():
    for node in (0, 2):
        with audit("refused") as job:
            at_rest(job)
            used = {int(name) for name in os.listdir("/proc/%d/fd" % job.agents[node])}
            free = min(set(range(len(used) + 1)) - used)
            resource.prlimit(job.agents[node], resource.RLIMIT_NOFILE, (free, free))
            job.process.stdin.close()
            ends_well(job)
            job.poll()
            assert not job.has("view"), job.seen


def test_a_segment_larger_than_an_agent_may_make_a_file_is_refused_to_all():
    for node in (0, 2):
        with audit("refused") as job:
            at_rest(job)
            resource.prlimit(job.agents[node], resource.RLIMIT_FSIZE, (1, 1))
            job.process.stdin.close()
            ends_well(job)
            job.poll()
            assert not job.has("view"), job.seen


def test_finalize_completes_what_has_handles():
    with audit("handles") as job:
        at_rest(job)
        job.expect_equal()
        ends_well(job)


def test_exit_with_puts_under_way_leaves_equal_copies():
    for _ in range(3):
        with audit("exit") as job:
            at_rest(job)
            job.expect_equal()
            ends_well(job)


def test_130_threads_and_a_node_that_dies_each_ticket_once():
    with audit("threads", nodes=4) as job:
        assert job.started(), job.stderr()
        assert job.until(lambda c: c.has("application", name="drawing"), "tickets to be drawn"), job.stderr()
        job.kill_node(2)
        at_rest(job)
        job.until(lambda c: c.redundant(), "redundancy to be restored")
        job.expect_equal()
        ends_well(job)
        assert ", each once" in job.stdout(), job.stdout()


def test_huge_put_to_the_own_node_whose_writer_dies():
    pieces = HUGE // 16384
    with audit("huge %d" % HUGE, env={"KEEL_FAULT": "op.after_local_store:%d:kill:rank=0" % (pieces + pieces // 2)}) as job:
        at_rest(job)
        job.until(lambda c: c.has("redundancy_restored"), "the copies to be made equal")
        job.expect_equal()
        job.kill_node(2)
        ends_well(job)


keeltest.main(globals())
