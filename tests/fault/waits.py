"""Nothing hangs silently: who waits, in which call, for whom and why is on the terminal and in keelctl status; with
processes that are stopped, late and cut off for real."""
import json
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
from keeltest import IS_ROOT, KEELCTL, Skip, state_of, wait_for

WAITS = os.environ.get("KEEL_WAITS", "build/tests/fault/waits")


class Waiting(Cluster):
    """Three ranks on as many nodes; the last one is waited for."""

    def __init__(self, call, nodes=3, **kw):
        self.folder = tempfile.TemporaryDirectory(prefix="keel-waits-")
        super().__init__(nodes, [WAITS, call, self.folder.name], **kw)
        self.last = self.size - 1
        assert self.until(lambda c: len(c.has("application", name="ready")) == c.size, "all to be ready")

    def close(self):
        super().close()
        self.folder.cleanup()

    def say(self, name):
        open(os.path.join(self.folder.name, name), "w").close()

    def pid_of(self, rank):
        return next(pid for pids in self.rank_pids.values() for pid, r in pids.items() if r == rank)

    def stop_last(self):
        pid = self.pid_of(self.last)
        self.signal_pid(pid, signal.SIGSTOP)
        wait_for(lambda: state_of(pid) == "T", "the process to stop")

    def status(self, *options):
        done = subprocess.run([KEELCTL, "status", *options, self.id()], capture_output=True, text=True, timeout=keeltest.HANG_S)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def lines(self):
        return [line for line in self.stderr().splitlines() if " waited " in line or "the wait for" in line]

    def finish(self):
        self.say("end")
        code = self.wait()
        assert code == 0, (code, self.stderr())
        self.poll()
        assert len(self.has("application", name="right")) == self.size


def stopped(call, name, **kw):
    with Waiting(call, **kw) as job:
        job.stop_last()
        begin = time.monotonic()
        job.say("go")
        shown = r"rank 0 +pid .*\n +has waited [\d.]+ s in %s for (rank \d+ \(node \d+\), and that for )?rank %d \(node %d\), which is stopped" % (
            name, job.last, job.nodes - 1)
        wait_for(lambda: re.search(shown, job.status()), "keelctl status to say it")
        print("        status after %.1f s" % (time.monotonic() - begin))
        assert re.search(r"rank %d .* running, stopped by a signal or a debugger" % job.last, job.status()), job.status()
        line = r"keelrun: ranks 0-%d have waited \d+ s in %s for rank %d \(node %d\), which is stopped by a signal or a debugger" % (
            job.last - 1, name, job.last, job.nodes - 1)
        wait_for(lambda: any(re.fullmatch(line, said) for said in job.lines()), "the terminal to say it: " + line)
        print("        terminal after %.1f s" % (time.monotonic() - begin))
        job.signal_pid(job.pid_of(job.last), signal.SIGCONT)
        wait_for(lambda: "keelrun: the wait for rank %d (node %d) is over after" % (job.last, job.nodes - 1) in job.stderr(),
                 "the terminal to say that it is over")
        job.until(lambda c: len(c.has("application", name="right")) == c.size, "the results")
        assert "waited" not in job.status(), job.status()
        assert len(job.lines()) <= 3, job.lines()
        job.finish()


def test_a_barrier():
    stopped("barrier", "keel_barrier")


def test_a_collective_of_a_group():
    stopped("group", "keel_group_allreduce")


def test_kept_memory():
    """They are collectives, of which the program has called none."""
    stopped("commit", "keel_keep_commit")
    stopped("rollback", "keel_keep_rollback")


def test_keel_group_create():
    stopped("create", "keel_group_create")


def test_a_call_that_ends_by_its_time_out_names_who_was_missing():
    with Waiting("create", env={"KEEL_TIMEOUT_MS": "500"}) as job:
        job.stop_last()
        job.say("go")
        wait_for(lambda: re.search(r"rank 0: error: .* rank 2 on node 2 is stopped, keel_group_create has waited for it for \d+ ms", job.stderr()),
                 "rank 0 to say whom keel_group_create has waited for")
        job.signal_pid(job.pid_of(job.last), signal.SIGCONT)
        job.until(lambda c: len(c.has("application", name="right")) == c.size, "the results")
        job.finish()


