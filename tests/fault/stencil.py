"""keel-stencil has the same bits whoever dies: ranks, nodes, one after the other, at moments that KEEL_SEED draws."""
import os
import random
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import keeltest
from keeltest import KEELCTL, Job, run, wait_for

STENCIL = os.environ.get("KEEL_STENCIL", "build/apps/stencil/keel-stencil")
SEED = int(os.environ.get("KEEL_SEED", time.time_ns() % 10**6))
RUNS = [("5p", []), ("9p", ["--periodic"]), ("7p", ["--cells", "24x24x24"]),
        ("27p", ["--cells", "20x24x22", "--periodic"])]
SETTLES = ["--cells", "32x32", "--tolerance", "2e-5", "--sweeps", "5000"]


def result(out):
    """Sweeps, whether it settled, and the bits; rank 0 tells it again if it dies before the others know."""
    lines = out.splitlines()
    words, field = lines[-2], lines[-1]
    assert field.startswith("field ") and " sweeps" in words, out
    return words[words.index("ranks, "):words.rindex(",")], field


def reference(arguments):
    begun = time.monotonic()
    code, out, err = run(["-n", "4", "--nodes", "4", STENCIL] + arguments)
    assert code == 0 and err == "", (arguments, code, err)
    return result(out), time.monotonic() - begun


def strike(job, what, number):
    if what == "node":
        subprocess.run([KEELCTL, "kill-node", job.id(), str(number)], check=True, capture_output=True, timeout=30)
    else:
        pids = [e["pid"] for e in job.events("rank_start") if e["rank"] == number]
        try:
            os.kill(pids[-1], signal.SIGKILL)
        except ProcessLookupError:
            pass  # it has just ended


def begun(job, count):
    def there():
        assert job.process.poll() is None, (job.stdout(), job.stderr())
        return len([e for e in job.events("application") if e["name"] in ("stencil_begun", "stencil_back")]) >= count
    wait_for(there, "%d processes to begin" % count)


def whole(job):
    """A shadow survives one node at a time: until there are as many copies as before, or the job is over."""
    wait_for(lambda: job.process.poll() is not None or job.events("redundancy_restored"), "all copies to be there")


def struck(arguments, blows, seconds, draw):
    """blows: (what, number) one after the other. None: it was over before they came."""
    with Job(["--spares", "2", "-n", "4", "--nodes", "4", STENCIL] + arguments) as job:
        begun(job, 4)
        for i, (what, number) in enumerate(blows):
            if i > 0:
                whole(job)
            time.sleep(draw.uniform(0, seconds / (len(blows) + 1)))  # a moment, drawn
            if job.process.poll() is not None or job.stdout():
                break
            strike(job, what, number)
        code = job.wait()
        assert code == 0, (arguments, blows, code, job.stderr())
        died = [e for e in job.events("application") if e["name"] == "stencil_back"]
        return result(job.stdout()), len(died)


def blows_of(draw):
    kind = draw.choice(["rank", "node", "two nodes", "node and rank"])
    first, second = draw.sample(range(4), 2)
    return {"rank": [("rank", first)], "node": [("node", first)], "two nodes": [("node", first), ("node", second)],
            "node and rank": [("node", first), ("rank", second)]}[kind]


def each(arguments, count, draw):
    """So many runs, and more until somebody has died in time."""
    expected, seconds = reference(arguments)
    back = runs = 0
    while runs < count or back == 0:
        assert runs < count + 10, "nobody dies in time: seed %d" % SEED
        blows = blows_of(draw)
        found, died = struck(arguments, blows, seconds, draw)
        back, runs = back + died, runs + 1
        assert found == expected, (SEED, arguments, blows, found, expected)


def test_any_stencil_has_the_same_bits_whoever_dies():
    draw = random.Random(SEED)
    for stencil, more in RUNS:
        each([stencil, "--sweeps", "200"] + more, 1, draw)


def test_it_settles_after_as_many_sweeps_whoever_dies():
    each(["5p", "--look", "3"] + SETTLES, 2, random.Random(SEED + 1))


def test_who_dies_when_all_is_told_has_nothing_left_to_do():
    """The others have freed the field, and ended."""
    for what, rank in keeltest.each(("kill", "node"), (0, 2)):
        with Job(["--spares", "1", "-n", "4", "--nodes", "4", STENCIL, "9p", "--cells", "60x60", "--sweeps", "20"],
                 env={"KEEL_FAULT": "rank.leaving:1:%s:rank=%d" % (what, rank)}) as job:
            assert job.wait() == 0 and "code 0 after " in job.stderr(), (what, rank, job.stderr())


def test_it_is_said_for_whom_the_others_wait():
    """Whether they wait for a halo of the stopped one or for what its sweep changed. A field of 20x20 cells changes no
    bit after 3,035 sweeps; this one takes a hundred times as many."""
    with Job(["-n", "2", "--nodes", "2", STENCIL, "5p", "--cells", "200x200", "--sweeps", "1000000", "--tolerance",
              "1e-300", "--look", "1", "--pause", "5"]) as job:
        begun(job, 2)
        pid = next(e["pid"] for e in job.events("rank_start") if e["rank"] == 1)
        for n in range(1, 6):
            os.kill(pid, signal.SIGSTOP)
            wait_for(lambda: job.stderr().count("for rank 1 (node 1), which is stopped") == n, "a line: %d" % n, 60)
            os.kill(pid, signal.SIGCONT)
            wait_for(lambda: job.stderr().count("the wait for rank 1 (node 1) is over") == n, "the end: %d" % n, 60)
        subprocess.run([KEELCTL, "stop", job.id()], check=True, timeout=60)
        assert job.wait() == 143


def test_the_demonstration_ends_with_the_same_bits():
    top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
    done = subprocess.run([sys.executable, os.path.join(top, "scripts/demo_stencil.py"), "--build",
                           os.path.join(keeltest.BIN, ".."), "--top", top, "--seconds", "4", "--cells", "120x120"],
                          capture_output=True, text=True, timeout=250)
    assert done.returncode == 0 and done.stdout.count("*** place ") == 2, (done.stdout, done.stderr)
    assert "\nok   the bits of the field" in done.stdout, done.stdout
    assert done.stdout.count("moved, by places: rank ") == 2, done.stdout


if __name__ == "__main__":
    print("seed", SEED)
    keeltest.main(globals())
