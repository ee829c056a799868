#!/usr/bin/env python3
"""ring.py KEELRUN PROGRAM [--bytes N] [--iterations N] [--ranks N] [--nodes N] [--out FOLDER]: a ring of puts, each
with its fence (bench/ring.c), without copies, with shadows, and with shadows while a node dies in the middle: the time
of an iteration before, in the middle and after. --out: ring.csv, and ring.svg and ring.png by gnuplot: the time of the
slowest living rank's iteration, by iteration, after FT-ARMCI's figure 10."""
import argparse
import os
import shutil
import statistics
import subprocess
import sys

PLOT = """set datafile separator ','
set key top right
set grid
set logscale y
set xlabel 'iteration'
set ylabel 'microseconds an iteration (slowest living rank)'
set title 'Displaced ring, %s'
%s
plot 'ring.csv' every ::1 using 1:2 with lines title 'no copies', \\
     '' every ::1 using 1:3 with lines title 'shadows', \\
     '' every ::1 using 1:4 with lines title 'shadows, a node is killed'
"""


def run(args, redundancy, kills):
    """by iteration: the longest time of the ranks that lived to the end"""
    env = dict(os.environ)
    if kills: # in the middle of the iterations of a rank that is not on the first node
        env["KEEL_FAULT"] = f"op.answered:{args.iterations // 2}:node:rank={args.ranks // 2}"
    done = subprocess.run([args.keelrun, "--on-failure", "degrade", "-n", str(args.ranks), "--nodes", str(args.nodes), args.program, str(args.bytes),
                           str(args.iterations), redundancy], env=env, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"the ring ended with {done.returncode}")
    by_rank = {}
    for line in done.stdout.splitlines():
        word, rank, iteration, _, us = line.split()
        if word == "ring":
            by_rank.setdefault(int(rank), {})[int(iteration)] = float(us)
    if (len(by_rank) < args.ranks) != kills:
        sys.exit(f"{len(by_rank)} of {args.ranks} ranks are left")
    return [max(times[i] for times in by_rank.values()) for i in range(args.iterations)]


def show(name, times):
    longest = max(range(len(times)), key=times.__getitem__)
    before, after = times[:longest] or times, times[longest + 1:] or times
    print(f"{name:30} median before {statistics.median(before):9.1f} us, longest {times[longest]:9.1f} (iteration {longest}), "
          f"median after {statistics.median(after):9.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("keelrun")
    parser.add_argument("program")
    parser.add_argument("--bytes", type=int, default=4096)
    parser.add_argument("--iterations", type=int, default=2000)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--out")
    args = parser.parse_args()
    what = f"{args.ranks} ranks on {args.nodes} nodes, {args.bytes} bytes"
    print(what)
    rows = {name: run(args, redundancy, kills) for name, redundancy, kills in (
        ("no copies", "none", False), ("shadows", "shadow", False), ("shadows, a node is killed", "shadow", True))}
    for name, times in rows.items():
        show(name, times)
    if args.out:
        os.makedirs(args.out, exist_ok=True)
        with open(os.path.join(args.out, "ring.csv"), "w") as f:
            f.write("iteration,none,shadow,killed\n")
            for i, line in enumerate(zip(*rows.values())):
                f.write("%d,%s\n" % (i, ",".join("%.1f" % us for us in line)))
        for kind, terminal in (("svg", "svg size 720,480 font 'sans,12'"), ("png", "pngcairo size 720,480 font 'sans,11'")):
            if shutil.which("gnuplot"):
                script = PLOT % (what, f"set terminal {terminal}\nset output 'ring.{kind}'")
                subprocess.run(["gnuplot"], input=script, text=True, cwd=args.out, check=True)


if __name__ == "__main__":
    main()
