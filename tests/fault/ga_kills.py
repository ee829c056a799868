"""ga_kills.py [--kills N] [--seed S] [--scf PROGRAM] [--only NAME]: programs of Global Arrays that lose a process or a
node at a random moment of their run, from before MPI_Init to their end, in each mode of keelrun's. Each ends right, or
with a line that names the loss and a code other than 0; a result that is printed is right, and one that has not called
keel_survive prints none when it has lost somebody before. --scf: the Hartree-Fock program of GA's examples (scf.x, in
its folder), which prints -58.2005 if all is well; it is none of ours, and is left out where it is not given."""
import argparse
import os
import random
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from cluster import Cluster

NODES, RANKS = 4, 6
MODES = [(None, 0), ("degrade", 0), ("substitute", 0), ("copies", 1), (None, 1), ("degrade", 1)]
LOSS = re.compile(r"(process|rank) \d+ .*(was killed by|died with its node|ended without|has not been in Keel)|rank \d+ died with node|aborted the job with code|ranks died|no copy of the data is left", re.M)


def matmul():
    return {"name": "ga-matmul", "args": [os.environ["KEEL_GA_MATMUL"], "240", "10"], "survives": False, "result": r"ga-matmul: .*", "right": r" 13824 tasks, 0 wrong elements$"}


def survive(*quiet):
    return {"name": "ga-survive" + "".join(" " + q for q in quiet), "args": [os.environ["KEEL_GA_SURVIVE"], "80", "10", "3", *quiet], "survives": not quiet, "result": r"ga-survive: .*",
            "right": r" 0 wrong elements, .* group right$"}


def fock():
    return {"name": "ga-fock", "args": [os.environ["KEEL_GA_FOCK"], "20", "4", "3"], "survives": True, "result": r"ga-fock: .*", "right": r" 0 wrong elements"}


def scf(program):
    return {"name": "scf", "args": ["sh", "-c", "cd %s && exec ./%s" % os.path.split(os.path.abspath(program))], "survives": False, "result": r".*[Ff]inal energy.*", "right": r"-58\.2005"}


def job_of(program, mode, spares, redundancy):
    return Cluster(NODES, program["args"], ranks=RANKS, spares=spares, on_failure=mode, env={"KEEL_ARMCI_REDUNDANCY": redundancy, "KEEL_ARMCI_MPI_WAIT_S": "5"})


def results(program, job):
    return re.findall("^" + program["result"] + "$", job.stdout(), re.M)


def all_right(program, lines):
    return all(re.search(program["right"], line) for line in lines)


def undisturbed(program):
    """How long it takes; and that what is looked for is there."""
    with job_of(program, None, 0, "shadow") as job:
        assert job.started()
        begun = time.monotonic()
        code, lines = job.wait(), results(program, job)
        assert code == 0 and lines and all_right(program, lines), (program["name"], code, job.stdout(), job.stderr())
        return time.monotonic() - begun


def strike(job, rng):
    """True: somebody was there."""
    job.poll()
    if rng.random() < 0.5:
        pids = [pid for _, ranks in sorted(job.rank_pids.items()) for pid, rank in ranks.items() if rank >= 0]
        if pids:
            job.kill_pid(rng.choice(sorted(pids)))
        return bool(pids)
    node = rng.randrange(NODES)
    if job.rank_pids.get(node):
        job.kill_node(node)
    return bool(job.rank_pids.get(node))


def once(program, seed, seconds):
    rng = random.Random(seed)
    mode, spares = rng.choice(MODES)
    redundancy, delay = rng.choice(["none", "shadow", "shadow"]), rng.uniform(-0.1, 1) * seconds
    what = "seed %d: %s, %s, %d spares, %s, %.2f s" % (seed, program["name"], mode or "default", spares, redundancy, delay)
    with job_of(program, mode, spares, redundancy) as job:
        if delay >= 0:
            assert job.started(), (what, job.stderr())
            time.sleep(delay)
        else: # while it starts
            assert job.until(lambda c: any(c.rank_pids.values()), "a rank to start"), (what, job.stderr())
        before = len(results(program, job))
        struck = job.process.poll() is None and strike(job, rng)
        code = job.wait()
        lines, err = results(program, job), job.stderr()
        print("%s: %s%d, %d results" % (what, "" if struck else "over before, ", code, len(lines)), flush=True)
        assert all_right(program, lines), (what, code, lines, err)
        if code == 0:
            assert lines, (what, err)
        else:
            assert LOSS.search(err), (what, code, err)
            assert program["survives"] or len(lines) == before or before == 0, (what, lines, err)
        return code


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("KEEL_TEST_SEED", "0")) or random.randrange(1 << 30))
    parser.add_argument("--scf", default=os.environ.get("KEEL_GA_SCF"))
    parser.add_argument("--only", help="one of the programs")
    args = parser.parse_args()
    print("--seed %d" % args.seed, flush=True)
    programs = [matmul(), survive("quiet"), survive(), fock()] + ([scf(args.scf)] if args.scf else [])
    programs = [program for program in programs if args.only in (None, program["name"])]
    seconds = {program["name"]: undisturbed(program) for program in programs}
    ended = {program["name"]: 0 for program in programs}
    for i in range(args.kills):
        program = programs[i % len(programs)]
        ended[program["name"]] += once(program, args.seed + i, seconds[program["name"]]) != 0
    print("ended by a loss:", ended, "alone they take", {name: round(s, 2) for name, s in seconds.items()})
    never = [program["name"] for program in programs if not program["survives"] and not ended[program["name"]]]
    assert args.kills < 10 * len(programs) or not never, "no kill ended a program that has not called keel_survive: %s" % never


main()
