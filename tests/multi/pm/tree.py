"""More nodes than keelrun starts itself: agents that have joined start the others, as a tree."""
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../lib"))
import keeltest
from keeltest import HANG_S, IS_ROOT, KEELCTL, Job, Skip, alive, processes_with, run, state_of, wait_for

NODES = 7
TREE = ["-n", str(NODES), "--nodes", str(NODES), "--fan-out", "2"]
WAIT = ["sh", "-c", "echo begun; read line <$FIFO; echo $KEEL_NODE"]


def parent(pid):
    with open("/proc/%d/stat" % pid) as f:
        return int(f.read().rsplit(")", 1)[1].split()[1])


def sockets_of(pid):
    found = set()
    for fd in os.listdir("/proc/%d/fd" % pid):
        try:
            found.add(os.readlink("/proc/%d/fd/%s" % (pid, fd)))
        except OSError:
            pass
    return {link for link in found if link.startswith(("socket:", "anon_inode:"))}


class Held(Job):
    """A job whose ranks wait until they are let go."""

    def __init__(self, options=(), fault="", **kw):
        self.place = tempfile.TemporaryDirectory(prefix="keel-test-")
        self.fifo = os.path.join(self.place.name, "go")
        os.mkfifo(self.fifo)
        super().__init__(TREE + list(options) + WAIT, env={"FIFO": self.fifo, "KEEL_FAULT": fault}, **kw)

    def begun(self):
        self.wait_ranks(NODES)
        return self.status()["nodes"], self.events("started")[0]["started_by"]

    def go(self):
        """For those that read, and those that will: a reader's end of ours keeps the pipe open."""
        self.reader = os.open(self.fifo, os.O_RDONLY | os.O_NONBLOCK)
        with open(self.fifo, "w") as f:
            f.write("\n" * NODES)
            f.flush()
            wait_for(lambda: not any(alive(r["pid"]) for n in self.known.values() for r in n["ranks"]), "the ranks to end")
        os.close(self.reader)

    def __exit__(self, *args):
        try:
            super().__exit__(*args)
        finally:
            self.place.cleanup()


def expect_tree(by):
    assert by[:2] == [-1, -1] and min(by[2:]) >= 0, by
    assert max(by.count(k) for k in range(NODES)) <= 2, by
    assert all(starter < node for node, starter in enumerate(by)), by


def expect_output(job, nodes=range(NODES)):
    assert job.wait() == 0, job.stderr()
    assert sorted(w for w in job.stdout().split() if w != "begun") == sorted(map(str, nodes)), job.stdout()


def test_agents_start_what_keelrun_does_not():
    for bed in ["loopback", "netns"] if IS_ROOT else ["loopback"]:
        with Held(["--bed", bed]) as job:
            job.known, by = job.begun()
            expect_tree(by)
            for node, starter in enumerate(by):
                started = parent(job.known[node]["launcher_pid"])
                assert started == (job.process.pid if starter < 0 else job.known[starter]["agent_pid"]), (node, starter, started)
            job.go()
            expect_output(job)


def test_as_many_nodes_as_the_fan_out_are_keelruns():
    with Job(["-n", "3", "--nodes", "2", "--spares", "1", "--fan-out", "3", "true"]) as job:
        assert job.wait() == 0
        assert job.events("started")[0]["started_by"] == [-1] * 3


def test_launcher_of_an_agent_has_nothing_of_it():
    with Held(before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (200, 4096))) as job:
        job.known, by = job.begun()
        for node, starter in enumerate(by):
            if starter >= 0:
                both = sockets_of(job.known[node]["launcher_pid"]) & sockets_of(job.known[starter]["agent_pid"])
                assert not [link for link in both if link.startswith("socket:")], both
            with open("/proc/%d/limits" % job.known[node]["ranks"][0]["pid"]) as f:
                line = next(text for text in f if text.startswith("Max open files"))
            assert line.split()[3] == "200", "ranks keep the user's limit: " + line
        job.go()
        expect_output(job)


def test_launcher_is_known_though_who_tells_of_it_stands_still():
    with Held(fault="launch.telling:1:stop:node=0") as job:
        def standing():
            return [pid for pid in processes_with(job.tag) if state_of(pid) == "T"]
        agent = wait_for(standing, "an agent that starts another one to stand still")[0]
        time.sleep(0.5)  # in which the other one would come, if it had been let go
        os.kill(agent, signal.SIGCONT)
        job.known, by = job.begun()
        expect_tree(by)
        assert all(n["launcher_pid"] > 0 for n in job.known.values()), job.known
        job.go()
        expect_output(job)


def test_death_of_an_agent_leaves_the_nodes_that_it_has_started():
    for how in ("kill-node", "agent"):
        with Held(["--on-failure", "degrade"]) as job:
            job.known, by = job.begun()
            victim = by[-1]
            if how == "agent":
                os.kill(job.known[victim]["agent_pid"], signal.SIGKILL)
            else:
                assert subprocess.run([KEELCTL, "kill-node", job.id(), str(victim)], capture_output=True, timeout=HANG_S).returncode == 0
            wait_for(lambda: job.events("view"), "the view without node %d" % victim)
            assert [e["dead_node"] for e in job.events("view") if e.get("dead_node", -1) >= 0][0] == victim
            wait_for(lambda: not alive(job.known[victim]["stub_pid"]), "the stub to end what is left")
            assert all(alive(n["agent_pid"]) and alive(n["ranks"][0]["pid"]) for k, n in job.known.items() if k != victim)
            job.go()
            expect_output(job, [k for k in range(NODES) if k != victim])


