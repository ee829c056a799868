#!/usr/bin/env python3
"""copies.py KEELRUN [--pairs N] [--ranks N] [--nodes N] [--copies NAME] PROGRAM [ARGUMENT...]: what copies cost a
program. It runs without and with them in pairs, which of the two first in turns; said are the medians of the runs'
times and of the pairs' ratios, with the least and the greatest: of the whole run, of the processor time of all its
processes, and of each line 'WHAT: NUMBER us' that it prints. Programs of ARMCI are told by their environment;
'{copies}' in an argument is replaced by none or NAME, as in  keel-scf benzene.xyz --redundancy {copies}"""
import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import time

LINE = re.compile(r"^(.+): ([0-9.]+) us$", re.M)


def processor_time():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(args, copies):
    """what took how many microseconds"""
    command = [word.replace("{copies}", copies) for word in [args.program, *args.arguments]]
    cpu, began = processor_time(), time.monotonic()
    done = subprocess.run([args.keelrun, "-n", str(args.ranks), "--nodes", str(args.nodes), *command], env=dict(os.environ, KEEL_ARMCI_REDUNDANCY=copies),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    taken = {"the whole run": 1e6 * (time.monotonic() - began), "processor time": 1e6 * (processor_time() - cpu)}
    if done.returncode:
        sys.exit(f"{' '.join(command)} with {copies}: exit code {done.returncode}\n{done.stdout}")
    taken.update((what, float(us)) for what, us in LINE.findall(done.stdout))
    return taken


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("keelrun")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--copies", default="shadow")
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    runs = []
    for pair in range(args.pairs):
        order = ["none", args.copies] if pair % 2 == 0 else [args.copies, "none"]
        taken = {copies: run(args, copies) for copies in order}
        runs.append((taken["none"], taken[args.copies]))
    print(f"{'microseconds, ' + str(args.pairs) + ' pairs':30} {'none':>12} {args.copies:>12}   ratio (least to greatest)")
    for what in runs[0][0]:
        without, with_them = [r[0][what] for r in runs], [r[1][what] for r in runs]
        ratios = [b / a for a, b in zip(without, with_them) if a > 0]
        print(f"{what:30} {statistics.median(without):12.1f} {statistics.median(with_them):12.1f}   {statistics.median(ratios):.3f} "
              f"({min(ratios):.3f} to {max(ratios):.3f})", flush=True)


if __name__ == "__main__":
    main()
