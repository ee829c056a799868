"""What colliding messages cost on a real network: grid.py KEELRUN KEEL-PLACE EXCHANGE [--grid 5x5] [--spares 2D(2,1)]
[--pattern 5p|9p] [--method NAME ...] [--failures 6 7 ...] [--rate 20000] [--bytes 50000] [--times 5] [--rounds 3]
[--seed 1] [--out FOLDER]

The ranks of a stencil code, one a node, exchange with their neighbours on the grid bed (keelrun --bed grid), where one
node is dead and each method in turn has given its slot another one. Beside each time stands what keel-place counts for
the same failure: the most messages on one link. Times are divided by those of a job without failures in the same round,
so numbers are slowdowns; rounds come in an order drawn by the seed. Needs root, for namespaces.
  --rate    of each link and direction in kbit/s
  --out     grid.csv, and grid.svg by gnuplot: slowdown against collisions"""
import argparse
import math
import os
import random
import re
import shutil
import statistics
import subprocess
import sys

METHODS = ["0D", "1D", "2D", "hybrid(all)", "hybrid(-2D)", "balance", "repair"]
WHAT = ["exchange", "barrier", "sum"]
PLOT = """set datafile separator ','
set terminal svg size 640,480 font 'sans,11'
set output 'grid.svg'
set xlabel 'most messages on one link, over that without failures'
set ylabel 'time of the exchange, over that without failures'
set key top left
set grid
set xrange [0.5:*]
set yrange [0.5:*]
methods = '%(methods)s'
plot x notitle with lines dashtype 2 linecolor 'gray', \\
    for [m in methods] "< grep -F '\\"".m."\\"' grid.csv" using 5:6 title m with points pointtype 7
"""


def collisions(args, method, failure):
    """the most messages on a link after it, by keel-place's count"""
    common = ["--grid", args.grid, "--spares", args.spares, "--pattern", args.pattern]
    command = [args.place, "substitute", *common, "--method", method, "--fail", failure]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    found = re.findall(r"collisions (\d+)", ran.stdout)
    if ran.returncode != 0 or not found:
        sys.exit(f"{' '.join(command)}: exit code {ran.returncode}, {ran.stdout!r}")
    return int(found[-1])


def run(args, method, dead):
    """{what: milliseconds}; dead None: everybody lives"""
    command = [args.keelrun, "--bed", "grid", "--link-rate", str(args.rate), "--grid", args.grid, "--spare-alloc",
               args.spares,
               "--substitution", method, "-n", str(args.ranks)]
    if dead is not None:
        command += ["--dead", dead]
    command += [args.exchange, args.slots, args.pattern, str(args.bytes), str(args.times)]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {ran.returncode}")
    return {line.split()[0]: float(line.split()[1]) for line in ran.stdout.splitlines()}


def slots_of(args):
    """the grid of slots, as keel-place counts it"""
    ran = subprocess.run([args.place, "allocate", "--grid", args.grid, "--spares", args.spares], stdout=subprocess.PIPE,
                         text=True, check=True)
    found = re.search(r"^slots +([\dx]+),", ran.stdout, re.M)
    if not found:
        sys.exit(f"keel-place allocate says nothing of slots: {ran.stdout!r}")
    return found[1]


def spearman(pairs):
    def ranks(values):
        order = sorted(values)
        return [(order.index(v) + len(order) - 1 - order[::-1].index(v)) / 2 for v in values]
    x, y = ranks([p[0] for p in pairs]), ranks([p[1] for p in pairs])
    return pearson(list(zip(x, y)))


def pearson(pairs):
    if len({p[0] for p in pairs}) < 2 or len({p[1] for p in pairs}) < 2:
        return float("nan")
    mx, my = statistics.mean(p[0] for p in pairs), statistics.mean(p[1] for p in pairs)
    top = sum((x - mx) * (y - my) for x, y in pairs)
    return top / (sum((x - mx) ** 2 for x, _ in pairs) * sum((y - my) ** 2 for _, y in pairs)) ** 0.5


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("keelrun")
    parser.add_argument("place")
    parser.add_argument("exchange")
    parser.add_argument("--grid", default="5x5")
    parser.add_argument("--spares", default="2D(2,1)")
    parser.add_argument("--pattern", default="5p", choices=["5p", "9p"])
    parser.add_argument("--method", nargs="+", default=METHODS)
    parser.add_argument("--failures", nargs="+", default=["0", "1", "6", "7", "12", "13"])
    parser.add_argument("--rate", type=int, default=20000)
    parser.add_argument("--bytes", type=int, default=50000)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out")
    args = parser.parse_args()
    args.slots = slots_of(args)
    args.ranks = math.prod(int(n) for n in args.slots.split("x"))
    cases = [(method, failure) for failure in args.failures for method in args.method]
    last = math.prod(int(n.rstrip("t")) for n in args.grid.split("x")) - 1
    whole = collisions(args, "0D", str(last)) # a spare: nobody moves
    counted = {case: collisions(args, *case) for case in cases}
    print(f"grid {args.grid}, spares {args.spares}, {args.pattern}, {args.bytes} bytes, links of {args.rate} kbit/s, "
          f"{args.rounds} rounds of {args.times}, seed {args.seed}; without failures {whole} message(s) on a link",
          flush=True)
    times, draw = {case: [] for case in cases}, random.Random(args.seed)
    for _ in range(args.rounds):
        order = list(cases)
        draw.shuffle(order)
        plain = run(args, "0D", None)
        for case in order:
            got = run(args, *case)
            times[case].append({what: got[what] / plain[what] for what in WHAT})
    rows = []
    print(f"{'failure':9}{'method':14}{'on a link':>10}" + "".join(f"{what:>10}" for what in WHAT))
    for case in cases:
        slower = {what: statistics.median(t[what] for t in times[case]) for what in WHAT}
        rows.append((case, counted[case] / whole, slower))
        print(f"{case[1]:9}{case[0]:14}{counted[case]:10}" + "".join(f"{slower[what]:10.2f}" for what in WHAT))
    pairs = [(count, slower["exchange"]) for _, count, slower in rows]
    print(f"slowdown of the exchange against collisions, {len(pairs)} cases: correlation {pearson(pairs):.2f}, of ranks {spearman(pairs):.2f}")
    if args.out:
        write(args, rows)
    return 0


def write(args, rows):
    os.makedirs(args.out, exist_ok=True)
    with open(os.path.join(args.out, "grid.csv"), "w") as f:
        f.write("grid,failure,method,pattern,collisions,exchange,barrier,sum\n")
        for (method, failure), count, slower in rows:
            f.write(f"{args.grid},{failure},\"{method}\",{args.pattern},{count:.3f}," +
                    ",".join(f"{slower[what]:.3f}" for what in WHAT) + "\n")
    if shutil.which("gnuplot"):
        subprocess.run(["gnuplot"], input=PLOT % {"methods": " ".join(args.method)}, text=True, cwd=args.out,
                       check=True)


if __name__ == "__main__":
    sys.exit(main())
