"""Programs of Global Arrays run two and three times side by side, and go on when a process of the leading set is
killed: exit code 0, and one right result of each rank that prints one."""
import os
import random
import re
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import keeltest

FOLDER, RANKS = os.environ.get("KEEL_GA_FOLDER", ""), 2
FAR = ["--silence", "600s", "--stopped", "never"]
SEED = int(os.environ.get("KEEL_TEST_SEED", "0")) or random.randrange(1 << 30)
# Arguments with which it takes long enough to be killed, what it prints, and how many such lines.
PROGRAMS = {"ga-matmul": (["160", "10"], r"ga-matmul: .* on 2 processes, \d+ tasks, 0 wrong elements", 1),
            "ga-survive": (["60", "10", "2"], r"ga-survive: rank [01] of 2, 0 wrong elements, .* group right", 2),
            "ga-fock": (["16", "4", "3"], r"ga-fock: rank [01] of 2, 0 wrong elements", 2),
            "ga-ladder": ([], r"ga-ladder: rank [01] of 2, 0 wrong elements", 2),
            "ga-basics": ([], r" *ga-basics: +2 +0", 1)}


def job(name, replicas, long=False):
    args = PROGRAMS[name][0] if long else []
    return keeltest.Job([*FAR, "-n", str(RANKS), "--replicas", str(replicas), os.path.join(FOLDER, name), *args],
                        env={"OPENBLAS_NUM_THREADS": "1"})


def there():
    return [name for name in PROGRAMS if os.path.exists(os.path.join(FOLDER, name))]


def expect_right(j, name, replicas):
    _, line, lines = PROGRAMS[name]
    code, out = j.wait(), j.stdout()
    assert code == 0, (name, replicas, code, out, j.stderr())
    found = [text for text in out.splitlines() if text]
    assert len(found) == len(set(found)) == lines and all(re.fullmatch(line, text) for text in found), (name, out)


def test_sets_do_what_one_does():
    for name in there():
        for replicas in (2, 3):
            with job(name, replicas) as j:
                expect_right(j, name, replicas)
                assert j.stderr() == "", (name, replicas, j.stderr())


def kill(name, replicas, moment):
    """One of the leading set's processes, so long after all have begun. Was it there?"""
    with job(name, replicas, long=True) as j:
        j.wait_for_ranks(RANKS * replicas)
        time.sleep(moment)
        pids = {e["rank"]: e["pid"] for e in j.events("rank_start")}
        struck = j.process.poll() is None
        if struck:
            try:
                os.kill(pids[0], signal.SIGKILL)
            except ProcessLookupError:
                struck = False
        expect_right(j, name, replicas)
        retired = j.events("set_retired")
        assert not retired or (struck and "set 0 has lost rank 0" in j.stderr()), (name, replicas, j.stderr())
        return len(retired)


def test_a_process_is_killed():
    rng, retired = random.Random(SEED), 0
    for name in there():
        for replicas in (2, 3):
            moment = rng.uniform(0, 0.6)
            n = kill(name, replicas, moment)
            print(f"        {name}, {replicas} sets, after {moment:.2f} s: {n} retired", flush=True)
            retired += n
    assert retired > 0, "nobody was killed in time"


if __name__ == "__main__":
    print("seed", SEED)
    keeltest.main(globals())
