"""copies.py [--seed S] [--runs N]: a writer dies in the middle of a put to two other nodes, then the node of the
primary copy dies. The shadow must hold what was read from the primary: at the named steps of a large put, and at random
moments of any."""
import argparse
import os
import random
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from cluster import Cluster

PROGRAM = os.environ.get("KEEL_COPIES", "build/tests/fault/copies")
NODES, WRITER = 4, 0
# Target rank, two on a node, with copies on the next node: both copies elsewhere, the shadow on the writer's node, the
# primary there.
ELSEWHERE, SHADOW_HERE, PRIMARY_HERE = 4, 6, 1
LARGE = 3 << 20


def run(target, size, fault=None, delay_s=0.0):
    env = {"KEEL_FAULT": fault + ":kill:rank=0"} if fault else {}
    with Cluster(NODES, [PROGRAM, str(size), str(target)], ranks=2 * NODES, on_failure="degrade", env=env,
                 options=["--copies-at", "next"]) as job:
        assert job.started(), job.stderr()
        if not fault:
            assert job.until(lambda c: c.has("application", name="writing"), "the writer to write"), job.stderr()
            time.sleep(delay_s)
            job.kill_pid(next(pid for pid, rank in job.rank_pids[0].items() if rank == WRITER))
        assert job.until(lambda c: c.has("application", name="read"), "the first look"), job.stderr()
        # Only now, with the copies equal again, the other one counts.
        assert job.until(lambda c: c.has("redundancy_restored"), "the copies to be made equal"), job.stderr()
        job.expect_equal()
        job.kill_node(target // 2)
        code = job.wait()
        assert code == 0 and job.stdout().strip() == "copies: equal", (code, job.stdout(), job.stderr())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=int(os.environ.get("KEEL_SEED", time.time_ns() % 100000)))
    parser.add_argument("--runs", type=int, default=8)
    options = parser.parse_args()
    failed = 0
    cases = [(target, LARGE, "op.chunk_in_%s_cop%s:%d" % (where + (nth,)), 0.0)
             for target, where, nth in ((ELSEWHERE, ("one", "y"), 8), (ELSEWHERE, ("one", "y"), 11),
                                        (ELSEWHERE, ("all", "ies"), 8), (ELSEWHERE, ("all", "ies"), 15))]
    cases += [(ELSEWHERE, 8192, "op.put_between_copies:4", 0.0), (SHADOW_HERE, LARGE, "op.before_local_store:14", 0.0),
              (PRIMARY_HERE, LARGE, "op.before_local_store:14", 0.0), (SHADOW_HERE, LARGE, "op.after_local_store:14", 0.0),
              (PRIMARY_HERE, LARGE, "op.after_local_store:15", 0.0), (PRIMARY_HERE, 8192, "op.before_local_store:3", 0.0)]
    for i in range(options.runs):
        dice = random.Random(options.seed + i)
        cases.append((dice.choice([ELSEWHERE, SHADOW_HERE, PRIMARY_HERE]), dice.choice([8, 4096, 65536, 1 << 20, LARGE]), None,
                      dice.uniform(0, 0.05)))
    for target, size, fault, delay_s in cases:
        try:
            run(target, size, fault, delay_s)
        except AssertionError as why:
            failed += 1
            print("FAILED: to %d, %d bytes, %s, %.4f s: %s" % (target, size, fault, delay_s, why))
    print("copies: %d runs, seed %d, %d failed" % (len(cases), options.seed, failed))
    sys.exit(1 if failed else 0)


main()
