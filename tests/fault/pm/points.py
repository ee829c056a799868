"""Aimed schedules of a start, of connections that break and of the end: who takes part dies, or stands still for three
seconds, at each step of it (FAULT_POINT in pm). A node that is lost so is replaced; keelrun and launchers are not
needed."""
import os
import re
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../lib"))
import keeltest
from keeltest import Job, alive, processes_with, shut_connections, state_of, wait_for

SUM = os.environ.get("KEEL_SUM", "build/tests/fault/sum")
TASKS, ROUNDS, COMPUTE_US = 12, 4, 3300  # more and shorter tasks would use processors, and show no more
RESULT = "sum: %d" % (ROUNDS * TASKS * (TASKS + 1) * (2 * TASKS + 1) // 6)
STILL_S = 3
NOTES = ["sh", "-c", "for i in $(seq 300); do echo $KEEL_RANK $i; sleep 0.01; done"]


class Aimed(Job):
    """Two nodes and spares, and somebody who meets his fault."""

    def __init__(self, *faults, program=None, spares=1):
        self.stopped = {}
        super().__init__(["-n", "2", "--nodes", "2", "--spares", str(spares)] + (program or [SUM, str(TASKS), str(ROUNDS), str(COMPUTE_US)]),
                         env={"KEEL_FAULT": ",".join(faults)})

    def attend(self):
        """Who stands still goes on after a while, until keelrun has ended; its exit code."""
        def look():
            for pid in processes_with(self.tag):
                if state_of(pid) == "T" and pid not in self.stopped:
                    self.stopped[pid] = time.monotonic()
            for pid, since in self.stopped.items():
                if since and time.monotonic() - since >= STILL_S:
                    self.stopped[pid] = 0
                    if alive(pid):
                        os.kill(pid, signal.SIGCONT)
            return self.process.poll() is not None
        wait_for(look, "keelrun to end")
        return self.wait()

    def expect_sum(self, code=0):
        assert self.attend() == code, (code, self.process.returncode, self.stderr())
        if code == 0:
            assert self.stdout().splitlines().count(RESULT) >= 2 and set(self.stdout().splitlines()) == {RESULT}, (self.stdout(), self.stderr())


def expect_stop(point):
    with Aimed(point) as job:
        job.expect_sum()
        assert job.stopped, "nobody came to " + point


def test_agent_dies_or_stands_still_at_each_step_of_its_start():
    for point in ("start.connected", "start.greeted", "start.configured", "start.ready", "start.told", "start.plane_begun", "start.ranks_begun"):
        for node in (0, 1, 2):
            with Aimed("%s:1:kill:node=%d" % (point, node)) as job:
                job.expect_sum()
        expect_stop("%s:1:stop:node=1" % point)


def test_silence_that_is_too_short_for_a_machine_is_refused():
    """A node that stands still while it looks how late it is."""
    with Aimed("start.lateness:5:stop:node=1", program=["--silence", "0.5", SUM, str(TASKS), str(ROUNDS), str(COMPUTE_US)]) as job:
        assert job.attend() == 2 and job.stopped, (job.process.returncode, job.stderr())
        said = re.fullmatch(r"keelrun: node 1: --silence 500ms is less than its machine's load allows: it was (\d+) ms late, of which 4 times must "
                            r"fit: (\d+)ms\n", job.stderr())
        assert said and 1000 * STILL_S <= int(said[1]) < 2000 * STILL_S and int(said[2]) == 4 * int(said[1]), job.stderr()


def test_nodes_that_a_dead_one_has_started_live_on():
    # it dies when others may have heard of the start already, and it has not
    for point in ("start.told", "start.plane_begun", "start.ranks_begun"):
        with Job(["-n", "6", "--nodes", "6", "--fan-out", "1", "--spares", "1", SUM, str(TASKS), str(ROUNDS), str(COMPUTE_US)],
                 env={"KEEL_FAULT": "%s:1:kill:node=1" % point}) as job:
            assert job.wait() == 0, job.stderr()
            assert job.stdout().splitlines() == [RESULT] * 6, (job.stdout(), job.stderr())
            assert job.events("started")[0]["started_by"].count(1) >= 1, job.events("started")


def test_node_that_never_comes_does_not_keep_those_that_it_was_to_start_from_coming():
    with Job(["-n", "3", "--nodes", "3", "--fan-out", "1", "--spares", "1", SUM, str(TASKS), str(ROUNDS), str(COMPUTE_US)],
             env={"KEEL_FAULT": "order.arrived:1:kill:node=1"}) as job:
        assert job.wait() == 0, job.stderr()
        assert job.stdout().splitlines() == [RESULT] * 3, (job.stdout(), job.stderr())


def test_agent_that_stands_still_does_not_take_along_what_it_was_to_start():
    for point, node in (("start.configured", 3), ("start.ready", 0), ("start.ready", 1)):
        with Job(["-n", "4", "--nodes", "4", "--fan-out", "1", "--spares", "1", "--start-timeout", "10", SUM, str(TASKS), str(ROUNDS), str(COMPUTE_US)],
                 env={"KEEL_FAULT": "%s:1:stop:node=%d" % (point, node)}) as job:
            assert job.wait() == 0, job.stderr()
            assert job.stdout().splitlines() == [RESULT] * 4, (job.stdout(), job.stderr())


def test_agent_dies_or_stands_still_at_each_step_of_its_end():
    for point in ("link.over", "link.over_told", "link.bye"):
        with Aimed("%s:1:kill:node=1" % point) as job:
            job.expect_sum()
        expect_stop("%s:1:stop:node=1" % point)


def test_launcher_dies_or_stands_still_at_each_step():
    for point in ("order.read", "order.may_go_on", "order.arrived", "order.handed_on"):
        for action in ("kill", "stop"):
            with Aimed("%s:1:%s:node=1" % (point, action)) as job:
                job.expect_sum()
                assert "a spare takes its place" in job.stderr() or job.stopped, (point, action, job.stderr())


BEFORE = ("run.joined", "run.configuring", "run.configured", "run.ready", "run.starting")
IN_THE_MIDDLE = ("run.start_half_told",)
AFTER = ("run.started", "run.over", "run.closing", "run.bye_half_told")


def test_keelrun_stands_still_at_each_step():
    for point in BEFORE + IN_THE_MIDDLE + AFTER:
        expect_stop("%s:1:stop:node=-1" % point)


def test_keelrun_dies_at_each_step():
    # what is left behind, or goes on for ever, is found when the job's block ends
    for point in BEFORE + IN_THE_MIDDLE + AFTER:
        for passing in (1, 2):
            with Aimed("%s:%d:kill:node=-1" % (point, passing)) as job:
                code = job.attend()
                assert code == -signal.SIGKILL or (code, point, passing) in [(0, p, 2) for p in AFTER + ("run.starting",)], (point, passing, code)


def test_keelrun_dies_or_stands_still_while_a_spare_takes_a_place():
    for point in ("run.missing", "run.closed_up"):
        lost = "start.connected:1:kill:node=0"
        expect_stop("%s:1:stop:node=-1,%s" % (point, lost))
        with Aimed("%s:1:kill:node=-1" % point, lost) as job:
            assert job.attend() == -signal.SIGKILL


def test_spare_dies_or_stands_still_while_it_takes_a_place():
    # the second passing: when the numbers have closed up. Who has said that he is ready may be told to begin before he
    # is known to be dead.
    for point, spares, code in (("start.configured", 2, 0), ("start.configured", 1, 1), ("start.ready", 2, 0)):
        for action in ("kill", "stop"):
            with Aimed("start.connected:1:kill:node=0", "%s:2:%s:node=%d" % (point, action, 1 + spares), spares=spares) as job:
                job.expect_sum(code if action == "kill" else 0)
                assert action == "kill" or job.stopped


def broken_link(*faults, code=0, killed=False):
    """All lines of both ranks, each once, though connections break."""
    with Aimed(*faults, program=NOTES) as job:
        job.id()
        wait_for(lambda: job.stdout().count("\n") > 50, "some lines")
        assert shut_connections(job.process.pid) >= 1
        assert job.attend() == code, job.stderr()
        if not killed:
            lines = job.stdout().splitlines()
            assert sorted(lines) == sorted("%d %d" % (r, i + 1) for r in range(2) for i in range(300)), (len(lines), job.stderr())
        return job.stopped


def test_who_stands_still_while_connections_are_made_again_loses_nothing():
    for point in ("run.cut", "run.resuming", "link.sending_again", "link.acknowledging"):
        assert broken_link(point + ":1:stop:node=-1") or point == "link.sending_again", point


def test_keelrun_that_dies_while_connections_are_made_again_leaves_the_job():
    for point in ("run.cut", "run.resuming"):
        broken_link(point + ":1:kill:node=-1", code=-signal.SIGKILL, killed=True)


keeltest.main(globals())