def test_keel_message_receive():
    stopped("receive", "keel_message_receive")


def test_keel_wait_until():
    stopped("until", "keel_wait_until")


def test_a_mutex_whose_holder_is_stopped():
    stopped("lock", "keel_mutex_lock")


def test_an_allocation():
    stopped("alloc", "keel_segment_alloc or _free")


def test_ranks_of_one_node():
    stopped("barrier", "keel_barrier", nodes=2, ranks=6)


def test_a_rank_that_computes_is_shown_and_not_told():
    with Waiting("barrier") as job:
        job.stop_last()  # until it cannot see any more that it may go on
        job.say("go")
        time.sleep(0.3)
        os.rename(os.path.join(job.folder.name, "go"), os.path.join(job.folder.name, "gone"))
        job.signal_pid(job.pid_of(job.last), signal.SIGCONT)
        wait_for(lambda: re.search(r"has waited [\d.]+ s in keel_barrier for .*rank %d \(node 2\), which has not called it" % job.last, job.status()),
                 "keelctl status to say it")
        status = json.loads(job.status("--json"))
        assert [w["call"] for n in status["nodes"] for w in n["waiting"].get("waits", [])] == ["keel_barrier"] * 2, status
        time.sleep(6)
        assert not job.lines(), job.lines()
        job.say("go")
        job.until(lambda c: len(c.has("application", name="right")) == c.size, "the results")
        job.finish()
        assert not job.lines(), job.lines()


def test_quiet_leaves_the_lines_to_the_event_log():
    with Waiting("barrier", options=["--quiet"]) as job:
        job.stop_last()
        job.say("go")
        job.until(lambda c: any("which is stopped" in e["text"] for e in c.has("waits")), "the event")
        job.signal_pid(job.pid_of(job.last), signal.SIGCONT)
        job.until(lambda c: len(c.has("application", name="right")) == c.size, "the results")
        job.finish()
        assert not job.lines(), job.lines()


def test_a_thread_that_waits_for_another_of_its_process():
    with Waiting("threads") as job:
        job.say("go")
        wait_for(lambda: re.search(r"rank 0 +pid .*\n +has waited [1-9][\d.]* s in keel_mutex_lock for another thread of the same process, which has it\n", job.status()),
                 "keelctl status to say it")
        assert not job.lines(), job.lines()
        job.say("mercy")
        job.until(lambda c: len(c.has("application", name="right")) == c.size, "the results")
        wait_for(lambda: "waited" not in job.status(), "the wait to be over")
        job.finish()


def test_a_ring():
    with Waiting("ring") as job:
        job.say("go")
        wait_for(lambda: "keelrun: ranks 0-1 have waited 5 s in keel_wait_until for each other: none can go on before rank 0 does" in job.stderr(),
                 "the terminal to say it")
        job.say("mercy")
        wait_for(lambda: "is over after" in job.stderr(), "the terminal to say that it is over")
        job.finish()


def test_a_node_whose_agent_is_stopped():
    with Waiting("put", options=["--silence", "600s", "--dark", "600000"]) as job:
        job.signal_node(job.nodes - 1, signal.SIGSTOP)
        job.say("go")
        wait_for(lambda: re.search(r"keelrun: ranks 0-1 have waited \d s in keel_put( and other calls)? for node 2, (which is (silent|stopped|not answering)|whose agent does not run, though its host answers)", job.stderr()),
                 "the terminal to say it")
        job.signal_node(job.nodes - 1, signal.SIGCONT)
        wait_for(lambda: "keelrun: node 2 answers again" in job.stderr(), "the terminal to say that it is over")
        job.finish()


