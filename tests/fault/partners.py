"""partners.py: a program runs two or three times side by side, and replicas do the part of the dead (--on-death
partner). Ranks and nodes die in several sets, and it ends with 0 and the same bits, as long as each rank lives in one;
else with a line."""
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import keeltest
from keeltest import Job, run

KEELCTL = os.path.join(keeltest.BIN, "keelctl")
STENCIL, NPB, RACES = os.environ["KEEL_STENCIL"], os.environ["KEEL_NPB"], os.environ["KEEL_RACES"]
LETTERS = os.environ["KEEL_LETTERS"]
SEED = int(os.environ.get("KEEL_TEST_SEED", time.time_ns() % 10**6))
FAR = ["--silence", "600s", "--stopped", "never"]
RANKS, NODES = 4, 2  # of each set
PROGRAMS = {"stencil": [STENCIL, "5p", "--cells", "96x96", "--sweeps", "1500"],
            "short": [STENCIL, "5p", "--cells", "96x96", "--sweeps", "100"],
            "cg": [NPB, "cg", "--class", "S"], "letters": [LETTERS]}
RESULT = r"field [0-9a-f]+|zeta +[-0-9.eE+]+|read [0-9a-f]+"
ONES_OWN = r"set (\d) has lost rank (\d) .* and goes on: rank \2 of set (\d) does its part"
alone = {}


def options(replicas):
    return [*FAR, "-n", str(RANKS), "--nodes", str(NODES * replicas), "--replicas", str(replicas), "--on-death",
            "partner"]


def expected(name):
    if name not in alone:
        code, out, err = run([*FAR, "-n", str(RANKS), "--nodes", str(NODES), *PROGRAMS[name]])
        assert code == 0, (code, out, err)
        alone[name] = re.search(RESULT, out)[0]
    return alone[name]


def native(rank, set_number):
    return set_number * RANKS + rank


def pids(job, rank):
    return [e["pid"] for e in job.events("rank_start") if e["rank"] == rank]


def is_stopped(pid):
    with open("/proc/%d/stat" % pid) as stat:
        return stat.read().rsplit(")", 1)[1].split()[0] == "T"


def send(job, number, rank):
    for pid in pids(job, rank):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def wait_for_all_to_begin(job, replicas):
    """Who has not all its segments cannot be replaced."""
    job.id()
    job.wait_for_ranks(RANKS * replicas)
    keeltest.wait_for(lambda: len({e["rank"] for e in job.events("application")}) == RANKS * replicas, "begin")


def ends_right(job, name, case):
    """Whose part was done, as (set, rank)."""
    code = job.wait()
    assert code == 0 and job.stdout().count(expected(name)) == 1, (SEED, case, code, job.stdout(), job.stderr())
    assert "retired" not in job.stderr(), (SEED, case, job.stderr())
    return {(int(s), int(r)) for s, r, _ in re.findall(ONES_OWN, job.stderr())}


def dies(replicas, victims, case, pause=0.2):
    """victims: (rank, set) or (None, node), one after the other, or together if pause is None."""
    rng = random.Random(SEED)
    expected("stencil")
    with Job([*options(replicas), *PROGRAMS["stencil"]]) as job:
        wait_for_all_to_begin(job, replicas)
        for rank, where in victims:
            if rank is None:
                subprocess.run([KEELCTL, "kill-node", job.id(), str(where)], check=True, capture_output=True,
                               timeout=60)
            else:
                send(job, signal.SIGKILL, native(rank, where))
            time.sleep(rng.uniform(0, pause) if pause else 0)
        return ends_right(job, "stencil", case)


def test_replicas_of_two_ranks_die_in_two_sets():
    done = dies(2, [(0, 0), (1, 1)], "two sets")
    assert done == {(0, 0), (1, 1)}, done
    fault = "replica.kept:40:kill:rank=%d,replica.kept:60:kill:rank=%d" % (native(2, 1), native(3, 0))
    with Job([*options(2), *PROGRAMS["cg"]], env={"KEEL_FAULT": fault}) as job:
        assert ends_right(job, "cg", fault) == {(1, 2), (0, 3)}


def test_two_of_three_replicas_of_a_rank_die():
    done = dies(3, [(0, 0), (0, 1), (1, 2)], "three sets")
    assert done == {(0, 0), (1, 0), (2, 1)}, done


def test_two_die_at_once():
    assert dies(2, [(0, 1), (3, 0)], "at once", pause=None) == {(1, 0), (0, 3)}


