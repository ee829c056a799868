"""Ranks race for words (races.c), in sets of replicas: each set's memory, and what its ranks are told, is the same at
each barrier, whatever dies or stands still meanwhile."""
import os
import random
import re
import signal
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../lib"))
import keeltest

PROGRAM = os.environ.get("KEEL_RACES", "")
FAR = ["--silence", "600s", "--stopped", "never"]
POINTS = ["order.executing", "order.executed", "order.telling", "order.told", "order.entries_came",
          "order.acknowledging", "order.answering"]
OF_THE_LEADER, OF_OTHERS = ("order.telling", "order.told"), ("order.entries_came", "order.acknowledging")
SEED = int(os.environ.get("KEEL_TEST_SEED", time.time_ns() % 1000000))


class Race(keeltest.Job):
    """Sets of so many ranks, each on so many nodes; `done`: rounds that its ranks have ended, all together."""

    def __init__(self, replicas, ranks=4, nodes=2, rounds=3, env=None, options=()):
        self.file = tempfile.NamedTemporaryFile()
        args = [*FAR, "-n", str(ranks), "--nodes", str(nodes * replicas), "--replicas", str(replicas),
                "--on-mismatch", "report", *options, PROGRAM]
        env = {"KEEL_TEST_ROUNDS": str(rounds), "KEEL_TEST_LOG": self.file.name, **(env or {})}
        super().__init__(args, env=env, seconds=300)

    def ended(self):
        return os.path.getsize(self.file.name)

    def check(self, what, retired=0):
        code = self.wait()
        out, err = self.stdout(), self.stderr()
        assert code == 0 and re.fullmatch(r"done [0-9a-f]{16}\n", out), (what, SEED, code, out, err)
        assert "differs" not in err and "is not what" not in err, (what, SEED, err)
        assert err.count("is retired") == retired, (what, SEED, err)


def test_sets_have_the_same():
    for (ranks, nodes), replicas in keeltest.each(((1, 1), (4, 2), (6, 3)), (2, 3)):
        with Race(replicas, ranks, nodes) as job:
            job.check((replicas, ranks, nodes))


def test_sets_that_are_not_numbered_alike_have_the_same():
    with tempfile.NamedTemporaryFile("w") as f:
        f.write("0 0 0\n1 1 0\n0 3 1\n1 2 1\n")
        f.flush()
        with Race(2, 2, 1, options=["--replica-map", f.name]) as job:
            job.check("map")


def test_who_asks_for_a_word_that_others_signal_is_named():
    """The signal of one set waits until both sets have asked: the call that finds another number is named."""
    env = {"KEEL_TEST_ASK": "1", "KEEL_FAULT": "replica.said:2:stop:rank=3"}
    with keeltest.Job([*FAR, "-n", "2", "--replicas", "2", PROGRAM], env=env) as job:
        code, err = job.wait(), job.stderr()
        assert code == 1 and "no set is left" in err, (code, err)
        said = r"keel_fetch_add to rank 0, segment 1 at \d+, 8 bytes, differs between set 0 and set 1\n"
        assert re.search(said, err), err


def test_a_node_dies_at_each_point():
    rng = random.Random(SEED)
    where = [(point, node) for point in POINTS for node in (0, 2)
             if point not in (OF_OTHERS if node == 0 else OF_THE_LEADER)]
    for i, (point, node) in enumerate(where):
        fault = "%s:%d:kill:node=%d" % (point, rng.randrange(1, 200), node)
        replicas = 2 + (i + SEED) % 2  # the other number with the next seed
        with Race(replicas, env={"KEEL_FAULT": fault}) as job:
            job.check((fault, replicas), retired=1)


def test_a_rank_dies_between_draw_and_turn():
    for point, rank in keeltest.each(("replica.lock_drawn", "replica.task_drawn"), (0, 5)):
        fault = "%s:3:kill:rank=%d" % (point, rank)
        with Race(2, env={"KEEL_FAULT": fault}) as job:
            job.check(fault, retired=1)


def test_two_leaders_die_one_after_the_other():
    """The second one while it goes on with what the first has decided."""
    rng = random.Random(SEED)
    for _ in range(1 if keeltest.SANITIZED else 3):
        fault = "order.executed:%d:kill:node=0,order.handing_over:1:kill:node=2" % rng.randrange(1, 300)
        with Race(3, env={"KEEL_FAULT": fault}) as job:
            job.check(fault, retired=2)


def test_sets_whose_parts_have_shadows():
    """On nodes of other sets, one of which dies: their copies are made anew meanwhile."""
    rng = random.Random(SEED)
    for node in (None, SEED % 3 * 2) if keeltest.SANITIZED else (None, 0, 2, 4):
        fault = "order.executed:%d:kill:node=%d" % (rng.randrange(1, 300), node) if node is not None else ""
        with Race(3, rounds=6, env={"KEEL_FAULT": fault, "KEEL_TEST_SHADOWS": "1"}) as job:
            job.check(fault, retired=int(node is not None))


def kill(pid, sig=signal.SIGKILL):
    try:
        os.kill(pid, sig)
    except ProcessLookupError:
        pass


def test_ranks_die_at_any_moment():
    rng = random.Random(SEED)
    for replicas in (2, 3) if keeltest.SANITIZED else (2, 3, 3):
        with Race(replicas, rounds=20) as job:
            for lost in range(1, replicas):
                before, stay = job.ended(), rng.random() / 4
                keeltest.wait_for(lambda: job.ended() > before, "a round")
                time.sleep(stay)  # any moment of the next round
                left = ranks_of(job)
                if not left:  # the job was faster
                    break
                kill(rng.choice(left))
                keeltest.wait_for(lambda n=lost: job.stderr().count("is retired") >= n or
                                  job.process.poll() is not None, "a retired set")
            job.wait()
            err = job.stderr()
            job.check((replicas, err), retired=err.count("is retired"))


def ranks_of(job):
    return [pid for pid in keeltest.processes_with(job.tag) if keeltest.command_of(pid) == PROGRAM]


def agents_of(job):
    return [pid for pid in keeltest.processes_with(job.tag) if "keeld" in keeltest.command_of(pid).split(" ")[0]]


def test_agents_stand_still():
    rng = random.Random(SEED)
    for replicas in (2, 3):
        with Race(replicas, rounds=12) as job:
            for _ in range(3):
                before = job.ended()
                keeltest.wait_for(lambda: job.ended() > before or job.process.poll() is not None, "a round")
                agents = agents_of(job)
                pid = rng.choice(agents) if agents else 0
                if not pid:
                    break
                kill(pid, signal.SIGSTOP)
                time.sleep(1)  # so long it stands still
                kill(pid, signal.SIGCONT)
            job.check(replicas)


if __name__ == "__main__":
    print("seed", SEED)
    keeltest.main(globals())
