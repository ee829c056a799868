"""Several networks between the nodes: one that is cut costs nobody's life, both cost the node, and one that comes back
is used again."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import keeltest
from keeltest import IS_ROOT, KEELCTL, Job, Skip, wait_for

PROGRAM = os.environ.get("KEEL_RAILS_PROGRAM", "build/tests/fault/rails")
RAILS = ["--bed", "netns", "--rails", "veth0,veth1", "--silence", "1s"]


def need_root():
    if not IS_ROOT:
        raise Skip("needs root")


def cable(job, node, rail, whole):
    """A cut that nobody is told of, as pm/bed makes it, of one cable."""
    port = "p%d" % node + ("r%d" % rail if rail else "")
    bridge = "br%d" % rail if whole else "cut%d" % node
    subprocess.run(["ip", "-n", "keel-%s-hub" % job.id()[:8], "link", "set", port, "master", bridge], check=True)


def rounds(job, rank):
    said = re.findall(r"^rank %d: (\d+) rounds, (\d+) ms$" % rank, job.stdout(), re.M)
    return (int(said[-1][0]), [int(ms) for _, ms in said]) if said else (0, [])


def goes_on(job, ranks, what):
    """All of them get further; returns the longest that an operation took meanwhile, in ms. Output of a node whose
    first cable is cut comes later: ranks are those that can be heard."""
    at = {r: rounds(job, r) for r in ranks}

    def further():
        assert job.process.poll() is None, job.stderr()
        return all(rounds(job, r)[0] > at[r][0] + 20 and len(rounds(job, r)[1]) > len(at[r][1]) + 3 for r in ranks)
    wait_for(further, what)
    return max(max(rounds(job, r)[1][len(at[r][1]):]) for r in ranks)


def dead(job):
    return [e for e in job.events() if e["event"] in ("verdict", "node_dead", "fenced", "halt")]


def nobody_died(job):
    assert not dead(job), dead(job)
    assert all(job.status()["alive"]), job.status()["alive"]


def one_cable(secure):
    need_root()
    with Job(["-n", "3", "--nodes", "3", *RAILS, *secure, PROGRAM], seconds=120) as job:
        wait_for(lambda: all(rounds(job, r)[0] > 20 for r in range(3)), "the first rounds")
        usual = goes_on(job, range(3), "some rounds")
        cable(job, 1, 0, False)
        first = goes_on(job, (0, 2), "the others to go on over the second rail")
        cable(job, 1, 0, True)
        goes_on(job, range(3), "node 1 to be heard")
        cable(job, 1, 1, False)
        second = goes_on(job, range(3), "all to go on over the first rail")
        cable(job, 1, 1, True)
        nobody_died(job)
        print("longest operation: %d ms before, %d ms when the first cable was cut, %d ms when the second one was"
              % (usual, first, second), flush=True)
        job.process.stdin.write(b"stop\n")
        job.process.stdin.flush()
        code = job.wait()
        assert code == 0, (code, job.stderr())
        assert job.stdout().count(": right\n") == 3, job.stdout()[-500:]
        for ms in first, second:
            assert ms < 5000, (first, second)


def test_one_cable_is_cut():
    one_cable([])


def test_one_cable_is_cut_and_all_is_sealed():
    one_cable(["--secure"])


def test_both_cables_are_cut():
    need_root()
    with Job(["-n", "3", "--nodes", "3", "--spares", "1", *RAILS, "sleep", "1000"], seconds=120) as job:
        job.wait_ranks(3)
        cable(job, 1, 0, False)
        cable(job, 1, 1, False)
        wait_for(lambda: job.status()["alive"][:4] == [True, False, True, True], "node 1 to be declared dead")
        cable(job, 1, 0, True)
        cable(job, 1, 1, True)
        assert subprocess.run([KEELCTL, "stop", job.id()]).returncode == 0
        assert job.wait() == 143


keeltest.main(globals())
