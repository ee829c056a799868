"""Programs that keelrun does not start: plain mpiexec (MPICH's Hydra), with and without MPI, and what is left when
something dies.

KEEL_JOINED, KEEL_JOINED_MPI, KEEL_GA: the programs; KEEL_BIN: the folder of keeld."""
import contextlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../lib"))
import keeltest
from keeltest import Skip, alive, processes_with, wait_for

MPIEXEC = shutil.which("mpiexec.hydra")
JOINED, JOINED_MPI = os.environ["KEEL_JOINED"], os.environ.get("KEEL_JOINED_MPI")
KEELD = os.path.join(keeltest.BIN, "keeld")
# Like ssh to names of this machine: one proxy each, so that it takes with it only its own processes.
FAKE_SSH = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
shift
eval "exec $*"
"""


class Run:
    """One mpiexec; leaving the block checks that nothing of the job is left."""

    def __init__(self, args, nodes=0, env=None):
        self.tag = "KEEL_TEST_TAG=%d.%d" % (os.getpid(), time.monotonic_ns())
        name, value = self.tag.split("=")
        environment = dict(os.environ, **dict({"KEEL_KEELD": KEELD, "KEEL_TIMEOUT_MS": "600000", name: value}, **(env or {})))
        if nodes:
            environment["KEEL_NODES"] = str(nodes)
        self.out, self.err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        self.process = subprocess.Popen(args, stdout=self.out, stderr=self.err, stdin=subprocess.DEVNULL, env=environment)

    def text(self, f):
        return os.pread(f.fileno(), 1 << 20, 0).decode(errors="replace")

    def stdout(self):
        return self.text(self.out)

    def stderr(self):
        return self.text(self.err)

    def wait(self):
        return self.process.wait()

    def pids(self, count):
        """{rank: (pid, node)} of a program that rests."""
        def told():
            found = re.findall(r"pid (\d+) (\d+) (\d+)", self.stdout())
            return found if len(found) == count else None
        return {int(r): (int(pid), int(node)) for r, pid, node in wait_for(told, "%d ranks" % count, 600)}

    def agents(self):
        """{node: pid}"""
        found = {}
        for line in subprocess.run([keeltest.KEELCTL, "list"], capture_output=True, text=True).stdout.splitlines():
            if JOINED not in line:
                continue
            text = subprocess.run([keeltest.KEELCTL, "status", "--json", line.split()[0]], capture_output=True, text=True).stdout
            ours = processes_with(self.tag)
            for node in json.loads(text)["nodes"] if text else []:
                if node.get("agent_pid") in ours:
                    self.id = line.split()[0]
                    found[node["node"]] = node["agent_pid"]
        return found

    def left(self):
        return ["%d: %s" % (p, keeltest.command_of(p)) for p in processes_with(self.tag) if p != self.process.pid]

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind:
            print("--- stdout\n%s--- stderr\n%s" % (self.stdout()[-3000:], self.stderr()[-3000:]), file=sys.stderr)
        try:
            if not kind:
                self.process.wait()
                wait_for(lambda: not self.left(), "the end of " + "; ".join(self.left()), 600)
        finally:
            for pid in processes_with(self.tag):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            self.process.wait()
            self.out.close()
            self.err.close()


def mpiexec(*args):
    if not MPIEXEC:
        raise Skip("no mpiexec.hydra")
    return [MPIEXEC, *args]


def expect_right(args, count, nodes):
    with Run(args, nodes) as job:
        assert job.wait() == 0, (job.process.returncode, job.stderr())
        got = re.findall(r"rank (\d+) of (\d+) on node (\d+): right", job.stdout())
        assert sorted(int(r) for r, _, _ in got) == list(range(count)), job.stdout()
        assert {int(node) for _, _, node in got} == set(range(max(nodes, 1))), job.stdout()
        assert job.stderr() == "", job.stderr()


def test_a_program_under_mpiexec():
    for count, nodes in (1, 0), (4, 0), (4, 2), (5, 3):
        expect_right(mpiexec("-n", str(count), JOINED, "work"), count, nodes)


def test_a_program_whose_processes_do_not_spin():
    for nodes in 0, 2:
        with Run(mpiexec("-n", "4", JOINED, "work"), nodes, {"KEEL_SPIN_US": "0"}) as job:
            assert job.wait() == 0 and job.stdout().count("right") == 4, (job.stdout(), job.stderr())


def test_a_program_that_returns_from_main():
    expect_right(mpiexec("-n", "3", JOINED, "return"), 3, 2)


def test_an_mpi_program():
    if not JOINED_MPI:
        raise Skip("no MPI")
    for mode in "before", "after", "over":
        # What MPICH's plugins leave at the end has no name to a leak sanitizer: they are unloaded by then.
        expect_right(mpiexec("-genv", "ASAN_OPTIONS", "detect_leaks=0", "-n", "3", JOINED_MPI, mode), 3, 2)


def test_without_any_launcher():
    expect_right([JOINED, "wrong"], 1, 1)
    with Run([JOINED, "work"]) as job:
        assert job.wait() == 3 and "KEEL_ERR_NOT_LAUNCHED" in job.stderr(), job.stderr()
        assert re.search(r"^keel_init: the program was not started by keelrun .*PMI-1$", job.stderr(), re.M), job.stderr()
    with Run([JOINED, "work"], env={"KEEL_FD": "0"}) as job:  # as in a shell's descendant that has closed it
        assert job.wait() == 3 and "keel_init: KEEL_FD names descriptor 0, which does not lead to an agent" in job.stderr(), job.stderr()


def test_a_process_that_does_not_come_to_keel_init_is_told():
    """By one of those that wait."""
    late = 'if [ "$PMI_RANK" = 1 ]; then sleep 7; fi; exec "$@"'
    with Run(mpiexec("-n", "4", "sh", "-c", late, "sh", JOINED, "work"), 2) as job:
        wait_for(lambda: "keel_init" in job.stderr(), "the line", 60)
        assert job.stderr() == "keel_init: has waited 5 s for all 4 processes to call it: on this host ranks 0 and 2-3 did; not here: rank 1\n", job.stderr()
        assert job.wait() == 0, job.stderr()
        assert re.search(r"\nkeel_init: all 4 processes have called it after [6-9]\d* s\n$", job.stderr()) and job.stdout().count("right") == 4, job.stderr()


def test_a_way_to_go_on_that_only_keelrun_knows_is_told_once():
    for said, told in ("substitute", 1), ("degrade", 0), ("", 0):
        with Run(mpiexec("-n", "2", JOINED, "work"), 2, {"KEEL_ON_FAILURE": said}) as job:
            assert job.wait() == 0, job.stderr()
            assert job.stderr().count("KEEL_ON_FAILURE=substitute has no effect without keelrun") == told, job.stderr()


def test_a_level_of_the_log_that_is_none_is_told_once():
    with Run(mpiexec("-n", "3", JOINED, "work"), 2, {"KEEL_LOG": "rubbish"}) as job:
        assert job.wait() == 0 and job.stderr().count("KEEL_LOG='rubbish' is none of ") == 1, job.stderr()


def test_an_armci_program_of_some_processes():
    if not os.environ.get("KEEL_ARMCI_COMM"):
        raise Skip("no ARMCI")
    for nodes in 0, 2:
        with Run(mpiexec("-genv", "ASAN_OPTIONS", "detect_leaks=0", "-n", "4", os.environ["KEEL_ARMCI_COMM"], "part"), nodes) as job:
            assert job.wait() == 0 and job.stdout().count("right") == 1, (job.process.returncode, job.stdout(), job.stderr())


def test_a_global_arrays_program():
    if not os.environ.get("KEEL_GA"):
        raise Skip("no Global Arrays")
    for nodes in 0, 2:
        for redundancy in "none", "shadow":
            with Run(mpiexec("-n", "4", os.environ["KEEL_GA"]), nodes, {"KEEL_ARMCI_REDUNDANCY": redundancy}) as job:
                assert job.wait() == 0, (job.process.returncode, job.stdout(), job.stderr())


def test_keelctl_finds_it():
    with Run(mpiexec("-n", "2", JOINED, "rest"), 2) as job:
        job.pids(2)
        listed = subprocess.run([keeltest.KEELCTL, "list"], capture_output=True, text=True).stdout
        assert re.search(r"^\w+  2 ranks  2 nodes here .* " + re.escape(JOINED), listed, re.M), listed
        assert len(job.agents()) == 2
        job.process.kill()


def test_an_agent_that_cannot_be_started_is_told():
    # Of the first that ends with 3 and of the others, whom mpiexec then ends. It may abort over their unanswered
    # requests before it has passed on what they wrote, so they write to a file.
    with tempfile.TemporaryDirectory() as folder:
        told = os.path.join(folder, "told")
        with Run(mpiexec("-n", "3", "sh", "-c", f'exec "$@" 2>>{told}', "sh", JOINED, "work"), 2, {"KEEL_KEELD": "/nowhere/keeld"}) as job:
            assert job.wait() != 0
        with open(told) as f:
            said = f.read()
        assert "keel_init: cannot run /nowhere/keeld: No such file or directory" in said, said
        assert "init: KEEL_ERR_NOT_LAUNCHED" in said, said


def test_more_hosts_and_nodes_wanted():
    for wanted in 5, 3 << 30:  # not more than there are ranks
        with Run(mpiexec("-n", "2", JOINED, "work"), wanted) as job:
            assert job.wait() == 0 and "on node 1" in job.stdout(), job.stderr()


def test_closed_descriptors_are_no_trouble():
    for closed in "2>&-", "<&- 2>&-":
        with Run(mpiexec("-n", "2", "sh", "-c", '"$@" ' + closed, "sh", JOINED, "work"), 2) as job:
            assert job.wait() == 0 and "rank 1 of 2 on node 1: right" in job.stdout(), (closed, job.stdout())


def test_nothing_stays_whatever_is_killed():
    def mpiexec_itself(job, pids):
        job.process.kill()

    def interrupted(job, pids):
        job.process.send_signal(signal.SIGINT)

    def a_rank(job, pids):
        os.kill(pids[1][0], signal.SIGKILL)

    def an_agent(job, pids):
        os.kill(job.agents()[0], signal.SIGKILL)

    def all_agents(job, pids):
        for pid in job.agents().values():
            os.kill(pid, signal.SIGKILL)

    def all_ranks(job, pids):
        for pid, _ in pids.values():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)

    for mishap in mpiexec_itself, interrupted, a_rank, an_agent, all_agents, all_ranks:
        for nodes in 0, 2:
            with Run(mpiexec("-n", "4", JOINED, "rest"), nodes) as job:
                pids = job.pids(4)
                assert len(job.agents()) == max(nodes, 1)
                begin = time.monotonic()
                mishap(job, pids)
                assert job.wait() != 0
            print("        %s, %d nodes: gone after %.2f s" % (mishap.__name__, nodes, time.monotonic() - begin))


def test_nothing_stays_when_one_dies_while_they_join():
    for point in "join.placed", "join.coming", "join.reporting":
        for rank in 0, 1, 2:  # the first of node 0, another one there, the first of node 1
            with Run(mpiexec("-n", "3", JOINED, "work"), 2, {"KEEL_FAULT": "%s:1:kill:rank=%d" % (point, rank)}) as job:
                assert job.wait() != 0, (point, rank)


def test_ranks_end_with_their_agent():
    """Before the launcher can do anything about it: mpiexec is stopped."""
    with Run(mpiexec("-n", "4", JOINED, "rest"), 2) as job:
        pids = job.pids(4)
        os.kill(job.process.pid, signal.SIGSTOP)
        os.kill(job.agents()[1], signal.SIGKILL)
        wait_for(lambda: not any(alive(pid) for pid, node in pids.values() if node == 1), "the ranks of node 1 to end", 600)
        os.kill(job.process.pid, signal.SIGCONT)


@contextlib.contextmanager
def two_hosts():
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
        path = os.path.join(directory, "ssh")
        with open(path, "w") as f:
            f.write(FAKE_SSH)
        os.chmod(path, 0o755)
        yield mpiexec("-disable-auto-cleanup", "-launcher", "rsh", "-launcher-exec", path, "-hosts", "127.0.1.1:2,127.0.1.2:2")


@contextlib.contextmanager
def survivors():
    """Four ranks on two hosts; what the others say once one has died goes to a file. mpiexec tells the other hosts of a
    death: if it comes to that after their last process has ended, it dies by SIGPIPE, and what it had not yet passed on
    is lost."""
    with tempfile.NamedTemporaryFile("r", prefix="keel-test-") as told, two_hosts() as command, \
            Run(command + ["-n", "4", JOINED, "survive", told.name], 2) as job:
        yield job, job.pids(4), told


def kill_rank(pids, rank, by):
    resource.prlimit(pids[rank][0], resource.RLIMIT_CORE, (0, 0))
    os.kill(pids[rank][0], by)


def expect_others_right(job, pids, told, what):
    """Those of node 0, whom no proxy kills."""
    wait_for(lambda: not any(alive(pids[rank][0]) for rank in (0, 1)), "the end of ranks 0 and 1: " + str(what))
    told.seek(0)
    text = told.read()
    said = sorted(re.findall(r"^rank (\d) goes on without rank \d: right$", text, re.M))
    assert said[:2] == ["0", "1"], (what, text, job.stdout(), job.stderr())


def test_others_go_on_when_a_node_dies():
    for what in signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, "agent":
        before = set(os.listdir("."))
        with survivors() as (job, pids, told):
            if what != "agent":
                kill_rank(pids, 3, what)  # its proxy then kills rank 2
            else:
                assert len(job.agents()) == 2
                killed = subprocess.run([keeltest.KEELCTL, "kill-node", job.id, "1"], capture_output=True, text=True)
                assert killed.returncode == 0, killed.stderr
            expect_others_right(job, pids, told, what)
            job.wait()  # its code is the launcher's, which knows of the dead
        left = [name for name in set(os.listdir(".")) - before if name.endswith(".btr")]
        assert not left, left


def test_others_go_on_while_mpiexec_stands_still():
    """They need nothing of it, up to their end; it hears of the death when their host's proxy has ended."""
    with survivors() as (job, pids, told):
        with open("/proc/%d/stat" % pids[0][0]) as f:
            proxy = int(f.read().rsplit(")", 1)[1].split()[1])
        os.kill(job.process.pid, signal.SIGSTOP)
        try:
            kill_rank(pids, 3, signal.SIGKILL)
            expect_others_right(job, pids, told, "mpiexec stopped")
            wait_for(lambda: not alive(proxy), "the end of the proxy of ranks 0 and 1")
        finally:
            os.kill(job.process.pid, signal.SIGCONT)
        job.wait()


