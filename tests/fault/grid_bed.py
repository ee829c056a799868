"""Nodes joined neighbour to neighbour: messages go by the nodes between, a link is as slow as it is said to be, and a
node that is cut off goes on forwarding for the others."""
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from keeltest import IS_ROOT, KEELCTL, Job, Skip, main, wait_for

PLACED = os.environ.get("KEEL_PLACED", "build/tests/fault/placed")
EXCHANGE = os.environ.get("KEEL_EXCHANGE", "build/bench/bench-exchange")
ROW = ["--bed", "grid", "--grid", "4", "--spare-alloc", "1D(1,1)", "-n", "3"]


def need_root():
    if not IS_ROOT:
        raise Skip("needs root")


def forwarded(job, node):
    """Packets that were for others."""
    said = subprocess.run(["ip", "netns", "exec", "keel-%s-n%d" % (job.id()[:8], node), "cat", "/proc/net/snmp"],
                          capture_output=True, text=True, check=True).stdout
    names, values = (line.split() for line in said.splitlines() if line.startswith("Ip:"))
    return int(values[names.index("ForwDatagrams")])


def milliseconds(rate):
    with Job([*ROW, *rate, EXCHANGE, "3", "5p", "100000", "3"]) as job:
        assert job.wait() == 0, job.stderr()
        return float(re.search(r"^exchange (\S+)", job.stdout(), re.M)[1])


def test_grid_bed_a_link_has_its_rate():
    need_root()
    at_rate = milliseconds(["--link-rate", "4000"])
    assert at_rate > 100000 * 8 / 4000 / 2, at_rate # 10 ms of the rate go at once, and a link has no other messages
    assert milliseconds([]) < at_rate / 2


def test_grid_bed_nodes_between_forward():
    """Three ranks and a spare in a row: what the first and the third say to each other passes the second."""
    need_root()
    with Job([*ROW, PLACED, "60"]) as job:
        wait_for(lambda: forwarded(job, 1) > 50, "node 1 to forward")
        assert forwarded(job, 0) == 0
        assert job.wait() == 0, job.stderr()


def test_grid_bed_who_is_cut_off_forwards_and_no_more():
    """Node 1 is declared dead, its rank begins on the spare, and 0 and 2 still meet by way of its place."""
    need_root()
    with Job([*ROW, "--silence", "1s", "--substitution", "0D", PLACED, "400"]) as job:
        wait_for(lambda: job.stdout().count(" begins at ") == 3, "the ranks to begin")
        subprocess.run([KEELCTL, "bed", "cut", job.id(), "1"], check=True, stdout=subprocess.DEVNULL)
        wait_for(lambda: re.findall(r"^rank 1 is .* begins at (\d)", job.stdout(), re.M)[-1] == "3"
                 or job.process.poll() is not None,
                 "rank 1 to begin on the spare")
        before = forwarded(job, 1)
        wait_for(lambda: forwarded(job, 1) > before + 50, "node 1 to forward")
        assert job.wait() == 0, job.stderr()
        assert re.findall(r"^rank (\d) ends at (\d)", job.stdout(), re.M) == [("0", "0"), ("1", "3"),
                                                                              ("2", "2")], job.stdout()


main(globals())
