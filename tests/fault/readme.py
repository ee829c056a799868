"""The README's program, and that of keel(3), as they stand there, under the README's first promise: a node dies, and
the sum is right, on a spare or without one."""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import keeltest
from cluster import Cluster
from keeltest import BIN, SOURCE
from readme_text import Readme

README = Readme(SOURCE)
SAYS = r"rank (\d) of 4 on node \d: the sum is 10"
RANKS = 4
# Where a rank or its agent passes in these programs
POINTS = ["segment.deciding", "segment.decided", "segment.made", "task.drawn", "task.claimed", "task.accumulating", "acc.done", "op.answered",
          "task.committing", "task.committed", "replica.applied_not_forwarded", "replica.forwarded", "replica.forward_received", "replica.forward_stored",
          "replica.acknowledged_not_answered", "rank.leaving", "rank.left"]


def built(directory, program):
    with open(os.path.join(directory, "sum.c"), "w") as f:
        f.write(program)
    os.symlink(os.path.dirname(os.path.abspath(BIN)), os.path.join(directory, "build"))
    os.symlink(os.path.abspath(os.path.join(SOURCE, "include")), os.path.join(directory, "include"))
    subprocess.run(["sh", "-c", README.compile], cwd=directory, check=True)
    return os.path.join(directory, "sum")


def run(program, says, nodes, spares, fault):
    """Exit code 0, and no other sum; each rank whose node lives has said it. How many deaths there were."""
    with Cluster(nodes, [program], ranks=RANKS, spares=spares, on_failure=None, env={"KEEL_FAULT": fault}) as job:
        code, out, err = job.wait(), job.stdout(), job.stderr()
        job.poll()
        deaths = [e for e in job.has("view") if "dead_node" in e or "dead_rank" in e]
        assert code == 0, (fault, spares, code, out, err)
        lines = [re.fullmatch(says, line) for line in out.splitlines()]
        assert all(lines), (fault, spares, out, err)
        dead = {e["dead_node"] for e in deaths if "dead_node" in e}
        lost = {e["rank"] for e in job.has("rank_start") if e["node"] in dead or any(d.get("dead_rank") == e["rank"] for d in deaths)}
        if dead:  # and those of whose beginning their node had no time to tell
            lost |= set(range(RANKS)) - {e["rank"] for e in job.has("rank_start")}
        said = {int(line.group(1)) for line in lines}
        assert said >= set(range(RANKS)) - lost, (fault, spares, out, err)
        return len(deaths)


def everywhere(nodes, spares, text=README.program, says=SAYS, points=tuple(POINTS)):
    died = 0
    with tempfile.TemporaryDirectory() as directory:
        program = built(directory, text)
        for i, point in enumerate(points):
            died += run(program, says, nodes, spares, "%s:1:%s:node=%d" % (point, ("node", "kill")[i % 3 == 2], i % 2)) > 0
    assert died > len(points) / 2, "hardly anything died: %d" % died


def test_a_death_anywhere_with_a_spare():
    everywhere(2, 1)


def test_a_death_anywhere_without_one():
    everywhere(2, 0)


def test_the_program_of_the_manual():
    with open(os.path.join(SOURCE, "docs/man/keel.3")) as f:
        text = re.search(r"^\.nf\n(#include.*?)^\.fi", f.read(), re.DOTALL | re.MULTILINE).group(1)
    everywhere(2, 1, text.replace("\\en", "\\n").replace("\\-", "-"), r"rank (\d) of 4: 100",
               ("segment.decided", "segment.made", "task.claimed", "acc.done", "task.committed"))


keeltest.main(globals())
