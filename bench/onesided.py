"""Keel's one-sided operations beside those of other libraries on the same machine: onesided.py KEELRUN KEEL-PROGRAM
[--armci-mpi PROGRAM] [--mpich PROGRAM] [--openmpi PROGRAM] [--nodes 1|2|3] [--copies] [--rounds N] [--only OPERATION
...] [--curves FOLDER]

The programs (bench/onesided.c) run all the time and take turns, round by round; who has no turn is stopped
(bench/collectives.py). Each line: the median of the rounds in microseconds, and the median of the rounds' ratios of
Keel's time to the peer's. Two processes, of which one works on the other's memory: on one node, or (--nodes 2) over TCP
on loopback. With --nodes 3 a third one has nothing to do, so that both copies of what is shadowed lie elsewhere.
--copies: Keel with shadows and with triples, too.

--curves: puts and gets of 8 bytes to 4 MiB instead, Keel's with shadows, too: FOLDER/on-N-nodes.csv, and by gnuplot the
time and the rate by size, after FT-ARMCI's figures 6 to 9."""
import argparse
import os
import shutil
import statistics
import subprocess
import sys

from collectives import Side, guarded, open_mpi, row

SIZES = [("put", 8, 2000), ("put", 4096, 1000), ("put", 65536, 200), ("put", 1 << 20, 20), ("get", 8, 2000), ("get", 4096, 1000), ("get", 65536, 200),
         ("get", 1 << 20, 20), ("put-16", 65536, 200), ("put-16", 1 << 20, 20), ("get-16", 4096, 1000), ("get-16", 65536, 200), ("get-16", 1 << 20, 20),
         ("put-nb", 8, 2000), ("put-nb", 4096, 1000), ("get-nb", 8, 2000), ("get-nb", 4096, 1000), ("accumulate", 8, 2000), ("accumulate", 4096, 500), ("accumulate", 1 << 20, 10), ("accumulate-handle", 8, 2000),
         ("fetch-add", 8, 2000), ("strided", 64, 10), ("strided", 1024, 20), ("strided", 4096, 20), ("strided", 16384, 20), ("put-busy", 8, 2000),
         ("get-busy", 8, 2000), ("fetch-add-busy", 8, 2000), ("alloc", 8, 50), ("alloc", 1 << 20, 20), ("threads", 1, 200000),
         ("threads", 2, 200000), ("threads", 4, 200000)]
CURVES = [(operation, 8 << shift, max(5, min(1000, (16 << 20) // (8 << shift)))) for operation in ("put", "get") for shift in range(0, 20)]
PLOT = """set datafile separator ','
set terminal svg size 900,420 font 'sans,11'
set logscale x 2
set logscale y
set format x '%%.0b%%B'
set xlabel 'bytes'
set grid
set xtics 8, 16
set key bottom right
do for [what in 'time rate'] {
    set output 'on-%(nodes)s-nodes-'.what.'.svg'
    set ylabel what eq 'time' ? 'microseconds' : 'GB/s'
    set multiplot layout 1,2
    do for [operation in 'put get'] {
        set title sprintf('%%s, %%s', operation, %(where)s)
        plot for [c in '%(columns)s'] sprintf("< grep -e '^operation' -e '^%%s' on-%(nodes)s-nodes.csv", operation) \\
            using 2:(what eq 'time' ? column(int(c)) : $2 / column(int(c)) / 1000) with linespoints title columnheader(int(c))
    }
    unset multiplot
}
"""


def measure(sides, operation, size, times, rounds):
    """by round, each side's time; who begins changes"""
    got = []
    for number in range(rounds):
        first = number % len(sides)
        turn = {side: side.measure(operation, size, times) for side in sides[first:] + sides[:first]}
        got.append([turn[side] for side in sides])
    return got


def curves(folder, nodes, names, sides, rounds):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, f"on-{nodes}-nodes.csv"), "w") as f:
        f.write(",".join(["operation", "bytes"] + names) + "\n")
        for operation, size, times in CURVES:
            medians = [statistics.median(side) for side in zip(*measure(sides, operation, size, times, rounds))]
            f.write(f"{operation},{size}," + ",".join(f"{us:.3f}" for us in medians) + "\n")
            f.flush()
    if shutil.which("gnuplot"):
        where = "'within a node'" if nodes == "1" else "'between nodes, TCP on loopback'"
        script = PLOT % {"nodes": nodes, "where": where, "columns": " ".join(str(3 + i) for i in range(len(names)))}
        subprocess.run(["gnuplot"], input=script, text=True, cwd=folder, check=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("keelrun")
    parser.add_argument("keel")
    parser.add_argument("--armci-mpi")
    parser.add_argument("--mpich")
    parser.add_argument("--openmpi")
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--curves")
    parser.add_argument("--copies", action="store_true")
    args = parser.parse_args()
    env, nodes = dict(os.environ), str(args.nodes)
    if args.nodes > 1:
        env.update(MPIR_CVAR_NOLOCAL="1", UCX_TLS="tcp,self", UCX_NET_DEVICES="lo")
    ranks = max(2, args.nodes)
    sides = [Side([args.keelrun, "-n", str(ranks), "--nodes", nodes, args.keel], ranks, os.environ, False)]
    names, header = ["Keel"], f"{'':15}{'bytes':>9}{'Keel':>10}"
    for copies in ("shadow", "triple") if args.copies else ("shadow",) if args.curves and args.nodes > 1 else ():
        sides.append(Side(sides[0].process.args, ranks, dict(os.environ, KEEL_BENCH_REDUNDANCY=copies), False))
        names.append(f"Keel with {'shadows' if copies == 'shadow' else 'triples'}")
        header += f"{copies:>10}{'ratio':>8}"
    for name, program in (("ARMCI-MPI", args.armci_mpi), ("MPICH", args.mpich)):
        if program and shutil.which("mpiexec.hydra"):
            sides.append(Side(["mpiexec.hydra", "-n", "2", program], 2, env, True))
            names.append(name)
            header += f"{name:>10}{'ratio':>8}"
    if args.openmpi and shutil.which("mpiexec.openmpi"):
        sides.append(Side(open_mpi(args.openmpi, 2, args.nodes), 2, os.environ, True))
        names.append("Open MPI")
        header += f"{'Open MPI':>10}{'ratio':>8}"
    print(f"2 processes, {nodes} nodes, {os.cpu_count()} processors, {args.rounds} rounds; microseconds\n{header}")
    if args.curves:
        curves(args.curves, nodes, names, sides, args.rounds)
    for operation, size, times in SIZES:
        if args.curves or (args.only and operation not in args.only):
            continue
        if operation == "threads" and args.nodes > 1:
            times //= 100 # a thousand times as long
        print(row(operation, size, measure(sides, operation, size, times, args.rounds)), flush=True)
    return max([side.end() for side in sides])


if __name__ == "__main__":
    sys.exit(guarded(main))
