"""chaos.py [--seeds N] [--first SEED] [--verbose] [--stop]: one or two mishaps of any kind at random moments of an
application whose result is known. A seed gives the cluster, the mishaps and their moments; how the processes interleave
it cannot repeat.

Mishaps: a rank, a node, an agent alone, a launcher or keelrun is killed; a node freezes, or is cut off silently, for
shorter or longer than the limit. For each seed: exit code 0 and the right sum; or an error that says that no copy of
the data is left, if both copies went; or that there is no quorum, if too few members were left at once to decide. Never
a wrong number or a hang, and nothing left behind. After the harm of a first mishap was repaired, if the second one
waits for that, and before the program's last step it rests, and all copies are equal. With keelrun killed,
`keelctl attach` tells how the job ended."""
import argparse
import collections
import os
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from cluster import Cluster
from keeltest import HANG_S, IS_ROOT, KEELCTL, alive

SUM = os.environ.get("KEEL_SUM", "build/tests/fault/sum")
TASKS, ROUNDS = 40, 8
RESULT = "sum: %d" % (ROUNDS * TASKS * (TASKS + 1) * (2 * TASKS + 1) // 6)
PATIENT = ["--silence", "1s", "--stopped", "1"]  # for what is short, and for what is long
LIMIT_S = 0.6  # of what may be called short: the runtime's own is a second since the last sign of life
KINDS = ["rank", "node", "agent", "launcher", "keelrun", "short freeze", "long freeze", "short cut", "long cut"]
LETHAL = {"node", "agent", "long freeze", "long cut"}
SILENT = {"long freeze", "long cut"}


class Disturbed(Exception):
    """A node was declared dead that nobody touched: this machine stood still for most of a second."""


class Mishap:
    def __init__(self, r, kind, plan):
        self.kind = kind
        self.victim = r.randrange(plan.ranks if kind == "rank" else plan.nodes + plan.spares)
        self.phase, self.delay = r.randint(0, ROUNDS - 2), r.uniform(0, 0.1)
        self.after = None  # the second one: this long after the first struck, or after its harm was repaired
        self.seconds = r.uniform(0.02, 0.4) if kind.startswith("short") else r.choice([0, r.uniform(0, 0.5)])
        self.struck = self.overlapped = self.unknown = self.over = False

    def __str__(self):
        when = "round %d +%.0f ms" % (self.phase, 1000 * self.delay)
        if self.after:
            when = "%s +%.0f ms" % (self.after, 1000 * self.delay)
        where = "" if self.kind == "keelrun" else " %d" % self.victim
        return "%s%s (%s%s)" % (self.kind, where, when, ", %.0f ms" % (1000 * self.seconds) if self.seconds else "")


class Plan:
    def __init__(self, seed):
        r = random.Random(seed)
        self.seed = seed
        self.nodes, self.spares = r.choice([3, 4, 4, 5]), r.choice([0, 0, 1, 2])
        self.ranks = self.nodes * r.choice([1, 1, 2])
        self.on_failure = r.choice(["substitute", "degrade"])
        self.compute_us = r.choice([300, 1000])
        kinds = KINDS if IS_ROOT else [k for k in KINDS if "cut" not in k]
        self.mishaps = [Mishap(r, r.choice(kinds), self)]
        if r.random() < 0.6:
            second = Mishap(r, r.choice(kinds), self)
            second.after = r.choice(["struck", "struck", "struck", "repaired"])
            second.delay = r.choice([0, r.uniform(0, 0.02), r.uniform(0, 0.3), r.uniform(0, 1.2)])
            self.mishaps.append(second)
        self.netns = any("cut" in m.kind for m in self.mishaps) or (IS_ROOT and r.random() < 0.1)
        self.secure = seed % 4 == 0

    def __str__(self):
        return "seed %d: %d nodes, %d spares, %d ranks, %s%s: %s" % (
            self.seed, self.nodes, self.spares, self.ranks, self.on_failure, (", netns" if self.netns else "") + (", secure" if self.secure else ""),
            "; ".join(map(str, self.mishaps)))


class Run(Cluster):
    def __init__(self, plan):
        self.plan, self.watch, self.launcher_pids, self.cuts = plan, None, {}, set()
        program = [SUM, str(TASKS), str(ROUNDS), str(plan.compute_us)]
        super().__init__(plan.nodes, program, ranks=plan.ranks, spares=plan.spares, on_failure=plan.on_failure,
                         options=PATIENT + (["--bed", "netns"] if plan.netns else []) + (["--secure"] if plan.secure else []),
                         rests=not any(m.kind == "keelrun" for m in plan.mishaps))
        self.gone = set()  # nodes that were killed
        # so often, all copies, while the program rested; with keelrun dead nobody writes the event log
        self.compared = 0
        if self.rests:
            self.want_rest("last")

    def over(self):
        return (self.watch or self.process).poll() is not None

    # ---- the mishaps: generators that yield seconds to wait, or a condition to wait for; the end of the job ends each
    # wait

    def mishap(self, m, first):
        if first:
            yield lambda: first.struck
            if m.after == "repaired":
                yield lambda: self.watch or self.redundant()
                if first.over and self.rests and not self.over():
                    self.compared += self.verify_at_rest()
        else:
            yield lambda: self.phase() >= m.phase
        yield m.delay
        if self.over():
            return
        m.struck = True
        self.poll()
        m.overlapped = bool(self.watch) or not self.redundant()
        m.unknown = bool(first) and first.kind in LETHAL and not self.has("view", dead_node=first.victim)
        begin, was_dead = time.monotonic_ns(), m.victim in self.gone or self.has("view", dead_node=m.victim)
        if m.kind in LETHAL:
            self.killed.append((begin, "%s %d" % (m.kind.replace(" ", "_"), m.victim)))
            if m.kind not in SILENT and not was_dead:
                self.struck = begin
                self.gone.add(m.victim)
        yield from getattr(self, "do_" + m.kind.replace(" ", "_"))(m) or ()
        self.poll()
        if m.kind in SILENT and not was_dead and self.has("view", dead_node=m.victim):
            self.struck = max(self.struck, begin)  # where another mishap's end healed it before, nobody died and nothing is repaired
        m.over = True

    def do_rank(self, m):
        for pids in self.rank_pids.values():
            for pid in [p for p, rank in pids.items() if rank == m.victim and alive(p)]:
                self.kill_pid(pid)

    def do_node(self, m):
        self.signal_node(m.victim, signal.SIGKILL)

    def do_agent(self, m):
        self.signal_pid(self.agents[m.victim], signal.SIGKILL)

    def do_launcher(self, m):
        self.signal_pid(self.launcher_pids[m.victim], signal.SIGKILL)

    def do_keelrun(self, m):
        if not self.watch:
            self.process.kill()
            self.process.wait()
            self.watch = subprocess.Popen([KEELCTL, "attach", self.known_id], stdout=self.out, stderr=self.err)

    def do_short_freeze(self, m):
        yield from self.freeze(m, self.short(m))

    def do_long_freeze(self, m):
        yield from self.freeze(m, self.long(m))

    def do_short_cut(self, m):
        yield from self.cut(m, self.short(m))

    def do_long_cut(self, m):
        yield from self.cut(m, self.long(m))

    def freeze(self, m, wait):
        pids, begin = self.node_pids(m.victim), time.monotonic()
        self.signal_node(m.victim, signal.SIGSTOP)
        yield from wait
        for pid in pids:
            self.signal_pid(pid, signal.SIGCONT)
        m.seconds = time.monotonic() - begin

    def cut(self, m, wait):
        if m.victim in self.cuts:
            return
        begin = time.monotonic()
        self.cuts.add(m.victim)
        self.link(m.victim, "cut")
        yield from wait
        self.link(m.victim, "heal")
        self.cuts.discard(m.victim)
        m.seconds = time.monotonic() - begin

    def short(self, m):
        yield m.seconds

    def long(self, m):
        """Until the view without the victim; or, where nobody can tell or nobody is left to decide it, for long
        enough."""
        enough = time.monotonic() + (12 if self.watch else 15)
        yield lambda: self.has("view", dead_node=m.victim) or time.monotonic() > enough
        yield m.seconds

    # ---- the run

    def play(self):
        assert self.started()
        self.id()
        if any(m.kind == "launcher" for m in self.plan.mishaps):
            self.launcher_pids = {n: s["launcher_pid"] for n, s in self.status()["nodes"].items()}
        mishaps = self.plan.mishaps
        scripts = [self.mishap(m, mishaps[0] if m.after else None) for m in mishaps]
        due = {s: lambda: True for s in scripts}
        while due:
            self.poll()
            for script in [s for s, wait in due.items() if wait() or self.over()]:
                wait = next(script, None)
                if wait is None:
                    del due[script]
                elif callable(wait):
                    due[script] = wait
                else:
                    due[script] = lambda end=time.monotonic() + wait: time.monotonic() >= end
            assert time.monotonic() < self.deadline, "it hangs"
            time.sleep(0.002)
        if self.rests:
            self.compared += self.verify_at_rest(last=True)
        self.wait()
        try:
            code = self.watch.wait(HANG_S) if self.watch else self.process.returncode
        except subprocess.TimeoutExpired:
            raise AssertionError("keelctl attach did not end in time")
        self.poll()
        return code

    def close(self):
        if self.watch:
            self.watch.kill()
            self.watch.wait()
        super().close()


def may_lose_data(plan, job):
    """Two nodes half the ring apart, which have copies of the same, were gone before the missing copies were made
    again."""
    hit = [m for m in plan.mishaps if m.struck and (m.kind in LETHAL or m.seconds > LIMIT_S)]
    if len(hit) < 2 or not hit[1].overlapped or max(m.victim for m in hit) >= plan.nodes:
        return False
    return (hit[0].victim - hit[1].victim) % plan.nodes in (plan.nodes // 2, plan.nodes - plan.nodes // 2)


def may_lack_quorum(plan, job):
    """Silent members beside too few that can tell."""
    hit = [m for m in plan.mishaps if m.struck and (m.kind in LETHAL or m.seconds > LIMIT_S)]
    if len(hit) < 2 or not any(m.kind not in ("node", "agent") for m in hit):
        return False
    members = plan.nodes + plan.spares - (0 if job.watch or hit[1].unknown else 1)
    return 2 * (plan.nodes + plan.spares - 2) <= members


def judge(plan, job, code):
    """What happened, if that is allowed."""
    out, err, lines = job.stdout(), job.stderr(), job.stdout().splitlines()
    assert "WRONG" not in err, "wrong data"
    if code == 0:
        assert set(lines) == {RESULT}, lines
        harmless = all(m.kind in ("launcher", "short freeze", "short cut") and m.seconds <= LIMIT_S for m in plan.mishaps)
        assert not harmless or len(lines) == plan.ranks, lines
        return "right"
    if job.watch and "no job" in err and not lines:
        return "unseen"  # it ended before keelctl came
    if code == 3 and "no copy of the data is left" in err and may_lose_data(plan, job):
        return "lost"
    if code == 1 and may_lack_quorum(plan, job) and ("no quorum" in err or "has not answered" in err or "without a word" in err):
        return "no quorum"
    raise AssertionError("exit code %d, output %r" % (code, out[-300:]))


def run(seed):
    """(what happened, seconds, the plan)."""
    plan, begin = Plan(seed), time.monotonic()
    with Run(plan) as job:
        try:
            result = judge(plan, job, job.play())
        except AssertionError as error:
            if job.false_deaths() and "WRONG" not in job.stderr():
                raise Disturbed("nodes %s declared dead without a cause: %s" % (job.false_deaths(), error))
            raise
    return result + ", compared" * bool(job.compared) + " twice" * (job.compared > 1), time.monotonic() - begin, plan


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=int(os.environ.get("KEEL_SEED", "1")))
    parser.add_argument("--seed", type=int, help="only this one, verbosely")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--stop", action="store_true", help="at the first failure")
    o = parser.parse_args()
    if o.seed is not None:
        o.first, o.seeds, o.verbose = o.seed, 1, True
    results, struck, failed, longest, begin = collections.Counter(), collections.Counter(), [], 0, time.monotonic()
    for seed in range(o.first, o.first + o.seeds):
        try:
            try:
                result, seconds, plan = run(seed)
            except Disturbed as why:
                results["disturbed"] += 1
                print("again   seed %d: %s" % (seed, why))
                result, seconds, plan = run(seed)
            longest = max(longest, seconds)
            results[result] += 1
            struck.update(m.kind for m in plan.mishaps if m.struck)
            if o.verbose:
                print("ok      %s: %s (%.2f s)" % (plan, result, seconds))
        except (AssertionError, Disturbed) as error:
            failed.append(seed)
            print("FAILED  %s: %s" % (Plan(seed), error))
            if o.stop:
                break
        sys.stdout.flush()
    print("chaos: %d seeds from %d, %d failed %s; %s; struck: %s; longest %.1f s, in all %.0f s" % (
        o.seeds, o.first, len(failed), failed or "", ", ".join("%d %s" % (n, k) for k, n in results.items()),
        ", ".join("%d %s" % (n, k) for k, n in sorted(struck.items())), longest, time.monotonic() - begin))
    sys.exit(1 if failed else 0)


main()