@contextlib.contextmanager
def two_networks(named):
    """Two hosts with a cable between them; `named`: their names are such that they find each other by them."""
    if not keeltest.IS_ROOT or not shutil.which("ip"):
        raise Skip("needs root and ip")
    hosts = {"10.78.0.1": "keel-test-%d-a" % os.getpid(), "10.78.0.2": "keel-test-%d-b" % os.getpid()}
    a, b = hosts.values()

    def ip(*args):
        subprocess.run(["ip", *args], check=True)
    try:
        for name in a, b:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("link", "add", "veth0", "netns", a, "type", "veth", "peer", "name", "veth0", "netns", b)
        for address, name in hosts.items():
            ip("-n", name, "addr", "add", address + "/24", "dev", "veth0")
            ip("-n", name, "link", "set", "veth0", "up")
        with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
            path = os.path.join(directory, "ssh")
            with open(path, "w") as f:
                f.write("""#!/bin/sh
# enter HOST COMMAND ...: like ssh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
case $host in 10.78.0.1) name=%s ;; *) name=%s ;; esac
export host
exec ip netns exec $name unshare --uts sh -c '%s; eval "exec $*"' sh "$@"
""" % (a, b, "hostname $host" if named else "hostname nowhere.invalid"))
            os.chmod(path, 0o755)
            # mpiexec starts what is on its own host itself
            yield [path, "10.78.0.1"] + mpiexec("-launcher", "rsh", "-launcher-exec", path, "-iface", "veth0", "-hosts",
                                                "10.78.0.1:2,10.78.0.2:2", "-n", "4", JOINED, "work")
    finally:
        for name in a, b:
            subprocess.run(["ip", "netns", "del", name], stderr=subprocess.DEVNULL)


