"""keelrun cut off from nodes that are well, or its connections broken: the job goes on, and keelrun gets every line
once, in order, when it is in reach again. In namespaces a cut is one of keelrun alone: the nodes reach each other all
the time."""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../lib"))
import keeltest
from keeltest import HANG_S, IS_ROOT, KEELCTL, Job, Skip, alive, children_of, shut_connections, wait_for

# Each rank writes numbered lines, $WIDTH bytes long, until the file "go" is in $DIR, then the last one and ends with
# $CODE; with another one than 0 when all have written theirs, as it ends the others. After each line it writes into the
# file of its name how many there are.
WRITER = [sys.executable, "-c", """import os, sys, time
rank, i, place = os.environ["KEEL_RANK"], 0, os.environ["DIR"]
count = os.open(os.path.join(place, rank), os.O_WRONLY | os.O_CREAT)
while True:
    last = os.path.exists(os.path.join(place, "go"))
    os.write(1, b"%s %d %s%s\\n" % (rank.encode(), i, b"x" * int(os.environ["WIDTH"]), b" end" if last else b""))
    i += 1
    os.pwrite(count, b"%12d" % i, 0)
    if last:
        open(os.path.join(place, "last" + rank), "w").close()
        while os.environ["CODE"] != "0" and not all(os.path.exists(os.path.join(place, "last%d" % r)) for r in range(int(os.environ["KEEL_SIZE"]))):
            time.sleep(0.01)
        sys.exit(int(os.environ["CODE"]))
    time.sleep(float(os.environ["PAUSE"]))
"""]
LONG_S = 26  # longer than a connection waits for a word of its peer's kernel
NOBODY = "02:00:00:00:99:99"


class Writers(Job):
    def __init__(self, nodes, options=(), program=None, width=50, pause=0.02, code=0, **kw):
        self.nodes, self.cuts = nodes, []
        self.place = tempfile.TemporaryDirectory(prefix="keel-test-")
        env = {"DIR": self.place.name, "WIDTH": str(width), "PAUSE": str(pause), "CODE": str(code)}
        super().__init__(["-n", str(nodes), "--nodes", str(nodes), *options] + (program or WRITER), env=env, **kw)

    def written(self, rank):
        try:
            with open(os.path.join(self.place.name, str(rank))) as f:
                return int(f.read() or 0)
        except OSError:
            return 0

    def begun(self):
        self.id()
        wait_for(lambda: all(self.written(r) for r in range(self.nodes)), "all ranks to write")
        return self.status()

    def go(self):
        open(os.path.join(self.place.name, "go"), "w").close()

    def shown(self, rank):
        return [line for line in self.stdout().splitlines() if line.startswith("%d " % rank)]

    def expect_whole(self, ranks=None):
        for rank in range(self.nodes) if ranks is None else ranks:
            lines = self.shown(rank)
            assert [int(line.split()[1]) for line in lines] == list(range(self.written(rank))), \
                (rank, self.written(rank), len(lines), lines[-3:])
            assert lines[-1].endswith(" end"), lines[-1]

    # ---- the bed's network: who looks for keelrun's address, or keelrun for a node's, sends into nothing

    def namespace(self, node):
        return "keel-%s-%s" % (self.id()[:8], "hub" if node is None else "n%d" % node)

    def neighbour(self, what, namespace, device, address):
        words = ["ip", "-n", namespace, "neigh", what, address, "dev", device]
        if what == "replace":
            words += ["lladdr", NOBODY, "nud", "permanent"]
        subprocess.run(words, check=what == "replace", capture_output=True, timeout=HANG_S)

    def way(self, what, node, both):
        self.neighbour(what, self.namespace(None), "br0", "10.77.0.%d" % (node + 2))
        if both:
            self.neighbour(what, self.namespace(node), "veth0", "10.77.0.1")

    def cut(self, nodes, both=True):
        self.cuts = list(nodes)
        for node in self.cuts:
            self.way("replace", node, both)

    def heal(self):
        for node in self.cuts:
            self.way("del", node, True)

    def __exit__(self, *args):
        try:
            super().__exit__(*args)
        finally:
            self.place.cleanup()


def bed(nodes, options=(), **kw):
    if not IS_ROOT:
        raise Skip("needs root")
    return Writers(nodes, ["--bed", "netns", *options], **kw)


def said(job):
    return [line for line in job.stderr().splitlines() if line.startswith("keelrun: ")]


# ---- cut off

