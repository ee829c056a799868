"""Port scans, garbage and strangers at the listeners of a job."""
import os
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../lib"))
import keeltest
from keeltest import HANG_S, IS_ROOT, KEELCTL, Job, Skip, alive, processes_with, run, wait_for


def listeners_of(pids):
    """(address, port) of the TCP listeners of these processes (loopback bed)."""
    inodes = set()
    for pid in pids:
        try:
            for fd in os.listdir("/proc/%d/fd" % pid):
                link = os.readlink("/proc/%d/fd/%s" % (pid, fd))
                if link.startswith("socket:["):
                    inodes.add(link[8:-1])
        except OSError:
            pass
    found = []
    with open("/proc/net/tcp") as f:
        for line in list(f)[1:]:
            part = line.split()
            if part[3] == "0A" and part[9] in inodes:
                address, port = part[1].split(":")
                found.append((socket.inet_ntoa(struct.pack("<I", int(address, 16))), int(port, 16)))
    return found


def own_listeners(job, ranks=2):
    """keelrun's and the agents'."""
    status = job.wait_ranks(ranks)
    agents = [n["agent_pid"] for n in status["nodes"].values()]
    run, theirs = listeners_of([job.process.pid]), listeners_of(agents)
    assert len(run) == 2, run  # for agents that come, and for those that come again
    return run + theirs


def as_nobody(function):
    """In a process of another user; its result must be true."""
    if not IS_ROOT:
        raise Skip("needs root to become another user")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
            code = 0 if function() else 1
        except BaseException as why:
            print("as nobody: %r" % why, file=sys.stderr)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def limited(soft, hard=None):
    """For Job(before=...): limits of descriptors."""
    hard = hard or resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


class Held(Job):
    """Two ranks that print their numbers when they are let go."""

    def __init__(self):
        self.place = tempfile.TemporaryDirectory(prefix="keel-test-")
        self.file = os.path.join(self.place.name, "go")
        super().__init__(["-n", "2", "--nodes", "2", "sh", "-c", 'until [ -e "$GO" ]; do sleep 0.02; done; echo $KEEL_RANK'],
                         env={"GO": self.file})

    def expect_undisturbed(self):
        open(self.file, "w").close()
        assert self.wait() == 0, self.stderr()
        assert sorted(self.stdout().split()) == ["0", "1"], self.stdout()

    def close(self):
        super().close()
        self.place.cleanup()


GARBAGE = [b"", b"\0", b"GET / HTTP/1.0\r\n\r\n", b"KEEL", b"KEEL-PM3", b"KEEL-PM3" + b"\0" * 40,
           b"KEEL-PM3" + b"\xff" * 44 + b"x" * 100, b"cmd=init\n", os.urandom(4096), b"\xff" * 100000,
           b"KEEL-PM3" + os.urandom(40) + struct.pack("<I", 17) + os.urandom(17)]


def poke(address, data, wait=0.0):
    s = socket.socket()
    s.settimeout(HANG_S)
    try:
        s.connect(address)
        s.sendall(data)
        if wait:
            time.sleep(wait)
    except OSError:
        pass
    return s


def test_garbage_and_port_scan_are_dropped_and_logged():
    with Held() as job:
        addresses = own_listeners(job)
        for address in addresses:
            assert address[0].startswith("127.0.0."), "listens on more than the job's interface: %s" % (address,)
            for data in GARBAGE:
                poke(address, data).close()
            for _ in range(50):
                poke(address, b"").close()
        wait_for(lambda: re.search("keelrun: warn:.* dropped a connection from 127.0.0.1", job.stderr()), "keelrun to say so")
        job.expect_undisturbed()


def test_connections_that_stay_silent_are_dropped():
    with Held() as job:
        job.wait_ranks(2)
        address = listeners_of([job.process.pid])[0]
        silent = [poke(address, b"KEEL" if i % 2 else b"") for i in range(100)]
        for s in silent:
            try:
                assert s.recv(1) == b"", "an answer to silence"  # the job goes on: it is not its end
            except ConnectionResetError:
                pass
            s.close()
        job.expect_undisturbed()


