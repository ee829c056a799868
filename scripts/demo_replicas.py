"""The demonstration behind ./demo --replicas: a Hartree-Fock run in which bits of what ranks add to the Fock matrix are
flipped, without protection and with two or three replicas of each rank; then a heat plate with one flipped bit."""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import demo  # noqa: E402
from demo import say  # noqa: E402

RANKS, ITERATIONS, DEADLINE_S, SHOWN = 4, 20, 600, 4
BITS = "where=send,step=1..,rate=0.05,seed=1"  # of single bits most are ironed out: docs/sdc.md
BIT = "where=send,rank=1,step=20,count=1,seed=3"
TOLD = re.compile(r"^rank \d+ .*differs between set|^rank \d+: what .* has put at ")
FIELD = re.compile(r"^field ([0-9a-f]+)$", re.M)


class Run:
    """One job that has ended: code, out and err, and how many bits were flipped."""

    def __init__(self, options, replicas, rule, *program):
        build = pathlib.Path(options.build)
        sets = ["--replicas", str(replicas)] if replicas > 1 else []
        if rule and replicas > 1 and "set=" not in rule:
            rule += ",set=1"  # one set is hit, the others are right
        with tempfile.TemporaryDirectory(prefix="keel-demo-") as folder:
            log = pathlib.Path(folder) / "events.jsonl"
            done = subprocess.run([str(build / "pm/keelrun"), "-n", str(RANKS), "--nodes", str(RANKS * replicas), *sets,
                                   *(["--inject", rule] if rule else []), "--event-log", str(log),
                                   str(build / program[0]), *program[1:]],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=DEADLINE_S,
                                  start_new_session=True, check=False)
            events = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        self.code, self.out, self.err, self.rule = done.returncode, done.stdout, done.stderr, rule
        self.flips = sum(e.get("name") == "flip" for e in events)
        self.told = [line for line in self.err.splitlines() if TOLD.match(line)]
        found = re.search(demo.ENERGY.pattern, self.out, re.M)
        self.energy = float(found[1]) if found else None
        found = FIELD.search(self.out)
        self.field = found[1] if found else None

    def show(self):
        if self.rule:
            say(f"  (--inject {self.rule}: {self.flips} bit{'' if self.flips == 1 else 's'} flipped)")
        for line in self.out.splitlines():
            say("  " + line[:160])
        others = [line for line in self.err.splitlines() if line not in self.told]
        for line in self.told[:SHOWN] + ([f"... and {len(self.told) - SHOWN} more such lines"] * (
                len(self.told) > SHOWN)) + others[:SHOWN]:
            say("  " + line[:200])
        say()


def judge(good, text):
    say(f"{'ok  ' if good else 'BAD '} {text}")
    return good


def stops(run, good):
    return judge(good, f"with 2 replicas: told, and the run stops with code {run.code}")


def scf(options, replicas, rule):
    run = Run(options, replicas, rule, "apps/scf/keel-scf", options.molecule, "-n", str(ITERATIONS))
    run.show()
    return run


def energies(options):
    name = pathlib.Path(options.molecule).stem
    say(f"{name} in sto-3g on {RANKS} nodes, undisturbed:")
    quiet = scf(options, 1, None)
    if quiet.code != 0 or quiet.energy is None:
        return judge(False, f"the run ended with code {quiet.code}")
    say("the same, and bits are flipped in what ranks send, most of it their parts of the Fock matrix; no replicas:")
    bare = scf(options, 1, options.inject)
    say(f"the same with {options.replicas} replicas of each rank on {RANKS * options.replicas} nodes; those of one set "
        "are hit:")
    safe = scf(options, options.replicas, options.inject)
    right = bare.code == 0 and bare.energy is not None and abs(bare.energy - quiet.energy) < 1e-8
    if right and not options.own:
        judge(False, "without replicas: the energy is right all the same")
    elif right:
        say("     without replicas the energy is right: the method has ironed these bits out")
    else:
        say(f"ok   without replicas: exit code {bare.code}, " + (
            f"energy {bare.energy - quiet.energy:+.2e} Hartree off" if bare.energy is not None else "no energy"))
    good = not right or options.own
    if options.replicas == 2:  # nobody knows who is right: never a wrong energy
        stopped = safe.code != 0 and safe.energy is None
        return stops(safe, stopped or safe.flips == 0) and good
    good &= judge(safe.code == 0 and safe.energy is not None, f"with 3 replicas: exit code {safe.code}")
    good &= judge(safe.flips == 0 or bool(safe.told), f"{safe.flips} bits flipped, {len(safe.told)} lines tell of them")
    if safe.energy is None:
        return False
    good &= demo.compare("energy with 3 replicas - undisturbed", safe.energy - quiet.energy, 1e-8)
    reference = demo.REFERENCE.get((name, "sto-3g"))
    if reference is not None:
        good &= demo.compare("energy with 3 replicas - reference", safe.energy - reference, 1e-6)
    return good


def fields(options):
    """What is computed forward keeps each wrong bit."""
    program = ("apps/stencil/keel-stencil", "5p", "--sweeps=50")
    say()
    say(f"a heat plate of 256x256 cells, 50 sweeps, a bit flipped in what one rank sends in the 20th ({BIT}):")
    quiet = Run(options, 1, None, *program)
    bare = Run(options, 1, BIT, *program)
    safe = Run(options, options.replicas, BIT, *program)
    for line in safe.told:
        say("  " + line)
    wrong = bare.code == 0 and bare.field not in (None, quiet.field)
    good = judge(quiet.code == 0 and wrong, f"without replicas: exit code {bare.code}, field {bare.field} instead of "
                 f"{quiet.field}")
    if options.replicas == 2:
        return stops(safe, safe.code != 0 and bool(safe.told)) and good
    return judge(safe.code == 0 and safe.field == quiet.field and bool(safe.told),
                 f"with 3 replicas: exit code {safe.code}, field {safe.field}, told") and good


def arguments():
    parser = argparse.ArgumentParser(prog="./demo", description=__doc__)
    parser.add_argument("molecule", nargs="?", default="benzene.xyz",
                        help="XYZ file, or one of the shipped ones (default benzene.xyz)")
    parser.add_argument("--replicas", type=int, choices=(2, 3), required=True,
                        help="how often the program runs side by side")
    parser.add_argument("--inject", metavar="RULE",
                        help=f"which bits are flipped, as keelrun(1) says it (default {BITS})")
    parser.add_argument("--build", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--top", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.own = options.inject is not None
    options.inject = options.inject or BITS
    return demo.shipped(parser, options)


def main():
    options = arguments()
    good = energies(options)
    return 0 if fields(options) and good else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