def test_nodes_die_in_two_sets():
    """Node 0 has ranks 0 and 1 of set 0, node 3 has ranks 2 and 3 of set 1."""
    done = dies(2, [(None, 0), (None, 3)], "nodes")
    assert done == {(0, 0), (0, 1), (1, 2), (1, 3)}, done


def test_last_replica_of_a_rank_ends_the_job_with_a_line():
    with Job([*options(2), *PROGRAMS["stencil"]]) as job:
        wait_for_all_to_begin(job, 2)
        for victim in (native(1, 0), native(1, 1)):
            send(job, signal.SIGKILL, victim)
            time.sleep(0.1)
        code = job.wait()
        assert code == 137 and "no replica of it is left" in job.stderr(), (code, job.stdout(), job.stderr())
        assert not re.search(RESULT, job.stdout()), job.stdout()
        assert "the program does" not in job.stderr(), job.stderr()


def test_files_are_of_a_set_that_has_all_who_write():
    """Rank 0 writes a picture at the end. Also where each set has lost somebody it is there, and whole."""
    with tempfile.TemporaryDirectory() as folder:
        picture = folder + "/field.png"
        code, out, err = run([*FAR, "-n", str(RANKS), "--nodes", str(NODES), *PROGRAMS["short"], "--png", picture])
        assert code == 0, (code, out, err)
        with open(picture, "rb") as f:
            right = f.read()
        for victims in ([(1, 0)], [(1, 0), (2, 1)], [(0, 0), (3, 1)]):
            os.unlink(picture)
            with Job([*options(2), *PROGRAMS["short"], "--png", picture]) as job:
                wait_for_all_to_begin(job, 2)
                for victim in victims:
                    send(job, signal.SIGKILL, native(*victim))
                done = ends_right(job, "short", victims)
            assert done == {(s, r) for r, s in victims}, (victims, done)
            with open(picture, "rb") as f:
                assert f.read() == right, victims
            assert os.listdir(folder) == ["field.png"], os.listdir(folder)


def files_of(folder):
    found = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding="ascii") as f:
            found[name] = f.read()
    return found


def test_files_of_two_ranks_are_whole_or_it_is_told():
    """Ranks 0 and 1 write in each round; both live in set 1, or in none, where sets that lack somebody end."""
    told = ("keelrun: the program does what no replica can do for another (docs/replicas.md), "
            "and rank %d of set %d is dead")  # victims: (rank, set)
    with tempfile.TemporaryDirectory() as folder:
        code, out, err = run([*FAR, "-n", str(RANKS), "--nodes", str(NODES), *PROGRAMS["letters"]],
                             env={"KEEL_TEST_FOLDER": folder})
        assert code == 0, (code, out, err)
        right = files_of(folder)
        assert sorted(right) == ["told-0", "told-1"], right
    for victims in ([(0, 0), (3, 1)], [(0, 0), (1, 1)]):
        faults = [dies_at("replica.brought", 40, *victims[0]), dies_at("replica.brought", 60, *victims[1])]
        with tempfile.TemporaryDirectory() as folder:
            with Job([*options(2), *PROGRAMS["letters"]],
                     env={"KEEL_FAULT": ",".join(faults), "KEEL_TEST_FOLDER": folder}) as job:
                if victims[1] == (3, 1):
                    assert ends_right(job, "letters", faults) == {(0, 0), (1, 3)}
                    assert files_of(folder) == right, (files_of(folder), right)
                else:
                    code, err = job.wait(), job.stderr()
                    assert code == 137 and told % victims[0] in err.splitlines(), (code, err)
                    assert re.search("set 1 has lost rank 1|and rank 1 of set 1 is dead", err), err


def test_who_takes_over_dies_at_it():
    """Rank 1 of set 0 dies; of three sets, that of set 1 begins to act for it, and dies at each step."""
    for point in ("replica.taking_over", "replica.took_over"):
        for nth in (1, 2):
            fault = "replica.kept:20:kill:rank=%d,%s:%d:kill:rank=%d" % (native(1, 0), point, nth, native(1, 1))
            with Job([*options(3), *PROGRAMS["short"]], env={"KEEL_FAULT": fault}) as job:
                done = ends_right(job, "short", fault)
                assert (0, 1) in done and ((1, 1) in done or nth > 1), (fault, done)


