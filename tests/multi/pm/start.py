"""Nodes that do not come: a spare takes the place of the first, and the job is one in which nobody is missing. A program of ours plays
ssh; hosts are names for this machine, of which $DIR/HOST says what becomes of it."""
import os
import re
import signal
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../lib"))
import keeltest
from keeltest import Job, alive, run, wait_for

CRASH, MPI_SUM = os.environ["KEEL_CRASH"], os.environ.get("KEEL_MPI_SUM", "")

# broken: it says so and ends; silent: nothing comes; begun: its number in a file of that name, then nothing; slow: when the file "on" is there
FAKE_SSH = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
what=$(cat %(dir)s/$host 2>/dev/null)
case "$what" in
broken) echo "ssh: connect to host $host port 22: No route to host" >&2; exit 255;;
silent) exec sleep 10000;;
begun) echo $$ >%(dir)s/pid.part; mv %(dir)s/pid.part %(dir)s/pid; exec sleep 10000;;
slow) while [ ! -e %(dir)s/on ]; do sleep 0.02; done;;
esac
eval "exec $*"
"""
HOSTS = ["127.0.1.%d" % k for k in range(2, 8)]
PLACES = ["sh", "-c", "echo $KEEL_RANK $KEEL_NODE $KEEL_SIZE"]


class Hosts:
    def __init__(self, **fates):
        self.directory = tempfile.TemporaryDirectory(prefix="keel-test-")
        self.path = os.path.join(self.directory.name, "ssh")
        with open(self.path, "w") as f:
            f.write(FAKE_SSH % {"dir": self.directory.name})
        os.chmod(self.path, 0o755)
        for name, fate in fates.items():
            self.write(HOSTS[int(name[1:])], fate)

    def write(self, name, text):
        with open(os.path.join(self.directory.name, name), "w") as f:
            f.write(text)

    def pid(self):
        path = os.path.join(self.directory.name, "pid")
        wait_for(lambda: os.path.exists(path), "the ssh to begin")
        with open(path) as f:
            return int(f.read())

    def arguments(self, nodes, spares, *options):
        return ["--launcher", "ssh", "--launcher-exec", self.path, "--hosts", ",".join(HOSTS[:nodes + spares]), "--spares", str(spares),
                *options]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.directory.cleanup()


def expect_started(fates, nodes, spares, lines, *options, program=None, places=None):
    with Hosts(**fates) as hosts:
        code, out, err = run(hosts.arguments(nodes, spares, "-n", str(nodes), *options) + (program or PLACES))
        assert code == 0, (code, out, err)
        if not program:
            assert sorted(out.splitlines()) == ["%d %d %d" % (r, r, nodes) for r in range(nodes)], out
        said = err.splitlines()
        assert len(said) == len(lines) and all(re.search(p, s) for p, s in zip(lines, said)), err
        return out


def missing(node, why="could not be started: ssh: connect to host .* No route to host", then="a spare takes its place"):
    return r"keelrun: node %d \(%s\) %s; %s$" % (node, HOSTS[node], why, then)


def test_host_that_cannot_be_reached_is_replaced_by_a_spare():
    for node in 0, 1, 2:
        expect_started({"h%d" % node: "broken"}, 3, 1, [missing(node)])


def test_host_that_has_no_address_here_is_its_launchers_matter():
    unknown = "no-such-host.invalid"
    with Hosts() as hosts:
        arguments = ["--launcher-exec", hosts.path, "-n", "1", "--hosts"]
        # a name of ~/.ssh/config
        code, out, err = run(arguments + ["%s,%s" % (unknown, HOSTS[0]), "-n", "2"] + PLACES)
        assert (code, sorted(out.splitlines()), err) == (0, ["0 0 2", "1 1 2"], ""), (code, out, err)
        hosts.write(unknown, "broken")
        code, out, err = run(arguments + ["%s,%s" % (unknown, HOSTS[0]), "--spares", "1"] + PLACES)
        assert (code, out) == (0, "0 0 1\n"), (code, out, err)
        assert err == "keelrun: node 0 (%s) could not be started: ssh: connect to host %s port 22: No route to host; a spare takes its place\n" % (
            unknown, unknown), err
        code, out, err = run(arguments + [unknown] + PLACES)
        assert (code, out) == (1, "") and unknown in err and len(err.splitlines()) == 1, (code, out, err)


def test_host_that_never_answers_is_replaced_after_its_time():
    begin = time.monotonic()
    late = r"has not joined within 6 s"
    with Hosts(h1="silent") as hosts:
        code, out, err = run(hosts.arguments(2, 1, "-n", "2", "--start-timeout", "6") + PLACES)
        assert code == 0 and sorted(out.splitlines()) == ["0 0 2", "1 1 2"], (code, out, err)
        assert re.search(late, err) and len(err.splitlines()) == 1, err
    assert time.monotonic() - begin >= 6


def test_ssh_that_is_killed_again_and_again_is_replaced():
    with Hosts(h0="begun") as hosts:
        with Job(hosts.arguments(2, 1, "-n", "2") + PLACES) as job:
            killed = set()
            while job.process.poll() is None and "spare" not in job.stderr():
                pid = hosts.pid()
                if pid not in killed:
                    time.sleep(0.5)  # one that ends at once, without a word, is found by the time limit only
                    os.kill(pid, signal.SIGKILL)
                    killed.add(pid)
                time.sleep(0.01)
            assert job.wait() == 0 and killed, job.stderr()
            assert sorted(job.stdout().splitlines()) == ["0 0 2", "1 1 2"], job.stdout()
            assert len(job.stderr().splitlines()) == 1 and "node 0 (%s) could not be started" % HOSTS[0] in job.stderr(), job.stderr()


def test_ssh_that_is_stopped_before_its_node_joined_is_replaced():
    with Hosts(h1="begun") as hosts:
        with Job(hosts.arguments(2, 1, "-n", "2", "--start-timeout", "6") + PLACES) as job:
            pid = hosts.pid()
            os.kill(pid, signal.SIGSTOP)
            assert job.wait() == 0, job.stderr()
            assert "node 1 (%s) has not joined within 6 s" % HOSTS[1] in job.stderr(), job.stderr()
            wait_for(lambda: not alive(pid), "the stopped ssh to be ended")


def test_agent_that_dies_before_the_start_is_replaced():
    with Hosts(h1="slow") as hosts:
        with Job(hosts.arguments(2, 1, "-n", "2") + PLACES) as job:
            def parent(pid):
                with open("/proc/%d/stat" % pid) as f:
                    return int(f.read().rsplit(")", 1)[1].split()[1])

            def is_keeld(pid):
                return keeltest.command_of(pid).endswith("/keeld")

            def agents():
                """The child of each stub."""
                found = []
                for pid in keeltest.processes_with(job.tag):
                    try:
                        if is_keeld(pid) and is_keeld(parent(pid)) and not is_keeld(parent(parent(pid))):
                            found.append(pid)
                    except OSError:
                        pass
                return found
            first = wait_for(agents, "an agent")[0]
            time.sleep(0.5)  # it has joined
            os.kill(first, signal.SIGKILL)
            wait_for(lambda: "its agent ended before the start" in job.stderr(), "its death to be told")
            hosts.write("on", "")
            assert job.wait() == 0, job.stderr()
            assert sorted(job.stdout().splitlines()) == ["0 0 2", "1 1 2"], job.stdout()
            assert len(job.stderr().splitlines()) == 1, job.stderr()


def test_node_that_comes_too_late_is_refused():
    """keelrun is stopped while it comes, and finds its time over and another one in its place before it hears of it."""
    with Hosts(h1="slow") as hosts:
        with Job(hosts.arguments(2, 1, "-n", "2", "--start-timeout", "5") + PLACES, env={"KEEL_LOG": "info"}) as job:
            time.sleep(3)
            job.process.send_signal(signal.SIGSTOP)

            def keelds():
                return {p for p in keeltest.processes_with(job.tag) if keeltest.command_of(p).endswith("/keeld")}
            before = keelds()
            hosts.write("on", "")

            def come():
                return keelds() - before  # the ssh of ours has become the stub
            wait_for(lambda: len(come()) >= 2, "its agent to come")
            time.sleep(2.5)
            job.process.send_signal(signal.SIGCONT)
            assert job.wait() == 0, job.stderr()
            assert sorted(job.stdout().splitlines()) == ["0 0 2", "1 1 2"], job.stdout()
            assert "(%s) has not joined within 5 s" % HOSTS[1] in job.stderr() and "came too late" in job.stderr(), job.stderr()


def test_spare_that_does_not_come_is_done_without():
    expect_started({"h2": "broken"}, 2, 1, [missing(2, then="the job starts without this spare")])
    expect_started({"h2": "broken"}, 2, 2, [missing(2, then="the job starts without this spare")], program=[CRASH, "9", "9", "never"])


def test_two_that_do_not_come_take_two_spares():
    with Hosts(h0="broken", h2="broken") as hosts:
        code, out, err = run(hosts.arguments(3, 2, "-n", "3") + PLACES)
        assert code == 0 and sorted(out.splitlines()) == ["%d %d 3" % (r, r) for r in range(3)], (code, out, err)
        assert sorted(err.splitlines())[0].startswith("keelrun: node 0 (") and len(err.splitlines()) == 2, err


def test_spare_that_takes_a_place_brings_its_rack():
    """The spare is in the first node's rack: in that one's place it leaves two racks, in the other one's there is one."""
    with tempfile.NamedTemporaryFile("w") as f:
        f.write("%s,%s left\n%s right\n" % (HOSTS[0], HOSTS[2], HOSTS[1]))
        f.flush()
        alone = "keelrun: the nodes that have come are all of one rack: no copy is in another one$"
        expect_started({"h0": "broken"}, 2, 1, [missing(0)], "--topology-file", f.name)
        expect_started({"h1": "broken"}, 2, 1, [missing(1), alone], "--topology-file", f.name)


