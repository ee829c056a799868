#!/usr/bin/env python3
"""adds.py BUILD [--rounds N]: what accumulates cost where partners would do the part of the dead (--on-death partner),
one after the other in each set. Two sets of two ranks on a node each; jobs with and without it take turns. Printed:
bytes of an accumulate, and of blocking ones and of batches the median microseconds without and with it, and the median
of the pairs' ratios and between which these lie."""
import argparse
import os
import statistics
import subprocess
import sys

WAYS = ("retire", "partner")


def measured(build, way):
    """{bytes: (microseconds of one, of one in a batch)}."""
    done = subprocess.run([os.path.join(build, "pm/keelrun"), "--silence", "600s", "--stopped", "never", "-n", "2",
                           "--nodes", "4", "--replicas", "2", "--replica-world", "all", "--on-death", way,
                           os.path.join(build, "bench/bench-adds")],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f"{way}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    rows = [line.split() for line in done.stdout.splitlines()]
    return {int(size): (float(one), float(batch)) for size, one, batch in rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=6)
    args = parser.parse_args()
    took = {way: [] for way in WAYS}
    for number in range(args.rounds):
        for way in WAYS[::-1] if number % 2 else WAYS:
            took[way].append(measured(args.build, way))
    print(f"{'bytes':>8} {'':>9} {'retire us':>10} {'partner us':>10} {'ratio':>6}  pairs")
    for size in took["retire"][0]:
        for i, kind in enumerate(("blocking", "batches")):
            without, with_it = ([m[size][i] for m in took[way]] for way in WAYS)
            ratios = sorted(b / a for a, b in zip(without, with_it))
            print(f"{size:>8} {kind:>9} {statistics.median(without):>10.1f} {statistics.median(with_it):>10.1f} "
                  f"{statistics.median(ratios):>6.2f}  {ratios[0]:.2f} to {ratios[-1]:.2f}")


if __name__ == "__main__":
    main()
