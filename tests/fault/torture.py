"""torture.py [--seeds N] [--first SEED] [--verbose]: the torture program on random clusters whose nodes and ranks die
at random times. A seed gives the cluster, the program's data and the plan of deaths; how the processes interleave it
cannot repeat.

For each seed: exit code 0 and the right data; or KEEL_ERR_DATA_LOST, if a node was killed before redundancy was
restored after another one's death; or no quorum, if a node is silent while too few are left to decide that it is dead.
When redundancy was restored the program rests, and all copies are equal. Never wrong data, another error or a hang;
nothing left behind."""
import argparse
import os
import random
import re
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from cluster import QUICK, Cluster

PROGRAM = os.environ.get("KEEL_TORTURE", "build/tests/fault/torture")


class Disturbed(Exception):
    """A node was declared dead that nobody touched: this machine stood still for most of a second."""


class Plan:
    def __init__(self, seed):
        r = self.random = random.Random(seed)
        self.seed = seed
        self.nodes = r.randint(2, 5)
        self.spares = r.choice([0, 0, 1, 1, 2])
        self.ppn = r.choice([1, 1, 2]) if self.nodes < 5 else 1
        self.on_failure = r.choice(["substitute", "degrade"])
        self.words = r.choice([16, 300, 300, 3000, 40000]) if self.nodes * self.ppn <= 4 else r.choice([16, 300, 3000])
        self.phases = r.randint(3, 6)
        self.tasks = r.choice([3, 12, 30])
        self.rough = r.random() < 0.25  # the next death does not wait until redundancy is restored
        self.kills = []
        for _ in range(r.choice([0, 1, 1, 1, 2, 2, 3])):
            what = r.choice(["node", "node", "node", "rank", "rank", "agent", "freeze", "pause"])
            self.kills.append((what, r.randint(1, self.phases), r.expovariate(100)))
        self.secure = seed % 4 == 0

    def __str__(self):
        return "seed %d: %d nodes, %d spares, %d ranks, %s, %d words, %d phases, %d tasks%s, %s" % (
            self.seed, self.nodes, self.spares, self.nodes * self.ppn, self.on_failure, self.words, self.phases, self.tasks,
            (", rough" if self.rough else "") + (", secure" if self.secure else ""), " ".join("%s@%d+%.0fms" % (w, p, 1000 * d) for w, p, d in self.kills))


def strike(plan, job, what):
    """Let one node or rank die or freeze; never the last one."""
    nodes = [n for n in job.live_nodes() if n not in job.frozen]
    computing = [n for n in nodes if job.live_ranks(n)]
    if what == "rank":
        pids = [pid for n in nodes for pid in job.live_ranks(n)]
        if len(pids) > 1:
            job.kill_pid(plan.random.choice(sorted(pids)))
        return
    if len(nodes) < (3 if what == "freeze" else 2):  # half of the members, and silent: the others may not decide
        return
    victim = plan.random.choice(sorted(nodes))
    if computing == [victim] and (plan.on_failure == "degrade" or not plan.spares):
        return
    if what == "node":
        job.kill_node(victim)
    elif what == "agent":
        job.killed.append((time.monotonic_ns(), "agent %d" % victim))
        job.process_deaths += len(job.rank_pids.get(victim, {}))
        job.signal_pid(job.agents[victim], signal.SIGKILL)
    elif what == "freeze":
        job.killed.append((time.monotonic_ns(), "frozen %d" % victim))
        job.process_deaths += len(job.rank_pids.get(victim, {}))
        job.signal_node(victim, signal.SIGSTOP)
        job.frozen.append(victim)
    else:
        job.signal_node(victim, signal.SIGSTOP)
        time.sleep(plan.random.uniform(0.01, 0.1))  # below the limit; a busy machine makes it longer
        job.signal_node(victim, signal.SIGCONT)


def may_lack_quorum(plan, job):
    """A member is silent that no view declares dead, and those that are left are no majority of the view."""
    declared = {e["dead_node"] for e in job.has("view") if "dead_node" in e}
    silent = [n for n in job.frozen if n not in declared]
    members = set(range(plan.nodes + plan.spares)) - declared
    left = [n for n in members if n not in job.touched()]
    return bool(silent) and 2 * len(left) <= len(members)


def all_were_struck(job):
    """Each rank was killed, or the node on which it had ended, which may not have got round to telling the others."""
    where, killed = {}, set()
    for e in job.seen:
        if e["event"] in ("rank_start", "assigned") and e.get("rank", -1) >= 0:
            where[e["rank"]] = e["node"]
        elif e["event"] == "exit" and e["signal"]:
            killed.add(e["rank"])
    return all(rank in killed or where.get(rank) in job.touched() for rank in range(job.size))