def test_two_that_do_not_come_with_one_spare_end_the_start():
    with Hosts(h0="broken", h1="broken") as hosts:
        code, out, err = run(hosts.arguments(2, 1, "-n", "2") + PLACES)
        said = err.splitlines()
        assert code == 1 and out == "" and len(said) == 2, (code, out, err)
        assert said[0].endswith("a spare takes its place") and re.match(r"keelrun: node [01] \(.*No route to host$", said[1]), err


def test_without_a_spare_it_is_one_line_as_ever():
    with Hosts(h1="broken") as hosts:
        code, out, err = run(hosts.arguments(2, 0, "-n", "2") + PLACES)
        assert code == 1 and out == "" and len(err.splitlines()) == 1 and "node 1 (%s) could not be started" % HOSTS[1] in err, err


def test_abort_takes_no_spare():
    with Hosts(h1="broken") as hosts:
        code, out, err = run(hosts.arguments(2, 1, "-n", "2", "--on-failure", "abort") + PLACES)
        assert code == 1 and out == "" and len(err.splitlines()) == 1, (code, err)


def test_program_of_keel_and_of_mpi_run_in_the_other_places():
    expect_started({"h0": "broken"}, 2, 2, [missing(0)], program=[CRASH, "9", "9", "never"])
    if MPI_SUM:
        out = expect_started({"h0": "broken"}, 3, 1, [missing(0)], program=[MPI_SUM])
        assert out.count("sum 3") == 3, out