def test_keelrun_cut_off_from_all_nodes_loses_nothing():
    with bed(2) as job:
        job.begun()
        job.cut([0, 1])
        time.sleep(LONG_S)
        wait_for(lambda: "out of reach from here; the job goes on" in job.stderr(), "keelrun to notice")
        job.heal()
        wait_for(lambda: "in reach again" in job.stderr(), "the nodes to come again")
        job.go()
        assert job.wait() == 0, job.stderr()
        job.expect_whole()
        assert len(said(job)) in (2, 3) and not job.events("agent_lost"), job.stderr()


def test_job_that_ends_meanwhile_is_told_in_the_end():
    with bed(2, code=7) as job:
        job.begun()
        job.cut([0, 1])
        time.sleep(1)
        job.go()
        time.sleep(LONG_S)
        assert job.process.poll() is None
        job.heal()
        assert job.wait() == 7, job.stderr()
        job.expect_whole()
        assert re.search(r"rank [01].* 7", said(job)[-1]), job.stderr()


def test_nothing_is_said_after_how_it_ended():
    """Also while those that started the agents take their time: the nodes are in reach again by then, and nobody needs
    to know."""
    with bed(2, code=7) as job:
        job.begun()
        job.cut([0, 1])
        time.sleep(1)
        job.go()
        wait_for(lambda: "out of reach from here" in job.stderr(), "keelrun to notice")
        launchers = children_of(job.process.pid, "keeld")
        assert len(launchers) == 2, launchers
        for pid in launchers:
            os.kill(pid, signal.SIGSTOP)
        job.heal()
        assert job.wait() == 7 and job.events("console_resumed"), job.stderr()
        lines = said(job)
        assert re.search(r"rank [01].* 7", lines[-1]) and any("in reach again" in line for line in lines[:-1]), lines


def test_one_node_cut_off_writes_all_it_may_and_waits():
    with bed(2, width=3000, pause=0.001) as job:
        job.begun()
        job.cut([1])

        def stands_still():
            before = job.written(1)
            time.sleep(2)
            return job.written(1) == before
        wait_for(stands_still, "rank 1 to wait")
        assert job.written(1) * 3000 < 4 << 20, "its output was not bounded"
        before = job.written(0)
        wait_for(lambda: job.written(0) > before + 100, "rank 0, which is in reach, to write")
        job.heal()
        wait_for(lambda: not stands_still(), "rank 1 to go on")
        job.go()
        assert job.wait() == 0, job.stderr()
        job.expect_whole()


def test_what_arrived_and_was_not_acknowledged_comes_once():
    """A cut of one direction: keelrun hears its nodes, which do not hear keelrun."""
    with bed(2) as job:
        job.begun()
        job.cut([0, 1], both=False)
        before = len(job.shown(0))
        wait_for(lambda: len(job.shown(0)) > before + 3, "output to come all the same")
        time.sleep(LONG_S)
        job.heal()
        seen = len(job.shown(1))
        wait_for(lambda: len(job.shown(1)) > seen + 20, "more output")
        job.go()
        assert job.wait() == 0, job.stderr()
        job.expect_whole()


def test_input_that_waited_arrives_whole():
    program = [sys.executable, "-c", "import sys; d = sys.stdin.buffer.read(); sys.stdout.write('%d %s\\n' % (len(d), d[-5:]))"]
    with bed(1, program=program) as job:
        wait_for(lambda: job.events("rank_start"), "the rank")
        job.process.stdin.write(b"a" * 100000)
        job.process.stdin.flush()
        job.cut([0])
        time.sleep(LONG_S)
        job.process.stdin.write(b"b" * 50000 + b"\nlast")
        job.process.stdin.close()
        job.heal()
        assert job.wait() == 0, job.stderr()
        assert job.stdout() == "150005 b'\\nlast'\n", job.stdout()


def test_link_of_100_kbit_ends_nothing():
    with bed(2, width=200, pause=0.01, options=["--silence", "600s", "--stopped", "never"]) as job:
        job.begun()
        shape = ["rate", "100kbit", "burst", "16kb", "latency", "400ms"]
        for namespace, device in (job.namespace(1), "veth0"), (job.namespace(None), "p1"):
            subprocess.run(["tc", "-n", namespace, "qdisc", "add", "dev", device, "root", "tbf", *shape], check=True, timeout=HANG_S)
        time.sleep(12)
        job.go()
        assert job.wait() == 0, job.stderr()
        job.expect_whole()


def test_agent_that_dies_while_it_is_cut_off_is_known_in_the_end():
    with bed(1) as job:
        agent = job.begun()["nodes"][0]["agent_pid"]
        job.cut([0])
        wait_for(lambda: "out of reach" in job.stderr() or job.events("console_cut"), "keelrun to notice")
        os.kill(agent, signal.SIGKILL)
        time.sleep(3)
        assert job.process.poll() is None, job.stderr()
        job.heal()
        assert job.wait() == 1 and "all nodes were lost" in job.stderr(), job.stderr()


