"""anew.py: sets that are lost begin anew from what the whole ones have: the next loss of a set costs nothing, and the
result is that of a run without any; also where processes die, or stand still, at each step of that."""
import os
import random
import re
import signal
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import keeltest
from keeltest import Job, each, run

ANEW = os.environ["KEEL_ANEW"]
SEED = int(os.environ.get("KEEL_TEST_SEED", time.time_ns() % 10**6))
FAR = ["--silence", "600s", "--stopped", "never"]
RANKS, NODES, STEPS, NAP_US = 4, 2, 60, 12500  # of each set
STANDS_S = 3
GUEST_POINTS = ["replica.guest:1", "replica.reading:1", "replica.reading:2", "replica.has_read:1", "replica.joining:1",
                "replica.joined:1"]
HOST_POINTS = ["replica.hosting:1", "replica.telling:1", "replica.fate_known:1", "replica.hosted:1"]
LOSES = "keep.marked:10:kill:rank=%d" % RANKS  # rank 0 of set 1
alone = {}


def expected(steps=STEPS):
    if steps not in alone:
        code, out, err = run([*FAR, "-n", str(RANKS), "--nodes", str(NODES), ANEW, str(steps)])
        assert code == 0, (code, out, err)
        alone[steps] = re.search(r"anew: \w+", out)[0]
    return alone[steps]


def job(replicas, *args, steps=STEPS, spares=0, nap=NAP_US, env=None, **kw):
    options = ["-n", str(RANKS), "--nodes", str(NODES * replicas), "--replicas", str(replicas)]
    spare = ["--spares", str(spares)] if spares else []
    return Job([*FAR, *options, *spare, ANEW, str(steps), str(nap), *args], env=env or {}, **kw)


def ends_right(j, case, steps=STEPS):
    """The result, and each line once, in its order and with its clock."""
    code, out, err = j.wait(), j.stdout(), j.stderr()
    assert code == 0 and out.count(expected(steps)) == 1, (SEED, case, code, out, err)
    lines = re.findall(r"^step (\d+): \d+ at ([0-9.]+), 0 of 2$", out, re.M)
    assert [int(at) for at, _ in lines] == list(range(10, steps + 1, 10)), (SEED, case, out, err)
    times = [float(t) for _, t in lines]
    assert times == sorted(times) and out.count("begins\n") == 1, (SEED, case, out)
    assert len(out.splitlines()) == len(lines) + 2, (SEED, case, out)
    assert "differ" not in err and "lost" not in re.sub(r"has lost rank|retired|loss", "", err), (SEED, case, err)


def kill_node(j, node):
    agents = [e["pid"] for e in j.events("start") if e["node"] == node]
    for pid in agents + [e["pid"] for e in j.events("rank_start") if e["node"] == node]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def joined(j, times):
    keeltest.wait_for(lambda: len(j.events("set_joined")) >= times, "a set to be whole again")


def test_a_set_comes_back_and_carries_the_job():
    """On a spare: then the other set's node dies, and comes back, too, where there is one for it."""
    for spares, first, then in ((1, 2, 0), (2, 0, 3), (2, 3, 1)):
        with job(2, steps=160, spares=spares) as j:
            j.id()
            j.wait_for_ranks(RANKS * 2)
            time.sleep(0.3)
            kill_node(j, first)
            joined(j, 1)
            kill_node(j, then)
            if spares == 2:
                joined(j, 2)
            ends_right(j, (spares, first, then), 160)
            assert j.stderr().count("has begun anew and is whole again") == spares, j.stderr()


def test_three_sets_stay_three():
    rng = random.Random(SEED)
    print("KEEL_TEST_SEED=%d" % SEED)
    with job(3, steps=240, spares=3) as j:
        j.id()
        j.wait_for_ranks(RANKS * 3)
        for i, lost in enumerate((0, 1, 2, 0)):
            time.sleep(rng.uniform(0, 0.2))
            if i < 3:
                kill_node(j, lost * NODES + rng.randrange(NODES))
            else:
                os.kill([e["pid"] for e in j.events("rank_start") if e["rank"] == 1][-1], signal.SIGKILL)
            joined(j, i + 1)
        ends_right(j, "three", 240)


def kills_some(j, replicas, rng):
    """A process of a set, or of two of three, where all are whole."""
    lost = len(j.events("set_retired"))
    if lost != len(j.events("set_joined")):
        return
    last = {e["rank"]: e["pid"] for e in j.events("rank_start")}
    sets = rng.sample(range(replicas), rng.randrange(1, replicas))
    for s in sets:
        try:
            os.kill(last[s * RANKS + rng.randrange(RANKS)], signal.SIGKILL)
        except ProcessLookupError:
            return  # the job is over
    keeltest.wait_for(lambda: len(j.events("set_retired")) >= lost + len(sets) or j.process.poll() is not None,
                      "sets to be retired")


def test_processes_die_at_any_moment():
    rng = random.Random(SEED)
    print("KEEL_TEST_SEED=%d" % SEED)
    for i in range(int(os.environ.get("KEEL_ANEW_RUNS", "4"))):
        replicas = 2 + i % 2
        with job(replicas, steps=160) as j:
            j.id()
            j.wait_for_ranks(RANKS * replicas)
            for _ in range(4):
                time.sleep(rng.uniform(0, 0.5))
                kills_some(j, replicas, rng)
            ends_right(j, (replicas, i), 160)