def test_an_agent_that_waits_for_another():
    """What is added on node 3 waits for its other copy, on node 1."""
    with Waiting("add", nodes=4) as job:
        job.signal_pid(job.agents[1], signal.SIGSTOP)
        job.until(lambda c: c.has("suspect", about=1), "the others to notice")
        job.say("go")
        line = (r"keelrun: ranks? (0|2|0 and 2|0-2) ha(s|ve) waited \d s in keel_rmw "
            r"for node 1\b.*(does not run|is stopped).*")
        wait_for(lambda: any(re.fullmatch(line, said) for said in job.lines()), "the terminal to say it")
        time.sleep(5)
        assert len(re.findall(r" s in keel_rmw for node 1\b", job.status())) == 2, job.status()
        assert "an answer of" not in job.stderr(), job.stderr()
        job.signal_pid(job.agents[1], signal.SIGCONT)
        job.until(lambda c: len(c.has("application", name="right")) == c.size, "the results")
        job.finish()


def test_a_strong_get_that_waits_for_another_copy():
    """It is said whom it waits for; and that it waits, so that the time of --stopped runs."""
    with Waiting("strong", on_failure="degrade", options=["--stopped", "4"]) as job:
        job.signal_pid(job.agents[2], signal.SIGSTOP)
        job.until(lambda c: c.has("suspect", about=2), "the others to notice")
        job.say("go")
        line = r"keelrun: rank 0 has waited \d s in keel_get for node 2\b.*(does not run|is stopped).*"
        wait_for(lambda: any(re.fullmatch(line, said) for said in job.lines()), "the terminal to say it")
        job.until(lambda c: c.has("view", dead_node=2), "the verdict", 60)
        job.signal_pid(job.agents[2], signal.SIGCONT)
        job.say("end")
        code = job.wait()
        assert code == 0 and "an answer of" not in job.stderr(), (code, job.stderr())


def test_a_view_that_waits_for_a_stopped_node():
    """Node 2 is killed while the spare is stopped: the view without it needs an answer of the spare."""
    with Waiting("put", spares=1, on_failure="degrade") as job:
        job.signal_pid(job.agents[3], signal.SIGSTOP)
        job.until(lambda c: c.has("suspect", about=3), "the others to notice")
        job.kill_node(2)
        job.say("go")
        line = r"keelrun: ranks 0-1 have waited \d s in keel_put for (the next view, and that for )?node 3\b.*(does not run|is stopped).*"
        wait_for(lambda: any(re.fullmatch(line, said) for said in job.lines()), "the terminal to say it")
        status = job.status()
        assert re.search(r"^node 2 +dying$", status, re.M) and re.search(r"^node 3 +silent$", status, re.M), status
        job.signal_pid(job.agents[3], signal.SIGCONT)
        job.until(lambda c: c.has("view", dead_node=2), "the view")
        job.say("end")
        code = job.wait()
        assert code == 0 and "an answer of" not in job.stderr(), (code, job.stderr())


def way(job, a, b, what):
    """What node a sends to node b is lost from now on ("add"), or no more ("del")."""
    host = next(e["host"] for e in job.has("start") if e["node"] == b)
    subprocess.run(["nsenter", "-t", str(job.agents[a]), "-n", "ip", "route", what, "blackhole", host + "/32"], check=True)


def test_a_broken_link():
    """All agents know of it soon; messages of ranks do not go around it, so the barrier lasts until it is whole."""
    if not IS_ROOT:
        raise Skip("needs root")
    with Waiting("barrier", options=["--bed", "netns"]) as job:
        for a, b in [(0, 2), (2, 0)]:
            way(job, a, b, "add")
        begin = time.monotonic()
        job.say("go")
        said = r"keelrun: ranks (0-2|0 and 2) have waited \d s in keel_barrier for each other: the link between nodes 0 and 2 is broken"
        wait_for(lambda: any(re.fullmatch(said, line) for line in job.lines()), "the terminal to say it")
        print("        terminal after %.1f s" % (time.monotonic() - begin))
        assert "for each other: the link between nodes 0 and 2 is broken" in job.status(), job.status()
        for a, b in [(0, 2), (2, 0)]:
            way(job, a, b, "del")
        wait_for(lambda: "keelrun: the wait for the link between nodes 0 and 2 is over after" in job.stderr(), "the terminal to say that it is over")
        job.until(lambda c: len(c.has("application", name="right")) == c.size, "the results")
        job.finish()


keeltest.main(globals())
