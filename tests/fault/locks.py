"""ARMCI's mutexes when the process that holds one dies: the next who takes it is told, once, and nobody is let in
beside another."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import keeltest
from cluster import Cluster

LOCKS = os.environ.get("KEEL_LOCKS", "build/tests/fault/locks")


def run(ranks, nodes):
    with Cluster(nodes, [LOCKS], ranks=ranks, on_failure="degrade") as job:
        code, out, said = job.wait(), job.stdout(), job.stderr()
        assert code == 0 and out.count(": right\n") == ranks - 1, (code, out, said)
        assert said.count("ARMCI_Lock: mutex 0 of process 0 was held by process 1, which died\n") == 1, said


def test_mutex_of_a_dead_holder_goes_to_the_next_who_is_told():
    run(4, 3)


def test_mutex_of_a_dead_holder_within_a_node():
    run(3, 1)


keeltest.main(globals())
