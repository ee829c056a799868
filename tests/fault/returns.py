"""Nodes that are declared dead, live, and come back as spares."""
import os
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import keeltest
from cluster import Cluster
from keeltest import HANG_S, IS_ROOT, KEELCTL, Skip, alive, wait_for

SUM = os.environ.get("KEEL_SUM", "build/tests/fault/sum")
PRETENDER = os.environ.get("KEEL_PRETENDER", "build/tests/fault/pretender")
TASKS, ROUNDS, COMPUTE_US = 12, 10, 20000  # more and shorter tasks would use processors, and show no more
LIMITS = ["--silence", "1s", "--stopped", "1"]


def result(rounds):
    return "sum: %d" % (rounds * TASKS * (TASKS + 1) * (2 * TASKS + 1) // 6)


def cluster(nodes, options=(), rounds=ROUNDS, **kw):
    kw.setdefault("rests", True)
    job = Cluster(nodes, [SUM, str(TASKS), str(rounds), str(COMPUTE_US)], options=LIMITS + list(options), **kw)
    job.result = result(rounds)
    return job


def reach(job, phase=2):
    job.id()
    assert job.started() and job.until(lambda c: c.phase() >= phase, "round %d" % phase), job.stderr()


def put_out(job, node):
    """Stopped until the others have gone on without it; its processes stand still."""
    job.poll()
    job.struck = time.monotonic_ns()
    job.signal_node(node, signal.SIGSTOP)
    assert job.until(lambda c: c.has("view", dead_node=node), "the verdict"), job.stderr()


def let_go_on(job, node):
    job.signal_node(node, signal.SIGCONT)


def returned(job, was, node):
    """It is a member, with its processes, and redundancy was made whole with it."""
    assert job.until(lambda c: c.has("returned", about=node, was=was), "node %d to come back" % was), job.stderr()
    assert job.until(lambda c: c.agents.get(node), "its agent to begin")
    line = r"node %d was declared dead .*lives, and comes back as node %d, a spare" % (was, node)
    wait_for(lambda: re.search(line, job.stderr()), "the line: " + line)  # the event comes first


def takes_over(job, node, rank, by):
    """A rank continues on a node that came back, which others wait for from then on."""
    assert job.until(lambda c: -1 in c.rank_pids.get(by, {}).values(), "its processes to wait"), job.stderr()
    job.kill_node(node)
    assert job.until(lambda c: c.has("assigned", node=by, rank=rank), "rank %d to continue there" % rank), job.stderr()


def expect_right(job, lines=None):
    job.want_rest("last")
    job.verify_at_rest(last=True)
    code = job.wait()
    job.poll()
    assert code == 0, (code, job.stderr())
    assert "WRONG" not in job.stderr() and not job.has("data_lost"), job.stderr()
    said = job.stdout().splitlines()
    assert said and set(said) == {job.result} and (lines is None or len(said) == lines), (said, job.stderr())


def test_a_stopped_node_comes_back_and_takes_ranks_over():
    with cluster(4, spares=1) as job:
        reach(job)
        pid = job.agents[2]
        put_out(job, 2)
        let_go_on(job, 2)
        returned(job, 2, 5)
        assert job.agents[5] == pid and alive(pid)
        nodes = job.status()["nodes"]
        assert nodes[5]["state"] == "running" and nodes[5]["spare"], nodes
        assert nodes[2]["state"] == "dead" and 6 not in nodes, nodes
        takes_over(job, 1, 1, 5)
        expect_right(job, 4)
        assert "rank 1 continues on node 5" in job.stderr(), job.stderr()
        assert "after the loss of 2 nodes (1 came back)" in job.stderr(), job.stderr()


def test_a_node_that_was_cut_off_comes_back_and_takes_ranks_over():
    if not IS_ROOT:
        raise Skip("needs root")
    with cluster(4, ["--bed", "netns"], spares=1) as job:
        reach(job)
        job.link(2, "cut")
        assert job.until(lambda c: c.has("view", dead_node=2), "the verdict"), job.stderr()
        job.struck = job.has("view", dead_node=2)[-1]["t_ns"] - 1
        time.sleep(1)
        job.link(2, "heal")
        returned(job, 2, 5)
        takes_over(job, 1, 1, 5)
        expect_right(job, 4)


def test_copies_that_were_missing_are_there_again():
    with cluster(3, on_failure="degrade") as job:
        reach(job)
        job.kill_node(1)
        assert job.until(lambda c: c.restored(), "the first loss to be made good"), job.stderr()
        put_out(job, 2)
        assert job.until(lambda c: c.has("redundancy_reduced"), "what is missing to be told"), job.stderr()
        before = time.monotonic_ns()
        let_go_on(job, 2)
        returned(job, 2, 3)
        assert job.until(lambda c: any(e["t_ns"] > before for e in c.has("redundancy_restored")),
                         "copies to be there again"), job.stderr()
        job.struck = before
        expect_right(job, 1)


def test_it_comes_back_twice():
    with cluster(4, spares=1, rounds=20) as job:
        reach(job)
        put_out(job, 2)
        let_go_on(job, 2)
        returned(job, 2, 5)
        takes_over(job, 1, 1, 5)
        put_out(job, 5)
        let_go_on(job, 5)
        returned(job, 5, 6)
        takes_over(job, 0, 0, 6)
        expect_right(job, 3)
        assert "after the loss of 4 nodes (2 came back), the loss of 1 rank" in job.stderr(), job.stderr()


def test_two_come_back_at_once():
    with cluster(5, spares=2) as job:
        reach(job)
        put_out(job, 2)
        put_out(job, 3)
        let_go_on(job, 2)
        let_go_on(job, 3)
        assert job.until(lambda c: len(c.has("returned")) == 2, "both to come back"), job.stderr()
        assert {e["was"] for e in job.has("returned")} == {2, 3} and {e["about"] for e in job.has("returned")} == {7, 8}
        expect_right(job, 5)


def test_while_keelrun_stands_still_it_waits():
    """And says so to keelctl."""
    with cluster(4, spares=1) as job:
        reach(job)
        put_out(job, 2)
        job.process.send_signal(signal.SIGSTOP)
        let_go_on(job, 2)
        wait_for(lambda: job.status()["nodes"][2]["state"] == "returning", "it to ask")
        assert not job.status()["nodes"][2]["ranks"]
        assert not job.has("returned")
        job.process.send_signal(signal.SIGCONT)
        returned(job, 2, 5)
        expect_right(job, 4)


def test_without_room_it_ends():
    with cluster(4, ["--room", "0"], spares=1) as job:
        reach(job)
        pid = job.agents[2]
        put_out(job, 2)
        let_go_on(job, 2)
        wait_for(lambda: not alive(pid), "its agent to end")
        expect_right(job, 4)
        assert not job.has("returned") and "came back" not in job.stderr()


def test_when_the_room_is_used_up_it_is_told():
    with cluster(4, ["--room", "1"], spares=1, rounds=20) as job:
        reach(job)
        put_out(job, 2)
        let_go_on(job, 2)
        returned(job, 2, 5)
        takes_over(job, 1, 1, 5)
        pid = job.agents[5]
        put_out(job, 5)
        let_go_on(job, 5)
        wait_for(lambda: not alive(pid), "its agent to end")
        expect_right(job, 3)
        why = "node 5 was declared dead and lives, but there is no room for one more node (--room 1): it ends"
        assert why in job.stderr(), job.stderr()


def test_the_job_ends_while_it_comes_back():
    """It stands still in the middle of it; nothing waits for it, nothing of it is left."""
    for point in "return.out", "return.asked", "start.configured", "start.ready", "start.told":
        life = 0 if point == "return.out" else 1
        with cluster(4, spares=1, env={"KEEL_FAULT": "%s:1:stop:node=2:life=%d" % (point, life)}) as job:
            reach(job)
            put_out(job, 2)
            let_go_on(job, 2)
            assert job.until(lambda c: keeltest.state_of(c.agents[2]) == "T", point), job.stderr()
            expect_right(job, 4)
            assert not job.has("returned"), point


def test_it_dies_at_each_step():
    """Who is no member yet was nothing; who is, is a node that dies."""
    for point in ("return.out", "return.leaving", "return.exec", "return.asked", "start.configured", "start.ready",
                  "start.told", "start.plane_begun", "return.started", "view.born", "start.ranks_begun"):
        life = 0 if point in ("return.out", "return.leaving", "return.exec") else 1
        with cluster(4, spares=1, env={"KEEL_FAULT": "%s:1:kill:node=2:life=%d" % (point, life)}) as job:
            reach(job)
            pid = job.agents[2]
            put_out(job, 2)
            let_go_on(job, 2)
            wait_for(lambda: not alive(pid), "its end at " + point)
            expect_right(job, 4)


def test_others_die_while_it_comes_back():
    """Whoever was to hear of it: it is waited for by nobody who is dead, and comes back or does not."""
    for point in "meet.told", "meet.answered", "view.born":
        for node in 0, 3:
            with cluster(4, spares=2, env={"KEEL_FAULT": "%s:1:kill:node=%d" % (point, node)}) as job:
                reach(job)
                put_out(job, 2)
                let_go_on(job, 2)
                assert job.until(lambda c: c.has("view", dead_node=node), "the other's death"), (point, job.stderr())
                job.struck = job.has("view", dead_node=node)[-1]["t_ns"] - 1
                assert job.until(lambda c: c.has("returned", was=2), "its return"), (point, job.stderr())
                expect_right(job, 4)


def test_an_agent_that_stands_still_is_waited_for():
    """Three seconds, less than its limit: nobody becomes a member of whom it has not heard."""
    with cluster(4, ["--stopped", "2"], spares=1, env={"KEEL_FAULT": "meet.told:1:stop:node=0"}) as job:
        reach(job)
        pid = job.agents[0]
        put_out(job, 2)
        let_go_on(job, 2)
        assert job.until(lambda c: keeltest.state_of(pid) == "T", "node 0 to have the order"), job.stderr()
        time.sleep(1)
        assert not job.has("returned"), job.stderr()
        os.kill(pid, signal.SIGCONT)
        returned(job, 2, 5)
        expect_right(job, 4)


def test_without_keelrun_nobody_comes_back():
    """It dies before, or at each step: the job goes on, and who asks in vain ends."""
    for point in None, "run.return_asked", "run.return_begins", "run.return_meets", "run.return_starts", "run.returned":
        with cluster(4, spares=1, rests=False, env={"KEEL_FAULT": point + ":1:kill"} if point else None) as job:
            reach(job)
            pid = job.agents[2]
            put_out(job, 2)
            if not point:
                job.process.kill()
            let_go_on(job, 2)
            job.process.wait()
            if point not in ("run.return_starts", "run.returned"):
                wait_for(lambda: not alive(pid), "its agent to end")
            watch = subprocess.run([KEELCTL, "attach", job.id()], capture_output=True, timeout=HANG_S)
            assert watch.returncode == 0, (point, watch.stderr)
            assert set(watch.stdout.decode().split("\n")) <= {job.result, ""}, watch.stdout
            job.check_leftovers()


def listeners(pid):
    """Ports at which the process listens."""
    inodes = set()
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            target = os.readlink("/proc/%d/fd/%s" % (pid, fd))
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    with open("/proc/net/tcp") as f:
        rows = [line.split() for line in f.readlines()[1:]]
    return [int(r[1].split(":")[1], 16) for r in rows if r[3] == "0A" and r[9] in inodes]


def test_who_pretends_to_come_back_is_refused():
    """A rank knows the secret, and not the numbers of consoles: neither a node that lives nor one that died is its to
    be."""
    with Cluster(3, [PRETENDER], spares=1, options=LIMITS) as job:
        job.id()
        assert job.started(), job.stderr()
        job.kill_node(2)
        assert job.until(lambda c: c.has("view", dead_node=2), "the verdict"), job.stderr()
        ports = listeners(job.process.pid)
        assert len(ports) == 2, ports
        told = 0
        for node in 1, 2, 4:
            for number in 0, 12345:
                for port in ports:
                    before = len(job.stdout().splitlines())
                    job.process.stdin.write(b"127.0.0.1 %d %d %d\n" % (port, node, number))
                    job.process.stdin.flush()

                    def answer():
                        said = job.stdout().splitlines()[before:]
                        return said if said and said[-1].startswith("lost") else None
                    said = wait_for(answer, "an answer")
                    assert "told 32" not in said, said  # MSG_CONFIG, with all that an agent is told
                    told += "told 84" in said  # MSG_REFUSED
        assert told == 6, job.stdout()
        assert len(job.events("return_refused")) == 6
        assert job.wait() == 0, job.stderr()
        assert not job.has("returned")


keeltest.main(globals())
