"""torture_slides.py [--seeds N] [--first SEED] [--verbose]: the torture program on a grid of 4x4 with spares 2D(2,1),
of which nodes die so that lines of ranks that live move: one after the other, two in a row, and while a slide runs. A
seed gives method, data and the plan of deaths; how the processes interleave it cannot repeat.

For each seed: exit code 0, the right data, and all copies equal in the end; or KEEL_ERR_DATA_LOST, if as many nodes as
there are copies died before redundancy was restored. Never another error, or a hang."""
import argparse
import os
import random
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from cluster import Cluster

PROGRAM = os.environ.get("KEEL_TORTURE", "build/tests/fault/torture")
NODES, SPARES, LONG_S, NO_SLIDE_S = 9, 7, 300, 1
METHODS = ["1D", "2D", "hybrid(all)", "hybrid(-2D)", "balance", "repair(2)", "auto", "0D"]
# who dies is killed, and that is seen; silence is want of a processor
FAR = ["--silence", "600s", "--stopped", "never"]
# Who dies next, and when: at once, or when all copies are there; while the slide that the last death began goes on: a
# node that a rank leaves, or goes to, or has come to, or a rank that goes.
LATER = ["at once", "after", "source", "target", "arrived", "goer", "spare"]


class Plan:
    def __init__(self, seed):
        r = self.random = random.Random(seed)
        self.seed = seed
        self.copies = 2 + seed % 2  # as the program chooses it
        self.method = r.choice(METHODS)
        self.words = r.choice([16, 300, 300, 3000])
        self.blows = [r.choice(LATER) for _ in range(r.choice([1, 2, 3]))]
        self.leave = r.choice(["60000", "60000", "60000", "20"])

    def __str__(self):
        return "seed %d: %s, %d copies, %d words, %s ms to leave, %s" % (
            self.seed, self.method, self.copies, self.words, self.leave, ", ".join(self.blows))


class Grid(Cluster):
    """A job whose last death was at `since`."""

    def __init__(self, plan):
        super().__init__(NODES, [PROGRAM, str(plan.seed), "60000", str(plan.words), "12"], spares=SPARES, rests=True,
                         env={"KEEL_LEAVE_MS": plan.leave},
                         options=FAR + ["--grid", "4x4", "--spare-alloc", "2D(2,1)", "--substitution", plan.method])
        self.copies, self.since, self.missing, self.lossy, self.sliding = plan.copies, 0, 0, False, 0

    def later(self, event):
        return [e for e in self.has(event) if e["t_ns"] > self.since]

    def going(self):
        """(rank, from, to) of those who were asked to move since the last death and have not."""
        gone = {e["moved_rank"] for e in self.later("view") if "moved_rank" in e}
        return [(e["rank"], e["node"], e["to"]) for e in self.later("released") if e["rank"] not in gone]

    def arrived(self):
        ranks = {e["moved_rank"] for e in self.later("view") if "moved_rank" in e}
        at = {e["rank"]: e["to"] for e in self.later("released")}
        return sorted({at[r] for r in ranks if r in at})

    def kill(self, node):
        self.poll()
        if node not in self.live_nodes():
            return
        was_redundant = self.redundant()
        self.missing = 1 if was_redundant else self.missing + 1
        self.lossy |= self.missing >= self.copies
        self.sliding += bool(self.going())
        self.since = time.monotonic_ns()
        self.kill_node(node)


def victim(plan, job, when):
    """The node, -rank - 1, or None: nobody moves."""
    computing = sorted(n for n in job.live_nodes() if job.live_ranks(n))
    if when == "spare":
        return plan.random.choice(sorted(set(job.live_nodes()) - set(computing)))
    if when in ("source", "target", "goer", "arrived"):
        begin = time.monotonic()
        found = []

        def is_there(c):
            found[:] = c.arrived() if when == "arrived" else sorted(c.going())
            return found or (c.redundant() and time.monotonic() - begin > NO_SLIDE_S)
        job.until(is_there, "a rank to move, or all copies to be there", LONG_S)
        if not found:
            return None
        one = plan.random.choice(found)
        return one if when == "arrived" else {"goer": -one[0] - 1, "source": one[1], "target": one[2]}[when]
    if when == "after":
        job.until(lambda c: c.redundant(), "redundancy to be restored", LONG_S)
    return plan.random.choice(computing)


def drive(plan, job):
    assert job.started() and job.until(lambda c: c.phase() >= 2, "the second phase", LONG_S), "it did not begin"
    job.kill(plan.random.choice([0, 1, 3, 4, 6, 7] + list(range(NODES))))  # these have somebody behind them
    for when in plan.blows:
        who = victim(plan, job, when)
        if who is not None and who < 0:
            pids = [p for n in job.live_nodes() for p in job.live_ranks(n) if job.rank_pids[n][p] == -who - 1]
            if pids:
                job.kill_pid(pids[-1])
        elif who is not None:
            job.kill(who)
    job.verify_at_rest(seconds=LONG_S)
    job.want_rest("end")
    for name in os.listdir(job.rests.name):  # who rests goes on, to the end
        if name.startswith("step."):
            job.want_rest("go." + name[5:])
    job.until(lambda c: c.over(), "the end", LONG_S)
    code, out, err = job.wait(), job.stdout(), job.stderr()
    assert "WRONG" not in err, "wrong data"
    if code == 3 and job.lossy and "no copy of the data is left" in err:
        return "data lost, as they must be"
    right = re.search(r"all right, .* (\d+) lost", out)
    made = len(job.has("made_to_leave"))
    if code == 0 and right and int(right.group(1)) <= job.process_deaths + made:
        return "right"
    raise AssertionError("exit code %d, output %r, killed %s, %d processes died, %d made to leave" %
                         (code, out[-300:], [k for _, k in job.killed], job.process_deaths, made))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=int(os.environ.get("KEEL_SEED", "1")))
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    failed, lost, moved, sliding, begin = [], 0, 0, 0, time.monotonic()
    for seed in range(options.first, options.first + options.seeds):
        plan = Plan(seed)
        try:
            with Grid(plan) as job:
                result = drive(plan, job)
                moves = len({(e["epoch"], e["moved_rank"]) for e in job.has("view") if "moved_rank" in e})
                lost, moved, sliding = lost + (result != "right"), moved + moves, sliding + job.sliding
            if options.verbose:
                print("ok      %s: %s, %d moves, %s" % (plan, result, moves, [k for _, k in job.killed]))
        except AssertionError as error:
            failed.append(seed)
            print("FAILED  %s: %s" % (plan, error))
        sys.stdout.flush()
    print("torture_slides: %d seeds from %d, %d failed %s, %d lost data as they must, %d moves, %d nodes died in a slide, "
          "%.0f s" % (options.seeds, options.first, len(failed), failed or "", lost, moved, sliding,
                      time.monotonic() - begin))
    sys.exit(1 if failed or not moved or not sliding else 0)


main()
