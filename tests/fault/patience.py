"""Who only stands still for a while lives: under a debugger, suspended and resumed node by node, cut off for a moment,
on a slow link. Who is killed meanwhile is known at once, and a part that is cut off for good says so before it ends."""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import keeltest
from cluster import Cluster
from keeltest import IS_ROOT, Skip, alive, wait_for

SUM = os.environ.get("KEEL_SUM", "build/tests/fault/sum")
READER = os.environ.get("KEEL_READER", "build/tests/fault/reader")
TASKS, COMPUTE_US = 10, 4000  # a round takes 40 ms; more tasks would use processors, and show no more
NODES = 4
MS = 1000000


def cluster(rounds, nodes=NODES, **kw):
    job = Cluster(nodes, [SUM, str(TASKS), str(rounds), str(COMPUTE_US)], **kw)
    job.result = "sum: %d" % (rounds * TASKS * (TASKS + 1) * (2 * TASKS + 1) // 6)
    return job


def reach(job):
    assert job.started() and job.until(lambda c: c.phase() >= 2, "round 2"), job.stderr()


def expect_all_live(job, nodes=NODES):
    code = job.wait()
    job.poll()
    assert not [e for e in job.has("view") if "dead_node" in e] and not job.has("verdict"), (job.has("verdict"), job.stderr())
    assert code == 0 and job.stdout().splitlines() == [job.result] * nodes, (code, job.stdout(), job.stderr())


def debug(pid):
    """As long as gdb takes to say where it is; without one, stopped for as long."""
    try:
        subprocess.run(["gdb", "-batch", "-nx", "-ex", "bt", "-p", str(pid)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False)
    except FileNotFoundError:
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.5)
        os.kill(pid, signal.SIGCONT)


def test_a_debugger_on_each_agent_and_rank():
    with cluster(80) as job:
        reach(job)
        for node in range(NODES):
            for pid in job.node_pids(node):
                if alive(pid):
                    debug(pid)
        expect_all_live(job)


def suspend(skew_s, length_s, rounds=40):
    """As `scontrol suspend` and `resume` do: node by node, all processes of each."""
    with cluster(rounds) as job:
        reach(job)
        pids = [job.node_pids(node) for node in range(NODES)]
        for number in (signal.SIGSTOP, signal.SIGCONT):
            for node in range(NODES):
                for pid in pids[node]:
                    os.kill(pid, number)
                time.sleep(skew_s)
            time.sleep(length_s if number == signal.SIGSTOP else 0)
        expect_all_live(job)


def test_a_job_that_is_suspended_node_by_node():
    for skew_s in (0.06, 0.25, 1.0):
        suspend(skew_s, 1.0)


def test_a_job_that_is_suspended_for_a_minute():
    for skew_s in (0.06, 0.5, 1.0):
        suspend(skew_s, 60.0)


def test_agents_that_are_stopped_together_and_go_on_one_after_the_other():
    """Who goes on first has signs of life of the others in its sockets, from before they were stopped. They live; so do
    the links to them."""
    for first, second, spares in ((0, 2, 1), (3, 1, 0)):
        with cluster(40, nodes=NODES + (0 if spares else 1), spares=spares, options=["--silence", "1s"]) as job:
            reach(job)
            for agent in (first, second):
                job.signal_pid(job.agents[agent], signal.SIGSTOP)
                time.sleep(0.4)
            time.sleep(5)
            for agent in (first, second):
                job.signal_pid(job.agents[agent], signal.SIGCONT)
                time.sleep(1)
            expect_all_live(job, job.nodes)
            assert not job.has("link_broken"), job.has("link_broken")


def cut(job, nodes, seconds):
    for node in nodes:
        job.link(node, "cut")
    time.sleep(seconds)
    for node in nodes:
        job.link(node, "heal")


def test_halves_that_are_cut_for_a_moment():
    """Each of two is cut off from everybody: the four are in three parts, none of them a quorum."""
    if not IS_ROOT:
        raise Skip("needs root")
    for seconds in (0.4, 1, 2):
        with cluster(40, options=["--bed", "netns"]) as job:
            reach(job)
            cut(job, (2, 3), seconds)
            expect_all_live(job)


def halve(job, what):
    """Nodes 0 and 1 do not reach 2 and 3 from now on ("add"), or do again ("del"); all reach keelrun."""
    job.poll()
    host = {e["node"]: e["host"] for e in job.has("start")}
    for a in range(NODES):
        for b in range(NODES):
            if (a < 2) != (b < 2):
                subprocess.run(["nsenter", "-t", str(job.agents[a]), "-n", "ip", "route", what, "blackhole", host[b] + "/32"], check=True)


def test_two_against_two_for_two_seconds_and_for_good():
    """Nobody dies of the one; of the other the half without node 0, which has said before that it is cut off."""
    if not IS_ROOT:
        raise Skip("needs root")
    with cluster(60, on_failure="degrade", options=["--bed", "netns"]) as job:
        reach(job)
        halve(job, "add")
        time.sleep(2)
        halve(job, "del")
        expect_all_live(job)
    with cluster(60, on_failure="degrade", options=["--bed", "netns", "--silence", "1s"]) as job:
        reach(job)
        halve(job, "add")
        code = job.wait()
        job.poll()
        assert {e["dead_node"] for e in job.has("view") if "dead_node" in e} == {2, 3}, job.has("view")
        assert job.has("cut_off", node=2) and job.has("cut_off", node=3) and not job.has("cut_off", node=0), job.has("cut_off")
        assert "node 2 hears too few of the others" in job.stderr(), job.stderr()
        assert code == 0 or "no copy of the data is left" in job.stderr(), (code, job.stderr())


def test_who_is_killed_while_another_is_stopped_is_known_at_once():
    with cluster(100, nodes=5, on_failure="degrade") as job:
        reach(job)
        job.signal_node(4, signal.SIGSTOP)
        assert job.until(lambda c: c.has("suspect", about=4), "node 4 to be suspected"), job.stderr()
        time.sleep(0.5)
        job.kill_node(1)
        killed = job.killed[-1][0]
        assert job.until(lambda c: c.has("verdict", about=1), "the verdict"), job.stderr()
        said = min(e["t_ns"] for e in job.has("verdict", about=1))
        assert job.has("verdict", about=1)[0]["evidence"] == "refused" and said - killed < 200 * MS, (said - killed) / MS
        print("known %.1f ms after the order" % ((said - killed) / MS))
        time.sleep(0.5)
        job.signal_node(4, signal.SIGCONT)
        code = job.wait()
        job.poll()
        assert code == 0 and job.stdout().splitlines() == [job.result] * 4, (code, job.stdout(), job.stderr())
        assert {e["dead_node"] for e in job.has("view") if "dead_node" in e} == {1}, job.stderr()


def test_a_view_that_a_stopped_node_holds_up_is_told():
    """The lost node's death is known, and no view can come before the stopped one has answered, or is dead: one line
    names it, and none the lost one."""
    with cluster(100, nodes=5, on_failure="degrade", options=["--stopped", "6"]) as job:
        reach(job)
        job.signal_node(4, signal.SIGSTOP)
        job.kill_node(3)  # both hold no two copies of anything
        begin = time.monotonic_ns()
        assert job.until(lambda c: c.has("view"), "the view without both"), job.stderr()
        assert {e["dead_node"] for e in job.has("view") if "dead_node" in e} <= {3, 4}, job.has("view")
        took = (min(e["t_ns"] for e in job.has("view")) - begin) / MS
        assert 5000 < took < 20000, took
        code = job.wait()
        lines = job.stderr().splitlines()
        about = [line for line in lines if re.search("(wait|node 4.* is |node 3[^0-9].*(answer|silent|connection))", line)]
        assert len(about) == 1 and re.search("node 4(, which)? is stopped, says its host: waiting 6 s", about[0]), (about, lines)
        assert code == 0 and job.stdout().splitlines() == [job.result] * 3, (code, job.stdout(), job.stderr())


def test_gets_go_to_the_other_copy_while_a_node_is_stopped():
    """Each node's part has its second copy half the ring away: rank 0, whose node has it, reads it there, and the
    others from there."""
    with tempfile.TemporaryDirectory(prefix="keel-test-") as place:
        end = os.path.join(place, "end")
        with Cluster(NODES, [READER, "2", end]) as job:
            assert job.started() and job.until(lambda c: c.phase() >= 1, "the gets"), job.stderr()
            time.sleep(0.3)
            job.signal_node(2, signal.SIGSTOP)
            time.sleep(6)
            assert not job.has("verdict"), job.stderr()
            job.signal_node(2, signal.SIGCONT)
            time.sleep(0.3)
            open(end, "w").close()
            code = job.wait()
            lines = job.stdout().splitlines()
            assert code == 0 and len(lines) == NODES - 1, (code, lines, job.stderr())
            print("\n".join(lines))
            took = [[int(ms) for ms in re.findall("([0-9]+) ms", line)] for line in lines]
            assert max(t[0] for t in took) < 1500 and max(t[1] for t in took) < 3000 and min(int(line.split()[0]) for line in lines) > 200, lines


def test_a_stopped_node_that_is_waited_for_is_dead_after_its_limit():
    with cluster(40, on_failure="degrade", options=["--stopped", "2"]) as job:
        reach(job)
        job.signal_node(3, signal.SIGSTOP)
        begin = time.monotonic_ns()
        assert job.until(lambda c: c.has("verdict", about=3), "the verdict"), job.stderr()
        said = min(e["t_ns"] for e in job.has("verdict", about=3))
        assert said - begin > 1900 * MS, (said - begin) / MS
        code = job.wait()
        assert code == 0 and job.stdout().splitlines() == [job.result] * 3, (code, job.stdout(), job.stderr())
        # how it is and who waits: one line
        assert len(re.findall(r"keelrun: .*node 3(, which)? is ", job.stderr())) == 1, job.stderr()


def test_a_node_that_is_later_than_silence_allows_is_told():
    """Once, and again where it is twice as much; not where --silence is what it is by default."""
    for options, lines in ((["--silence", "1"], 2), ([], 0)):
        with cluster(60, on_failure="degrade", options=options) as job:
            reach(job)
            for seconds in (0.4, 0.4, 1.2):
                os.kill(job.agents[2], signal.SIGSTOP)
                time.sleep(seconds)
                os.kill(job.agents[2], signal.SIGCONT)
                time.sleep(0.1)
            expect_all_live(job)
            late = [e["by_ms"] for e in job.has("late", node=2)]
            assert options == [] or (len(late) >= 2 and 300 < late[0] < 700 and 1000 < late[-1] < 1700), job.has("late")
            assert len(re.findall(r"keelrun: node \d got no processor for [\d.]+ s: --silence 1000ms has room for a quarter of itself", job.stderr())) == lines, job.stderr()


def test_a_node_that_is_cut_off_for_good_says_so_before_it_ends():
    if not IS_ROOT:
        raise Skip("needs root")
    with cluster(100, on_failure="degrade", options=["--bed", "netns", "--silence", "1s"]) as job:
        reach(job)
        agent = job.agents[3]
        job.link(3, "cut")
        code = job.wait()
        assert code == 0 and job.stdout().splitlines() == [job.result] * 3, (code, job.stdout(), job.stderr())
        wait_for(lambda: not alive(agent), "the node that was cut off to end")


def test_a_node_that_the_job_would_end_with_is_given_more_time():
    """Cut off for longer than --silence, and for less than four times as long."""
    if not IS_ROOT:
        raise Skip("needs root")
    with cluster(40, on_failure="abort", options=["--bed", "netns", "--silence", "1s"]) as job:
        reach(job)
        cut(job, (3,), 2.8)
        expect_all_live(job)
        assert [e for e in job.has("patience", about=3) if e["why"] == "its death would end the job" and e["limit_ms"] >= 4000], job.has("patience")
        assert re.search("node 3(, which)? is silent, as is its host; its death would end the job: waiting 4", job.stderr()), job.stderr()


keeltest.main(globals())