def test_death_of_launchers_and_keelrun_is_not_felt():
    with Held() as job:
        job.known, _ = job.begun()
        stubs = [n["stub_pid"] for n in job.known.values()]
        for pid in [job.process.pid] + [n["launcher_pid"] for n in job.known.values()] + stubs:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        job.process.wait()
        assert all(alive(n["agent_pid"]) and alive(n["ranks"][0]["pid"]) for n in job.known.values())
        watch = subprocess.Popen([KEELCTL, "attach", job.id()], stdout=subprocess.PIPE)
        for _ in range(NODES):
            assert watch.stdout.readline() == b"begun\n"  # it is there
        job.go()
        out = watch.communicate(timeout=HANG_S)[0]
        assert watch.returncode == 0 and sorted(out.split()) == [b"%d" % k for k in range(NODES)], out
        job.check_leftovers()


def test_end_during_the_start_leaves_nothing():
    seed = int(os.environ.get("KEEL_SEED", time.time_ns() % 1000000))
    print("        seed %d" % seed)
    chance = random.Random(seed)
    for number in (signal.SIGINT, signal.SIGKILL) * 4:
        with Job(TREE + ["true"]) as job:
            time.sleep(chance.uniform(0.02, 0.8))
            job.process.send_signal(number)
            job.process.wait()
            job.check_leftovers()


FAKE_SSH = """#!/bin/sh
# like ssh: options, host, command; from a host other than keelrun's one is not let in, or gets no answer
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
read -r starter <"/proc/$PPID/comm"
if [ "$starter" = keeld ]; then
    echo "$host" >>"$CALLS"
    [ "$HOW" = refused ] && { echo "Permission denied (publickey)." >&2; exit 255; }
    [ "$HOW" = silent ] && exec sleep 10000
fi
eval "exec $*"
"""


def by_ssh(how, *options):
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
        path, calls = os.path.join(directory, "ssh"), os.path.join(directory, "calls")
        with open(path, "w") as f:
            f.write(FAKE_SSH)
        os.chmod(path, 0o755)
        open(calls, "w").close()
        hosts = ",".join("127.0.1.%d" % (k + 1) for k in range(5))
        result = run(["-n", "5", "--hosts", hosts, "--fan-out", "2", "--launcher", "ssh", "--launcher-exec", path, *options,
                      "sh", "-c", "echo $KEEL_NODE"], env={"CALLS": calls, "HOW": how})
        with open(calls) as f:
            return result, f.read().split()


def test_hosts_are_reached_from_other_hosts():
    (code, out, err), calls = by_ssh("good")
    assert (code, sorted(out.split()), err) == (0, list("01234"), ""), (code, out, err)
    assert sorted(calls) == ["127.0.1.3", "127.0.1.4", "127.0.1.5"], calls


def test_what_an_agent_cannot_reach_keelrun_starts():
    (code, out, err), calls = by_ssh("refused")
    assert code == 0 and sorted(out.split()) == list("01234"), (code, out, err)
    assert calls, "no agent has tried"


def test_host_that_does_not_answer_an_agent_is_started_by_keelrun_after_its_time():
    for limit in ("3", "30", "250"):  # for the first agents to join, too: on a slow machine nothing is tried in the shortest
        (code, out, err), calls = by_ssh("silent", "--start-timeout", limit)
        if code == 0 and calls:
            break
    assert code == 0 and sorted(out.split()) == [str(r) for r in range(len(out.split()))], (code, out, err)
    assert calls, "no agent has tried"


def test_what_a_dead_agent_was_starting_does_not_stay():
    """The agent whose ssh gets no answer is killed before the start. keelrun, which would find what is left on this machine, stands still."""
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
        path, calls = os.path.join(directory, "ssh"), os.path.join(directory, "calls")
        with open(path, "w") as f:
            f.write(FAKE_SSH)
        os.chmod(path, 0o755)
        hosts = ",".join("127.0.1.%d" % (k + 1) for k in range(3))
        with Job(["-n", "3", "--hosts", hosts, "--fan-out", "1", "--launcher", "ssh", "--launcher-exec", path, "true"],
                 env={"CALLS": calls, "HOW": "silent"}) as job:
            wait_for(lambda: os.path.exists(calls), "an agent to start another host")

            def hanging():
                return [p for p in processes_with(job.tag) if keeltest.command_of(p) == "sleep 10000"]
            hung = wait_for(hanging, "an ssh without an answer")[0]
            agent = wait_for(lambda: keeltest.command_of(parent(hung)).endswith("keeld") and parent(hung), "mpiexec.hydra to be gone")
            job.process.send_signal(signal.SIGSTOP)
            os.kill(agent, signal.SIGKILL)
            wait_for(lambda: not alive(hung), "the stub to end what its agent was starting")
            job.process.send_signal(signal.SIGCONT)
            assert job.wait() == 1 and "its agent ended before the start" in job.stderr(), job.stderr()


keeltest.main(globals())