def test_nobody_waits_for_ever_for_the_only_one_who_would_know():
    # its host vanishes, and the other one has ended for want of a quorum
    with bed(2, ["--console-timeout", "8"]) as job:
        job.begun()
        subprocess.run([KEELCTL, "bed", "cut", job.id(), "0"], check=True, capture_output=True, timeout=HANG_S)
        assert job.wait() == 1, job.stderr()
        told = said(job)
        assert any(re.search("node 1 is lost, and node 0, which would know of the job, is out of reach: it is waited for, 8 s at most; Ctrl-C does without", t) for t in told), told
        assert any(re.search("node 1 is lost, and node 0 has been out of reach for 8 s: nobody else is left", t) for t in told), told

    # the other one is known to be dead, so that nobody is left
    with bed(2, ["--console-timeout", "8", "--on-failure", "degrade"]) as job:
        status = job.begun()
        os.kill(status["nodes"][1]["agent_pid"], signal.SIGKILL)
        wait_for(lambda: "node 1 died" in job.stderr(), "the death to be known")
        job.cut([0])
        assert job.wait() == 1, job.stderr()
        assert any("node 0 has been out of reach for 8 s: nobody else is left" in t for t in said(job)), said(job)


def test_interrupt_is_obeyed_and_silence_is_told():
    with bed(1) as job:
        job.begun()
        job.cut([0])
        time.sleep(1)
        job.process.send_signal(signal.SIGINT)
        assert job.wait() == 130
        assert "node 0 does not answer and may still have processes of the job" in job.stderr(), job.stderr()


# ---- keelrun that does not come again

def test_killed_while_cut_off_it_is_known_to_be_gone():
    with bed(2) as job:
        job.begun()
        job.cut([0, 1])
        job.process.kill()
        job.process.wait()
        time.sleep(2)
        job.go()
        time.sleep(2)
        job.heal()
        job.check_leftovers()  # long before the limit


def test_given_up_output_does_not_wait_and_is_told_as_lost():
    with bed(2, width=3000, pause=0.001, options=["--console-timeout", "3"]) as job:
        job.begun()
        job.cut([1])
        wait_for(lambda: job.written(1) * 3000 > 8 << 20, "rank 1 not to wait any more")
        job.heal()
        wait_for(lambda: "of its output are lost" in job.stderr(), "the loss to be told")
        job.go()
        assert job.wait() == 1, job.stderr()
        told = [line for line in said(job) if re.search(r"node 1 was out of reach for more than 3 s: \d+ bytes of its output are lost", line)]
        assert len(told) == 1, job.stderr()
        job.expect_whole([0])
        numbers = [int(line.split()[1]) for line in job.shown(1)]
        assert numbers == sorted(set(numbers)) and job.shown(1)[-1].endswith(" end"), "more than a gap"


def test_agents_that_are_not_asked_leave_after_the_limit():
    with bed(2, options=["--console-timeout", "4"]) as job:
        agents = [node["agent_pid"] for node in job.begun()["nodes"].values()]
        job.cut([1])
        job.go()
        assert job.wait() == 1, job.stderr()
        assert "the job is over, and node 1 is out of reach" in job.stderr(), job.stderr()
        assert "node 1 is still out of reach; the rest of its output is lost" in job.stderr(), job.stderr()
        job.expect_whole([0])
        for pid in agents:
            wait_for(lambda pid=pid: not alive(pid), "the agents to leave")


# ---- connections that break: who runs keelrun may shut its sockets, too

def test_connections_that_break_again_and_again_lose_nothing():
    with Writers(3, width=300, pause=0.0005) as job:
        job.begun()
        broken = 0
        for _ in range(25):
            broken += shut_connections(job.process.pid)
            time.sleep(0.07)
        job.go()
        assert job.wait() == 0, job.stderr()
        job.expect_whole()
        assert broken >= 25 and job.events("console_resumed"), broken
        assert said(job) == [], job.stderr()


def test_connections_that_break_at_the_end_lose_neither_output_nor_code():
    for delay in (0, 0.005, 0.02, 0.05, 0.1):
        with Writers(3, width=300, pause=0.0005, code=9) as job:
            job.begun()
            job.go()
            time.sleep(delay)
            shut_connections(job.process.pid)
            assert job.wait() == 9, job.stderr()
            job.expect_whole()


keeltest.main(globals())
