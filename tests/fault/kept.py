"""Kept memory (keel/keep.h): ranks and nodes die at each step of a commit and of a restore, and the number that comes
out in the end, which every word of every step has gone into, is the same to the last bit."""
import functools
import itertools
import json
import os
import re
import socket
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import keeltest
from cluster import Cluster
from keeltest import Job, run, wait_for

KEPT = os.environ.get("KEEL_KEPT", "build/tests/fault/kept")
DIFFER = os.environ.get("KEEL_DIFFER", "build/tests/fault/differ")
RANKS, STEPS, MSG_MOVE = 3, 8, 69
COMMIT_POINTS = ["keep.opened", "keep.copying", "keep.copied", "keep.marked", "rank.barrier_entering",
                 "rank.barrier_left", "keep.met", "op.put_between_copies", "op.after_local_store"]
RESTORE_POINTS = ["rank.resuming", "keep.restoring", "keep.restored", "keep.entering_again", "keep.marked",
                  "rank.barrier_left"]
# who dies is killed, and that is seen; silence is want of a processor
FAR = ["--silence", "600s", "--stopped", "never"]


@functools.lru_cache(None)
def undisturbed(mode):
    r = run(["-n", str(RANKS), "--nodes", str(RANKS), KEPT, str(STEPS)] + mode.split())
    assert r[0] == 0, r
    return re.findall("^kept: ([0-9a-f]{16})$", r[1], re.M)[0]


def begun(job, rank):
    """The version behind which each process of the rank has begun."""
    return [int(v) for v in re.findall("^rank %d begins behind ([0-9]+)$" % rank, job.stdout(), re.M)]


def number(job):
    found = re.findall("^kept: ([0-9a-f]{16})$", job.stdout(), re.M)
    return found[-1] if found else None


def disturbed(faults, mode="", spares=1, on_failure="substitute"):
    """Versions behind which processes began that took a rank over."""
    with Cluster(RANKS, [KEPT, str(STEPS)] + mode.split(), spares=spares, on_failure=on_failure, options=FAR,
                 env={"KEEL_FAULT": faults}) as job:
        code = job.wait()
        assert code == 0, (faults, mode, code, job.stderr())
        assert number(job) == undisturbed(mode), (faults, mode, job.stdout(), job.stderr())
        return sorted(v for r in range(RANKS) for v in begun(job, r)[1:])


def sweep(points, action, passings, mode=""):
    passed = {p: 0 for p in points}
    for point, nth in itertools.product(points, passings):
        began = disturbed("%s:%d:%s:rank=1" % (point, nth, action), mode)
        passed[point] += len(began)
    assert all(passed.values()), passed


def test_a_rank_dies_at_each_step_of_a_commit():
    sweep(COMMIT_POINTS, "kill", (1, 2, 5))


def test_a_node_dies_at_each_step_of_a_commit():
    sweep(COMMIT_POINTS, "node", (1, 4))


def test_a_rank_dies_at_each_step_of_a_commit_with_barriers_in_the_steps():
    sweep(["keep.marked", "rank.barrier_entering", "rank.barrier_left", "keep.met"], "kill", (3, 4, 5, 6), "barrier")


def test_who_takes_a_rank_over_dies_at_each_step_of_its_restore():
    for first in "keep.marked:3", "keep.copied:3", "rank.barrier_left:3":
        died = 0
        for point, action in itertools.product(RESTORE_POINTS, ("kill", "node")):
            began = disturbed("%s:kill:rank=1,%s:1:%s:rank=1:life=1" % (first, point, action))
            died += len(began) == 2 or point in ("rank.resuming", "keep.restoring", "keep.restored")
        assert died >= 6, (first, died)


def test_two_ranks_die_at_different_steps_of_a_commit():
    for a, b in itertools.permutations(["keep.opened:4", "keep.copied:4", "keep.marked:4", "rank.barrier_left:4"], 2):
        began = disturbed("%s:kill:rank=0,%s:kill:rank=2" % (a, b))
        assert len(began) == 2, (a, b, began)


def test_what_was_committed_is_what_a_process_begins_with():
    assert disturbed("keep.met:4:kill:rank=1") == [4]
    assert disturbed("keep.copied:4:kill:rank=1") == [3]
    assert disturbed("keep.marked:4:kill:rank=1") == [4]  # it ends the commit in which its predecessor died
    assert disturbed("keep.copied:1:kill:rank=1") == [0]


def test_others_read_what_a_dead_rank_has_kept():
    for fault, version in ("keep.copied:4", 3), ("keep.marked:4", 4), ("keep.met:4", 4):
        with Cluster(RANKS, [KEPT, str(STEPS), "last"], on_failure="degrade", options=FAR,
                     env={"KEEL_FAULT": fault + ":node:rank=1"}) as job:
            assert job.wait() == 0, (fault, job.stderr())
            assert re.findall("^rank 1 has kept version ([0-9]+): ", job.stdout(), re.M) == [str(version)], job.stdout()


def test_what_is_lost_is_an_error_that_names_the_rank():
    lost = 0
    for other in (0, 2) * 3:  # whoever has the copies
        with Cluster(RANKS, [KEPT, str(STEPS)], spares=2, options=FAR,
                     env={"KEEL_FAULT": "keep.marked:4:node:rank=1,keep.marked:4:node:rank=%d" % other}) as job:
            code = job.wait()
            said = re.findall("keel_keep_restore: what rank ([0-9]+) has kept is lost: no copy of it is left",
                              job.stderr())
            assert code and set(map(int, said)) <= {1, other} if said else code or number(job) == undisturbed(""), job.stderr()
            lost += bool(said)
    assert lost, "no rank lost anything"


def test_a_rank_that_is_moved_loses_nothing_and_nobody_else_goes_back():
    steps = 400
    with Job(["-n", str(RANKS), "--nodes", str(RANKS), "--spares", "1", "--on-failure", "substitute"] + FAR +
             [KEPT, str(steps)]) as job:
        wait_for(lambda: all(begun(job, r) for r in range(RANKS)), "all ranks to begin")
        body = bytes([MSG_MOVE]) + json.dumps({"rank": 1, "node": 3}).encode()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as console:
            console.connect("\0keel/%s/%d" % (job.id(), 1))
            console.sendall(struct.pack("<I", len(body)) + body)
        assert job.wait() == 0, job.stderr()
        assert [len(begun(job, r)) for r in range(RANKS)] == [1, 2, 1], job.stdout()
        assert 0 < begun(job, 1)[1] < steps, job.stdout()
        moved = number(job)
    r = run(["-n", str(RANKS), "--nodes", str(RANKS), KEPT, str(steps)])
    assert re.findall("^kept: ([0-9a-f]{16})$", r[1], re.M) == [moved], (moved, r)


def test_a_version_that_did_not_count_is_nobodys():
    """The ranks differed in it and went back; then one of them dies."""
    code, out, err = run(["-n", "2", "--nodes", "2", "--spares", "1", "--on-failure", "substitute"] + FAR + [DIFFER])
    assert code == 0, (out, err)
    assert sorted(out.splitlines()) == sorted(["rank 0 begins with version 0, x 101",
                                               "rank 1 begins with version 0, x 101",
                                               "rank 1 begins with version 1, x 101", "rank 0 ends with x 101",
                                               "rank 1 ends with x 101"]), out


keeltest.main(globals())
