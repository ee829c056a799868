"""The netns bed: separate networks, a cut that nobody is told of, no namespace left."""
import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../lib"))
import keeltest
from keeltest import HANG_S, IS_ROOT, KEELCTL, Job, Skip, run, wait_for

MPI_SUM = os.environ.get("KEEL_MPI_SUM", "")


# Rank 1 echoes datagrams; rank 0 prints each change between "up" and "down" and ends at the second "up".
ECHO = """
import os, socket, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
there = ("10.77.0.3", 7000)
if os.environ["KEEL_RANK"] == "1":
    s.bind(there)
    s.settimeout(10)
    while True:
        data, sender = s.recvfrom(100)
        s.sendto(data, sender)
        if data == b"end":
            break
else:
    s.settimeout(0.1)
    changes = []
    while changes.count("up") < 2:
        try:
            s.sendto(b"x", there)
            s.recvfrom(100)
            now = "up"
        except socket.timeout:
            now = "down" if changes else None
        if now and (not changes or changes[-1] != now):
            changes.append(now)
            print(now, flush=True)
        time.sleep(0.01)
    s.sendto(b"end", there)
"""


def need_root():
    if not IS_ROOT:
        raise Skip("needs root")


def test_nodes_have_networks_of_their_own():
    need_root()
    code, out, err = run(["-n", "3", "--nodes", "3", "--bed", "netns", "sh", "-c",
                          "echo $KEEL_NODE $(hostname) $(ip -4 -o addr show veth0 | awk '{print $4}') $(ls /sys/class/net)"])
    assert code == 0, err
    assert sorted(out.splitlines()) == ["%d keel-node%d 10.77.0.%d/16 lo veth0" % (k, k, k + 2) for k in range(3)], out


def test_two_beds_at_once_do_not_meet():
    need_root()
    args = ["-n", "2", "--nodes", "2", "--bed", "netns", "sh", "-c", "sleep 0.3; echo $KEEL_JOB"]
    with Job(args) as a, Job(args) as b:
        assert a.wait() == 0 and b.wait() == 0
        assert len(set(a.stdout().split()) | set(b.stdout().split())) == 2


def test_mpi_program_runs_between_namespaces():
    need_root()
    if not MPI_SUM:
        raise Skip("no mpicc")
    code, out, err = run(["-n", "4", "--nodes", "4", "--bed", "netns", MPI_SUM])
    assert code == 0, err
    assert sorted(out.splitlines()) == ["rank %d of 4 sum 6" % r for r in range(4)], out


def test_cut_and_heal_are_silent():
    need_root()
    with Job(["-n", "2", "--nodes", "2", "--bed", "netns", sys.executable, "-c", ECHO]) as job:
        wait_for(lambda: job.stdout().endswith("up\n"), "the first answer")
        for _ in range(2):  # the second changes nothing
            cut = subprocess.run([KEELCTL, "bed", "cut", job.id(), "1"], capture_output=True, timeout=HANG_S)
            assert cut.returncode == 0 and json.loads(cut.stdout)["link"] == "down", cut.stderr
        wait_for(lambda: job.stdout().endswith("down\n"), "the cut to be felt")
        for _ in range(2):
            assert subprocess.run([KEELCTL, "bed", "heal", job.id(), "1"], capture_output=True, timeout=HANG_S).returncode == 0
        assert job.wait() == 0, job.stderr()
        assert job.stdout().split() == ["up", "down", "up"], job.stdout()


def test_kill_of_keelrun_leaves_no_namespace_after_the_job():
    need_root()
    with Job(["-n", "2", "--nodes", "2", "--bed", "netns", "sleep", "1.5"]) as job:
        job.wait_ranks(2)
        job.process.send_signal(signal.SIGKILL)
        job.process.wait()
        time.sleep(0.2)
        status = job.status()  # found in the namespaces, still running
        assert [status["nodes"][k]["ranks"][0]["state"] for k in (0, 1)] == ["running", "running"]
        assert status["keelrun"] is False
        job.check_leftovers()


def test_kill_of_the_guardian_leaves_no_namespace():
    need_root()
    with Job(["-n", "2", "--nodes", "2", "--bed", "netns", "sleep", "1"]) as job:
        job.wait_ranks(2)
        guardians = []
        for pid in keeltest.processes_with(job.tag):
            with open("/proc/%d/comm" % pid) as f:
                if f.read().strip() == "keel-guardian":
                    guardians.append(pid)
        assert len(guardians) == 1
        os.kill(guardians[0], signal.SIGKILL)
        assert job.wait() == 0


def test_kill_of_everything_is_cleaned_up_by_the_next_bed():
    need_root()
    job = Job(["-n", "2", "--nodes", "2", "--bed", "netns", "sleep", "10000"])
    try:
        job.wait_ranks(2)
    finally:
        prefix = "keel-" + job.id()[:8]
        job.kill_all()
        job.close()
    left = [n for n in os.listdir("/run/netns") if n.startswith(prefix)]
    assert left, "somebody cleaned up: nothing is tested"
    # What was killed may not be gone yet, and the next bed leaves inhabited namespaces alone.
    wait_for(lambda: not any(subprocess.run(["ip", "netns", "pids", name], capture_output=True).stdout for name in left),
             "the killed processes are gone")
    with Job(["-n", "1", "--nodes", "1", "--bed", "netns", "true"]) as after:
        assert after.wait() == 0, after.stderr()
        assert not [n for n in os.listdir("/run/netns") if n.startswith(prefix)]


def test_without_root_it_says_so():
    if not IS_ROOT:
        code, _, err = run(["-n", "2", "--nodes", "2", "--bed", "netns", "true"])
        assert code == 1 and "needs root" in err and len(err.splitlines()) == 1, err
        return
    import tempfile
    import shutil
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
        os.chmod(directory, 0o755)
        for name in ("keelrun", "keeld", "keel-nsexec"):
            shutil.copy(os.path.join(keeltest.BIN, name), directory)
        result = subprocess.run([os.path.join(directory, "keelrun"), "-n", "2", "--nodes", "2", "--bed", "netns", "true"],
                                capture_output=True, timeout=HANG_S, user="nobody", cwd="/")
        assert result.returncode == 1 and b"needs root" in result.stderr, result.stderr
        assert len(result.stderr.splitlines()) == 1


keeltest.main(globals())