def drive(plan, job):
    overlapped, going, lacking, kills = False, job.started(), False, sorted(plan.kills, key=lambda k: k[1])
    for i, (what, phase, delay) in enumerate(kills):
        going = going and job.until(lambda c: c.phase() >= phase, "phase %d" % phase)
        if going and not plan.rough:
            going = job.until(lambda c: c.redundant(), "redundancy to be restored")
        if not going:
            break
        time.sleep(delay)
        before, deaths, now = len(job.killed), job.process_deaths, time.monotonic_ns()
        job.poll()
        was_redundant = job.redundant()
        strike(plan, job, what)
        overlapped |= len(job.killed) > before and not was_redundant
        job.poll()
        lacking |= may_lack_quorum(plan, job)
        if len(job.killed) > before or job.process_deaths > deaths:
            job.struck = now
        # Another blow in the same phase comes before the program rests.
        if not plan.rough and job.struck and (i + 1 == len(kills) or kills[i + 1][1] > phase):
            job.verified += job.verify_at_rest()
    if plan.rough:
        job.verified += job.verify_at_rest(last=True)
    code = job.wait()
    for node in job.frozen:  # it wakes up in a job that has ended, and must end, too
        job.signal_node(node, signal.SIGCONT)
    out, err = job.stdout(), job.stderr()
    right = re.search(r"all right, .* (\d+) lost", out)
    if code == 3 and "no copy of the data is left" in err and overlapped:
        result = "data lost, as it must be"
    elif code == 1 and lacking and any(t in err for t in ("no quorum", "has not answered", "without a word")):
        result = "no quorum, as it may be"
    elif code == 137 and right and re.search(r"all \d+ ranks died", err) and all_were_struck(job):
        result = "right, and killed before all knew that it had ended"
    elif code == 0 and right and int(right.group(1)) <= job.process_deaths:
        result = "right after " + (", ".join(k for _, k in job.killed) or "no node's death")
    else:
        raise AssertionError("exit code %d, output %r, killed %s, %d processes died, overlapped %s" %
                             (code, out[-300:], [k for _, k in job.killed], job.process_deaths, overlapped))
    if "WRONG" in err:
        raise AssertionError("wrong data")
    return result


def run(plan):
    """(what happened, seconds)."""
    begin = time.monotonic()
    program = [PROGRAM, str(plan.seed), str(plan.phases), str(plan.words), str(plan.tasks)]
    with Cluster(plan.nodes, program, ranks=plan.nodes * plan.ppn, spares=plan.spares, on_failure=plan.on_failure,
                 options=QUICK + (["--secure"] if plan.secure else []), rests=True) as job:
        job.frozen, job.verified = [], 0
        if plan.rough:
            job.want_rest("last")
        try:
            result = drive(plan, job)
        except AssertionError:
            if job.false_deaths() and "WRONG" not in job.stderr():
                raise Disturbed("nodes %s" % job.false_deaths())
            if not job.frozen and "no quorum: too many members are silent" in job.stderr() and "WRONG" not in job.stderr():
                raise Disturbed("nobody was silent, and yet too many were taken for it")
            raise
    return result, time.monotonic() - begin, job.verified


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=int(os.environ.get("KEEL_SEED", "1")))
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--stop", action="store_true", help="at the first failure")
    options = parser.parse_args()
    failed, lost, lacking, verified, disturbed, longest, begin = [], 0, 0, 0, 0, 0, time.monotonic()
    for seed in range(options.first, options.first + options.seeds):
        plan = Plan(seed)
        try:
            try:
                result, seconds, audits = run(plan)
            except Disturbed as why:
                disturbed += 1
                print("again   seed %d: declared dead without a cause: %s" % (seed, why))
                plan = Plan(seed)
                result, seconds, audits = run(plan)
            longest = max(longest, seconds)
            lost += result.startswith("data lost")
            lacking += result.startswith("no quorum")
            verified += audits
            if options.verbose:
                print("ok      %s: %s (%.2f s)" % (plan, result, seconds))
        except (AssertionError, Disturbed) as error:
            failed.append(seed)
            print("FAILED  %s: %s" % (plan, error))
            if options.stop:
                break
        sys.stdout.flush()
    print("torture: %d seeds from %d, %d failed %s, %d lost data as they must, %d without quorum, copies compared %d times, %d disturbed, "
          "longest %.1f s, in all %.0f s" % (options.seeds, options.first, len(failed), failed or "", lost, lacking, verified, disturbed,
                                             longest, time.monotonic() - begin))
    sys.exit(1 if failed else 0)


main()
