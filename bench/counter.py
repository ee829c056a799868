"""Many ranks on one counter, beside MPICH's and Open MPI's, and plain TCP: counter.py KEELRUN KEEL-PROGRAM [--mpich
PROGRAM] [--openmpi PROGRAM] [--ranks N] [--nodes N] [--rounds N]

The programs (bench/counter.c) run all the time and take turns, round by round; who has no turn is stopped
(bench/collectives.py). Each line: medians of thousands of fetch-adds a second by all ranks together, and the median of
the rounds' ratios of Keel's to each other's; above 1 Keel does more. The MPI libraries talk over TCP on loopback only,
also between ranks that with Keel share a node. Their memory has one copy: beside a shadowed counter stands what they do
with one that is not."""
import argparse
import os
import shutil
import statistics
import sys

from collectives import Side, guarded, open_mpi

MS = 100
LINES = [("all", "all ranks"), ("far", "ranks of the other node"), ("shadow-all", "shadowed, all ranks"),
         ("shadow-far", "shadowed, of the other node")]


def sides_of(args):
    n = str(args.ranks)
    env = dict(os.environ, MPIR_CVAR_NOLOCAL="1", UCX_TLS="tcp,self", UCX_NET_DEVICES="lo")
    sides = [("Keel", Side([args.keelrun, "-n", n, "--nodes", str(args.nodes), args.keel], args.ranks, os.environ, False))]
    if args.mpich and shutil.which("mpiexec.hydra"):
        sides.append(("MPICH", Side([shutil.which("mpiexec.hydra"), "-n", n, args.mpich], args.ranks, env, True)))
    if args.openmpi and shutil.which("mpiexec.openmpi"):
        command = open_mpi(args.openmpi, args.ranks, 2)
        command[-1:-1] = ["--mca", "osc", "pt2pt"] # else it takes shared memory
        sides.append(("Open MPI", Side(command, args.ranks, os.environ, True)))
    return sides


def measure(sides, line, rounds):
    """by round: Keel's, plain TCP's, and the peers'"""
    got = []
    keel = sides[0][1]
    for number in range(rounds):
        order = list(range(len(sides)))
        order = order[number % len(sides):] + order[:number % len(sides)]
        turn = {}
        for i in order:
            turn[i] = sides[i][1].measure(line if i == 0 else line.replace("shadow-", ""), 8, MS)
        if min(turn.values()) <= 0:
            sys.exit(f"{line}: a counter that returns what it had returned: {turn}")
        raw = keel.measure("raw-" + line, 8, MS)
        got.append([turn[0], raw] + [turn[i] for i in range(1, len(sides))])
    return got


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("keelrun")
    parser.add_argument("keel")
    parser.add_argument("--mpich")
    parser.add_argument("--openmpi")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    sides = sides_of(args)
    print(f"one counter, {args.ranks} ranks, {args.nodes} nodes, {os.cpu_count()} processors, {args.rounds} rounds; thousands a second")
    print(f"{'':30}{'Keel':>10}" + "".join(f"{name:>10}{'ratio':>8}" for name in ["plain TCP"] + [name for name, _ in sides[1:]]))
    for line, title in LINES:
        got = measure(sides, line, args.rounds)
        text = f"{title:30}{statistics.median(r[0] for r in got):10.1f}"
        for i in range(1, len(got[0])):
            ratio = f"{statistics.median(r[0] / r[i] for r in got):8.2f}" if min(r[i] for r in got) > 0 else f"{'-':>8}"
            text += f"{statistics.median(r[i] for r in got):10.1f}{ratio}"
        print(text, flush=True)
    return max([side.end() for _, side in sides])


if __name__ == "__main__":
    sys.exit(guarded(main))
