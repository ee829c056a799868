#!/usr/bin/env python3
"""protection.py BUILD [--runs 10] [--rate R] [--ranks 4] [--kernel cg] [--checks fence hash all] [--sets 3]: what
becomes of a kernel when bits of what it sends are flipped at random, as in RedMPI's section VII.

Two experiments for each check: flips in set 0 only, at a rate, and flips in all sets, at twice that rate. Run number k
has the seed k. A run has ended well (exit code 0, the kernel verified its result), was stopped (another exit code: the
replicas differed and nobody could say who is right), or is WRONG: exit code 0 without a verified result, or the exit
code of a kernel whose result is not the published one while a set was still whole. One WRONG run makes the exit code 1.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

FAR = ["--silence", "600s", "--stopped", "never"]


def named(log, name):
    with open(log, encoding="utf-8") as f:
        return sum('"name"' in line and json.loads(line).get("name") == name for line in f)


def run(args, check, rule, seed):
    """How it ended, how many flips there were, how many comparisons differed."""
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        done = subprocess.run(
            [os.path.join(args.build, "pm/keelrun"), *FAR, "-n", str(args.ranks), "--replicas", str(args.sets),
             "--check", check, "--event-log", log, "--inject", f"{rule},where=send,seed={seed}",
             os.path.join(args.build, "apps/npb/keel-npb"), args.kernel, "--class", args.problem],
            capture_output=True, text=True, timeout=600)
        flips, differ = named(log, "flip"), named(log, "mismatch")
    verified = "verification successful" in done.stdout
    stopped = "no set is left" in done.stderr or "differs between" in done.stderr and done.returncode != 0
    how = "well" if done.returncode == 0 and verified else "stopped" if done.returncode and stopped else "WRONG"
    if how == "WRONG":
        print(f"--check {check}, {rule}, seed {seed}: exit code {done.returncode}\n{done.stdout}{done.stderr[-3000:]}")
    return how, flips, differ


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--rate", type=float, default=5e-5, help="of flips to operations, where one set is hit")
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--sets", type=int, default=3)
    parser.add_argument("--kernel", default="cg")
    parser.add_argument("--problem", default="S", help="its class")
    parser.add_argument("--checks", nargs="+", default=["fence", "hash", "all"])
    args = parser.parse_args()
    wrong = 0
    print("check   hit      runs with 0, 1, 2, more flips   differences   well   stopped   WRONG")
    for check in args.checks:
        for hit, rule in ("set 0", f"rate={args.rate},set=0"), ("all", f"rate={2 * args.rate}"):
            runs = [run(args, check, rule, seed) for seed in range(1, args.runs + 1)]
            flips = [sum(f == n or n == 3 and f > 3 for _, f, _ in runs) for n in range(4)]
            ends = [sum(how == end for how, _, _ in runs) for end in ("well", "stopped", "WRONG")]
            wrong += ends[2]
            print(f"{check:8}{hit:9}{str(flips)[1:-1]:32}{sum(d for _, _, d in runs):11}{ends[0]:7}{ends[1]:10}"
                  f"{ends[2]:8}", flush=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
