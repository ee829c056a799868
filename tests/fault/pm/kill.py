"""Killing and freezing each of the processes around a job. The programs are plain ones: what matters is that the job
goes on or ends as it should, and that nothing stays."""
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../lib"))
import keeltest
from keeltest import HANG_S, KEELCTL, Job, alive, wait_for

# Prints a line, waits until the file "go" in $DIR exists, prints another one.
PATIENT = ["sh", "-c", 'echo begin $KEEL_RANK; while [ ! -e "$DIR/go" ]; do sleep 0.02; done; echo end $KEEL_RANK']
RANKS = 3


class Patient(Job):
    """A job of three nodes that ends only when told."""

    def __init__(self, options=(), program=None, where=("--nodes", str(RANKS)), **kw):
        self.place = tempfile.TemporaryDirectory(prefix="keel-test-")
        super().__init__(["-n", str(RANKS)] + list(where) + list(options) + (program or PATIENT),
                         env={"DIR": self.place.name}, **kw)

    def begun(self):
        self.id()
        wait_for(lambda: self.stdout().count("begin") == RANKS, "all ranks to begin")
        return self.status()

    def go(self):
        open(os.path.join(self.place.name, "go"), "w").close()

    def __exit__(self, *args):
        try:
            super().__exit__(*args)
        finally:
            self.place.cleanup()


