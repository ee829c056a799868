"""Networks and machines that are as rough as real ones: a link of 100 kbit/s, sixteen busy programs on two processors,
networks that split in unequal and in equal parts, with a spare. Who lives is not declared dead; who is killed meanwhile
is known in milliseconds."""
import os
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import keeltest
from cluster import Cluster
from keeltest import IS_ROOT, Skip, alive, wait_for

SUM = os.environ.get("KEEL_SUM", "build/tests/fault/sum")
TASKS, COMPUTE_US = 12, 3300  # more and shorter tasks would use processors, and show no more
MS = 1000000
NETNS = ["--bed", "netns"]


def cluster(nodes, rounds, options=(), **kw):
    job = Cluster(nodes, [SUM, str(TASKS), str(rounds), str(COMPUTE_US)], on_failure=kw.pop("on_failure", "degrade"), options=list(options), **kw)
    job.result = "sum: %d" % (rounds * TASKS * (TASKS + 1) * (2 * TASKS + 1) // 6)
    return job


def reach(job):
    assert job.started() and job.until(lambda c: c.phase() >= 2, "round 2"), job.stderr()


def dead(job):
    job.poll()
    return {e["dead_node"] for e in job.has("view") if "dead_node" in e}


def expect_end(job, ranks, lost=()):
    code = job.wait()
    assert dead(job) == set(lost), (dead(job), job.stderr())
    assert code == 0 and job.stdout().splitlines() == [job.result] * ranks, (code, job.stdout(), job.stderr())


def in_namespace(job, node, *command):
    subprocess.run(["nsenter", "-t", str(job.agents[node]), "-n", *command], check=True)


def shape(job, node, *how):
    """What the node sends and gets from now on: its end of the link and the bridge's."""
    bed = "keel-" + job.id()[:8]
    for namespace, device in ("%s-n%d" % (bed, node), "veth0"), (bed + "-hub", "p%d" % node):
        subprocess.run(["tc", "-n", namespace, "qdisc", "add" if how else "del", "dev", device, "root", *how], check=True)


def test_a_node_at_100_kbit_for_twelve_seconds():
    """It carries data, heartbeats and pings behind each other; the others go on waiting for it."""
    if not IS_ROOT:
        raise Skip("needs root")
    with cluster(4, 60, NETNS) as job:
        reach(job)
        shape(job, 3, "tbf", "rate", "100kbit", "burst", "1600", "latency", "400ms")
        time.sleep(12)
        job.poll()
        said, rounds = len(job.has("suspect")), job.phase()
        shape(job, 3)
        expect_end(job, 4)
        print("        %d suspicions in that time, in round %d of 60 after it" % (said, rounds))


class Load:
    """Programs that spin at normal priority."""

    def __init__(self, count):
        self.busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        for process in self.busy:
            process.kill()
            process.wait()


def known_ms(nodes):
    """A node is killed; ms until the first verdict and until the last live agent's view."""
    with cluster(nodes, 4) as job:
        reach(job)
        job.kill_node(nodes // 2)
        begin = job.killed[-1][0]
        expect_end(job, nodes - 1, [nodes // 2])
        assert {e["evidence"] for e in job.has("verdict")} == {"refused"}, job.has("verdict")
        verdict = min(e["t_ns"] for e in job.has("verdict")) - begin
        view = max(e["t_ns"] for e in job.has("view") if e.get("dead_node") == nodes // 2) - begin
        return verdict / MS, view / MS


def test_killed_nodes_under_load_16_are_known_and_nobody_else_dies():
    tries = int(os.environ.get("KEEL_TRIES", "3"))
    with Load(16):
        for nodes in (4, 8):
            times = [known_ms(nodes) for _ in range(tries)]
            verdicts, views = sorted(v for v, _ in times), sorted(v for _, v in times)
            print("        %d nodes: first verdict %s ms, view of all %s ms; medians %.1f and %.1f ms; load %.0f" % (
                nodes, " ".join("%.1f" % v for v in verdicts), " ".join("%.1f" % v for v in views), statistics.median(verdicts), statistics.median(views),
                os.getloadavg()[0]))
            assert statistics.median(verdicts) < 50, verdicts


def split(job, left, what):
    """Nodes of the set and the others do not reach each other from now on ("add"), or do again ("del"); all reach
    keelrun."""
    job.poll()
    host = {e["node"]: e["host"] for e in job.has("start")}
    for a in host:
        for b in host:
            if (a in left) != (b in left):
                in_namespace(job, a, "ip", "route", what, "blackhole", host[b] + "/32")


def test_two_against_three_for_two_seconds_and_for_good():
    """Nobody dies of the one; of the other the two, also if node 0 is one of them. What was on them is on the others,
    too."""
    if not IS_ROOT:
        raise Skip("needs root")
    with cluster(5, 60, NETNS) as job:
        reach(job)
        split(job, {0, 1}, "add")
        time.sleep(2)
        split(job, {0, 1}, "del")
        expect_end(job, 5)
    for few in ({0, 1}, {3, 4}):
        with cluster(5, 60, NETNS + ["--silence", "1s"]) as job:
            reach(job)
            agents = dict(job.agents)
            split(job, few, "add")
            expect_end(job, 3, few)
            assert all(job.has("cut_off", node=node) for node in few), job.has("cut_off")
            assert all("node %d hears too few of the others" % node in job.stderr() for node in few), job.stderr()
            for node in few:
                wait_for(lambda node=node: not alive(agents[node]), "node %d to end" % node)


def test_three_against_three_with_a_spare():
    """Six nodes and a spare, which is with the nodes 3 to 5: they are four of seven, and go on, though node 0 is with
    the others. The spare takes over one node, the ranks of the others are lost."""
    if not IS_ROOT:
        raise Skip("needs root")
    for seconds in (2, None):
        with cluster(6, 60, NETNS + ([] if seconds else ["--silence", "1s"]), spares=1, on_failure="substitute") as job:
            reach(job)
            split(job, {0, 1, 2}, "add")
            if seconds:
                time.sleep(seconds)
                split(job, {0, 1, 2}, "del")
                expect_end(job, 6)
                continue
            expect_end(job, 4, {0, 1, 2})
            assert all(job.has("cut_off", node=node) for node in (0, 1, 2)) and not job.has("data_lost"), job.stderr()


keeltest.main(globals())
