#!/usr/bin/env python3
"""replicas.py BUILD [--rounds N] [--ranks N] [--nodes N] [--only PROGRAM ...] [--degrees 2 3]
[--checks none fence hash all]: what a program pays for its replicas and for what they compare.

r replicas compute r times as much, so each time stands beside that of r independent jobs that run side by side on the
same processors, each on as many nodes as a set has (--nodes), with as many copies of its data (one) and the same rule
for waiting: a job would else look for longer the fewer processes it has. All ways take turns, round by round, who
begins changes; a time is that of the whole job, from the start of keelrun to its end (of independent ones the last).
Printed: the median of the
rounds' times, and the medians of the rounds' ratios to the independent jobs. A job that does not end with 0, or says
that replicas differ, ends the run."""
import argparse
import os
import statistics
import subprocess
import sys
import time

FAR = ["--silence", "600s", "--stopped", "never"]


# What a job with more ranks than processors takes by itself (KEEL_SPIN_US of keel(7)); and no further copies
SAME = dict(os.environ, KEEL_SPIN_US="30", KEEL_ARMCI_REDUNDANCY="none")


def programs(build):
    apps, one = os.path.join(build, "apps"), ["--redundancy", "none"]
    npb, ga = [os.path.join(apps, "npb/keel-npb"), *one], os.path.join(apps, "ga")
    listed = {**{k: [*npb, k, "--class", "A"] for k in ("ep", "cg", "mg", "ft", "is")},
              "lu": [*npb, "lu", "--class", "W"],
              "stencil": [os.path.join(apps, "stencil/keel-stencil"), *one, "5p", "--cells", "512x512", "-s", "3000"],
              "hpccg": [os.path.join(apps, "hpccg/keel-hpccg"), "64", "64", "48"],
              "scf": [os.path.join(apps, "scf/keel-scf"), *one, "benzene.xyz", "--basis", "sto-3g"],
              "ga-fock": [os.path.join(ga, "ga-fock")], "ga-ladder": [os.path.join(ga, "ga-ladder")]}
    return {name: command for name, command in listed.items() if os.path.exists(command[0])}


def job(args, nodes, options):
    return subprocess.Popen([os.path.join(args.build, "pm/keelrun"), *FAR, "-n", str(args.ranks), "--nodes", str(nodes),
                             *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=SAME)


def seconds(args, degree, check, command):
    """check None: independent jobs."""
    begun = time.monotonic()
    if check is None:
        jobs = [job(args, args.nodes, command) for _ in range(degree)]
    else:
        jobs = [job(args, args.nodes * degree, ["--replicas", str(degree), "--check", check, *command])]
    told = [j.communicate() for j in jobs]
    took = time.monotonic() - begun
    for j, (out, err) in zip(jobs, told):
        if j.returncode or "differs between" in err:
            sys.exit(f"{command}, {degree} times, {check}: exit code {j.returncode}\n{out}{err}")
    return took


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--nodes", type=int, default=1, help="of a set")
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--degrees", type=int, nargs="+", default=[2, 3])
    parser.add_argument("--checks", nargs="+", default=["none", "fence", "hash", "all"])
    args = parser.parse_args()
    ways = [(1, None)] + [(degree, check) for degree in args.degrees for check in [None, *args.checks]]
    print("program    " + " ".join(f"{('alone' if d == 1 else f'{d} {check or chr(8741)}'):>15}" for d, check in ways))
    for name, command in programs(args.build).items():
        if args.only and name not in args.only:
            continue
        took = {way: [] for way in ways}
        for number in range(args.rounds):
            first = number % len(ways)
            for way in ways[first:] + ways[:first]:
                took[way].append(seconds(args, *way, command))
        cells = []
        for degree, check in ways:
            mine, beside = took[degree, check], took[degree if check else 1, None]
            ratio = statistics.median(a / b for a, b in zip(mine, beside))
            cells.append(f"{statistics.median(mine):8.3f} ({ratio:4.2f})")
        print(f"{name:10} " + " ".join(f"{cell:>15}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
