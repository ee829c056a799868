"""What a program is told of who failed (keel/failure.h): verdicts, the list, the descriptor, the callback, broken
links; with processes that are killed, stopped, frozen and cut off for real."""
import os
import random
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import keeltest
from cluster import QUICK, Cluster
from keeltest import IS_ROOT, KEELCTL, Skip, state_of, wait_for

FAILURES = os.environ.get("KEEL_FAILURES", "build/tests/fault/failures")
FINAL = 200000  # ms: long enough on any machine; a verdict comes when it is there


class Talk(Cluster):
    """Rank 0 is asked; lines of its callback are kept apart."""

    def __init__(self, nodes, **kw):
        super().__init__(nodes, [FAILURES], **kw)
        self.read, self.told = 0, []
        assert self.answer() == "ready %d" % (self.nodes + self.spares), self.stdout()
        assert self.started()

    def lines(self):
        text = self.stdout()
        return text[:text.rfind("\n") + 1].splitlines()

    def answer(self):
        """The next line that is not the callback's."""
        def next_line():
            while self.read < len(self.lines()):
                line = self.lines()[self.read]
                self.read += 1
                if not line.startswith("told "):
                    return line
                self.told.append(line)
            assert self.process.poll() is None, "the job ended: " + self.stderr()
            return None
        return wait_for(next_line, "an answer")

    def ask(self, text):
        self.process.stdin.write((text + "\n").encode())
        self.process.stdin.flush()
        return self.answer()

    def until_told(self, line):
        def told():
            while self.read < len(self.lines()):
                self.told.append(self.lines()[self.read])
                self.read += 1
            return line in self.told
        wait_for(told, "the callback to say " + line)

    def epoch_of(self, **fields):
        self.until(lambda c: c.has("view", **fields), "the view")
        return self.has("view", **fields)[0]["epoch"]

    def freeze(self, node):
        """Until no thread of the node runs any more."""
        self.signal_node(node, signal.SIGSTOP)
        for pid in self.node_pids(node):
            for task in os.listdir("/proc/%d/task" % pid):
                def stopped():
                    with open("/proc/%d/task/%s/stat" % (pid, task)) as f:
                        return f.read().rsplit(")", 1)[1].split()[0] == "T"
                wait_for(stopped, "pid %d to stop" % pid)

    def pid_of(self, rank):
        self.poll()
        return next(pid for pids in self.rank_pids.values() for pid, r in pids.items() if r == rank)

    def quit(self):
        self.process.stdin.write(b"quit\n")
        self.process.stdin.flush()
        assert self.answer() == "end -1", self.stdout()
        code = self.wait()
        assert code == 0, (code, self.stderr())


def test_all_are_well():
    with Talk(3, spares=1) as job:
        assert [job.ask("node %d %d" % (n, FINAL)) for n in range(4)] == ["KEEL_ALIVE"] * 4
        assert [job.ask("rank %d %d" % (r, FINAL)) for r in range(3)] == ["KEEL_ALIVE"] * 3
        wait_for(lambda: [job.ask("node %d 0" % n) for n in range(4)] == ["KEEL_ALIVE"] * 4, "nobody to be in doubt")
        assert [job.ask(q) for q in ("node 4 5", "node -1 5", "rank 3 5", "rank -1 5", "node 0 -1", "rank 1 -1")] == ["KEEL_ERR_ARG"] * 6
        assert job.ask("failures 0") == "failures" and job.ask("links") == "links"
        assert job.ask("poll 0") == "not readable"
        job.quit()


