"""mutate.py SOURCE SCRATCH [--seeds N] [--only NAME] [--first] [--markdown]: is each rule of
docs/protocols/replication.md, and of joining (detection.md, J1 to J12), held by a test?

Takes one rule after the other out of a copy of the tree (rules.py says by which change of the text), builds it, and
runs the simulation of the data half and the unit tests of that half. Prints which of them fail: so many of N seeds of a
scenario, or a unit test. A rule that nobody misses, or a change that does not fit the text any more, is a failure of
this program."""
import argparse
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from rules import RULES

SCENARIOS = ["random", "rank-kills", "node-kills", "large-puts", "three-copies", "freezes", "cuts", "storm", "mutexes", "meetings", "parts", "threads", "signals", "stores", "asleep", "rebuilds", "no-memory", "scant", "scarce", "joins", "moves", "slides", "together", "refusals", "weighings", "grids", "keeps", "replicas", "checks", "partners", "wrong-bits", "flips"]
CORE = ["joins"]  # of tests/sim/sim: membership alone; it ends at the first breach
UNITS = ["acting", "aimed", "aimed_call", "aimed_count", "aimed_cut", "aimed_given_up", "aimed_mutex", "aimed_names", "aimed_packed", "aimed_signal", "aimed_still", "aimed_stores", "aimed_witness", "check", "execute", "execute_once", "execute_packed", "execute_refused", "parcels", "refused", "repair", "repair_fill", "repair_memory", "repair_torn", "strong", "verify", "chain",
         "torn", "dedup", "dedup_pieces", "lane", "mail_lives", "meeting", "moves", "named_by_rank", "order", "ordering", "partner", "partner_deaths", "passing", "peer", "plan", "renew", "said", "scrub", "set_begins", "sets", "slide_data", "slides", "sliding", "store", "stripe", "view", "view_born", "view_deaths", "view_doubts", "view_moves", "view_random", "weighing", "born", "direct_refused"]
PROGRAMS = ["tests/unit/data/test_" + name for name in UNITS] + ["tests/unit/detect/test_detect_join", "tests/unit/detect/test_member_still", "tests/unit/detect/test_meet",
                                                           "tests/unit/topo/test_transit"]
TARGETS = ["tests/sim/data/sim-data", "tests/sim/sim"] + PROGRAMS
LIMIT_S = 300
LATE = -1000
late = set()  # scenarios that did not come to the end of their seeds


def copy_tree(source, scratch):
    tree = os.path.join(scratch, "tree")
    shutil.rmtree(tree, ignore_errors=True)
    ignore = shutil.ignore_patterns(".git", "build*", "__pycache__")
    shutil.copytree(source, tree, symlinks=True, ignore=ignore)
    return tree


def build(scratch):
    return subprocess.run(["ninja", "-C", os.path.join(scratch, "build")] + TARGETS, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)


def run(scratch, program, args):
    """(exit code, text); LATE: it did not end in time. A unit test has failed then; that many seeds were perhaps too
    many."""
    try:
        done = subprocess.run([os.path.join(scratch, "build", program)] + args, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=LIMIT_S)
        return done.returncode, done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired as expired:
        return LATE, (expired.stdout or b"").decode(errors="replace")


def breaches(scratch, scenario, seeds):
    """How many seeds, and what the first one said. Where time ran out, those that were breaches until then."""
    code, text = run(scratch, "tests/sim/data/sim-data",
                     ["--scenario", scenario, "--seed", "1", "--count", str(seeds), "--keep-going"])
    told = re.search(r"%s: \d+ seeds from \d+, (\d+) breaches" % scenario, text)
    seen = re.findall(r"^seed (\d+: .*)$", text, re.M)
    if code == LATE:
        late.add(scenario)
    return int(told.group(1)) if told else len(seen) + (code != 0 and code != LATE), seen[0] if seen else ""


def failed_units(scratch):
    found = []
    for unit in PROGRAMS:
        code, text = run(scratch, unit, [])
        if code:
            found += re.findall(r"^\[  FAILED  \] (test_\w+)$", text, re.M) or [os.path.basename(unit)]
    return sorted(set(found))


def look(scratch, seeds, enough=False):
    """Who misses the rule: scenarios with their breaches, unit tests, and what the first breach said. enough: the first
    will do."""
    found, first, units = [], "", failed_units(scratch)
    for scenario in CORE:
        code, text = run(scratch, "tests/sim/sim", ["--scenario", scenario, "--count", str(4 * seeds)])
        if code:
            found.append("core: %s" % scenario)
            first = first or "\n".join(re.findall(r"^FAILED: (.*)$", text, re.M))
    for scenario in SCENARIOS:
        if enough and (units or found):
            break
        n, said = breaches(scratch, scenario, seeds)
        if n:
            found.append("%s %d" % (scenario, n))
            first = first or said
    return found, units, first


def apply(tree, rule):
    path = os.path.join(tree, rule["file"])
    with open(path) as f:
        text = f.read()
    if text.count(rule["old"]) != 1:
        return None
    with open(path, "w") as f:
        f.write(text.replace(rule["old"], rule["new"]))
    return path, text


def one(tree, scratch, rule, seeds, enough):
    """(missed by nobody?, line of the table)."""
    applied = apply(tree, rule)
    if not applied:
        return False, "the text of %s has changed" % rule["file"], ""
    try:
        built = build(scratch)
        if built.returncode:
            return False, "does not build: " + built.stdout[-400:], ""
        sims, units, first = look(scratch, seeds, enough)
    finally:
        with open(applied[0], "w") as f:
            f.write(applied[1])
    who = "; ".join(filter(None, [", ".join(sims), ", ".join(units)]))
    return bool(who), who or "NOBODY", first


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source")
    parser.add_argument("scratch")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--only", action="append", help="names that contain this")
    parser.add_argument("--first", action="store_true", help="who misses a rule first will do")
    parser.add_argument("--markdown", action="store_true")
    o = parser.parse_args()
    os.makedirs(o.scratch, exist_ok=True)
    tree = copy_tree(os.path.abspath(o.source), o.scratch)
    shutil.rmtree(os.path.join(o.scratch, "build"), ignore_errors=True)
    subprocess.run(["meson", "setup", "--buildtype=release", os.path.join(o.scratch, "build"), tree], check=True, stdout=subprocess.DEVNULL)
    built = build(o.scratch)
    if built.returncode:
        sys.exit(built.stdout[-2000:])
    sims, units, first = look(o.scratch, min(o.seeds, 20))
    if sims or units:
        sys.exit("fails as it is: %s %s %s" % (sims, units, first))
    bad = 0
    print("| rule | taken out | missed by (seeds of %d; unit tests) |\n|---|---|---|" % o.seeds if o.markdown else "", flush=True)
    for rule in RULES:
        if o.only and not any(word in rule["name"] for word in o.only):
            continue
        begin = time.monotonic()
        good, who, first = one(tree, o.scratch, rule, o.seeds, o.first)
        bad += not good
        if o.markdown:
            print("| %s | %s | %s |" % (rule["rule"], rule["name"], who), flush=True)
        else:
            print("%-6s %-5s %s: %s (%.0f s)%s" % ("ok" if good else "FAILED", rule["rule"], rule["name"], who,
                                                  time.monotonic() - begin, "\n       " + first if first else ""), flush=True)
    if late:
        print("not all seeds in %d s: %s" % (LIMIT_S, ", ".join(sorted(late))))
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
