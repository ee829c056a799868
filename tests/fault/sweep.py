"""sweep.py [--how death|silence|moves] [--passings 1,4] [--every N] [--full] [--only POINT]: each named step of the
protocols
  death    is the last one of a rank, of a node or of an agent;
  silence  is where its node freezes, or is cut off (netns bed, root), for shorter or longer than the limit;
  moves    of a line of ranks that live, behind a node that died, is where a rank that goes, or its node, or the node
           it goes to, is killed, or freezes for longer than the limit, whoever has come to the step;
at the 1st time that it is passed, or at those of --passings, until nobody passes it any more. --every N: only each N-th
step. The torture program tells whether the data is right."""
import argparse
import itertools
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from cluster import QUICK, Cluster
from keeltest import IS_ROOT

PROGRAM = os.environ.get("KEEL_TORTURE", "build/tests/fault/torture")
NODES, SPARES = 3, 1
RANK_POINTS = ["op.put_between_copies", "op.intent_set", "op.before_local_store", "op.after_local_store", "op.answered",
               "op.chunk_in_one_copy", "op.chunk_in_all_copies", "acc.done", "task.drawn",
               "task.claimed", "task.accumulating", "task.committing", "task.committed", "task.reset_prepared",
               "rank.barrier_entering", "rank.barrier_left", "rank.leaving", "rank.left",
               "segment.made", "segment.deciding", "segment.decided", "segment.told", "segment.counted"]
AGENT_POINTS = ["replica.put_noted", "replica.put_applied", "replica.applied_not_forwarded", "replica.forwarded",
                "replica.forward_received", "replica.forward_stored", "replica.acknowledged_not_answered"]
VIEW_POINTS = ["recover.prepare_received", "recover.fenced", "recover.answered", "recover.commit_received",
               "recover.committed", "recover.settled", "procs.joining", "procs.joined", "push.doubts_half_told",
               "push.doubts_told", "push.patch_asked", "push.patch_received", "push.restored_not_submitted", "push.restored_submitted",
               "rank.resuming"]
REBUILD_POINTS = ["push.rebuild_begun", "push.rebuild_middle", "push.rebuild_end", "push.snapshot_begun",
                  "push.snapshot_block", "push.snapshot_end", "push.restored_not_submitted", "push.restored_submitted",
                  "recover.prepare_received", "recover.answered", "recover.commit_received", "recover.settled"]
# 0 1 2 | 3 4: node 0 dies, and each slot goes on by one. Who comes by each step of that: a rank or a node.
LINE = ["--grid", "5", "--spare-alloc", "1D(1,2)", "--substitution", "1D"]
LINE_BEGINS = "task.accumulating:4:node:rank=0"
MOVE_POINTS = [(point, where) for points, all_where in (
    (["rank.move_point", "rank.moving", "rank.let_go", "rank.moved"], ["rank=1", "rank=2"]),
    (["procs.releasing", "procs.moved"], ["node=1", "node=2"]),
    (["procs.joining", "procs.joined"], ["node=2", "node=3"]),
    (["push.snapshot_begun", "push.snapshot_block", "push.snapshot_end"], ["node=2", "node=3"]),
    (["push.rebuild_begun", "push.rebuild_middle", "push.rebuild_end", "push.restored_not_submitted",
      "push.restored_submitted"], ["node=1", "node=2"]),
    (["recover.prepare_received", "recover.fenced", "recover.answered", "recover.commit_received", "recover.committed",
      "recover.settled"], ["node=1", "node=2", "node=3"])) for point in points for where in all_where]
# A writer that dies in the middle of its puts; a node that dies in the middle of its tasks.
RANK_DIES = "op.after_local_store:3:kill:rank=1"
NODE_DIES = "task.accumulating:4:node:rank=1"


SILENCES = ["freeze", "cut", "pause", "blink"]  # for longer than the limit, and for shorter
SHORT_S, LIMIT_S = 0.25, 0.6


# Who comes by, where not everybody does.
PASSED_BY = {"procs.joining": [1], "procs.joined": [1], "rank.resuming": [1], "push.snapshot_begun": [NODES],
             "push.snapshot_block": [NODES], "push.snapshot_end": [NODES], "push.rebuild_end": [0, 2]}


class Disturbed(Exception):
    """Nothing was tested: this machine stood still."""


