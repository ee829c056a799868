"""keelrun over real ssh: three hosts that are network namespaces, each with an sshd of its own. Needs root, sshd and
ip."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../lib"))
import keeltest
from keeltest import HANG_S, IS_ROOT, KEELCTL, Job, Skip, wait_for

CRASH, MPI_SUM = os.environ["KEEL_CRASH"], os.environ.get("KEEL_MPI_SUM", "")
HOSTS = ["10.88.0.%d" % k for k in (2, 3, 4)]


def do(*words, check=True):
    return subprocess.run(words, check=check, capture_output=True, text=True, timeout=HANG_S).stdout


class Hosts:
    """with Hosts() as hosts: hosts.job([...]) runs keelrun in a network from which the hosts are reached."""

    def __init__(self):
        if not IS_ROOT or not shutil.which("ip") or not os.path.exists("/usr/sbin/sshd"):
            raise Skip("needs root, ip and sshd")
        self.directory = tempfile.mkdtemp(prefix="keel-test-", dir="/tmp")
        self.prefix = "keel-ssh-%d-" % os.getpid()
        self.names = []

    def __enter__(self):
        try:
            self.build()
        except BaseException:
            self.__exit__()
            raise
        return self

    def path(self, name):
        return os.path.join(self.directory, name)

    def namespace(self, name):
        do("ip", "netns", "add", self.prefix + name)
        self.names.append(self.prefix + name)
        do("ip", "-n", self.prefix + name, "link", "set", "lo", "up")
        return self.prefix + name

    def build(self):
        os.makedirs("/run/sshd", exist_ok=True)
        for key in ("key", "hostkey"):
            do("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.path(key))
        with open(self.path("ssh"), "w") as f:
            f.write("#!/bin/sh\nexec /usr/bin/ssh -i %s -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR \"$@\"\n"
                    % self.path("key"))
        os.chmod(self.path("ssh"), 0o755)
        self.hub = self.namespace("hub")
        do("ip", "-n", self.hub, "link", "add", "br0", "type", "bridge")
        do("ip", "-n", self.hub, "addr", "add", "10.88.0.1/24", "dev", "br0")
        do("ip", "-n", self.hub, "link", "set", "br0", "up")
        for k, address in enumerate(HOSTS):
            name = self.namespace("n%d" % k)
            do("ip", "-n", self.hub, "link", "add", "p%d" % k, "type", "veth", "peer", "name", "e0", "netns", name)
            do("ip", "-n", self.hub, "link", "set", "p%d" % k, "master", "br0", "up")
            do("ip", "-n", name, "addr", "add", address + "/24", "dev", "e0")
            do("ip", "-n", name, "link", "set", "e0", "up")
            with open(self.path("conf%d" % k), "w") as f:
                f.write("HostKey %s\nAuthorizedKeysFile %s\nPermitRootLogin yes\nStrictModes no\nUsePAM no\nPidFile none\n"
                        % (self.path("hostkey"), self.path("key.pub")))
            do("ip", "netns", "exec", name, "/usr/sbin/sshd", "-f", self.path("conf%d" % k))

    def inside(self, name):
        return [int(pid) for pid in do("ip", "netns", "pids", name).split()]

    def __exit__(self, *_):
        for name in self.names:
            for pid in self.inside(name):
                os.kill(pid, signal.SIGKILL)
            do("ip", "netns", "del", name)
        shutil.rmtree(self.directory)

    def job(self, options, program, hosts=HOSTS):
        words = ["--launcher-exec", self.path("ssh"), "--hosts", ",".join(hosts), *options, *program]
        return Job(words, program=self.keelrun())

    def keelrun(self):
        with open(self.path("keelrun"), "w") as f:
            f.write("#!/bin/sh\nexec ip netns exec %s %s \"$@\"\n" % (self.hub, os.path.realpath(keeltest.KEELRUN)))
        os.chmod(self.path("keelrun"), 0o755)
        return self.path("keelrun")

    def expect_nothing_left(self):
        for name in self.names[1:]:
            wait_for(lambda name=name: [p for p in self.inside(name) if "sshd" not in keeltest.command_of(p)] == [],
                     "nothing of the job on " + name)


def test_jobs_over_ssh():
    with Hosts() as hosts:
        with hosts.job(["-n", "6"], ["sh", "-c", 'echo $KEEL_RANK $(ip -o -4 addr show e0 | grep -o "10[.0-9]*" | head -1)']) as job:
            assert job.wait() == 0, job.stderr()
            assert sorted(job.stdout().splitlines()) == ["%d %s" % (r, HOSTS[r // 2]) for r in range(6)], job.stdout()
        if MPI_SUM:
            with hosts.job(["-n", "3"], [MPI_SUM]) as job:
                assert job.wait() == 0 and job.stdout().count("sum 3") == 3, (job.stdout(), job.stderr())
        with hosts.job(["-n", "3", "--secure"], [CRASH, "9", "9", "never"]) as job:
            assert job.wait() == 0, job.stderr()
        hosts.expect_nothing_left()


def test_host_that_is_cut_off_is_replaced():
    with Hosts() as hosts:
        with hosts.job(["-n", "2", "--spares", "1"], [CRASH, "9", "9", "once", "hold"]) as job:
            wait_for(lambda: job.stdout() == "here\n", "keel_init")
            do("ip", "-n", hosts.names[2], "link", "set", "e0", "down")
            wait_for(lambda: "node 1 (%s) died" % HOSTS[1] in job.stderr(), "the cut to be told")
            assert "rank 1 continues on node 2 (%s)" % HOSTS[2] in job.stderr(), job.stderr()
            assert job.wait() == 0, job.stderr()
        do("ip", "-n", hosts.names[2], "link", "set", "e0", "up")
        hosts.expect_nothing_left()


def test_interrupt_leaves_nothing_on_any_host():
    with Hosts() as hosts:
        with hosts.job(["-n", "3"], ["sleep", "10000"]) as job:
            job.id()
            job.wait_for_ranks(3)
            job.process.send_signal(signal.SIGINT)
            assert job.wait() == 130, job.stderr()
        hosts.expect_nothing_left()


def test_keelctl_works_on_the_host():
    with Hosts() as hosts:
        with hosts.job(["-n", "3"], ["sleep", "10000"]) as job:
            job.id()
            job.wait_for_ranks(3)
            result = subprocess.run(["ip", "netns", "exec", hosts.names[1], KEELCTL, "stop", job.id()], capture_output=True, timeout=HANG_S)
            assert result.returncode == 0, result
            assert job.wait() == 143, job.stderr()
        hosts.expect_nothing_left()


def test_host_without_an_sshd_is_one_line():
    with Hosts() as hosts:
        with hosts.job(["-n", "2"], ["true"], hosts=[HOSTS[0], "10.88.0.77"]) as job:
            assert job.wait() == 1 and "node 1 (10.88.0.77) could not be started: ssh: " in job.stderr(), job.stderr()
            assert len(job.stderr().splitlines()) == 1, job.stderr()
        hosts.expect_nothing_left()


keeltest.main(globals())
