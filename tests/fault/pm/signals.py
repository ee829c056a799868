"""Every signal to keelrun has a decision, and none leaves a job behind without a word."""
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../lib"))
import keeltest
from cluster import Cluster
from keeltest import HANG_S, KEELCTL, Job, alive, state_of, wait_for

SUM = os.environ.get("KEEL_SUM", "build/tests/fault/sum")
TASKS, ROUNDS, COMPUTE_US = 12, 8, 3300  # more and shorter tasks would use processors, and show no more
RESULT = "sum: %d" % (ROUNDS * TASKS * (TASKS + 1) * (2 * TASKS + 1) // 6)
FORWARDED = [signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF, signal.SIGXCPU, signal.SIGURG,
             signal.SIGIO, signal.SIGPWR, 16, signal.SIGRTMIN, signal.SIGRTMIN + 5, signal.SIGRTMAX]
CRASHES = [signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGABRT, signal.SIGTRAP, signal.SIGSYS]

# Says each signal that it gets, until it gets "end".
LISTENER = [sys.executable, "-c", """import os, signal, sys, time
rank = os.environ["KEEL_RANK"]
end = []
def got(number, frame):
    os.write(1, b"%s got %d\\n" % (rank.encode(), number))  # print is not for handlers: the next signal may come in the middle
for s in range(1, 65):
    if s not in (9, 17, 18, 19, 32, 33) and (s != 15 or os.environ.get("STAYS")):
        signal.signal(s, got)
print(rank, "ready", flush=True)
while not os.path.exists(os.path.join(os.environ["DIR"], "go")):
    time.sleep(0.01)
"""]


class Listeners(Job):
    def __init__(self, ranks=2, options=(), program=None, stays=False, **kw):
        """stays: its ranks do not end by SIGTERM, whose default comes before what Python does about an earlier signal."""
        self.ranks = ranks
        self.place = tempfile.TemporaryDirectory(prefix="keel-test-")
        super().__init__(["-n", str(ranks), "--nodes", str(ranks), *options] + (program or LISTENER), env={"DIR": self.place.name, "STAYS": "1" if stays else ""}, **kw)

    def ready(self):
        wait_for(lambda: self.stdout().count("ready") == self.ranks, "all ranks")
        return self.status()

    def got(self, number):
        return sorted(int(line.split()[0]) for line in self.stdout().splitlines() if line.endswith("got %d" % number))

    def go(self):
        open(os.path.join(self.place.name, "go"), "w").close()

    def __exit__(self, *args):
        try:
            super().__exit__(*args)
        finally:
            self.place.cleanup()


def test_manual_has_every_signal():
    page = os.path.join(keeltest.SOURCE, "docs/man/keelrun.1")
    with open(page) as f:
        section = f.read().split(".SH SIGNALS")[1].split(".SH ")[0]
    for s in signal.Signals:
        name = s.name if s not in (signal.SIGRTMIN, signal.SIGRTMAX) else "SIGRTMIN"
        if s.name in ("SIGCLD", "SIGPOLL", "SIGIOT"):
            continue  # other names
        assert re.search(r"\b%s\b" % name, section), name


def test_warnings_reach_each_rank_once():
    with Listeners() as job:
        job.ready()
        for number in FORWARDED:
            job.process.send_signal(number)
            wait_for(lambda number=number: job.got(number) == [0, 1], "signal %d to reach the ranks" % number)
        time.sleep(0.3)
        assert all(job.got(number) == [0, 1] for number in FORWARDED), job.stdout()
        job.go()
        assert job.wait() == 0 and job.stderr() == "", job.stderr()


def test_warning_without_a_handler_is_as_any_signal_to_a_rank():
    with Job(["-n", "1", "sh", "-c", "echo ready; sleep 10000"]) as job:
        wait_for(lambda: job.stdout() == "ready\n", "the rank")
        job.process.send_signal(signal.SIGUSR1)
        assert job.wait() == 128 + signal.SIGUSR1
        assert "killed by SIGUSR1" in job.stderr(), job.stderr()


def test_ignored_warnings_stay_ignored():
    with Listeners(before=lambda: signal.signal(signal.SIGUSR1, signal.SIG_IGN)) as job:
        job.ready()
        job.process.send_signal(signal.SIGUSR1)
        job.process.send_signal(signal.SIGUSR2)
        wait_for(lambda: job.got(signal.SIGUSR2) == [0, 1], "the other one")
        assert job.got(signal.SIGUSR1) == []
        job.go()
        assert job.wait() == 0


def test_size_of_the_window_is_nobodys_matter():
    with Listeners() as job:
        job.ready()
        job.process.send_signal(signal.SIGWINCH)
        job.process.send_signal(signal.SIGUSR2)
        wait_for(lambda: job.got(signal.SIGUSR2) == [0, 1], "the other one")
        assert job.got(signal.SIGWINCH) == []
        job.go()
        assert job.wait() == 0 and job.stderr() == ""


def test_warnings_before_the_start_are_left_out():
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
        path = os.path.join(directory, "ssh")
        with open(path, "w") as f:
            f.write('#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift; done\nshift\ntouch %s/come\n'
                    'while [ ! -e %s/on ]; do sleep 0.02; done\neval "exec $*"\n' % (directory, directory))
        os.chmod(path, 0o755)
        with Job(["-n", "1", "--hosts", "127.0.1.2", "--launcher", "ssh", "--launcher-exec", path, "echo", "done"]) as job:
            wait_for(lambda: os.path.exists(os.path.join(directory, "come")), "the start to begin")
            job.process.send_signal(signal.SIGUSR1)
            time.sleep(0.2)
            open(os.path.join(directory, "on"), "w").close()
            assert job.wait() == 0 and job.stdout() == "done\n", job.stderr()


# ---- the end

def test_quit_ends_the_job_and_reaches_the_ranks():
    """Also those of a node whose agent hears of the end from another one before keelrun's order comes."""
    for _ in range(5):
        with Listeners(stays=True) as job:
            job.ready()
            job.process.send_signal(signal.SIGQUIT)
            assert job.wait() == 128 + signal.SIGQUIT
            got = job.got(signal.SIGQUIT)  # to the process and to its group: one of the two may be lost in the other
            assert set(got) == {0, 1} and len(got) <= 4 and not job.got(signal.SIGTERM), job.stdout()
            assert len(job.stderr().splitlines()) == 1, job.stderr()


def test_crash_of_keelrun_before_the_job_runs_is_its_end():
    def no_core():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for point in "run.joined", "run.starting":
        with Job(["-n", "2", "--nodes", "2", "sh", "-c", "echo ran"], env={"KEEL_FAULT": point + ":1:stop"},
                 before=no_core) as job:
            wait_for(lambda job=job: state_of(job.process.pid) == "T", "keelrun to stand still")
            job.process.send_signal(signal.SIGABRT)
            job.process.send_signal(signal.SIGCONT)
            assert job.process.wait(HANG_S) == -signal.SIGABRT
            said = "keelrun: killed by a signal of its own before the job ran; what it has started ends\n"
            assert job.stderr() == said, job.stderr()
            job.check_leftovers()
            assert job.stdout() == "", job.stdout()


def test_crash_of_keelrun_is_told_and_the_job_goes_on():
    def no_core():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for number in CRASHES:
        with Listeners(before=no_core) as job:
            job.ready()
            job.process.send_signal(number)
            assert job.process.wait(HANG_S) == -number
            assert job.stderr() == "keelrun: killed by a signal of its own; the job goes on without it: keelctl attach %s\n" % job.id()
            watch = subprocess.Popen([KEELCTL, "attach", job.id()], stdout=subprocess.PIPE)
            watch.stdout.readline()
            job.go()
            watch.communicate(timeout=HANG_S)
            assert watch.returncode == 0
            job.check_leftovers()


def test_end_of_attach_is_not_the_jobs():
    with Listeners() as job:
        job.ready()
        watch = subprocess.Popen([KEELCTL, "attach", job.id()], stdout=subprocess.PIPE)
        watch.stdout.readline()
        watch.send_signal(signal.SIGINT)
        assert watch.wait(HANG_S) == -signal.SIGINT
        job.go()
        assert job.wait() == 0


# ---- stop and go on

def is_stopped(pid):
    return state_of(pid) == "T"


def pids_of(status):
    """Of ranks and standbys that live; of agents."""
    nodes = status["nodes"].values()
    return [r["pid"] for n in nodes for r in n["ranks"] if r["state"] in ("running", "standby")], [n["agent_pid"] for n in nodes]


def test_ctrl_z_stops_ranks_and_no_agent():
    with Listeners() as job:
        ranks, agents = pids_of(job.ready())
        job.process.send_signal(signal.SIGTSTP)
        for pid in ranks + [job.process.pid]:
            wait_for(lambda pid=pid: is_stopped(pid), "process %d to stop" % pid)
        time.sleep(2)  # longer than a silent node has
        assert not [pid for pid in agents if is_stopped(pid)]
        job.go()
        job.process.send_signal(signal.SIGCONT)
        assert job.wait() == 0 and job.stderr() == "", job.stderr()


def test_job_of_keel_that_was_stopped_loses_nobody():
    for nodes, spares in ((2, 0), (3, 1)):
        with Cluster(nodes, [SUM, str(TASKS), str(ROUNDS), str(COMPUTE_US)], spares=spares) as job:
            job.id()
            assert job.started() and job.until(lambda c: c.phase() >= 2, "round 2"), job.stderr()
            job.wait_ranks(nodes + spares)
            ranks, agents = pids_of(job.status())
            for _ in range(2):
                job.process.send_signal(signal.SIGTSTP)
                for pid in ranks + [job.process.pid]:
                    wait_for(lambda pid=pid: is_stopped(pid) or not alive(pid), "process %d to stop" % pid)
                time.sleep(2)
                job.process.send_signal(signal.SIGCONT)
                wait_for(lambda: not is_stopped(job.process.pid), "keelrun to go on")
            assert job.wait() == 0 and job.stderr() == "", job.stderr()
            assert job.stdout().splitlines() == [RESULT] * nodes


def test_rank_that_is_started_while_the_job_is_stopped_is_stopped_too():
    with Cluster(2, [SUM, str(TASKS), str(ROUNDS), str(COMPUTE_US)]) as job:
        job.id()
        assert job.started() and job.until(lambda c: c.phase() >= 2, "round 2"), job.stderr()
        ranks, _ = pids_of(job.status())
        job.process.send_signal(signal.SIGTSTP)
        for pid in ranks + [job.process.pid]:
            wait_for(lambda pid=pid: is_stopped(pid), "process %d to stop" % pid)
        os.kill(ranks[0], signal.SIGKILL)

        def others():
            now, _ = pids_of(job.status())
            return [pid for pid in now if pid not in ranks]
        wait_for(others, "another process")
        wait_for(lambda: all(is_stopped(pid) for pid in others()), "it to be stopped")
        job.process.send_signal(signal.SIGCONT)
        assert job.wait() == 0 and job.stdout().splitlines() == [RESULT] * 2, (job.stdout(), job.stderr())


def test_stopped_job_can_be_ended():
    def by_keelctl(job):
        assert subprocess.run([KEELCTL, "stop", job.id()], timeout=HANG_S).returncode == 0
        job.process.send_signal(signal.SIGCONT)

    def by_signal(job):
        job.process.send_signal(signal.SIGTERM)
        job.process.send_signal(signal.SIGCONT)
    polite = [sys.executable, "-c", """import os, signal, sys, time
def end(number, frame):
    print("ended in order", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
while True:
    time.sleep(1)
"""]
    for way, code in ((by_keelctl, 143), (by_signal, 143)):
        with Listeners(program=polite) as job:
            ranks, _ = pids_of(job.ready())
            job.process.send_signal(signal.SIGTSTP)
            for pid in ranks + [job.process.pid]:
                wait_for(lambda pid=pid: is_stopped(pid), "process %d to stop" % pid)
            way(job)
            assert job.wait() == code, job.stderr()
            assert job.stdout().count("ended in order") == 2, job.stdout()


def test_stopped_job_goes_on_when_keelrun_is_killed():
    with Listeners() as job:
        ranks, agents = pids_of(job.ready())
        job.process.send_signal(signal.SIGTSTP)
        for pid in ranks + [job.process.pid]:
            wait_for(lambda pid=pid: is_stopped(pid), "process %d to stop" % pid)
        job.process.kill()
        for pid in ranks:
            wait_for(lambda pid=pid: not is_stopped(pid), "rank %d to go on" % pid)
        job.go()
        for pid in agents:
            wait_for(lambda pid=pid: not alive(pid), "the job to end")


def test_terminal_in_use_by_others_stops_keelrun_alone():
    for number in (signal.SIGTTIN, signal.SIGTTOU, signal.SIGSTOP):
        if number != signal.SIGSTOP and os.getpgid(0) == os.getsid(0):
            continue  # of an orphaned group these stop nobody
        with Listeners() as job:
            ranks, _ = pids_of(job.ready())
            os.kill(job.process.pid, number)
            time.sleep(0.3)
            assert not [pid for pid in ranks if is_stopped(pid)]
            job.go()
            for pid in ranks:
                wait_for(lambda pid=pid: not alive(pid), "the ranks to end")
            job.process.send_signal(signal.SIGCONT)
            assert job.wait() == 0


# ---- what is sent to all processes of a step

def test_warnings_to_agents_and_stubs_are_not_felt():
    with Listeners() as job:
        nodes = job.ready()["nodes"].values()
        for node in nodes:
            for number in FORWARDED + [signal.SIGHUP, signal.SIGQUIT, signal.SIGTSTP]:
                os.kill(node["agent_pid"], number)
                os.kill(node["stub_pid"], number)
        time.sleep(1)
        assert all(alive(pid) for node in nodes for pid in (node["agent_pid"], node["stub_pid"]))
        job.go()
        assert job.wait() == 0 and job.stderr() == "", job.stderr()


keeltest.main(globals())