def attached(job):
    """keelctl attach, once it is there: it shows what was said before; the rest comes by attached.rest()."""
    watch = subprocess.Popen([KEELCTL, "attach", job.id()], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    seen = [watch.stdout.readline() for _ in range(RANKS)]

    def rest():
        out, err = watch.communicate(timeout=HANG_S)
        return watch.returncode, (b"".join(seen) + out).decode(), err
    watch.rest = rest
    return watch


def kill(pid, number=signal.SIGKILL):
    os.kill(pid, number)


def expect_whole(job):
    job.go()
    code = job.wait()
    assert code == 0, (code, job.stderr())
    assert sorted(job.stdout().splitlines()) == sorted("%s %d" % (w, r) for w in ("begin", "end") for r in range(RANKS))


def is_pending(pid, number):
    """Sent, and not taken yet: another one would be the same."""
    with open("/proc/%d/status" % pid) as f:
        return any(int(line.split()[1], 16) >> number - 1 & 1 for line in f if line.startswith(("SigPnd", "ShdPnd")))


def parent(pid):
    with open("/proc/%d/stat" % pid) as f:
        return int(f.read().rsplit(")", 1)[1].split()[1])


FAKE_SSH = """#!/bin/sh
# like ssh: options, host, command; and like ssh it stays as long as that runs
while [ "${1#-}" != "$1" ]; do shift; done
shift
eval "$*"
"""


class Reached(Patient):
    """By a launcher that is a process of its own."""

    def __init__(self):
        self.tools = tempfile.TemporaryDirectory(prefix="keel-test-")
        path = os.path.join(self.tools.name, "ssh")
        with open(path, "w") as f:
            f.write(FAKE_SSH)
        os.chmod(path, 0o755)
        hosts = ",".join("127.0.1.%d" % (k + 2) for k in range(RANKS))
        super().__init__(where=["--hosts", hosts, "--launcher-exec", path])

    def __exit__(self, *args):
        try:
            super().__exit__(*args)
        finally:
            self.tools.cleanup()


def test_mpiexec_does_not_stay():
    with Reached() as job:
        job.begun()
        names = [keeltest.command_of(p) for p in keeltest.processes_with(job.tag)]
        assert names and not [name for name in names if name.startswith("mpiexec")], names
        expect_whole(job)


def test_kill_of_each_launcher_is_not_felt():
    for node in range(RANKS):
        with Reached() as job:
            of_node = job.begun()["nodes"][node]
            assert of_node["launcher_pid"] == parent(of_node["stub_pid"]), of_node
            kill(of_node["launcher_pid"])
            time.sleep(0.2)
            expect_whole(job)


def test_kill_of_each_stub_is_not_felt():
    for node in range(RANKS):
        with Patient() as job:
            kill(job.begun()["nodes"][node]["stub_pid"])
            time.sleep(0.2)
            expect_whole(job)


def test_kill_of_all_launchers_and_stubs_is_not_felt():
    with Reached() as job:
        nodes = job.begun()["nodes"].values()
        for node in nodes:
            for pid in (node["launcher_pid"], node["stub_pid"]):
                kill(pid)
        time.sleep(0.2)
        expect_whole(job)


def test_kill_of_keelrun_leaves_the_job_and_attach_finds_it():
    with Patient() as job:
        job.begun()
        kill(job.process.pid)
        job.process.wait()
        status = wait_for(lambda: next((s for s in [job.status()] if not s["keelrun"]), None), "the agents to miss keelrun")
        assert [status["nodes"][k]["ranks"][0]["state"] for k in range(RANKS)] == ["running"] * RANKS
        watch = attached(job)
        job.go()
        code, out, err = watch.rest()
        assert code == 0, err
        assert sorted(out.splitlines()) == sorted("%s %d" % (w, r) for w in ("begin", "end") for r in range(RANKS))
        job.check_leftovers()


def test_kill_of_keelrun_then_of_all_launchers_leaves_the_job():
    with Patient() as job:
        nodes = job.begun()["nodes"].values()
        kill(job.process.pid)
        job.process.wait()
        for node in nodes:
            kill(node["launcher_pid"])
        time.sleep(0.3)
        assert len([r for n in job.status()["nodes"].values() for r in n["ranks"] if r["state"] == "running"]) == RANKS
        job.go()
        job.check_leftovers()


def test_attach_gives_the_exit_code_after_kill_of_keelrun():
    failing = ["sh", "-c", PATIENT[2] + '; test $KEEL_RANK != 1 || exit 5']
    with Patient(program=failing) as job:
        job.begun()
        kill(job.process.pid)
        job.process.wait()
        watch = attached(job)
        job.go()
        code, _, err = watch.rest()
        assert code == 5 and b"rank 1" in err, (code, err)
        job.check_leftovers()


def test_mpi_program_finalizes_after_kill_of_keelrun():
    program = os.environ.get("KEEL_MPI_SUM", "")
    if not program:
        raise keeltest.Skip("no mpicc")
    with Patient(program=[program, "wait"]) as job:
        job.begun()
        kill(job.process.pid)
        job.process.wait()
        watch = attached(job)
        job.go()
        code, out, err = watch.rest()
        assert code == 0, err
        assert out.count("sum 3") == RANKS, out
        job.check_leftovers()


def test_kill_of_an_agent_takes_its_ranks_and_nothing_else():
    with Patient(["--on-failure", "degrade"]) as job:
        node = job.begun()["nodes"][1]
        kill(node["agent_pid"])
        wait_for(lambda: not alive(node["ranks"][0]["pid"]), "the agent's rank to die")
        job.go()
        code = job.wait()
        assert code == 0, (code, job.stderr())
        assert sorted(job.stdout().splitlines()) == ["begin 0", "begin 1", "begin 2", "end 0", "end 2"]


def test_kill_of_a_rank_degraded_is_no_failure():
    with Patient(["--on-failure", "degrade"]) as job:
        kill(job.begun()["nodes"][2]["ranks"][0]["pid"])
        time.sleep(0.1)
        job.go()
        assert job.wait() == 0, job.stderr()


def test_kill_of_a_rank_in_abort_mode_ends_the_job():
    with Patient(["--on-failure", "abort"]) as job:
        kill(job.begun()["nodes"][2]["ranks"][0]["pid"])
        assert job.wait() == 128 + 9
        assert len(job.stderr().splitlines()) == 1 and "rank 2" in job.stderr(), job.stderr()


def test_kill_node_of_keelctl_kills_all_of_it_at_once():
    with Patient(["--on-failure", "degrade"]) as job:
        node = job.begun()["nodes"][0]
        told = subprocess.run([KEELCTL, "kill-node", job.id(), "0"], capture_output=True, timeout=HANG_S)
        assert told.returncode == 0, told.stderr
        for pid in (node["agent_pid"], node["stub_pid"], node["ranks"][0]["pid"]):
            wait_for(lambda: not alive(pid), "process %d to die" % pid)
        job.go()
        assert job.wait() == 0, job.stderr()
        assert sorted(job.stdout().splitlines())[-2:] == ["end 1", "end 2"]


def test_signals_to_keelrun_end_everything():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        with Patient() as job:
            job.begun()
            job.process.send_signal(number)
            assert job.wait() == 128 + number
            assert len(job.stderr().splitlines()) == 1, job.stderr()


def test_second_interrupt_is_harder():
    stubborn = ["sh", "-c", "trap 'echo no' TERM; trap '' INT; echo begin $KEEL_RANK; while :; do sleep 0.02; done"]
    for _ in range(5):
        with Patient(program=stubborn) as job:
            job.begun()
            job.process.send_signal(signal.SIGINT)
            wait_for(lambda: not is_pending(job.process.pid, signal.SIGINT), "keelrun to take the first")
            job.process.send_signal(signal.SIGINT)
            assert job.wait() == 130
            if {e["asked"] for e in job.events("kill")} == {True}:
                return
    raise AssertionError("the ranks always had their second of grace")


def test_interrupt_ends_a_frozen_agent_too():
    with Patient(["--on-failure", "degrade"]) as job:
        node = job.begun()["nodes"][1]
        kill(node["agent_pid"], signal.SIGSTOP)
        job.process.send_signal(signal.SIGINT)
        assert job.wait() == 130
        wait_for(lambda: not alive(node["agent_pid"]), "the killed agent to be gone")


def test_interrupt_during_the_launch_leaves_nothing():
    seed = int(os.environ.get("KEEL_SEED", time.time_ns() % 1000000))
    print("        seed %d" % seed)
    chance = random.Random(seed)
    for _ in range(12):
        with Patient(["--spares", "1"]) as job:
            time.sleep(chance.uniform(0, 0.15))
            job.process.send_signal(signal.SIGINT)
            assert job.wait() in (130, -2), job.stderr()


def test_kill_of_keelrun_during_the_launch_leaves_nothing():
    seed = int(os.environ.get("KEEL_SEED", time.time_ns() % 1000000))
    print("        seed %d" % seed)
    chance = random.Random(seed)
    for _ in range(12):
        with Patient() as job:
            job.go()
            time.sleep(chance.uniform(0, 0.2))
            job.process.kill()
            job.process.wait()
            job.check_leftovers()


def test_kill_of_everything_at_once_leaves_nothing():
    with Patient(["--spares", "1"]) as job:
        job.begun()
        for pid in keeltest.processes_with(job.tag):
            try:
                kill(pid)
            except ProcessLookupError:
                pass  # it died with another
        job.process.wait()
        job.check_leftovers()


def test_keelctl_stop_ends_the_job_with_143():
    with Patient() as job:
        job.begun()
        assert subprocess.run([KEELCTL, "stop", job.id()], timeout=HANG_S).returncode == 0
        assert job.wait() == 143
        assert len(job.stderr().splitlines()) == 1 and "stopped" in job.stderr(), job.stderr()


def test_keelctl_does_not_hang_on_a_frozen_agent():
    with Patient(["--on-failure", "degrade"]) as job:
        node = job.begun()["nodes"][2]
        kill(node["agent_pid"], signal.SIGSTOP)
        waiting = []
        for _ in range(25):  # more than the queue of its console holds
            waiting.append(socket.socket(socket.AF_UNIX))
            waiting[-1].setblocking(False)
            try:
                waiting[-1].connect("\0keel/%s/2" % job.id())
            except BlockingIOError:
                break
        else:
            raise AssertionError("the queue never filled")
        status = job.status()
        assert status["nodes"][2]["state"] == "silent" and status["nodes"][0]["state"] == "running", status
        job.process.send_signal(signal.SIGINT)
        job.wait()
        for s in waiting:
            s.close()


def test_keelctl_stop_works_without_keelrun():
    with Patient() as job:
        job.begun()
        kill(job.process.pid)
        job.process.wait()
        assert subprocess.run([KEELCTL, "stop", job.id()], timeout=HANG_S).returncode == 0
        job.check_leftovers()


def test_frozen_keelrun_does_not_stop_the_job():
    with Patient() as job:
        status = job.begun()
        kill(job.process.pid, signal.SIGSTOP)
        job.go()
        for node in status["nodes"].values():
            wait_for(lambda: not alive(node["ranks"][0]["pid"]), "the ranks to end")
        time.sleep(0.2)
        kill(job.process.pid, signal.SIGCONT)
        assert job.wait() == 0
        assert sorted(job.stdout().splitlines())[-RANKS:] == ["end %d" % r for r in range(RANKS)]


keeltest.main(globals())
