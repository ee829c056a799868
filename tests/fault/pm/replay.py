"""Somebody who reads the network records what was said, and says it again."""
import os
import signal
import socket
import struct
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../lib"))
import keeltest
from keeltest import Job, wait_for
from recorder import Recorder

PROGRAM = os.environ["KEEL_REPLAY"]


def say_again(destination, data):
    """Returns when the other side has closed, or says nothing more."""
    s = socket.create_connection(destination)
    s.settimeout(0.5)
    s.sendall(data)
    try:
        while s.recv(4096):
            pass
    except OSError:
        pass
    return s


def listeners():
    """(address, port) of the TCP listeners of this network."""
    with open("/proc/net/tcp") as f:
        lines = [line.split() for line in list(f)[1:]]
    ends = [line[1].split(":") for line in lines if line[3] == "0A"]
    return [(socket.inet_ntoa(struct.pack("<I", int(a, 16))), int(p, 16)) for a, p in ends]


def go_on(job):
    job.process.stdin.write(b"go\n")
    job.process.stdin.flush()


def test_replayed_data_connection_changes_nothing():
    recorder = Recorder()
    with Job(["-n", "2", "--nodes", "2", PROGRAM]) as job:
        wait_for(lambda: job.stdout() == "put 1\n", "the first put")
        streams, _ = recorder.read()
        go_on(job)
        wait_for(lambda: job.stdout() == "put 1\nput 2\n", "the second put")
        hellos = [(ends[1], data) for ends, data in streams.items() if b"ihleek" in data[:300]]
        assert len(hellos) >= 3, "the agents' connections to each other, and rank 1's: %s" % list(streams)
        replayed = [say_again(*hello) for hello in hellos]
        wait_for(lambda: job.events("refused"), "a replayed hello to be refused")
        go_on(job)
        assert job.wait() == 0, job.stderr()
        assert job.stdout() == "put 1\nput 2\nhas 2\n", "an old put took effect: " + job.stdout()
        assert job.events("refused")[-1]["count"] >= 1, job.events()
        for s in replayed:
            s.close()


def test_replayed_control_connections_are_dropped():
    """What agents said to keelrun, and to the agent that keeps PMI's barriers; and what these answered, sent back to
    them."""
    program = os.environ.get("KEEL_MPI_SUM", "")
    if not program:
        raise keeltest.Skip("no mpicc")
    recorder = Recorder()
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
        with Job(["-n", "2", "--nodes", "2", program, "wait"], env={"DIR": directory}) as job:
            wait_for(lambda: job.stdout().count("begin") == 2, "MPI_Init")
            streams, _ = recorder.read()
            said = {ends: data for ends, data in streams.items() if data.startswith(b"KEEL-PM3")}
            asked = [(to, data) for (source, to), data in said.items() if len(data) > 100 and (to, source) in said]
            assert len({to for to, _ in asked}) >= 2, "keelrun's listener and an agent's: %s" % list(said)
            replayed = []
            for (source, to), data in said.items():
                for where in {source, to} & set(listeners()):
                    replayed.append(say_again(where, data))
            assert len(replayed) >= 4, (len(replayed), list(said))
            wait_for(lambda: "dropped a connection from" in job.stderr() and "authentication failed" in job.stderr(), "them to be dropped")
            status = job.status()
            assert [n["state"] for n in status["nodes"].values()] == ["running"] * 2 and status["keelrun"], status
            open(os.path.join(directory, "go"), "w").close()
            assert job.wait() == 0, job.stderr()
            assert job.stdout().count("sum 1") == 2 and not job.events("view"), job.stdout()
            assert "dropped a connection from" in job.stderr() and "authentication failed" in job.stderr(), job.stderr()
            for s in replayed:
                s.close()


def test_replayed_datagrams_do_not_keep_a_frozen_node_alive():
    recorder = Recorder()
    with Job(["-n", "3", "--nodes", "3", "--silence", "780ms", "--stopped", "1", "--on-failure", "degrade", PROGRAM]) as job:
        wait_for(lambda: job.stdout() == "put 1\n", "the first put")
        agent = job.wait_ranks(3)["nodes"][2]["agent_pid"]
        os.kill(agent, signal.SIGSTOP)
        wait_for(lambda: len(job.events("suspect")) >= 2, "the others to suspect node 2")
        os.kill(agent, signal.SIGCONT)
        wait_for(lambda: len(job.events("cleared")) >= 2, "node 2 to answer their pings")
        recorded = [(to, data) for source, to, data in recorder.read()[1] if source[0] == "127.0.0.4"]
        assert len(recorded) >= 2, recorded
        os.kill(agent, signal.SIGSTOP)
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

        def dead():
            for to, data in recorded:
                s.sendto(data, to)
            return [e for e in job.events("view") if e.get("dead_node") == 2]
        wait_for(dead, "node 2 to be declared dead while its old datagrams keep coming")
        go_on(job)
        go_on(job)
        assert job.wait() == 0, job.stderr()
        s.close()


keeltest.main(globals())