def test_join_is_not_disturbed_by_a_flood_of_strangers():
    with Job(["-n", "2", "--nodes", "2", "sh", "-c", "sleep 1; echo $KEEL_RANK"]) as job:
        address = wait_for(lambda: listeners_of([job.process.pid]), "keelrun to listen")[0]
        flood = [poke(address, b"KEEL-PM3" + os.urandom(16)) for _ in range(200)]
        assert job.wait() == 0, job.stderr()
        for s in flood:
            s.close()


def test_console_refuses_other_users():
    if not IS_ROOT:
        raise Skip("needs root to become another user")
    with Job(["-n", "1", "--nodes", "1", "sh", "-c", "read x; echo done"]) as job:
        job.wait_ranks(1)
        child = os.fork()
        if child == 0:
            answer = b"?"
            try:
                os.setgroups([])
                os.setresgid(65534, 65534, 65534)
                os.setresuid(65534, 65534, 65534)
                s = socket.socket(socket.AF_UNIX)
                s.connect("\0keel/%s/0" % job.id())
                s.sendall(struct.pack("<IB", 1, 64))
                answer = s.recv(100)
            except ConnectionError:
                answer = b""
            finally:
                os._exit(0 if answer == b"" else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "a stranger got an answer"
        assert job.wait() == 0
        assert job.stderr() == "", "an ordinary keelctl list of somebody else is no reason to warn: " + job.stderr()


def test_another_user_can_neither_see_nor_stop_the_job():
    with Job(["-n", "1", "--nodes", "1", "sh", "-c", "read x; echo done"]) as job:
        job.wait_ranks(1)
        pids = keeltest.processes_with(job.tag)

        def attempts():
            for words in (["status", job.id()], ["stop", job.id()], ["verify", job.id()], ["attach", job.id()],
                          ["kill-node", job.id(), "0"]):
                tried = subprocess.run([KEELCTL, *words], capture_output=True, timeout=HANG_S)
                assert tried.returncode == 1 and tried.stdout == b"", (words, tried)
            for pid in pids:
                for what in ("environ", "mem", "fd"):
                    try:
                        os.stat("/proc/%d/%s/0" % (pid, what)) if what == "fd" else open("/proc/%d/%s" % (pid, what), "rb").read(1)
                    except OSError:
                        continue
                    raise AssertionError("/proc/%d/%s can be read" % (pid, what))
            return True
        assert as_nobody(attempts)
        assert job.wait() == 0 and job.stdout() == "done\n", job.stderr()


def test_too_many_connections_push_out_the_address_that_has_most():
    """At keelrun's listener."""
    with Job(["-n", "1", "--nodes", "1", "sh", "-c", "read x; echo done"]) as job:
        job.wait_ranks(1)
        address = listeners_of([job.process.pid])[0]
        few = socket.socket()
        few.bind(("127.9.9.9", 0))
        few.connect(address)
        many = []

        def said():
            many.extend(poke(address, b"") for _ in range(100))
            return "too many without a proof" in job.stderr()
        wait_for(said, "keelrun to say so")
        told = [line for line in job.stderr().splitlines() if "too many without a proof" in line]
        assert all("from 127.0.0.1:" in line for line in told), told
        for s in many + [few]:
            s.close()
        assert job.wait() == 0 and job.stdout() == "done\n", job.stderr()


def test_refused_connections_are_events_at_powers_of_two():
    """Hellos that are none, at the listeners for data."""
    with Job(["-n", "2", "--nodes", "2", os.environ["KEEL_REPLAY"]]) as job:
        wait_for(lambda: job.stdout() == "put 1\n", "the first put")
        for address in own_listeners(job):
            for _ in range(40):
                poke(address, b"GET / HTTP/1.0\r\n\r\n").close()
        for _ in range(2):
            job.process.stdin.write(b"go\n")
            job.process.stdin.flush()
        assert job.wait() == 0 and "has 2" in job.stdout(), job.stderr()
        counts = [e["count"] for e in job.events("refused")]
        assert all(n & (n - 1) == 0 for n in counts), counts


def test_console_survives_garbage():
    with Job(["-n", "1", "--nodes", "1", "sh", "-c", "read x; echo done"]) as job:
        job.wait_ranks(1)
        for data in (b"\0\0\0\0", b"\xff\xff\xff\xff", os.urandom(2000), struct.pack("<IB", 5, 35) + b"{{{{",
                     struct.pack("<IB", 3, 35) + b"{}", struct.pack("<IB", 1, 200)):
            if data.startswith(struct.pack("<IB", 3, 35)):
                continue  # that is a well-formed request to stop
            s = socket.socket(socket.AF_UNIX)
            s.connect("\0keel/%s/0" % job.id())
            s.sendall(data)
            s.close()
        assert job.wait() == 0 and job.stdout() == "done\n", job.stderr()


def test_idle_connections_keep_no_death_secret_and_cause_none():
    options = ["-n", "4", "--nodes", "4", "--on-failure", "degrade", "sh", "-c", "exec sleep 10000"]
    with Job(options, before=limited(1024)) as job:
        nodes = job.wait_ranks(4)["nodes"]
        listeners = listeners_of([n["agent_pid"] for n in nodes.values()])
        assert len(listeners) == 12, listeners
        idle = [poke(address, b"") for _ in range(400) for address in listeners]
        os.kill(nodes[3]["ranks"][0]["pid"], signal.SIGKILL)
        wait_for(lambda: [e for e in job.events("view") if e.get("dead_rank") == 3], "the rank to leave the view")
        os.kill(nodes[2]["agent_pid"], signal.SIGKILL)
        wait_for(lambda: [e for e in job.events("view") if e.get("dead_node") == 2], "the node to leave the view")
        idle += [poke(address, b"") for _ in range(100) for address in listeners if address[0] != "127.0.0.4"]
        os.kill(nodes[1]["ranks"][0]["pid"], signal.SIGKILL)
        wait_for(lambda: [e for e in job.events("view") if e.get("dead_rank") == 1], "the other rank to leave the view")
        assert {e["dead_node"] for e in job.events("view") if "dead_node" in e} == {2}, job.events("view")
        evidence = {e["evidence"] for e in job.events("verdict") if e["about"] == 2}
        assert evidence and "silent" not in evidence, "the dead agent was waited for: %s" % job.events("verdict")
        for s in idle:
            s.close()
        assert subprocess.run([KEELCTL, "stop", job.id()], timeout=HANG_S).returncode == 0
        assert job.wait() == 143, job.stderr()
        assert len(job.stderr()) < 5000, job.stderr()


def test_forty_ranks_start_with_few_descriptors():
    with Job(["-n", "40", "--nodes", "1", "sh", "-c", "ulimit -Sn"], before=limited(150)) as job:
        assert job.wait() == 0, job.stderr()
        assert job.stdout().split() == ["150"] * 40, "ranks keep the limit of the user: " + job.stdout()


def test_too_few_descriptors_are_one_line():
    with Job(["-n", "40", "--nodes", "1", "true"], before=limited(150, 150)) as job:
        assert job.wait() == 1
        assert len(job.stderr().splitlines()) == 1 and "descriptors" in job.stderr() and "150" in job.stderr(), job.stderr()


def test_ranks_inherit_what_they_need_and_no_more():
    code, out, err = run(["-n", "1", "ls", "-l", "/proc/self/fd"])
    # three standard ones, that of the folder, KEEL_FD and PMI_FD
    assert code == 0 and out.count("->") == 6 and out.count("socket:") == 2 and out.count("pipe:") == 3, (out, err)


def test_what_a_rank_leaves_running_does_not_hide_its_agents_death():
    with tempfile.NamedTemporaryFile("r") as pids:
        script = "[ $KEEL_NODE = 1 ] && { setsid sleep 10000 & echo $! >%s; }; sleep 10000" % pids.name
        with Job(["-n", "2", "--nodes", "2", "--on-failure", "degrade", "sh", "-c", script]) as job:
            node = job.wait_ranks(2)["nodes"][1]
            left = int(wait_for(pids.read, "the rank's child"))
            os.kill(node["stub_pid"], signal.SIGKILL)  # it would end the child
            os.kill(node["agent_pid"], signal.SIGKILL)
            wait_for(lambda: job.events("view"), "node 1 to leave the view")
            verdict = [e for e in job.events("verdict") if e["about"] == 1]
            assert verdict and verdict[0]["evidence"] != "silent", "it was waited for: %s" % verdict
            assert alive(left)
            os.kill(left, signal.SIGKILL)
            assert subprocess.run([KEELCTL, "stop", job.id()], timeout=HANG_S).returncode == 0
            assert job.wait() == 143, job.stderr()


def test_child_of_another_user_does_not_hold_the_agent():
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
        def job():
            result = subprocess.run([keeltest.KEELRUN, "-n", "1", "sh", "-c", helper + "; exit 0"], capture_output=True, text=True,
                                    timeout=HANG_S, cwd="/")
            print(result.stdout, file=open(directory + "/pid", "w"))
            return result.returncode == 0 and "belongs to another user" in result.stderr and result.stdout.strip().isdigit()
        helper = os.path.join(directory, "other")
        with open(os.environ["KEEL_OTHER"], "rb") as source, open(helper, "wb") as target:
            target.write(source.read())
        os.chmod(directory, 0o777)
        os.chmod(helper, 0o4755)
        helper += " & sleep 0.2"
        ended = as_nobody(job)
        with open(directory + "/pid") as f:
            os.kill(int(f.read()), signal.SIGKILL)
        assert ended


def test_warnings_that_strangers_cause_are_few():
    with Job(["-n", "1", "cat"]) as job:
        for address in own_listeners(job, 1):
            for _ in range(700):
                poke(address, b"garbage that is no protocol of ours").close()
        assert job.wait() == 0
        assert 0 < job.stderr().count("warn:") < 30, job.stderr()
        assert len(job.events_text()) < 10000


def test_keelctl_of_another_user_is_not_worth_a_warning():
    with Job(["-n", "2", "--nodes", "2", "sh", "-c", "echo $KEEL_RANK; cat"]) as job:
        wait_for(lambda: len(job.stdout()) == 4, "the ranks")
        assert as_nobody(lambda: subprocess.run([KEELCTL, "list"], capture_output=True, timeout=HANG_S, check=True).stdout == b"")
        assert job.wait() == 0 and job.stderr() == "", job.stderr()


def phantom(*names):
    """A process of another user that has taken the names of agents' consoles, and takes no connection."""
    ready = os.pipe()
    child = os.fork()
    if child == 0:
        os.setresuid(65534, 65534, 65534)
        held = []
        for name in names:
            s = socket.socket(socket.AF_UNIX)
            s.bind(name)
            s.listen(0)
            queue = [socket.socket(socket.AF_UNIX) for _ in range(2)]
            for q in queue:
                q.setblocking(False)
                q.connect_ex(name)
            held += [s] + queue
        os.write(ready[1], b"x")
        signal.pause()
    os.read(ready[0], 1)
    return child


def test_keelctl_leaves_out_what_belongs_to_another_user():
    if not IS_ROOT:
        raise Skip("needs root to become another user")
    children = [phantom("\0keel/%016x/0" % (0xabc + i)) for i in range(2)]
    try:
        with Job(["-n", "1", "sleep", "10000"]) as job:
            job.wait_ranks(1)
            listed = subprocess.run([KEELCTL, "list"], capture_output=True, text=True, timeout=HANG_S)
            assert "0000000000000ab" not in listed.stdout and job.id() in listed.stdout, listed
            assert subprocess.run([KEELCTL, "stop", job.id()], timeout=HANG_S).returncode == 0
            assert job.wait() == 143
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


def test_keelctl_does_not_look_longer_for_each_name_that_another_user_has_taken():
    if not IS_ROOT:
        raise Skip("needs root to become another user")

    def cpu_s():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime
    child = phantom(*["\0keel/%016x/0" % (0xabcd0000 + i) for i in range(250)])
    try:
        before = cpu_s()
        subprocess.run([KEELCTL, "list"], capture_output=True, timeout=HANG_S)
        assert cpu_s() - before < 1, cpu_s() - before
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def consoles_of(pids):
    """Names in the abstract namespace of sockets that these processes hold."""
    inodes = set()
    for pid in pids:
        try:
            links = [os.readlink("/proc/%d/fd/%s" % (pid, fd)) for fd in os.listdir("/proc/%d/fd" % pid)]
            inodes.update(link[8:-1] for link in links if link.startswith("socket:["))
        except OSError:
            pass
    with open("/proc/net/unix") as f:
        parts = [line.split() for line in list(f)[1:]]
    return [p[7] for p in parts if len(p) > 7 and p[6] in inodes and p[7].startswith("@keel/")]


def test_console_whose_name_another_user_has_taken_is_found():
    if not IS_ROOT:
        raise Skip("needs root to become another user")
    with tempfile.TemporaryDirectory() as place:
        ssh, go = os.path.join(place, "ssh"), os.path.join(place, "go")
        with open(ssh, "w") as f:
            f.write('#!/bin/sh\nwhile case $1 in -*) ;; *) false ;; esac; do shift; done\nhost=$1\nshift\n'
                    'if [ $host = 127.0.1.3 ]; then while [ ! -e %s ]; do sleep 0.01; done; fi\neval "exec $*"\n' % go)
        os.chmod(ssh, 0o755)
        with Job(["-n", "2", "--hosts", "127.0.1.2,127.0.1.3", "--launcher-exec", ssh, "sleep", "10000"]) as job:
            first = wait_for(lambda: consoles_of(processes_with(job.tag)), "the first agent")[0]
            thief = phantom("\0" + first[1:-1] + "1")
            try:
                open(go, "w").close()
                job.wait_ranks(2)
                assert sorted(job.status()["nodes"]) == [0, 1] and job.stderr() == "", (job.status(), job.stderr())
                assert subprocess.run([KEELCTL, "stop", job.id()], timeout=HANG_S).returncode == 0
                assert job.wait() == 143
            finally:
                os.kill(thief, signal.SIGKILL)
                os.waitpid(thief, 0)


KEELD = os.path.join(keeltest.BIN, "keeld")


def summons(port):
    """The line that an agent is started with."""
    return b"0123456789abcdef,fedcba9876543210," + b"a" * 64 + b",127.0.0.1,%d,0,-\n" % port


def test_keeld_by_hand_says_what_it_is():
    for stdin in (subprocess.DEVNULL, subprocess.PIPE):
        result = subprocess.run([KEELD], capture_output=True, timeout=HANG_S, stdin=None if stdin == subprocess.PIPE else stdin,
                                input=b"" if stdin == subprocess.PIPE else None)
        assert result.returncode == 2 and result.stderr.startswith(b"keeld: not started by keelrun"), result.stderr
    for bad in (b"\n", b"x\n", b"0,1,2,3,4,5,6\n", summons(99999), summons(0), summons(1)[:-1], summons(1).replace(b"a", b"g"), b"x" * 5000):
        result = subprocess.run([KEELD], capture_output=True, timeout=HANG_S, input=bad)
        assert result.returncode == 2 and len(result.stderr.splitlines()) == 1, (bad, result)


def test_keeld_without_its_keelrun_ends_at_once():
    s = socket.socket()
    s.bind(("127.0.0.1", 0))  # taken, but nobody listens
    result = subprocess.run([KEELD], capture_output=True, timeout=HANG_S, input=summons(s.getsockname()[1]))
    assert result.returncode == 1 and b"no launcher at 127.0.0.1" in result.stderr, result
    assert b"connection refused" in result.stderr, "it was tried again: %s" % result
    s.close()


def test_keeld_does_not_trust_a_false_keelrun():
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    s.listen()
    keeld = subprocess.Popen([KEELD], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    keeld.stdin.write(summons(s.getsockname()[1]))
    keeld.stdin.flush()
    c, _ = s.accept()
    c.recv(100)
    c.sendall(b"KEEL-PM3" + os.urandom(32) + struct.pack("<I", 17) + os.urandom(17))
    _, err = keeld.communicate(timeout=HANG_S)
    assert keeld.returncode == 1 and b"authentication failed" in err, err
    c.close()
    s.close()


keeltest.main(globals())
