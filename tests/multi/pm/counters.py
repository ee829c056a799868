"""keelctl status tells what ranks and agents have counted: known work, held against it."""
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../lib"))
import keeltest
from keeltest import HANG_S, KEELCTL, Job, wait_for

COUNTING = os.environ["KEEL_COUNTING"]
TIMES, BYTES = 37, 24
# what one process of the program does
HERE = {"puts_here": 3 * TIMES, "puts_here_bytes": TIMES * BYTES + 2 * TIMES * 8, "gets_here": TIMES, "gets_here_bytes": TIMES * BYTES}
AWAY = {"puts_away": TIMES, "puts_away_bytes": TIMES * BYTES, "gets_away": TIMES, "gets_away_bytes": TIMES * BYTES}
BOTH = {"accumulates": 2 * TIMES, "atomics": 2 * TIMES}  # an agent may have to say first that a rank may do it itself


def ended(job):
    assert subprocess.run([KEELCTL, "stop", job.id()], timeout=HANG_S).returncode == 0
    assert job.wait() == 143, job.stderr()


def done(job, processes):
    wait_for(lambda: job.stdout().count("done\n") == processes, "%d processes to be done" % processes)


def held(counted, processes, who):
    for name, value in {**HERE, **AWAY}.items():
        assert counted.get(name) == processes * value, (who, name, counted)
    for name, value in BOTH.items():
        here, away = counted.get(name + "_here", 0), counted.get(name + "_away", 0)
        assert here + away == processes * value and away >= processes * TIMES, (who, name, counted)
    size = counted["accumulates_here_bytes"] + counted["accumulates_away_bytes"]
    assert size == processes * 2 * TIMES * 24, (who, counted)


def test_known_work_is_what_ranks_have_counted():
    with Job(["-n", "4", "--nodes", "2", COUNTING, str(TIMES), str(BYTES)]) as job:
        done(job, 4)
        status = job.status()
        assert sorted(status["counters"]["ranks"]) == ["0", "1", "2", "3"], status["counters"]
        for rank, counted in status["counters"]["ranks"].items():
            held(counted, 1, "rank " + rank)
            assert counted["connections"] >= 1 and counted["requests"] >= 4 * TIMES, counted
            assert 1 <= counted["requests_most"] <= counted["requests"] and "doubts" not in counted, counted
        for number, node in status["nodes"].items():
            of_node = [str(2 * number), str(2 * number + 1)]
            assert sorted(node["counters"]["ranks"]) == of_node, (number, node["counters"])
            assert "rank_deaths" not in node["counters"]["agent"], node["counters"]
        text = subprocess.run([KEELCTL, "status", "--counters", job.id()], capture_output=True, text=True, timeout=HANG_S)
        lines = {line.split()[0]: line.split()[1] for line in text.stdout.splitlines() if line.startswith("    ") and "(" in line}
        assert text.returncode == 0 and lines["puts_here"] == str(4 * HERE["puts_here"]), text
        ended(job)


def test_what_a_dead_process_has_counted_stays_in_the_sum():
    with Job(["-n", "4", "--nodes", "2", "--on-failure", "substitute", COUNTING, str(TIMES), str(BYTES)]) as job:
        done(job, 4)
        killed = next(r for r in job.status()["nodes"][1]["ranks"] if r["rank"] == 3)
        os.kill(killed["pid"], signal.SIGKILL)
        done(job, 5)
        status = job.status()
        for rank, counted in status["counters"]["ranks"].items():
            held(counted, 2 if rank == "3" else 1, "rank " + rank)
        agents = [node["counters"]["agent"] for node in status["nodes"].values()]
        assert [a["rank_deaths"] for a in agents] == [1, 1] and all(a["views"] >= 1 for a in agents), agents
        together = status["counters"]["agent"]  # one death, of which each node has heard
        assert together["rank_deaths"] == 1 and together["views"] == max(a["views"] for a in agents), (together, agents)
        ended(job)


keeltest.main(globals())
