"""armci_partners.py: a program of ARMCI runs two or three times side by side, and replicas do the part of the dead
(--on-death partner): it knows addresses of others' parts, which nobody can use for plain stores where each rank has a
node of its own."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import keeltest
from keeltest import Job, run

RING = os.environ["KEEL_RING"]
RANKS = 3
FAR = ["--silence", "600s", "--stopped", "never"]
ONES_OWN = r"set (\d) has lost rank (\d) .* and goes on: rank \2 of set (\d) does its part"


def runs(nodes, replicas, faults):
    """Exit code, whose part was done as (set, rank), and what keelrun said."""
    args = [*FAR, "-n", str(RANKS), "--nodes", str(nodes * replicas), "--replicas", str(replicas)]
    code, right, err = run([*FAR, "-n", str(RANKS), "--nodes", str(nodes), RING])
    assert code == 0 and re.fullmatch(r"read [0-9a-f]+\n", right), (code, right, err)
    with Job([*args, "--on-death", "partner", RING], env={"KEEL_FAULT": ",".join(faults)}) as job:
        code, out, err = job.wait(), job.stdout(), job.stderr()
    assert code or out == right, (faults, out, right, err)
    return code, {(int(s), int(r)) for s, r, _ in re.findall(ONES_OWN, err)}, err


def dies_at(point, nth, rank, set_number):
    return "%s:%d:kill:rank=%d" % (point, nth, set_number * RANKS + rank)


def test_processes_of_two_sets_die():
    for point, nth in (("replica.kept", 40), ("replica.counted", 50), ("replica.leaving", 60)):
        faults = [dies_at(point, nth, 0, 0), dies_at(point, nth + 30, 2, 1)]
        code, done, err = runs(RANKS, 2, faults)
        assert code == 0 and done == {(0, 0), (1, 2)}, (faults, code, done, err)


def test_two_replicas_of_a_process_die():
    code, done, err = runs(RANKS, 3, [dies_at("replica.kept", 40, 1, 0), dies_at("replica.kept", 80, 1, 1)])
    assert code == 0 and done == {(0, 1), (1, 1)}, (code, done, err)


def test_where_others_memory_is_on_the_node_a_set_is_retired():
    """Processes of a node may use each other's memory by pointers, of which nobody knows."""
    code, done, err = runs(1, 2, [dies_at("replica.kept", 40, 1, 0)])
    assert code == 0 and done == set() and "set 0 has lost rank 1" in err and "is retired" in err, (code, done, err)


if __name__ == "__main__":
    keeltest.main(globals())
