"""The kill matrix: a small application whose result is known, and one thing after the other that dies, freezes or is
cut off.

With KEEL_MATRIX=full each kind of mishap meets each node in each setting; else every kind, setting and node comes once,
and what takes long on one node or two."""
import itertools
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import keeltest
from cluster import QUICK, Cluster
from keeltest import HANG_S, IS_ROOT, KEELCTL, Skip, alive, wait_for

SUM = os.environ.get("KEEL_SUM", "build/tests/fault/sum")
TASKS, ROUNDS, COMPUTE_US = 12, 8, 1300  # more and shorter tasks would use processors, and show no more
RESULT = "sum: %d" % (ROUNDS * TASKS * (TASKS + 1) * (2 * TASKS + 1) // 6)
NODES = 4
STYLES = [("substitute", 1), ("degrade", 0), ("substitute", 0)]
FULL = os.environ.get("KEEL_MATRIX") == "full"
FAR_LIMIT = ["--silence", "600s", "--stopped", "never"]  # for silences that are shorter, on any machine


def combinations(*choices):
    """All of them, or as many as show each choice once."""
    if FULL:
        return itertools.product(*choices)
    return [tuple(c[i % len(c)] for c in choices) for i in range(max(map(len, choices)))]


def some(nodes, fewer):
    return nodes if FULL else fewer


def cluster(on_failure="substitute", spares=1, compute_us=COMPUTE_US, options=QUICK, **kw):
    kw.setdefault("rests", True)
    return Cluster(NODES, [SUM, str(TASKS), str(ROUNDS), str(compute_us)], spares=spares, on_failure=on_failure, options=options, **kw)


def reach(job, phase=2):
    assert job.started() and job.until(lambda c: c.phase() >= phase, "round %d" % phase), job.stderr()


def expect_right(job, lines=None):
    """Equal copies when redundancy is restored, unless the program was over before; the right sum, from each rank that
    is left; said often enough."""
    job.want_rest("last")
    job.verify_at_rest(last=True)
    code = job.wait()
    job.poll()
    assert code == 0, (code, job.stderr())
    assert "WRONG" not in job.stderr(), job.stderr()
    said = job.stdout().splitlines()
    assert said and set(said) == {RESULT}, (said, RESULT)
    assert lines is None or len(said) == lines, (said, lines)


def expect_right_or_lost(job):
    code = job.wait()
    job.poll()
    assert "WRONG" not in job.stderr(), job.stderr()
    if code == 3:
        assert "no copy of the data is left" in job.stderr() and job.has("data_lost"), job.stderr()
        return "lost"
    assert code == 0 and set(job.stdout().splitlines()) == {RESULT}, (code, job.stdout(), job.stderr())
    return "right"


def recovered(job):
    assert job.until(lambda c: c.redundant(), "redundancy to be restored"), job.stderr()
    assert job.verify_at_rest() or job.over(), job.stderr()


def test_nothing_dies():
    with cluster() as job:
        expect_right(job, NODES)
        assert not job.has("view"), job.has("view")


def test_each_rank_in_turn():
    for (on_failure, spares), rank in combinations(STYLES, range(NODES)):
        with cluster(on_failure, spares) as job:
            reach(job)
            job.kill_pid(next(p for p, r in job.rank_pids[rank].items() if r == rank))
            expect_right(job, NODES if on_failure == "substitute" else NODES - 1)


def test_each_node_in_turn():
    for (on_failure, spares), node in combinations(STYLES, range(NODES)):
        with cluster(on_failure, spares) as job:
            reach(job)
            job.kill_node(node)
            expect_right(job, NODES if spares else NODES - 1)


def test_each_agent_alone():
    for node in range(NODES):
        with cluster() as job:
            reach(job)
            job.struck = time.monotonic_ns()
            os.kill(job.agents[node], signal.SIGKILL)
            expect_right(job, NODES)


def test_keelrun():
    with cluster() as job:
        reach(job)
        job.id()
        job.process.kill()
        job.process.wait()
        watch = subprocess.run([KEELCTL, "attach", job.id()], capture_output=True, timeout=HANG_S)
        assert watch.returncode == 0, watch.stderr
        assert set(watch.stdout.decode().split("\n")) <= {RESULT, ""}, watch.stdout
        job.check_leftovers()


def test_keelrun_and_a_node():
    with cluster() as job:
        reach(job)
        job.id()
        job.process.kill()
        job.process.wait()
        job.signal_node(2, signal.SIGKILL)
        watch = subprocess.run([KEELCTL, "attach", job.id()], capture_output=True, timeout=HANG_S)
        assert watch.returncode == 0, watch.stderr
        job.check_leftovers()


def test_each_launcher():
    for node in some(range(NODES), (0, 3)):
        with cluster() as job:
            reach(job, 1)
            os.kill(job.status()["nodes"][node]["launcher_pid"], signal.SIGKILL)
            expect_right(job, NODES)
            assert not job.has("view")


def test_two_nodes_with_recovery_between():
    styles = [("substitute", 2), ("degrade", 0), ("substitute", 1)]
    for (on_failure, spares), (first, second) in combinations(styles, [(0, 1), (1, 0), (2, 3), (3, 0)]):
        with cluster(on_failure, spares) as job:
            reach(job)
            job.kill_node(first)
            recovered(job)
            job.kill_node(second)
            expect_right(job)


def test_more_deaths_than_spares():
    with cluster("substitute", 1) as job:
        reach(job, 1)
        for node in (1, 4, 0):  # a node, the spare that took its place, another node
            job.kill_node(node)
            recovered(job)
        expect_right(job, 2)


def test_all_but_one():
    # of two that are left one that gets no processor would end both
    with cluster("degrade", 0, options=FAR_LIMIT) as job:
        reach(job, 1)
        for node in (0, 1):
            job.kill_node(node)
            recovered(job)
        job.kill_node(2)
        expect_right(job, 1)


def test_a_node_while_another_is_recovered():
    """Not half the ring away: no data had both copies there. Half the ring away: the data may be lost, and then it is
    said."""
    styles = [("substitute", 2), ("degrade", 0), ("substitute", 2)]
    for (on_failure, spares), first, distance in combinations(styles, range(NODES), (1, 2, 3, 2)):
        with cluster(on_failure, spares) as job:
            reach(job)
            job.kill_node(first)
            job.until(lambda c: c.has("rebuild"), "the rebuild to begin")
            job.kill_node((first + distance) % NODES)
            if distance == NODES // 2:
                expect_right_or_lost(job)
            else:
                expect_right(job)


def test_two_nodes_at_once():
    """Lost is what had both copies there: half the ring away, or on the next node where the user wants that."""
    for first, (at, distance, lost) in combinations(range(NODES), [("half", 2, True), ("half", 1, False), ("next", 1, True), ("next", 2, False)]):
        with cluster("degrade", 0, options=["--copies-at", at]) as job:
            reach(job)
            for node in (first, (first + distance) % NODES):
                job.kill_node(node)
            if lost:
                assert expect_right_or_lost(job) == "lost", (at, distance)
            else:
                expect_right(job, NODES - 2)


def test_a_spare_while_idle():
    with cluster("substitute", 1) as job:
        reach(job)
        job.kill_node(NODES)
        expect_right(job, NODES)
    with cluster("substitute", 1) as job:
        reach(job)
        job.kill_node(NODES)
        recovered_or_idle = job.until(lambda c: c.has("view", dead_node=NODES), "the view without the spare")
        assert recovered_or_idle
        job.kill_node(1)
        expect_right(job, NODES - 1)


def test_a_spare_while_taking_over():
    points = ("procs.joining", "procs.joined", "push.snapshot_begun", "push.snapshot_block", "push.snapshot_end",
              "recover.settled", "recover.committed")
    for point, spares in combinations(points, (1, 2)):
        with cluster("substitute", spares, env={"KEEL_FAULT": "%s:1:node:node=%d" % (point, NODES)}) as job:
            reach(job)
            job.kill_node(1)
            expect_right(job)
            assert not alive(job.agents[NODES])


def expect_nobody_declared(job):
    assert not [e for e in job.has("view") if "dead_node" in e], job.has("view")


def felt(job, node):
    assert job.until(lambda c: c.has("suspect", about=node), "the silence of node %d to be felt" % node), job.stderr()


def test_freeze_shorter_than_the_limit():
    for node in some(range(NODES), (0, 2)):
        with cluster(options=FAR_LIMIT) as job:
            reach(job)
            job.signal_node(node, signal.SIGSTOP)
            felt(job, node)
            job.signal_node(node, signal.SIGCONT)
            expect_right(job, NODES)
            expect_nobody_declared(job)


def test_freeze_longer_than_the_limit():
    for (on_failure, spares), node in combinations(STYLES, range(NODES)):
        with cluster(on_failure, spares) as job:
            reach(job)
            pids = job.node_pids(node)
            job.signal_node(node, signal.SIGSTOP)
            job.until(lambda c: c.has("view", dead_node=node), "the verdict")
            job.struck = job.has("view")[-1]["t_ns"] if job.has("view") else 0
            time.sleep(0.2)
            job.signal_node(node, signal.SIGCONT)
            expect_right(job, NODES if spares else NODES - 1)
            for pid in pids:
                wait_for(lambda: not alive(pid), "the fenced node to end itself")


def test_freeze_of_an_agent_alone():
    for node in (0, 2):
        with cluster() as job:
            reach(job)
            os.kill(job.agents[node], signal.SIGSTOP)
            job.until(lambda c: c.has("view", dead_node=node), "the verdict")
            job.struck = job.has("view")[-1]["t_ns"] if job.has("view") else 0
            job.signal_pid(job.agents[node], signal.SIGCONT)
            expect_right(job, NODES)


def test_freeze_at_a_named_step():
    """The agent freezes in the middle of the view change that follows a rank's death."""
    points = ("recover.prepare_received", "recover.fenced", "recover.answered", "recover.commit_received",
              "recover.committed", "recover.settled")
    for point, (node, nth) in combinations(points, [(0, 1), (2, 1), (0, 2), (2, 2)]):
        with cluster(env={"KEEL_FAULT": "%s:%d:stop:node=%d" % (point, nth, node)}) as job:
            reach(job)
            job.kill_pid(next(iter(job.rank_pids[1])))
            # the second passing may come to nothing: then nobody freezes
            job.until(lambda c: c.has("view", dead_node=node), "the verdict")
            if job.process.poll() is None:
                job.signal_pid(job.agents[node], signal.SIGCONT)
            expect_right(job)


def on_netns(limits=QUICK, **kw):
    if not IS_ROOT:
        raise Skip("needs root")
    kw.setdefault("compute_us", 13000)
    return cluster(options=["--bed", "netns", *limits], **kw)


def test_cut_that_heals_before_the_verdict():
    for node in some((0, 2), (2,)):
        with on_netns(FAR_LIMIT) as job:
            job.id()
            reach(job)
            job.link(node, "cut")
            felt(job, node)
            job.link(node, "heal")
            expect_right(job, NODES)
            expect_nobody_declared(job)


def test_cut_that_heals_after_the_verdict():
    for node in some((0, 2), (0,)):
        with on_netns(compute_us=66000) as job:
            job.id()
            reach(job)
            job.link(node, "cut")
            job.until(lambda c: c.has("view", dead_node=node), "the verdict")
            job.link(node, "heal")
            expect_right(job, NODES)


def test_keelrun_and_a_cut_for_good():
    """Nothing stays: not the launcher that never hears of its node's end, and not the namespaces."""
    with on_netns() as job:
        job.id()
        reach(job)
        job.process.kill()
        job.process.wait()
        job.link(2, "cut")
        watch = subprocess.run([KEELCTL, "attach", job.id()], capture_output=True, timeout=HANG_S)
        assert watch.returncode == 0, watch.stderr
        job.check_leftovers()


def test_cut_that_heals_after_the_end():
    """The others have gone on and ended: whoever comes back finds nobody, and must not go on alone."""
    for node in some((0, 3), (3,)):
        with on_netns(compute_us=3300) as job:
            job.id()
            reach(job, 6)
            job.process.kill()  # who else would end the straggler
            job.process.wait()
            watch = subprocess.Popen([KEELCTL, "attach", job.id()], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            job.link(node, "cut")
            for other in set(job.agents) - {node}:
                wait_for(lambda: not alive(job.agents[other]), "the others to end")
            job.link(node, "heal")
            out, err = watch.communicate(timeout=HANG_S)
            assert watch.returncode == 0 and set(out.decode().splitlines()) == {RESULT}, (watch.returncode, out, err)


keeltest.main(globals())