def goes_on(job, replicas, number, faults):
    """Who is stopped by a fault point stands still for three seconds."""
    job.id()
    job.wait_for_ranks(RANKS * replicas)
    keeltest.wait_for(lambda: is_stopped(pids(job, number)[0]), faults)
    time.sleep(3)
    send(job, signal.SIGCONT, number)


def test_who_takes_over_stands_still():
    """For 3 s, as it begins and in the middle of it."""
    for point in ("replica.taking_over", "replica.took_over"):
        fault = "replica.kept:20:kill:rank=%d,%s:1:stop:rank=%d" % (native(1, 0), point, native(1, 1))
        with Job([*options(2), *PROGRAMS["short"]], env={"KEEL_FAULT": fault}) as job:
            goes_on(job, 2, native(1, 1), fault)
            assert ends_right(job, "short", fault) == {(0, 1)}


def test_a_replica_stands_still_while_another_dies():
    with Job([*options(2), *PROGRAMS["stencil"]]) as job:
        wait_for_all_to_begin(job, 2)
        send(job, signal.SIGSTOP, native(2, 0))
        send(job, signal.SIGKILL, native(2, 1))
        time.sleep(3)
        send(job, signal.SIGCONT, native(2, 0))
        assert ends_right(job, "stencil", "stopped") == {(1, 2)}


def test_deaths_at_each_step_in_two_sets():
    for i, point in enumerate(("replica.meeting", "replica.said", "replica.all_complete", "replica.leaving",
                               "replica.kept", "mail.sending")):
        nth = (7, 40, 90)[i % 3]
        fault = "%s:%d:kill:rank=%d,%s:%d:kill:rank=%d" % (point, nth, native(0, 0), point, nth + 3, native(3, 1))
        with Job([*options(2), *PROGRAMS["short"]], env={"KEEL_FAULT": fault}) as job:
            assert (0, 0) in ends_right(job, "short", fault), (fault, job.stderr())


# ---- accumulates, atomics, mutexes and tasks: races.c counts, and replicas compare what it is told ----


def race(faults, replicas=2, stops=None):
    """Whose part was done, as (set, rank). stops: (rank, set), which goes on after 3 s."""
    with Job([*options(replicas), RACES], env={"KEEL_FAULT": ",".join(faults)}) as job:
        if stops:
            goes_on(job, replicas, native(*stops), faults)
        code, out, err = job.wait(), job.stdout(), job.stderr()
    assert code == 0 and re.fullmatch(r"done [0-9a-f]{16}\n", out), (SEED, faults, code, out, err)
    assert not re.search("differs|is not what|retired", err), (SEED, faults, err)
    return {(int(s), int(r)) for s, r, _ in re.findall(ONES_OWN, err)}


def dies_at(point, nth, rank, set_number):
    return "%s:%d:kill:rank=%d" % (point, nth, native(rank, set_number))


def test_what_has_an_order_is_done_for_the_dead():
    for point, nth in (("replica.kept", 200), ("replica.counted", 60), ("replica.lock_drawn", 1),
                       ("replica.task_drawn", 2)):
        faults = [dies_at(point, nth, 0, 0), dies_at(point, nth + 2, 1, 1)]
        done = race(faults)
        assert {(0, 0)} <= done <= {(0, 0), (1, 1)}, (faults, done)


def test_what_has_an_order_is_done_for_two_of_three():
    faults = [dies_at("replica.counted", 30, 2, 0), dies_at("replica.counted", 90, 2, 1),
              dies_at("replica.counted", 60, 0, 2)]
    assert race(faults, replicas=3) == {(0, 2), (1, 2), (2, 0)}


def test_all_ranks_of_a_node_die_and_it_lives():
    """Its parts keep their place in the order, which the other set waits for."""
    faults = [dies_at("replica.counted", 50, 0, 0), dies_at("replica.counted", 90, 1, 0)]
    assert race(faults) == {(0, 0), (0, 1)}


