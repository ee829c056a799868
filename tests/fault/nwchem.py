"""nwchem.py [--seeds N] [--first N]: Debian's NWChem under keel-armci-run: water, whose energy is known.

It has not called keel_survive, so a death ends it with a line and a code other than 0, and an exit code of 0 always
stands for the right energy.
--seeds: kills at random moments."""
import argparse
import os
import random
import re
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from cluster import Cluster
from keeltest import run

RUN = os.environ.get("KEEL_ARMCI_RUN", "build/armci/graft/keel-armci-run")
PROGRAM = "nwchem.mpich"
# What NWChem finds with one process on its own ARMCI; what it asks of its iterations is 1e-6.
ENERGY, CLOSE = -76.010504991, 1e-7
START = """start water
permanent_dir %(folder)s
scratch_dir %(folder)s
geometry
 O  0.0  0.0       0.1173
 H  0.0  0.7572   -0.4692
 H  0.0 -0.7572   -0.4692
end
basis
 * library 6-31G*
end
task scf
"""
RESTART = """restart water
permanent_dir %(folder)s
scratch_dir %(folder)s
task scf
"""
# Nobody falls silent here but for want of a processor, which is no death.
FAR = ["--silence", "600s", "--stopped", "never"]
ALONE = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def energy_in(text):
    found = re.findall(r"Total SCF energy = +(\S+)", text)
    return float(found[0]) if found else None


class Water(Cluster):
    """NWChem on so many nodes, a process on each."""

    def __init__(self, nodes, copies, on_failure=None):
        self.folder = tempfile.TemporaryDirectory(prefix="keel-nwchem-")
        path = self.write("water.nw", "start")
        super().__init__(nodes, [RUN, PROGRAM, path], on_failure=on_failure, options=FAR,
                         env=dict(ALONE, KEEL_ARMCI_REDUNDANCY=copies))

    def write(self, name, how):
        """NWChem's input, for a start or a restart; its path."""
        path = os.path.join(self.folder.name, name)
        with open(path, "w") as f:
            f.write((START if how == "start" else RESTART) % {"folder": self.folder.name})
        return path

    def close(self):
        super().close()
        self.folder.cleanup()

    def energy(self):
        return energy_in(self.stdout())

    def iterations(self):
        """How many lines of its table NWChem has written."""
        return len(re.findall(r"^ +\d+ +-7\d\.\d{10} +\S+ +\S+ +\S+$", self.stdout(), re.M))


def is_right(energy):
    return energy is not None and abs(energy - ENERGY) < CLOSE


def is_told(text):
    """The line that says who died, and that it ends."""
    return re.search(r"process \d+ .*; the program has not called keel_survive and ends", text) is not None


def runs_to_its_end():
    for nodes, copies in (2, "none"), (2, "shadow"):
        with Water(nodes, copies) as job:
            code = job.wait()
            assert code == 0 and is_right(job.energy()), (nodes, copies, code, job.energy(), job.stderr())


def strike(job, what):
    """False: nobody was there any more."""
    kind, node = what
    if kind == "node":
        job.kill_node(node)
        return True
    pids = list(job.rank_pids.get(node, {}))
    for pid in pids:
        job.kill_pid(pid)
    return bool(pids)


def again(job):
    """docs/nwchem.md: it goes on from what it wrote last."""
    path = job.write("again.nw", "restart")
    code, out, err = run(FAR + ["-n", "2", "--nodes", "2", RUN, PROGRAM, path], env=ALONE)
    assert code == 0 and is_right(energy_in(out)) and "Loading old vectors" in out, (code, out[-2000:], err)


def a_death_in_the_middle():
    for what, on_failure in (("node", 1), None), (("rank", 0), "degrade"):
        with Water(2, "shadow", on_failure) as job:
            assert job.until(lambda c: c.iterations() >= 2, "two iterations"), job.stderr()
            assert strike(job, what)
            code = job.wait()
            assert code != 0 and is_told(job.stderr()), (what, code, job.energy(), job.stderr())
            again(job)


def random_moments(seeds, first):
    """After so many of the lines that NWChem writes, from its start to its end. Right, or told and a code other than
    0."""
    right = told = 0
    with Water(2, "none") as job:
        assert job.wait() == 0 and is_right(job.energy()), job.stderr()
        lines = len(job.stdout().splitlines())
    for seed in range(first, first + seeds):
        rng = random.Random(seed)
        nodes = rng.choice([2, 2, 4])
        copies = rng.choice(["none", "shadow", "shadow"])
        kind, node = rng.choice(["node", "rank"]), rng.randrange(nodes)
        line = rng.randrange(lines)
        with Water(nodes, copies) as job:
            assert job.started(), job.stderr()
            job.until(lambda c: len(c.stdout().splitlines()) >= line, "its output")
            time.sleep(rng.random() * 0.2)
            struck = strike(job, (kind, node))
            code, energy, said = job.wait(), job.energy(), job.stderr()
            print("seed %d: %d nodes, %s, %s %d%s at line %d: exit code %d, energy %s: %s" % (
                seed, nodes, copies, kind, node, "" if struck else " (gone)", line, code, energy,
                said.strip().splitlines()[0] if said.strip() else "nothing said"), flush=True)
            assert is_right(energy) if code == 0 else said.strip(), (seed, code, energy, said)
            assert energy is None or is_right(energy), (seed, code, energy, said)
            right += code == 0
            told += code != 0
    print("%d runs: %d right, %d ended with a line and a code other than 0" % (seeds, right, told))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=0)
    parser.add_argument("--first", type=int, default=1)
    args = parser.parse_args()
    if not shutil.which(PROGRAM):
        sys.exit(77)
    if args.seeds:
        random_moments(args.seeds, args.first)
    else:
        runs_to_its_end()
        a_death_in_the_middle()


if __name__ == "__main__":
    main()
