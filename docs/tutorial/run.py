"""Runs the programs of docs/tutorial.md as the text says, so that text and programs cannot drift apart."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../tests/lib"))
import keeltest
from keeltest import KEELCTL, Job, run, wait_for

PROGRAMS = os.environ["KEEL_TUTORIAL"]
TASKS, ROUNDS, STEPS = 60, 3, 3000000


def program(name):
    return os.path.join(PROGRAMS, "tutorial-" + name)


def pi_job(options, rounds=ROUNDS):
    return Job(["-n", "4", "--nodes", "4"] + options + [program("pi"), str(TASKS), str(rounds), str(STEPS)], seconds=100)


def check_pi(job, rounds=ROUNDS):
    """Every round was right. A speaker that dies may take its line along, a new one may say it again."""
    code = job.wait()
    assert code == 0, (code, job.stderr())
    lines = job.stdout().splitlines()
    for line in lines:
        assert re.fullmatch(r"round \d+: %d tasks counted, pi = 3\.14159265\d\d" % TASKS, line), line
    assert any(line.startswith("round %d:" % (rounds - 1)) for line in lines), lines


def kill_node_in_round_one(job, node):
    wait_for(lambda: [e for e in job.events("application") if e["name"] == "half" and e["number"] == 1], "the middle of round 1", 60)
    subprocess.run([KEELCTL, "kill-node", job.id(), str(node)], check=True, capture_output=True, timeout=20)


def test_hello_names_every_rank():
    code, out, err = run(["-n", "4", "--nodes", "2", program("hello")])
    assert code == 0, (code, err)
    assert sorted(out.splitlines()) == ["rank %d of 4 on node %d" % (r, r // 2) for r in range(4)], out


def test_hello_without_keelrun_says_so():
    done = subprocess.run([program("hello")], capture_output=True, timeout=20)
    assert done.returncode == 2 and b"not started by keelrun" in done.stderr, done


def test_putget_finds_what_was_put():
    code, out, err = run(["-n", "3", "--nodes", "3", program("putget")])
    assert code == 0, (code, err)
    wanted = ["rank %d wrote %d to rank %d and found %d in its own part" % (r, 100 + r, (r + 1) % 3, 100 + (r - 1) % 3)
              for r in range(3)]
    assert sorted(out.splitlines()) == sorted(wanted + ["rank by rank, all 3 drew a ticket"]), out


def test_survivors_go_on_in_groups_of_their_own():
    with Job(["--on-failure", "degrade", "-n", "6", "--nodes", "3", program("survivors"), "200"], seconds=100) as job:
        wait_for(lambda: len([e for e in job.events("application") if e["name"] == "begun"]) == 6, "the first round", 60)
        subprocess.run([KEELCTL, "kill-node", job.id(), "2"], check=True, capture_output=True, timeout=20)
        code = job.wait()
        assert code == 0, (code, job.stderr())
        for team, all_of_it, rest in ("even", 6, 2), ("odd", 9, 4):
            lines = [line for line in job.stdout().splitlines() if line.startswith(team)]
            assert lines == ["%s: 3 ranks, sum %d" % (team, all_of_it)] + 2 * ["%s: 2 ranks, sum %d" % (team, rest)], lines


def test_pi_undisturbed():
    with pi_job([]) as job:
        check_pi(job)


def test_pi_survives_a_killed_node_with_fewer_ranks():
    with pi_job([]) as job:
        kill_node_in_round_one(job, 0)
        check_pi(job)
        assert "came back" not in job.stderr(), job.stderr()


def test_pi_survives_a_killed_node_on_a_spare():
    with pi_job(["--spares", "1"]) as job:
        kill_node_in_round_one(job, 2)
        check_pi(job)
        assert re.search(r"rank 2 came back in round [12] on node 4", job.stderr()), job.stderr()


def test_grid_keeps_neighbours_near():
    code, out, err = run(["-n", "9", "--grid", "4x4", program("grid"), "20"])
    assert (code, out, err) == (0, "3x3 ranks: rank 0 has heard of 8; neighbours are at most 1 links apart\n",
                                ""), (code, out, err)
    with Job(["-n", "9", "--grid", "4x4", "--substitution", "1D", program("grid"), "1500"], seconds=100) as job:
        wait_for(lambda: [e for e in job.events("application") if e["name"] == "half"], "the middle", 60)
        subprocess.run([KEELCTL, "kill-node", job.id(), "4"], check=True, capture_output=True, timeout=20)
        assert job.wait() == 0, job.stderr()
        assert job.stdout() == "3x3 ranks: rank 0 has heard of 8; neighbours are at most 2 links apart\n", job.stdout()
        assert "; rank 4 continues on node 7" in job.stderr(), job.stderr()
        for there in r"rank 4 at 1,1 goes on in round \d+ on node 7", r"rank 7 at 1,2 goes on in round \d+ on node 13":
            assert len(re.findall(there, job.stderr())) == 1, job.stderr()


keeltest.main(globals())
