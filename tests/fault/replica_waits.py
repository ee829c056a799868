"""replica_waits.py: where a program runs several times side by side and one of its processes stands still, all who wait
say for whom: for that process, whoever of its set or of its rank waits for it in turn."""
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import keeltest
from keeltest import KEELCTL, Job, state_of, wait_for

PASSED = os.environ["KEEL_PASSED"]
FAR = ["--silence", "600s", "--stopped", "never"]
RANKS, NODES = 4, 2  # of each set
NAP_US = 1000
ROUNDS = 800
STOPPED = r"keelrun: .+ waited \d+ s in .+ for rank %d of set %d \(node %d\), which is stopped by a signal"


def passed(replicas, *options, rounds=ROUNDS, sends=(), env=None):
    args = ["-n", str(RANKS), "--nodes", str(NODES * replicas), "--replicas", str(replicas), *options]
    return Job([*FAR, *args, PASSED, str(rounds), str(NAP_US), *map(str, sends)], env=env or {})


def begun(job, replicas):
    job.id()
    job.wait_for_ranks(RANKS * replicas)
    wait_for(lambda: len({e["rank"] for e in job.events("application")}) == RANKS * replicas, "begin")


def native(rank, set_number):
    return set_number * RANKS + rank


def pid_of(job, rank, set_number):
    return [e["pid"] for e in job.events("rank_start") if e["rank"] == native(rank, set_number)][-1]


def node_of(rank, set_number):
    return native(rank, set_number) * NODES // RANKS


def status(job):
    done = subprocess.run([KEELCTL, "status", job.id()], capture_output=True, text=True, timeout=keeltest.HANG_S)
    assert done.returncode == 0, done.stderr
    return done.stdout


def ends_right(job):
    code, out, err = job.wait(), job.stdout(), job.stderr()
    assert code == 0 and out.count("passed: right") == 1, (code, out, err)
    return err


def stands_still(job, rank, set_number, waiting):
    """All the others wait for it, by whatever way, and say so in one line."""
    pid, line = pid_of(job, rank, set_number), STOPPED % (rank, set_number, node_of(rank, set_number))
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: re.search(line, job.stderr()), "a line that says for whom: " + line)
    wait_for(lambda: status(job).count(" which is stopped by") == waiting, "all to wait for it")
    time.sleep(5)  # those that are told late would be by now
    os.kill(pid, signal.SIGCONT)
    err = ends_right(job)
    assert "each other" not in err and set(re.findall(r"which is .*", err)) == {
        "which is stopped by a signal or a debugger"}, err


def test_waits_of_partners_are_for_who_stands_still():
    for replicas, rank, set_number in ((2, 0, 1), (3, 2, 0)):
        with passed(replicas, "--on-death", "partner") as job:
            begun(job, replicas)
            stands_still(job, rank, set_number, RANKS * replicas - 1)


def test_waits_for_a_dead_one_are_for_who_does_its_part():
    with passed(2, "--on-death", "partner", rounds=2 * ROUNDS) as job:
        begun(job, 2)
        os.kill(pid_of(job, 1, 0), signal.SIGKILL)
        wait_for(lambda: job.events("replica_lost"), "the death to be known")
        stands_still(job, 1, 1, RANKS * 2 - 2)


def test_waits_of_replicas_are_for_who_stands_still():
    with passed(2) as job:
        begun(job, 2)
        stands_still(job, 3, 0, RANKS * 2 - 1)


def test_who_takes_over_in_the_middle_of_a_wait_waits_for_that():
    """Rank 1 of set 0 dies while all wait for rank 0, which is stopped; and node 1 falls silent, in which that of set 1
    does again what was kept. What it waited for before waits for it."""
    falls_silent = {"KEEL_FAULT": "recover.settled:1:stop:node=1"}
    with passed(2, "--on-death", "partner", rounds=2 * ROUNDS, env=falls_silent) as job:
        begun(job, 2)
        agent = [e["pid"] for e in job.events("start") if e["node"] == 1][0]
        os.kill(pid_of(job, 0, 0), signal.SIGSTOP)
        wait_for(lambda: "for rank 0 of set 0 (node 0), which is stopped" in job.stderr(), "all to wait")
        os.kill(pid_of(job, 1, 0), signal.SIGKILL)
        wait_for(lambda: state_of(agent) == "T", "an agent to stand still")
        waits = r"\n +rank 1 of set 1 .*\n +has waited \S+ s in keel_(put|rmw) for node 1, .*\n(?! +has)"
        wait_for(lambda: re.search(waits, status(job)), "it to take over")
        os.kill(pid_of(job, 0, 0), signal.SIGCONT)
        time.sleep(6)  # a ring is told by then
        os.kill(agent, signal.SIGCONT)
        assert "each other" not in ends_right(job), job.stderr()


if __name__ == "__main__":
    keeltest.main(globals())