def chosen(point, i, nodes, full):
    """All nodes that may come by, or one of them."""
    nodes = PASSED_BY.get(point, nodes)
    return nodes if full else [nodes[i % len(nodes)]]


def cases(full):
    """(what, faults before, POINT, ACTION, WHERE, words, may data be lost)."""
    for i, point in enumerate(RANK_POINTS):
        words = 40000 if "chunk" in point else 300
        for k, action in enumerate(("kill", "node")):
            if full or k == i % 2:
                yield point, None, action, "rank=1", words, False
    for i, point in enumerate(AGENT_POINTS):
        for node in chosen(point, i, range(NODES), full):
            yield point, None, "kill", "node=%d" % node, 300, False
    for i, point in enumerate(VIEW_POINTS):
        for node in chosen(point, i, range(NODES), full):
            yield point, RANK_DIES, "node", "node=%d" % node + (":life=1" if point == "rank.resuming" else ""), 300, False
    for i, point in enumerate(REBUILD_POINTS):
        for node in chosen(point, i, (0, 2, NODES), full):
            yield point, NODE_DIES, "kill", "node=%d" % node, 3000, node != NODES


def silent_cases(full):
    """The same steps, each with one way to fall silent, or with each."""
    seen = set()
    for i, (point, before, _, where, words, may_lose) in enumerate(cases(full)):
        for k, how in enumerate(SILENCES):
            if (full or k == i % len(SILENCES)) and (IS_ROOT or how in ("freeze", "pause")) and (point, where, how) not in seen:
                seen.add((point, where, how))
                yield point, before, how, where, words, may_lose and how in ("freeze", "cut")


def moves_cases(full):
    """action: who, and what becomes of it. Each mover has its own source and target."""
    actions = ["%s %s" % (how, who) for who in ("itself", "mover", "source", "target") for how in ("kill", "freeze")]
    for i, (point, where) in enumerate(MOVE_POINTS):
        for k, action in enumerate(actions):
            if full or (i + k) % 2 == 0:
                yield point, LINE_BEGINS, action, where, 3000, False


def finish(job, before, may_lose):
    """Wait for the end; how many died, faults before not counted."""
    code = job.wait()
    job.poll()
    if "has not" in job.stderr() and "within 30 s" in job.stderr():
        raise Disturbed("the job did not start in time")
    dead = len({e["dead_node"] for e in job.has("view") if "dead_node" in e})
    ranks = len({(e["dead_rank"], e["epoch"]) for e in job.has("view") if "dead_rank" in e})
    if "WRONG" in job.stderr():
        raise AssertionError("wrong data")
    lost = code == 3 and may_lose and dead > 1 and "no copy of the data is left" in job.stderr()
    if not lost and (code != 0 or "all right" not in job.stdout()):
        raise AssertionError("exit code %d, output %r, %d nodes and %d ranks died" % (code, job.stdout()[-300:], dead, ranks))
    return dead + ranks - (1 if before else 0)


def die(job, before, action, may_lose):
    """True if the point was passed that often."""
    return finish(job, before, may_lose) > 0


def fall_silent(job, before, how, may_lose):
    """The process stops at the point; then its whole node freezes, or is cut off and goes on by itself."""
    looks = [time.monotonic()]

    def stopped(c):
        looks.append(time.monotonic())
        return c.stopped()
    job.until(stopped, "the point to be passed, or the end")
    where = job.stopped()
    if where:
        node, pid = where
        begin, pids = looks[-2], job.node_pids(node)  # it ran when it was looked at before
        if how in ("freeze", "pause"):
            job.signal_node(node, signal.SIGSTOP)
        else:
            job.link(node, "cut")
            job.signal_pid(pid, signal.SIGCONT)
        if how in ("freeze", "cut"):
            job.until(lambda c: c.has("view", dead_node=node), "the verdict")
        else:
            time.sleep(SHORT_S)
        if how in ("freeze", "pause"):
            for pid in pids:
                job.signal_pid(pid, signal.SIGCONT)
        else:
            job.link(node, "heal")
        short = how in ("pause", "blink") and time.monotonic() - begin < LIMIT_S
    finish(job, before, may_lose)
    if where and short:
        assert not job.has("view", dead_node=node), "declared dead after %.2f s" % SHORT_S
    return bool(where)


