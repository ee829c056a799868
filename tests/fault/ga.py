"""ga.py [--seeds N] [--first N]: Global Arrays whose processes and nodes die. Programs that are written for it
(apps/ga: survive, fock, ladder) have the right numbers in the end; one that is not is ended, with a line. --seeds:
kills at random moments, the programs in turn."""
import argparse
import os
import random
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from cluster import Cluster

SURVIVE = os.environ.get("KEEL_GA_SURVIVE", "build/apps/ga/ga-survive")
NODES, RANKS, ROUNDS = 4, 6, 2
PROGRAM = [SURVIVE, "40", "10", str(ROUNDS)]
FOCK = [os.environ.get("KEEL_GA_FOCK", "build/apps/ga/ga-fock"), "12", "4", str(ROUNDS)]
LADDER = [os.environ.get("KEEL_GA_LADDER", "build/apps/ga/ga-ladder"), "9", "4", "3", str(ROUNDS)]
SHADOW = {"KEEL_ARMCI_REDUNDANCY": "shadow"}


def job_of(program, on_failure=None):
    """on_failure None: the default without spares, which goes on, too, but nobody has asked for it."""
    return Cluster(NODES, program, ranks=RANKS, on_failure=on_failure, env=SHADOW)


def rank_pid(job, rank):
    for node, pids in job.rank_pids.items():
        for pid, r in pids.items():
            if r == rank:
                return node, pid
    return None, None


def ends_well(job, what):
    """Each process that lived to the end has the right numbers, and groups."""
    code, lines = job.wait(), [line for line in job.stdout().splitlines() if line.startswith("ga-")]
    assert code == 0, (what, code, job.stderr())
    assert lines and all(" 0 wrong elements" in line for line in lines), (what, lines)
    assert all(line.endswith("group right") for line in lines if line.startswith("ga-survive")), (what, lines)
    return lines


def kill(job, what):
    """A rank, a node, the node of rank 0, the node of the last rank, on which GA keeps its NXTVAL."""
    kind, number = what
    if kind == "rank":
        _, pid = rank_pid(job, number)
        if pid:
            job.kill_pid(pid)
        return
    node = {"first": lambda: rank_pid(job, 0)[0], "last": lambda: rank_pid(job, RANKS - 1)[0]}.get(kind, lambda: number)()
    if node is not None:
        job.kill_node(node)


def survives(what, phase, delay=0.0, program=PROGRAM, on_failure=None):
    with job_of(program, on_failure) as job:
        assert job.until(lambda c: c.phase() >= phase, "phase %d" % phase), job.stderr()
        time.sleep(delay)
        kill(job, what)
        return ends_well(job, (what, phase, delay))


def one_of_each():
    """In the middle of the first round, and while the arrays are filled."""
    for what in ("rank", 3), ("rank", 0), ("node", 1), ("first", 0), ("last", 0):
        survives(what, 2)
    survives(("node", 2), 1)
    for program in FOCK, LADDER:
        for what in ("rank", 3), ("node", 1), ("first", 0), ("last", 0):
            survives(what, 2, program=program)


def random_moments(seeds, first):
    for seed in range(first, first + seeds):
        rng = random.Random(seed)
        what = rng.choice([("rank", rng.randrange(RANKS)), ("node", rng.randrange(NODES)), ("first", 0), ("last", 0)])
        phase, delay = rng.randint(1, 1 + ROUNDS), rng.random() * 0.2
        program = (PROGRAM, FOCK, LADDER)[seed % 3]
        print("seed %d: %s: %s %d at phase %d and %.3f s" % (seed, program[0].split("/")[-1], *what, phase, delay), flush=True)
        survives(what, phase, delay, program)


def not_said_that_it_goes_on():
    """The program has not; and no option says it in its place."""
    for mode in None, "degrade", "substitute", "copies":
        for what, said in (("rank", 2), "process 2 was killed by SIGKILL on node 1"), (("node", 3), "died with its node 3"):
            with job_of(PROGRAM + ["quiet"], mode) as job:
                assert job.until(lambda c: c.phase() >= 2, "phase 2"), job.stderr()
                kill(job, what)
                code, err = job.wait(), job.stderr()
                assert code == 1 and said + "; the program has not called keel_survive and ends" in err, (mode, code, err)
                assert "goes on" not in err and "continue" not in err and "ga-survive" not in job.stdout(), (mode, err, job.stdout())


parser = argparse.ArgumentParser()
parser.add_argument("--seeds", type=int, default=0)
parser.add_argument("--first", type=int, default=1)
args = parser.parse_args()
if args.seeds:
    random_moments(args.seeds, args.first)
else:
    one_of_each()
    not_said_that_it_goes_on()
