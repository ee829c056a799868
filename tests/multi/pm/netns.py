"""The netns bed: separate networks, a cut that nobody is told of, no namespace left."""
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../lib"))
import keeltest
from keeltest import HANG_S, IS_ROOT, KEELCTL, Job, Skip, run, wait_for

MPI_SUM = os.environ.get("KEEL_MPI_SUM", "")


# Rank 1 echoes datagrams. Rank 0 obeys its input: "ask" sends one again and again until one of these comes back, "send"
# sends some that must not.
ECHO = """
import os, socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
there = ("10.77.0.3", 7000)
if os.environ["KEEL_RANK"] == "1":
    s.bind(there)
    data = b""
    while data != b"end":
        data, sender = s.recvfrom(100)
        s.sendto(data, sender)
else:
    s.settimeout(0.1)
    lost = 0
    for n, line in enumerate(sys.stdin):
        word = line.strip()
        if word == "send":
            for _ in range(5):
                s.sendto(b"lost", there)
            print("sent", flush=True)
            continue
        mark, back = b"end" if word == "end" else b"%d" % n, b""
        while back != mark:
            s.sendto(mark, there)
            try:
                back = s.recv(100)
            except socket.timeout:
                pass
            lost += back == b"lost"
        print("up, %d came back" % lost, flush=True)
        if word == "end":
            break
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
    args = ["-n", "2", "--nodes", "2", "--bed", "netns", "sh", "-c", "[ $KEEL_RANK = 1 ] || read line; echo $KEEL_JOB"]
    with Job(args) as a, Job(args) as b:
        for job in a, b:
            wait_for(lambda job=job: len(job.events("rank_start")) == 2, "the ranks")
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
    far = ["--silence", "600s", "--stopped", "never"]  # nobody is declared dead meanwhile
    with Job(["-n", "2", "--nodes", "2", "--bed", "netns", *far, sys.executable, "-c", ECHO]) as job:
        told = []

        def say(word, answer):
            told.append(answer)
            job.process.stdin.write(word.encode() + b"\n")
            job.process.stdin.flush()
            wait_for(lambda: len(job.stdout().splitlines()) >= len(told) or job.process.poll() is not None, word)
            assert job.stdout().splitlines() == told, (job.stdout(), job.stderr())

        def bed(what, link):
            for _ in range(2):  # the second changes nothing
                done = subprocess.run([KEELCTL, "bed", what, job.id(), "1"], capture_output=True, timeout=HANG_S)
                assert done.returncode == 0 and json.loads(done.stdout)["link"] == link, done
        say("ask", "up, 0 came back")
        bed("cut", "down")
        say("send", "sent")
        bed("heal", "up")
        say("end", "up, 0 came back")
        assert job.wait() == 0, job.stderr()


def test_cut_of_a_node_that_took_a_place_cuts_that_node():
    need_root()
    # the first does not come: the spare, in the third namespace, is node 0
    with Job(["-n", "2", "--nodes", "2", "--spares", "1", "--bed", "netns", "sleep", "10000"],
             env={"KEEL_FAULT": "start.connected:1:kill:node=0"}) as job:
        hosts = {n: node["host"] for n, node in job.wait_ranks(2)["nodes"].items()}
        assert hosts == {0: "10.77.0.4", 1: "10.77.0.3"}, hosts

        def bed(what):
            done = subprocess.run([KEELCTL, "bed", what, job.id(), "0"], capture_output=True, timeout=HANG_S)
            return done.returncode, done.returncode == 0 and json.loads(done.stdout)["namespace"], done.stderr
        place = "keel-%s-n2" % job.id()[:8]
        assert bed("cut") == (0, place, b""), bed("cut")
        wait_for(lambda: job.status()["alive"] in ([False, True], [True, False]), "one to be declared dead")
        dead = job.status()["alive"].index(False)
        assert bed("heal")[:2] == (0, place), bed("heal")
        assert dead == 1, "node 0 has the tie"  # it was cut off with the quorum, the other one ends
        assert subprocess.run([KEELCTL, "stop", job.id()], timeout=HANG_S).returncode == 0
        assert job.wait() == 143


def test_kill_of_keelrun_leaves_no_namespace_after_the_job():
    need_root()
    with Job(["-n", "2", "--nodes", "2", "--bed", "netns", "sleep", "10000"]) as job:
        job.wait_ranks(2)
        job.process.send_signal(signal.SIGKILL)
        job.process.wait()

        def alone():
            now = job.status()
            return now if now["keelrun"] is False else None
        status = wait_for(alone, "the agents to know that keelrun is gone")  # found in the namespaces, still running
        assert [status["nodes"][k]["ranks"][0]["state"] for k in (0, 1)] == ["running", "running"]
        assert subprocess.run([KEELCTL, "stop", job.id()], timeout=HANG_S).returncode == 0
        job.check_leftovers()


def test_kill_of_the_guardian_leaves_no_namespace():
    need_root()
    with Job(["-n", "2", "--nodes", "2", "--bed", "netns", "cat"]) as job:
        job.wait_for_ranks(2)
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
        for name in ("keelrun", "keeld", "keel-launch", "keel-nsexec"):
            shutil.copy(os.path.join(keeltest.BIN, name), directory)
        result = subprocess.run([os.path.join(directory, "keelrun"), "-n", "2", "--nodes", "2", "--bed", "netns", "true"],
                                capture_output=True, timeout=HANG_S, user="nobody", cwd="/")
        assert result.returncode == 1 and b"needs root" in result.stderr, result.stderr
        assert len(result.stderr.splitlines()) == 1


keeltest.main(globals())