def test_a_rank_that_does_not_run_is_hung():
    """Stopped, on our node and on another; and in a wait that no signal ends. One that sleeps is alive."""
    with Talk(2, ranks=4) as job:
        for rank in (1, 2, 3):
            pid = job.pid_of(rank)
            job.signal_pid(pid, signal.SIGSTOP)
            wait_for(lambda: state_of(pid) == "T", "the process to stop: it does so when it gets a processor")
            assert job.ask("rank %d %d" % (rank, FINAL)) == "KEEL_RANK_HUNG"
            job.signal_pid(pid, signal.SIGCONT)
            assert job.ask("rank %d %d" % (rank, FINAL)) == "KEEL_ALIVE"
        for rank in (1, 3):
            assert job.ask("stick %d" % rank) == "KEEL_OK"
            wait_for(lambda: state_of(job.pid_of(rank)) == "D", "rank %d to wait for its child" % rank)
            assert job.ask("rank %d %d" % (rank, FINAL)) == "KEEL_RANK_HUNG"
            assert job.ask("node %d %d" % (rank // 2, FINAL)) == "KEEL_ALIVE"
            assert job.ask("free %d" % rank) == "KEEL_OK"
            wait_for(lambda: job.ask("rank %d %d" % (rank, FINAL)) == "KEEL_ALIVE", "rank %d to run again" % rank)
        assert job.ask("failures 0") == "failures"
        job.quit()


def test_a_rank_that_is_killed_stays_dead():
    with Talk(2, ranks=3, on_failure="degrade") as job:
        assert job.ask("callback first") == "KEEL_OK"
        job.kill_pid(job.pid_of(2))
        job.until_told("told first 2@1/9*1")
        assert job.ask("rank 2 %d" % FINAL) == "KEEL_RANK_DEAD" and job.ask("node 1 %d" % FINAL) == "KEEL_ALIVE"
        assert job.ask("poll 0") == "readable"  # though the callback was told: nobody has called keel_failures
        first = job.ask("failures 0")
        assert first == "failures %d:2@1/9*1 complete" % job.epoch_of(dead_rank=2), first
        assert job.ask("poll 0") == "not readable"
        assert job.ask("quiet") == "KEEL_OK"
        job.kill_pid(job.pid_of(1))
        assert job.ask("poll %d" % FINAL) == "readable"
        assert job.ask("failures %d" % job.epoch_of(dead_rank=1)) == "failures"
        assert job.ask("poll 0") == "not readable"  # who asks for later ones knows of this one
        since = int(first.split()[1].split(":")[0])
        second = job.ask("failures %d" % since)
        assert second.split()[1].split(":")[1] == "1@0/9*1" and len(second.split()) == 3, second
        assert not [line for line in job.told if " 1@" in line], job.told
        job.quit()


def test_a_rank_that_takes_a_place_lives_and_its_deaths_are_counted():
    with Talk(2) as job:
        assert job.ask("callback again") == "KEEL_OK"
        for deaths in (1, 2):
            job.kill_pid(job.pid_of(1))
            job.until_told("told again 1@1/9*%d" % deaths)
            assert job.ask("rank 1 %d" % FINAL) == "KEEL_ALIVE"
        said = job.ask("failures 0").split()
        assert said[1].endswith(":1@1/9*2") and said[2:] == ["complete"], said  # once, with the number of its deaths
        job.quit()


def test_a_rank_that_has_ended_is_not_dead():
    with Talk(2, on_failure="degrade") as job:
        assert job.ask("end 1") == "KEEL_OK"
        wait_for(lambda: job.ask("rank 1 0") == "KEEL_RANK_ENDED", "rank 1 to end")
        assert job.ask("rank 1 %d" % FINAL) == "KEEL_RANK_ENDED" and job.ask("failures 0") == "failures"
        job.quit()


def test_a_node_that_is_killed():
    with Talk(3, spares=1, ranks=6) as job:
        assert job.ask("callback node") == "KEEL_OK"
        job.kill_node(2)
        job.until_told("told node -1@2/0*0")
        job.until_told("told node 5@2/0*1")
        assert job.ask("node 2 %d" % FINAL) == "KEEL_NODE_DEAD" and job.ask("node 2 0") == "KEEL_NODE_DEAD"
        assert job.ask("rank 4 %d" % FINAL) == "KEEL_ALIVE"  # on the spare
        epoch = job.epoch_of(dead_node=2)
        said = job.ask("failures 0")
        assert said == "failures %d:-1@2/0*0 %d:4@2/0*1 %d:5@2/0*1 complete" % (epoch, epoch, epoch), said
        assert [line for line in job.told if line.startswith("told node")] == [
            "told node -1@2/0*0", "told node 4@2/0*1", "told node 5@2/0*1"], job.told
        job.quit()


def test_a_node_that_is_frozen():
    """First nothing is decided, in the time that was given; then it is dead."""
    with Talk(4, options=QUICK) as job:
        job.freeze(3)
        for question in ("node 3 20", "rank 3 20"):
            # the latter: we were slow
            assert job.ask(question) in ("KEEL_UNDECIDED", "KEEL_AGENT_HUNG", "KEEL_NODE_DEAD")
        wait_for(lambda: job.ask("node 3 %d" % FINAL) == "KEEL_NODE_DEAD", "node 3 to be declared dead")
        assert job.ask("rank 2 %d" % FINAL) == "KEEL_ALIVE"
        assert job.ask("poll %d" % FINAL) == "readable"
        job.quit()


def test_an_agent_that_is_frozen_on_a_host_that_answers():
    """It goes on before the limit: nobody dies, and it is well again."""
    with Talk(4, options=["--silence", "600s", "--stopped", "never"]) as job:
        job.freeze(2)
        assert job.ask("node 2 %d" % FINAL) == "KEEL_AGENT_HUNG" and job.ask("rank 2 %d" % FINAL) == "KEEL_AGENT_HUNG"
        time.sleep(1.5)
        assert job.ask("node 2 0") == "KEEL_AGENT_HUNG"
        job.signal_node(2, signal.SIGCONT)
        assert job.ask("rank 2 %d" % FINAL) == "KEEL_ALIVE" and job.ask("node 2 %d" % FINAL) == "KEEL_ALIVE"
        wait_for(lambda: job.ask("node 2 0") == "KEEL_ALIVE", "the doubt to end")
        assert job.ask("failures 0") == "failures"
        job.quit()


def test_an_agent_that_was_stopped_has_a_limit_of_its_own():
    """It runs while somebody waits for an answer."""
    with Talk(4, options=["--silence", "600s", "--stopped", "1"]) as job:
        job.freeze(2)
        wait_for(lambda: job.ask("node 2 0") == "KEEL_NODE_DEAD", "the verdict, long before --silence")
        job.poll()
        said = [e for e in job.has("verdict") if e["about"] == 2]
        assert any(e["evidence"] == "hung" for e in said), said
        job.quit()


def test_a_host_that_does_not_answer_has_a_limit_of_its_own():
    if not IS_ROOT:
        raise Skip("needs root")
    with Talk(4, options=["--bed", "netns", "--silence", "1s", "--stopped", "never"]) as job:
        job.link(2, "cut")
        assert job.ask("node 2 %d" % FINAL) == "KEEL_NODE_DEAD"  
        job.quit()


def test_a_node_that_is_cut_off():
    if not IS_ROOT:
        raise Skip("needs root")
    with Talk(4, options=["--bed", "netns"]) as job:
        job.link(2, "cut")
        assert job.ask("node 2 20") in ("KEEL_UNDECIDED", "KEEL_NODE_DEAD")
        assert job.ask("node 2 %d" % FINAL) == "KEEL_NODE_DEAD" and job.ask("links") == "links"
        job.quit()


def test_ranks_are_told_that_their_node_is_cut_off():
    """The others wait longer, for the job would end with it; meanwhile the network heals."""
    if not IS_ROOT:
        raise Skip("needs root")
    with Talk(4, on_failure="abort", options=["--bed", "netns", "--silence", "1s"]) as job:
        assert job.ask("callback node") == "KEEL_OK"
        job.link(0, "cut")
        time.sleep(2.5)
        job.link(0, "heal")
        job.until_told("told node -1@0/0*0")
        assert job.until(lambda c: c.has("in_touch", node=0), "node 0 to hear the others again")
        assert job.ask("node 0 %d" % FINAL) == "KEEL_ALIVE" and job.ask("failures 0") == "failures"
        job.quit()


def way(job, a, b, what):
    """What node a sends to node b is lost from now on ("add"), or no more ("del")."""
    job.poll()
    host = next(e["host"] for e in job.has("start") if e["node"] == b)
    subprocess.run(["nsenter", "-t", str(job.agents[a]), "-n", "ip", "route", what, "blackhole", host + "/32"], check=True)


def broken_link(both_ways):
    """Between nodes that watch each other and that all others reach: a third is told of it, both ends say the same,
    nobody dies."""
    if not IS_ROOT:
        raise Skip("needs root")
    with Talk(4, options=["--bed", "netns"]) as job:
        ways = [(2, 3), (3, 2)] if both_ways else [(2, 3)]
        for a, b in ways:
            way(job, a, b, "add")
        wait_for(lambda: job.ask("links") == "links 2-3", "node 0 to be told of the link")

        def both_ends_say_so():
            job.poll()
            return job.has("link_broken", node=2, about=3) and job.has("link_broken", node=3, about=2)
        wait_for(both_ends_say_so, "both ends to say that it is broken")
        for node in range(4):
            assert job.ask("node %d %d" % (node, FINAL)) == "KEEL_ALIVE"

        def all_show_it():
            shown = subprocess.run([KEELCTL, "status", "--detect", job.id()], capture_output=True, text=True, timeout=keeltest.HANG_S)
            return len(re.findall(r"    link between nodes 2 and 3 broken for \d+ ms\n", shown.stdout)) == 4
        wait_for(all_show_it, "keelctl status --detect to show the link at all four nodes")
        for a, b in ways:
            way(job, a, b, "del")
        wait_for(lambda: job.ask("links") == "links", "node 0 to be told that it is whole")
        assert job.ask("failures 0") == "failures" and not job.has("verdict"), job.has("verdict")
        job.quit()


def test_a_link_that_is_broken_both_ways():
    broken_link(True)


def test_a_link_that_is_broken_one_way():
    broken_link(False)


def test_ten_links_that_flap():
    """For as many seconds as KEEL_FLAP_S says (a minute in suite soak): nobody dies, and the job goes on."""
    if not IS_ROOT:
        raise Skip("needs root")
    seconds = float(os.environ.get("KEEL_FLAP_S", "8"))
    seed = int(os.environ.get("KEEL_SEED", time.time_ns() % 1000000))
    print("        seed %d" % seed)
    chance = random.Random(seed)
    with Talk(12, options=["--bed", "netns"]) as job:
        links = [(a, (a + 1 + a % 2) % 12) for a in range(0, 10)]
        down, begin = set(), time.monotonic()
        while time.monotonic() - begin < seconds:
            link = chance.choice(links)
            job.poll()
            assert not job.has("verdict"), job.has("verdict")
            way(job, *link, "del" if link in down else "add")
            down ^= {link}
            time.sleep(chance.uniform(0.01, 0.06))
        for link in down:
            way(job, *link, "del")
        for node in range(12):
            assert job.ask("node %d %d" % (node, FINAL)) == "KEEL_ALIVE"
        assert job.ask("failures 0") == "failures" and not job.has("verdict"), job.has("verdict")
        job.quit()


keeltest.main(globals())