def lets_go_on(j, case):
    """Who stands still does so for a while."""
    def stopped():
        return [e["pid"] for e in j.events("rank_start") if keeltest.state_of(e["pid"]) == "T"]
    keeltest.wait_for(stopped, "a process to stand still at " + case)
    time.sleep(STANDS_S)
    for pid in stopped():
        os.kill(pid, signal.SIGCONT)


def at_point(replicas, point, action, rank, life, back):
    """How often a set was lost, and began anew, in a run that is long enough for `back` returns."""
    fault = "%s:%s:rank=%d:life=%d" % (point, action, rank, life)
    for nap in (NAP_US, 5 * NAP_US, 25 * NAP_US):
        with job(replicas, nap=nap, env={"KEEL_FAULT": LOSES + "," + fault}) as j:
            j.id()
            if action == "stop":
                lets_go_on(j, fault)
            ends_right(j, fault)
            if len(j.events("set_joined")) >= back:
                return len(j.events("set_retired")), sum(e["incarnation"] > 0 for e in j.events("rank_start")) / RANKS
    raise AssertionError("no set is whole again: " + fault)


def test_a_guest_dies_or_stands_still_at_each_step():
    for point, action, rank in each(GUEST_POINTS, ("kill", "stop"), (RANKS, 2 * RANKS - 1)):
        began = 2 if action == "kill" else 1
        least = began if point.startswith("replica.joined") else 1  # it is whole then, and is lost once more; who has
        most = began if point.startswith("replica.join") else 1  # asked for that view may die behind it
        lost = at_point(2, point, action, rank, 1, least)
        assert least <= lost[0] <= most and lost[1] == began, (point, action, rank, lost)


def test_a_host_dies_or_stands_still_at_each_step():
    """Of three sets; of two, where the other one is whole by then."""
    for point, action, rank in each(HOST_POINTS, ("kill", "stop"), (0, RANKS - 1)):
        lost = 2 if action == "kill" else 1
        assert at_point(3, point, action, rank, 0, lost) == (lost, lost), (point, action, rank)
    for point in HOST_POINTS[2:]:
        assert at_point(2, point, "kill", 0, 0, 2) == (2, 2), point


def test_the_last_set_dies_while_another_one_reads():
    fault = "replica.telling:1:kill:rank=0"
    with job(2, env={"KEEL_FAULT": LOSES + "," + fault}) as j:
        assert j.wait() != 0 and "no set is left" in j.stderr() and "anew: " not in j.stdout(), j.stderr()


def test_what_cannot_be_taken_over_is_told():
    why = {"mutex": "the program has mutexes or task pools", "message": "the program has sent messages",
           "file": "the program has written files", "allocate": "has other segments and groups at keel_keep_restore"}
    for what, line in why.items():
        with tempfile.TemporaryDirectory() as folder:
            with job(2, what, env={"KEEL_FAULT": LOSES}, before=lambda f=folder: os.chdir(f)) as j:
                code, err = j.wait(), j.stderr()
                assert code == 0 and expected() in j.stdout() and err.count(line) == 1, (what, code, err)
                assert not j.events("set_joined"), (what, err)


def test_three_attempts_in_vain_are_told():
    """A process of each of them dies, or its program does: it has come to its end."""
    dies = ["replica.guest:1:kill:rank=%d:life=%d" % (RANKS + 1, life) for life in (1, 2, 3)]
    told = "keelrun: set 1 stays lost: it began anew 3 times in vain before it was whole; the last time, "
    with job(2, nap=5 * NAP_US, env={"KEEL_FAULT": ",".join([LOSES, *dies])}) as j:
        code, err = j.wait(), j.stderr()
        assert code == 0 and expected() in j.stdout() and not j.events("set_joined"), (code, err)
        assert err.count(told + "set 1 has lost rank 1 (it was killed by SIGKILL)\n") == 1, err
        assert len(j.events("set_in_vain")) == 1, err


def test_a_program_that_never_restores_is_told():
    """What is kept cannot be written by a process that has not restored it: its guests end."""
    with job(2, "never", nap=5 * NAP_US, env={"KEEL_FAULT": LOSES}) as j:
        code, err = j.wait(), j.stderr()
        assert code == 0 and expected() in j.stdout() and not j.events("set_joined"), (code, err)
        told = r"set 1 stays lost: .*; the last time, set 1 has lost rank \d \(it ended with exit code 1\)\n"
        assert len(re.findall(told, err)) == 1, err


def test_a_guest_that_does_not_come_is_told():
    """It stands still before it has said that it waits; the line comes 20 s after it has begun."""
    late = "replica.guest:1:stop:rank=%d:life=1" % (RANKS + 1)
    with job(2, nap=40 * NAP_US, env={"KEEL_FAULT": LOSES + "," + late}) as j:
        code, err = j.wait(), j.stderr()
        assert code == 0 and expected() in j.stdout() and not j.events("set_joined"), (code, err)
        line = "it has begun, and its processes have not come to keel_keep_restore for 20 s"
        assert err.count(line) == 1, err


def test_standard_input_that_was_read_is_not_taken_over():
    """keelrun has read it, whether or not the program does."""
    with tempfile.TemporaryFile() as given:
        given.write(b"some\n")
        given.seek(0)
        with job(2, env={"KEEL_FAULT": LOSES}, stdin=given) as j:
            assert j.wait() == 0 and expected() in j.stdout(), j.stderr()
            assert not j.events("set_joined") and "is retired" in j.stderr(), j.stderr()


if __name__ == "__main__":
    keeltest.main(globals())
