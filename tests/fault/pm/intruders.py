"""Port scans, garbage and strangers at the listeners of a job."""
import os
import socket
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../lib"))
import keeltest
from keeltest import IS_ROOT, Job, Skip, wait_for


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


def own_listeners(job):
    """keelrun's and the agents' (Hydra's own mpiexec does not survive this)."""
    status = job.wait_ranks(2)
    agents = [n["agent_pid"] for n in status["nodes"].values()]
    run, theirs = listeners_of([job.process.pid]), listeners_of(agents)
    assert len(run) == 1, run
    return run + theirs


GARBAGE = [b"", b"\0", b"GET / HTTP/1.0\r\n\r\n", b"KEEL", b"KEEL-PM1", b"KEEL-PM1" + b"\0" * 32,
           b"KEEL-PM1" + b"\xff" * 36 + b"x" * 100, b"cmd=init\n", os.urandom(4096), b"\xff" * 100000,
           b"KEEL-PM1" + os.urandom(32) + struct.pack("<I", 17) + os.urandom(17)]


def poke(address, data, wait=0.0):
    s = socket.socket()
    s.settimeout(5)
    try:
        s.connect(address)
        s.sendall(data)
        if wait:
            time.sleep(wait)
    except OSError:
        pass
    return s


def test_garbage_and_port_scan_are_dropped_and_logged():
    with Job(["-n", "2", "--nodes", "2", "sh", "-c", "sleep 2; echo $KEEL_RANK"]) as job:
        addresses = own_listeners(job)
        for address in addresses:
            assert address[0].startswith("127.0.0."), "listens on more than the job's interface: %s" % (address,)
            for data in GARBAGE:
                poke(address, data).close()
            for _ in range(50):
                poke(address, b"").close()
        assert job.wait() == 0, job.stderr()
        assert sorted(job.stdout().split()) == ["0", "1"]
        assert "keelrun: warn:" in job.stderr() and "dropped a connection from 127.0.0.1" in job.stderr(), job.stderr()


def test_connections_that_stay_silent_are_dropped():
    with Job(["-n", "2", "--nodes", "2", "sh", "-c", "sleep 6.5; echo $KEEL_RANK"]) as job:
        job.wait_ranks(2)
        address = listeners_of([job.process.pid])[0]
        silent = [poke(address, b"KEEL" if i % 2 else b"") for i in range(100)]
        time.sleep(5.5)
        for s in silent:
            s.setblocking(False)
            try:
                assert s.recv(1) == b"", "an answer to silence"
            except ConnectionResetError:
                pass
            s.close()
        assert job.wait() == 0


def test_join_is_not_disturbed_by_a_flood_of_strangers():
    with Job(["-n", "2", "--nodes", "2", "sh", "-c", "sleep 1; echo $KEEL_RANK"]) as job:
        address = wait_for(lambda: listeners_of([job.process.pid]), "keelrun to listen")[0]
        flood = [poke(address, b"KEEL-PM1" + os.urandom(16)) for _ in range(200)]
        assert job.wait() == 0, job.stderr()
        for s in flood:
            s.close()


def test_console_refuses_other_users():
    if not IS_ROOT:
        raise Skip("needs root to become another user")
    with Job(["-n", "1", "--nodes", "1", "sh", "-c", "sleep 1.5; echo done"]) as job:
        job.wait_ranks(1)
        child = os.fork()
        if child == 0:
            answer = b"?"
            try:
                os.setgroups([])
                os.setresgid(65534, 65534, 65534)
                os.setresuid(65534, 65534, 65534)
                s = socket.socket(socket.AF_UNIX)
                s.settimeout(3)
                s.connect("\0keel/%s/0" % job.id())
                s.sendall(struct.pack("<IB", 1, 64))
                answer = s.recv(100)
            except ConnectionError:
                answer = b""
            finally:
                os._exit(0 if answer == b"" else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "a stranger got an answer"
        assert job.wait() == 0
        assert "refused process" in job.stderr(), job.stderr()


def test_console_survives_garbage():
    with Job(["-n", "1", "--nodes", "1", "sh", "-c", "sleep 1; echo done"]) as job:
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


def test_keeld_by_hand_says_what_it_is():
    result = subprocess.run([os.path.join(keeltest.BIN, "keeld")], capture_output=True, timeout=5)
    assert result.returncode == 2 and result.stderr.startswith(b"keeld: not started by keelrun"), result.stderr
    for bad in ("", "x", "0,1,2,3,4,5", "1" * 16 + "," + "a" * 64 + ",127.0.0.1,99999,0,-"):
        result = subprocess.run([os.path.join(keeltest.BIN, "keeld")], capture_output=True, timeout=5,
                                env=dict(os.environ, KEEL_LAUNCH=bad))
        assert result.returncode == 2 and len(result.stderr.splitlines()) == 1, (bad, result)


def test_keeld_without_its_keelrun_ends_at_once():
    s = socket.socket()
    s.bind(("127.0.0.1", 0))  # taken, but nobody listens
    launch = "0123456789abcdef," + "a" * 64 + ",127.0.0.1,%d,0,-" % s.getsockname()[1]
    begin = time.monotonic()
    result = subprocess.run([os.path.join(keeltest.BIN, "keeld")], capture_output=True, timeout=10,
                            env=dict(os.environ, KEEL_LAUNCH=launch))
    assert result.returncode == 1 and b"no launcher at 127.0.0.1" in result.stderr, result
    assert time.monotonic() - begin < 3
    s.close()


def test_keeld_does_not_trust_a_false_keelrun():
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    s.listen()
    launch = "0123456789abcdef," + "a" * 64 + ",127.0.0.1,%d,0,-" % s.getsockname()[1]
    keeld = subprocess.Popen([os.path.join(keeltest.BIN, "keeld")], stderr=subprocess.PIPE,
                             env=dict(os.environ, KEEL_LAUNCH=launch))
    c, _ = s.accept()
    c.recv(100)
    c.sendall(b"KEEL-PM1" + os.urandom(32) + struct.pack("<I", 17) + os.urandom(17))
    _, err = keeld.communicate(timeout=10)
    assert keeld.returncode == 1 and b"authentication failed" in err, err
    c.close()
    s.close()


keeltest.main(globals())
