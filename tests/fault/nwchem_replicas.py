"""nwchem_replicas.py [--seeds N] [--first N]: Debian's NWChem, unmodified, two or three times side by side under
keelrun --replicas; a rank, a node, rank 0's node die in the middle, and the energy is right with exit code 0, once.

Its broadcasts carry bytes that it has never set, which differ between sets: --check none."""
import argparse
import os
import random
import re
import shutil
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from nwchem import ALONE, FAR, PROGRAM, RUN, strike
from cluster import Cluster

# What it finds with one process on its own ARMCI (docs/nwchem.md says what may differ between numbers of processes).
TASKS = {"scf": (r"Total SCF energy = +(\S+)", -76.010504991, "basis\n * library 6-31G*\nend\ntask scf energy\n"),
         "ccsd(t)": (r"Total CCSD\(T\) energy: +(\S+)", -76.119430686,
                     "basis\n * library 6-31G\nend\nscf\n thresh 1e-8\nend\nccsd\n freeze atomic\nend\n"
                     "task ccsd(t) energy\n")}
GEOMETRY = """start water
permanent_dir %(folder)s
scratch_dir %(folder)s
memory total 400 mb
geometry noautosym
 O  0.0  0.0       0.1173
 H  0.0  0.7572   -0.4692
 H  0.0 -0.7572   -0.4692
end
"""
RANKS, CLOSE = 2, 1e-7


class Water(Cluster):
    """So many sets, each on a node."""

    def __init__(self, replicas, task):
        self.task = task
        self.folder = tempfile.TemporaryDirectory(prefix="keel-nwchem-")
        path = os.path.join(self.folder.name, "water.nw")
        with open(path, "w") as f:
            f.write(GEOMETRY % {"folder": self.folder.name} + TASKS[task][2])
        options = FAR + ["--replicas", str(replicas), "--check", "none"]
        super().__init__(replicas, [RUN, PROGRAM, path], ranks=RANKS, on_failure=None, options=options, env=ALONE)

    def close(self):
        super().close()
        self.folder.cleanup()

    def expect_right(self, case):
        code = self.wait()
        found = re.findall(TASKS[self.task][0], self.stdout())
        assert code == 0 and len(found) == 1, (case, code, found, self.stderr())
        assert abs(float(found[0]) - TASKS[self.task][1]) < CLOSE, (case, found)
        left = [name for name in os.listdir(self.folder.name) if ".keel-" in name]
        assert not left, (case, left)
        return found[0]


def quiet_seconds(task):
    begun = time.monotonic()
    with Water(2, task) as job:
        job.expect_right("nobody dies")
    return time.monotonic() - begun


def die(seed, task, seconds):
    rng = random.Random(seed)
    replicas = rng.choice([2, 3])
    anyone = rng.randrange(replicas)
    kind, node = rng.choice([("node", 0), ("rank", 0), ("node", anyone), ("rank", anyone)])
    moment = rng.uniform(0, 0.8 * seconds)  # where most still run: who dies after the end shows nothing
    with Water(replicas, task) as job:
        assert job.started(), job.stderr()
        time.sleep(moment)
        job.poll()
        struck = job.process.poll() is None and strike(job, (kind, node))
        energy = job.expect_right((seed, replicas, kind, node, moment))
        print("seed %d: %s, %d sets, %s %d%s after %.2f s: %s" % (
            seed, task, replicas, kind, node, "" if struck else " (gone)", moment, energy), flush=True)
    return struck


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--first", type=int, default=1)
    args = parser.parse_args()
    if not shutil.which(PROGRAM):
        sys.exit(77)
    for task in TASKS:
        seconds = quiet_seconds(task)
        struck = sum(die(seed, task, seconds) for seed in range(args.first, args.first + args.seeds))
        assert struck, "nobody died in time"


if __name__ == "__main__":
    main()
