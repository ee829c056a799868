"""Nodes on a grid die: where their ranks begin again is what keel-place says of the same failures."""
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from keeltest import BIN, Job, main, wait_for

PLACED = os.environ.get("KEEL_PLACED", "build/tests/fault/placed")
PLACE = os.environ.get("KEEL_PLACE", "build/sim/place/keel-place")
SIDE = 4
STEPS = "400"


def at(place):
    return "%d,%d" % (place % SIDE, place // SIDE)


def planned(method, failures, options=()):
    """What each failure moves: a list of (slot, from, to), by the numbers of places."""
    said = subprocess.run([PLACE, "substitute", "--grid", "4x4", "--spares", "2D(2,1)", "--method", method, "--json",
                           *options,
                           *(word for place in failures for word in ("--fail", str(place)))], capture_output=True,
                          text=True, check=True)
    return [[(m["slot"], m["from"], m["to"]) for m in one["moves"]] for one in json.loads(said.stdout)]


def begun(job, rank):
    return [line.split()[-1] for line in job.stdout().splitlines() if line.startswith("rank %d is" % rank)]


def kill_place(job, place):
    grid = job.events("started")[0]["grid"]
    node = grid["place"].index(place)
    for e in job.events():
        if e["node"] == node and e["event"] in ("start", "rank_start"):
            try:
                os.kill(e["pid"], signal.SIGKILL)
            except ProcessLookupError:
                pass


def expect_places(method, failures, moves=None):
    """Nodes with slots die, one after the other: each slot of the plan begins where that has it, also those that
    live."""
    bound = ["--moves", moves] if moves else []
    where = {r: at(place) for r, place in enumerate((0, 1, 2, 4, 5, 6, 8, 9, 10))}
    with Job(["-n", "9", "--grid", "4x4", "--substitution", method, *bound, PLACED, STEPS]) as job:
        wait_for(lambda: all(begun(job, r) for r in where), "all ranks to begin")
        assert {r: begun(job, r)[0] for r in where} == where, job.stdout()
        for place, plan in zip(failures, planned(method, failures, bound)):
            assert where[[slot for slot, at_first, _ in plan if at_first == place][0]] == at(place), (plan, where)
            kill_place(job, place)
            for slot, _, to in plan:
                wait_for(lambda: begun(job, slot)[-1] == at(to) or job.process.poll() is not None,
                         "rank %d to begin on %s" % (slot, at(to)))
                where[slot] = begun(job, slot)[-1]
                assert where[slot] == at(to), (method, plan, job.stdout(), job.stderr())
        assert job.wait() == 0, job.stderr()
        ends = {int(words[1]): words[4].rstrip(",") for words in map(str.split, job.stdout().splitlines())
                if "ends" in words}
        assert ends == where, (ends, where)


def test_0d_takes_the_nearest_free_node():
    expect_places("0D", [5, 6])


def test_a_bound_on_moves_leaves_the_nearest_free_node():
    expect_places("2D", [0], "2")


def test_lines_and_planes_move_by_one():
    expect_places("hybrid(all)", [5, 1])


main(globals())
