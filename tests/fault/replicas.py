"""replicas.py: a program that nobody wrote for failures runs two or three times side by side; ranks and nodes die, at
random moments and at each step of what replicas do, and it ends with 0 and the same bits."""
import os
import random
import re
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import keeltest
from keeltest import Job, run

STENCIL, HPCCG = os.environ["KEEL_STENCIL"], os.environ["KEEL_HPCCG"]
SEED = int(os.environ.get("KEEL_TEST_SEED", time.time_ns() % 10**6))
FAR = ["--silence", "600s", "--stopped", "never"]
RANKS, NODES = 4, 2  # of each set
PROGRAMS = {"stencil": [STENCIL, "5p", "--cells", "96x96", "--sweeps", "600"],
            "short": [STENCIL, "5p", "--cells", "96x96", "--sweeps", "150"],  # all steps are passed in it
            "hpccg": [HPCCG, "24", "24", "16", "--tolerance", "1e-14", "--iterations", "100"]}
RESULT = r"field [0-9a-f]+|error +[0-9.e-]+: right"
OFTEN = ["replica.meeting", "replica.said", "op.answered", "coll.entering", "coll.left", "mail.sending",
         "parcel.sending", "parcel.sent"]
STORES = ["op.intent_set", "op.before_local_store", "op.after_local_store"] # where parts have further copies
ONCE = ["segment.group_entering", "segment.group_agreed", "segment.group_made", "rank.leaving"]
AGENT_POINTS = ["replica.put_noted", "replica.put_applied", "replica.applied_not_forwarded", "replica.forwarded",
                "recover.prepare_received", "recover.fenced", "recover.answered", "recover.commit_received",
                "recover.committed", "recover.settled"]
alone = {}


def options(replicas):
    return [*FAR, "-n", str(RANKS), "--nodes", str(NODES * replicas), "--replicas", str(replicas)]


def expected(name):
    if name not in alone:
        code, out, err = run([*FAR, "-n", str(RANKS), "--nodes", str(NODES), *PROGRAMS[name]])
        assert code == 0, (code, out, err)
        alone[name] = re.search(RESULT, out)[0]
    return alone[name]


def ends_right(job, name, case):
    code = job.wait()
    assert code == 0 and expected(name) in job.stdout(), (SEED, case, code, job.stdout(), job.stderr())
    assert job.stdout().count(expected(name)) == 1, (SEED, case, job.stdout())
    return len(set(re.findall(r"set (\d) has lost .* and is retired", job.stderr())))


def kill(job, victim, node):
    """A process of a rank, or a node: its agent and all its ranks."""
    started = job.events("rank_start")
    pids = [e["pid"] for e in started if e["rank"] == victim] if node is None else [
        e["pid"] for e in job.events("start") if e["node"] == node] + [e["pid"] for e in started if e["node"] == node]
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def test_anything_dies_at_any_moment():
    rng = random.Random(SEED)
    print("KEEL_TEST_SEED=%d" % SEED)
    retired = 0
    for i in range(int(os.environ.get("KEEL_REPLICAS_KILLS", "12"))):
        name, replicas = ("stencil", "hpccg")[i % 2], 2 + i // 2 % 2
        anyone = (rng.randrange(RANKS * replicas), None), (None, rng.randrange(NODES * replicas))
        rank, node = [(0, None), (None, 0), *anyone][i // 4 % 4]
        expected(name)
        with Job([*options(replicas), *PROGRAMS[name]]) as job:
            job.id()
            job.wait_for_ranks(RANKS * replicas)
            time.sleep(rng.uniform(0, 0.6))
            kill(job, rank, node)
            retired += ends_right(job, name, (name, replicas, rank, node))
    assert retired, "nobody died in time"


def test_two_of_three_sets_die():
    rng = random.Random(SEED)
    retired = 0
    for first, second in ((0, 1), (1, 0), (2, 0), (0, 2)):
        with Job([*options(3), *PROGRAMS["stencil"]]) as job:
            job.id()
            job.wait_for_ranks(RANKS * 3)
            for victim in (first, second):
                time.sleep(rng.uniform(0, 0.3))
                kill(job, None, victim * NODES + rng.randrange(NODES))
            retired += ends_right(job, "stencil", (first, second))
    assert retired, "nobody died in time"


def at_points(points, passings, who, *more):
    """Who of the leading set, or of the other one, comes there for one of these times. How many sets were retired?"""
    died = {}
    for i, point in enumerate(points):
        for victim in who:
            fault = "%s:%d:kill:%s" % (point, passings[i % len(passings)], victim)
            with Job([*options(2), *more, *PROGRAMS["short"]], env={"KEEL_FAULT": fault}) as job:
                died[point] = died.get(point, 0) + ends_right(job, "short", fault)
    return died


def test_a_rank_dies_at_each_step():
    who = ["rank=0", "rank=%d" % (RANKS + 1)]
    died = {**at_points(OFTEN, [1, 7, 100], who), **at_points(ONCE, [1], who),
            **at_points(STORES, [1, 7, 100], who, "--replica-copies", "all")}
    for point in OFTEN + STORES + ONCE:
        assert died[point] == 2, (point, died)


def test_an_agent_dies_at_each_step():
    died = at_points(AGENT_POINTS[:4], [1, 7], ["node=0", "node=%d" % NODES], "--replica-copies", "all")
    assert sum(died.values()), died


def test_an_agent_dies_while_a_set_is_retired():
    """A rank of a set dies; of three sets two go on, or one, if a node of another set dies at a step of that view."""
    for i, point in enumerate(AGENT_POINTS[4:]):
        node = NODES * (1 + i % 2)
        fault = "coll.entering:5:kill:rank=0,%s:1:node:node=%d" % (point, node)
        with Job([*options(3), *PROGRAMS["short"]], env={"KEEL_FAULT": fault}) as job:
            assert ends_right(job, "short", fault) >= 1, (fault, job.stderr())


if __name__ == "__main__":
    keeltest.main(globals())