def test_two_hosts():
    for named in True, False:
        with two_networks(named) as command, Run(command, 0, None if named else {"KEEL_INTERFACE": "veth0"}) as job:
            assert job.wait() == 0, job.stderr()
            assert sorted(re.findall(r"rank (\d) of 4 on node (\d): right", job.stdout())) == [
                ("0", "0"), ("1", "0"), ("2", "1"), ("3", "1")], (job.stdout(), job.stderr())


RIGHT = [("0", "0"), ("1", "0"), ("2", "1"), ("3", "1")]


def test_two_hosts_in_racks():
    with tempfile.NamedTemporaryFile("w") as f:
        f.write("10.78.0.1 left core\n10.78.0.2 right core\n")
        f.flush()
        for said in {"KEEL_TOPOLOGY_FILE": f.name}, {"KEEL_RACK_OF": "[12]$"}, {"KEEL_COPIES_AT": "next"}:
            with two_networks(True) as command, Run(command, 0, said) as job:
                assert job.wait() == 0, job.stderr()
                assert sorted(re.findall(r"rank (\d) of 4 on node (\d): right", job.stdout())) == RIGHT, (said, job.stdout())
        f.write("10.78.0.2 left core\n")
        f.flush()
        for said, why in ({"KEEL_TOPOLOGY_FILE": f.name}, "rank 2: KEEL_TOPOLOGY_FILE: line 3: host 10.78.0.2 is in rack right, and in rack left"), \
                ({"KEEL_RACK_OF": "^10"}, "rack 10 holds all 2 nodes: no copy would be in another one"), \
                ({"KEEL_COPIES_AT": "far"}, "rank 0: KEEL_COPIES_AT=far is not half or next"):
            with two_networks(True) as command, Run(command, 0, said) as job:
                assert job.wait() != 0 and "keel_init: %s\n" % why in job.stderr(), (said, job.stderr())


def test_two_hosts_are_not_cut_into_nodes():
    with two_networks(True) as command, Run(command, 2) as job:
        assert job.wait() != 0 and "keel_init: KEEL_NODES is for jobs on one host" in job.stderr(), job.stderr()


def test_hosts_that_do_not_find_each_other():
    with two_networks(False) as command, Run(command) as job:
        assert job.wait() != 0, job.stdout()
        assert "keel_init: no way to host nowhere.invalid is found by its name (see KEEL_INTERFACE" in job.stderr(), job.stderr()


keeltest.main(globals())
