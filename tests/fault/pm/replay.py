"""Somebody who reads the network records what was said, and says it again."""
import os
import signal
import socket
import sys

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
        go_on(job)
        assert job.wait() == 0, job.stderr()
        assert job.stdout() == "put 1\nput 2\nhas 2\n", "an old put took effect: " + job.stdout()
        assert job.events("refused")[-1]["count"] >= 1, job.events()
        for s in replayed:
            s.close()


def test_replayed_datagrams_do_not_keep_a_frozen_node_alive():
    recorder = Recorder()
    with Job(["-n", "3", "--nodes", "3", "--on-failure", "degrade", PROGRAM]) as job:
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