def test_a_node_dies_at_each_step_of_an_order():
    """The agent of node 0, of set 0, which leads; and of node 2, of set 1, which follows."""
    for point, node in (("order.executing", 0), ("order.executed", 2), ("order.telling", 0), ("order.told", 0),
                        ("order.entries_came", 2), ("order.acknowledging", 2), ("order.answering", 0)):
        done = race(["%s:%d:node:node=%d" % (point, 20, node), dies_at("replica.counted", 120, 3, 1 - node // 2)])
        assert {(node // 2, 0), (node // 2, 1)} <= done, (point, done)


def test_who_counts_for_the_dead_stands_still():
    for point, nth in (("replica.taking_over", 1), ("replica.counted", 45)):
        faults = [dies_at("replica.counted", 40, 1, 0), "%s:%d:stop:rank=%d" % (point, nth, native(1, 1))]
        assert race(faults, stops=(1, 1)) == {(0, 1)}


def test_who_leaves_dies_or_stands_still():
    """When it has said that it leaves, and its replica has not."""
    for rank, number in ((0, 0), (1, 1)):
        assert race([dies_at("replica.has_left", 1, rank, number)]) <= {(number, rank)}
    fault = "replica.has_left:1:stop:rank=%d" % native(1, 0)
    assert race([fault], stops=(1, 0)) == set()


# ---- messages ----


def letters(faults, replicas=2, stops=None, more=()):
    """Whose part was done. stops: (rank, set), which goes on after 3 s."""
    with Job([*options(replicas), *more, *PROGRAMS["letters"]], env={"KEEL_FAULT": ",".join(faults)}) as job:
        if stops:
            goes_on(job, replicas, native(*stops), faults)
        return ends_right(job, "letters", faults)


def test_messages_of_the_dead_are_brought():
    """Rank 0 of set 0 dies at a step of its n-th message or meeting, rank 3 of set 1 a little later."""
    for point, nth in (("replica.kept", 60), ("replica.brought", 1), ("replica.brought", 50), ("mail.sending", 300),
                       ("replica.all_complete", 70), ("replica.leaving", 71)):
        faults = [dies_at(point, nth, 0, 0), dies_at(point, nth + 9, 3, 1)]
        done = letters(faults)
        assert done == {(0, 0), (1, 3)}, (faults, done)


def test_messages_of_two_of_three_are_brought():
    faults = [dies_at("replica.brought", 20, 1, 0), dies_at("replica.brought", 40, 1, 1),
              dies_at("replica.kept", 90, 2, 2)]
    assert letters(faults, replicas=3) == {(0, 1), (1, 1), (2, 2)}


def test_who_brings_messages_of_the_dead_dies_or_stands_still():
    first = dies_at("replica.brought", 30, 1, 0)
    for point in ("replica.taking_over", "replica.took_over"):
        done = letters([first, dies_at(point, 1, 1, 1)], replicas=3)
        assert done == {(0, 1), (1, 1)}, (point, done)
        assert letters([first, "%s:1:stop:rank=%d" % (point, native(1, 1))], stops=(1, 1)) == {(0, 1)}


def test_nodes_die_whose_ranks_have_messages_under_way():
    faults = ["replica.brought:40:node:rank=%d" % native(0, 0), "replica.brought:80:node:rank=%d" % native(3, 1)]
    assert letters(faults) == {(0, 0), (0, 1), (1, 2), (1, 3)}


# ---- what was put is looked at where it lies (--check hash, all) ----


def test_what_is_looked_at_where_it_lies_is_done_for_the_dead():
    for check in ("hash", "all"):
        faults = [dies_at("replica.kept", 60, 0, 0), dies_at("replica.leaving", 90, 3, 1)]
        assert letters(faults, more=["--check", check]) == {(0, 0), (1, 3)}, check
        faults = [dies_at("replica.said", 30, 1, 0), dies_at("replica.meeting", 60, 1, 1),
                  dies_at("replica.taking_over", 1, 1, 2)]
        assert letters(faults[:2], replicas=3, more=["--check", check]) == {(0, 1), (1, 1)}, check


def test_wrong_bits_in_what_is_written_for_the_dead_are_written_over():
    """Rank 1 of set 0 is dead, and what rank 1 of set 1 puts there for it has a wrong bit."""
    told = r"rank 1: what operation \d+ since the start, .* lies there otherwise in set 0, and was written once more"
    for check in ("hash", "all"):
        more = ["--check", check, "--inject", "rate=1,where=flight,set=1,rank=1,step=20..30,count=1,seed=7"]
        with Job([*options(2), *more, *PROGRAMS["short"]],
                 env={"KEEL_FAULT": dies_at("replica.kept", 20, 1, 0)}) as job:
            assert ends_right(job, "short", check) == {(0, 1)}
            assert len(re.findall(told, job.stderr())) == 1, (check, job.stderr())


if __name__ == "__main__":
    keeltest.main(globals())