def test_spare_that_took_a_place_can_be_replaced_in_its_turn():
    with Hosts(h1="broken") as hosts:
        with Job(hosts.arguments(2, 2, "-n", "2") + [CRASH, "9", "9", "never", "hold"]) as job:
            wait_for(lambda: job.stdout() == "here\n", "keel_init")
            status = job.wait_ranks(3)
            assert sorted(status["nodes"]) == [0, 1, 2] and [n["spare"] for n in status["nodes"].values()] == [False, False, True]
            os.kill(status["nodes"][1]["agent_pid"], signal.SIGKILL)
            wait_for(lambda: "rank 1 continues on node 2" in job.stderr(), "the other spare to take over")
            # it is host 3 that took place 1, and host 2 that is the spare
            assert "node 1 (%s) died" % HOSTS[3] in job.stderr() and "node 2 (%s)" % HOSTS[2] in job.stderr(), job.stderr()
            assert job.wait() == 0, job.stderr()


def test_watchers_of_a_file_give_way_to_a_ring():
    with tempfile.NamedTemporaryFile("w", prefix="keel-test-") as f:
        f.write("0 1\n1 2\n2 0\n")
        f.flush()
        expect_started({"h1": "broken"}, 2, 1, [missing(1), "watch each other in a ring"], "--topology", "file:" + f.name)


keeltest.main(globals())
