"""Plain stores into replicated memory (keel/update.h): what reaches the other copies, and what is lost with a node."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import keeltest
from cluster import Cluster

UPDATE = os.environ.get("KEEL_UPDATE", "build/tests/fault/update")
BEGUN = os.environ.get("KEEL_BEGUN", "build/tests/fault/begun")
BESIDE = os.environ.get("KEEL_BESIDE", "build/tests/fault/beside")
HEIR = os.environ.get("KEEL_HEIR", "build/tests/fault/heir")
TAKEN = os.environ.get("KEEL_TAKEN", "build/tests/fault/taken")
RANKS, NODES = 5, 3
# who dies is killed, and that is seen; silence is want of a processor
FAR = ["--silence", "600s", "--stopped", "never"]


def update(redundancy):
    return Cluster(NODES, [UPDATE, redundancy], ranks=RANKS, on_failure="degrade", options=FAR)


def at_phase(job, phase):
    assert job.until(lambda c: "phase %d\n" % phase in c.stdout(), "phase %d" % phase), job.stderr()


def go_on(job):
    job.process.stdin.write(b"go\n")
    job.process.stdin.flush()


def run(redundancy, die):
    """Ranks die (die(job) says which) while they have stores that no other copy has; those that they have brought there
    stay. The ranks whose stores are lost with them."""
    with update(redundancy) as job:
        for phase in (1, 2):
            at_phase(job, phase)
            job.expect_equal()
            go_on(job)
        at_phase(job, 3)
        assert job.verify(3)["result"] == "differs"
        lost = die(job)
        go_on(job)
        at_phase(job, 4)
        if lost:  # what a rank that died alone had not brought nobody brings
            job.expect_equal()
            said = "reduced" if redundancy == "triple" else "restored"  # two nodes have room for shadows
            assert job.has("redundancy_" + said) and not job.has("redundancy_" + ("restored" if said == "reduced" else "reduced"))
        go_on(job)
        code, lines = job.wait(), job.stdout().splitlines()
        assert code == 0, (code, job.stderr())
        for rank in range(1, RANKS):
            assert "rank %d: %s" % (rank, "lost" if rank in lost else "kept") in lines, (lost, lines)


def node_dies(job, node):
    gone = sorted(job.rank_pids[node].values())
    assert gone and 0 not in gone
    job.kill_node(node)
    assert job.until(lambda c: c.redundant(), "the copies to be made again"), job.stderr()
    return gone


def rank_dies(job, node):
    pid, rank = next(iter(job.rank_pids[node].items()))
    assert rank != 0
    job.kill_pid(pid)
    assert job.until(lambda c: c.has("exit", pid=pid), "the rank's end"), job.stderr()
    return []


def test_stores_brought_to_a_shadow_outlive_their_node():
    run("shadow", lambda job: node_dies(job, 1))


def test_stores_brought_to_two_more_copies_outlive_their_node():
    run("triple", lambda job: node_dies(job, 2))


def test_nothing_is_lost_with_a_rank_alone():
    run("shadow", lambda job: rank_dies(job, 1))


def test_who_takes_a_place_loads_and_stores_in_what_is_made_again():
    with Cluster(3, [TAKEN], spares=1, options=FAR) as job:
        assert job.wait() == 0, job.stderr()
        assert "rank 1 continues on node 3" in job.stderr(), job.stderr()


def test_what_another_one_flushes_where_a_process_died_in_an_update_outlives_their_node():
    with Cluster(3, [BEGUN], ranks=6, on_failure="degrade", options=FAR) as job:
        at_phase(job, 1)
        assert job.verify(3)["result"] == "differs"  # and what the death had to change is over
        go_on(job)
        assert job.wait() == 0, job.stderr()


def test_what_neighbours_store_while_one_flushes_stays():
    with Cluster(3, [BESIDE], ranks=6, on_failure="degrade", options=FAR) as job:
        assert job.wait() == 0, job.stderr()


def test_what_is_stored_where_a_dead_writer_was_stays():
    """Copies may have been made equal before rank 0 stores: where not is tried again and again."""
    for us in range(300, 700, 40):
        with Cluster(2, [HEIR, str(us)], ranks=4, on_failure="degrade", options=FAR) as job:
            assert job.wait() == 0, (us, job.stderr())


keeltest.main(globals())