def strike_mover(job, before, action, where, may_lose):
    """A process stands still at the point; then it, or the mover whose node it is or that goes there, or one of the
    mover's nodes, dies or freezes. True: the point was passed."""
    how, who = action.split()
    job.until(lambda c: c.stopped(), "the point to be passed, or the end")
    at = job.stopped()
    if at:
        node, pid = at
        rank = int(where[-1]) if where.startswith("rank") else min(node, 2)  # of the line: rank r goes from r to r + 1
        victim = {"itself": node, "mover": rank, "source": rank, "target": rank + 1}[who]
        pids = job.node_pids(victim)
        if who == "itself" and how == "kill":
            pids = [pid]
        elif who == "mover":
            pids = [p for p, r in job.rank_pids.get(victim, {}).items() if r == rank]
        for p in pids:
            job.signal_pid(p, signal.SIGKILL if how == "kill" else signal.SIGSTOP)
        if pid not in pids or how == "kill":
            job.signal_pid(pid, signal.SIGCONT)
        if how == "freeze" and who == "mover":
            time.sleep(LIMIT_S)
        elif how == "freeze":
            job.until(lambda c: c.has("view", dead_node=victim), "the verdict")
        for p in pids + [pid]:
            job.signal_pid(p, signal.SIGCONT)
    finish(job, before, may_lose)
    return bool(at)


def run_moves(point, nth, before, action, where, words, may_lose):
    quick = QUICK if action.startswith("freeze") else ["--silence", "600s", "--stopped", "never"]
    with Cluster(NODES, [PROGRAM, "7", "12", str(words), "12"], spares=2, options=LINE + quick,
                 env={"KEEL_FAULT": "%s,%s:%d:stop:%s" % (before, point, nth, where), "KEEL_LEAVE_MS": "60000"}) as job:
        return strike_mover(job, before, action, where, may_lose)


def run(point, nth, before, action, where, words, may_lose):
    """True if the point was passed that often."""
    if before == LINE_BEGINS:
        return run_moves(point, nth, before, action, where, words, may_lose)
    silent = action in SILENCES
    fault = "%s:%d:%s:%s" % (point, nth, "stop" if silent else action, where)
    env = {"KEEL_FAULT": before + "," + fault if before else fault}
    spares = SPARES + 1 if silent and before == NODE_DIES else SPARES  # three must be left to decide
    with Cluster(NODES, [PROGRAM, "7", "3", str(words), "12"], spares=spares, env=env,
                 options=(["--bed", "netns"] if action in ("cut", "blink") else []) +
                 (QUICK if action in ("freeze", "cut") else [])) as job:
        return (fall_silent if silent else die)(job, before, action, may_lose)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--how", choices=["death", "silence", "moves"], default="death")
    parser.add_argument("--full", action="store_true", help="every passing (at most 100), each kind of death")
    parser.add_argument("--passings", default="1")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--only", default="", help="points whose name begins like this")
    options = parser.parse_args()
    runs, failed, never, begin = 0, [], [], time.monotonic()
    passings = [int(n) for n in options.passings.split(",")]
    if options.full:
        passings = range(1, 101) if options.how == "death" else (1, 2, 4)
    listed = {"death": cases, "silence": silent_cases, "moves": moves_cases}[options.how]
    for point, before, action, where, words, may_lose in itertools.islice(listed(options.full), 0, None, options.every):
        if not point.startswith(options.only):
            continue
        for nth in passings:
            runs += 1
            try:
                try:
                    passed = run(point, nth, before, action, where, words, may_lose)
                except Disturbed as why:
                    print("again   %s:%d: %s" % (point, nth, why))
                    passed = run(point, nth, before, action, where, words, may_lose)
            except (AssertionError, Disturbed) as error:
                failed.append("%s:%d:%s:%s" % (point, nth, action, where))
                print("FAILED  %s after %s: %s" % (failed[-1], before, error))
                sys.stdout.flush()
                continue
            if not passed:
                if nth == 1:
                    never.append("%s(%s)" % (point, where))
                break
    print("sweep: %d runs, %d failed %s, never passed: %s; %.0f s" % (runs, len(failed), failed, " ".join(never) or "none",
                                                                  time.monotonic() - begin))
    sys.exit(1 if failed else 0)


main()
