"""Sets of replicas: a program of all calls runs as it does alone, a flipped bit is found or written over, and a process
that is killed costs its set."""
import os
import re
import signal
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../lib"))
import keeltest
from keeltest import each, run

PROGRAM, ODD, NPB, STENCIL = (os.environ.get("KEEL_" + name, "") for name in ("REPLICAS", "ODD", "NPB", "STENCIL"))
FAR = ["--silence", "600s", "--stopped", "never"]
WHERE = {1: "4th operation since the start, keel_put to rank 1, segment 1 at 0, 8 bytes",
         2: "operation since the start, keel_put_nb to rank 1, segment 1 at 8, 8 bytes",
         3: "keel_message_send to rank 1, tag 7, 8 bytes", 4: "keel_allreduce_sum, 8 bytes",
         5: "keel_put_signal to rank 1, segment 1 at 16, 8 bytes", 6: "keel_acc to rank 1, segment 1 at 4072, 8 bytes",
         7: "keel_put_strided to rank 1, segment 1 at 1024, 128 bytes",
         8: "operation since the start, keel_put to",
         9: "keel_put_vector to rank 1, segment 1 at 1400, 24 bytes", 10: "keel_group_allgather, 8 bytes",
         18: "keel_keep, range 1, 128 bytes"}
ENDS = (7, 9)  # of three that differ in it one ends
LANDS = r"keel_put to rank 1, segment 1, has put at 0, 8 bytes, lies there otherwise in set"
FINE = "all is as with one set\n"
LOOKING = ("hash", "all")


def job(*args, ranks=2, replicas=2, program=(PROGRAM,), env=None):
    sets = ["--replicas", str(replicas)] if replicas > 1 else []
    return run([*FAR, "-n", str(ranks), *sets, *args, *program], env=env or {}, seconds=120)


def few(**env):
    """For what is not about the many puts, more than are remembered."""
    return dict(env, KEEL_TEST_FEW="1")


def spoilt(name, rank, steps, *args, **kw):
    """One replica of the rank does it in that step, or in each of them: whichever comes first."""
    steps = steps if isinstance(steps, list) else [steps]
    with tempfile.TemporaryDirectory() as folder: # where all sets see who was first
        env = {name: f"{rank} {','.join(map(str, steps))} {folder}/claim"}
        return job("--replica-files", "all", *args, env=env if 8 in steps else few(**env), **kw)


def written_over(*args):
    """A bit that one of three replicas flips in what it sends: of all steps where the others can, at one start."""
    mended = [step for step in WHERE if step not in ENDS]
    code, out, err = spoilt("KEEL_TEST_FLIP", 0, mended, *args, replicas=3)
    assert (code, out) == (0, FINE) and "is retired" not in err, (args, code, out, err)
    assert all(WHERE[step] in err for step in mended), (args, err)
    assert len(re.findall(r": set \d has got the bytes of the others\n", err)) == len(mended), (args, err)
    for step in ENDS:
        code, out, err = spoilt("KEEL_TEST_FLIP", 0, step, *args, replicas=3)
        assert (code, out) == (0, FINE) and WHERE[step] in err and "is retired" in err, (args, step, code, out, err)
        assert len(re.findall(r": set \d ends\n", err)) == 1, (args, step, err)


def test_as_with_one_set():
    for ranks, replicas in each((1, 2, 3), (2, 3, 1)):
        assert job(ranks=ranks, replicas=replicas) == (0, FINE, ""), (replicas, ranks)
    assert job("--check", "none") == (0, FINE, "")


def test_wrong_and_rare_arguments_have_the_same_answers():
    def said(*args, **kw):
        code, out, err = job(*args, ranks=3, program=(ODD,), **kw)
        more = [line for line in err.splitlines() if "allocate it with other arguments" not in line]
        assert (code, more) == (0, []), (args, kw, code, out, err)
        return sorted(out.splitlines())
    alone = said("--nodes", "3", replicas=1)
    for replicas in (2, 3):
        for check in ("none", "fence", *LOOKING):
            assert said("--check", check, replicas=replicas) == alone, (check, replicas)


def test_an_atomic_lets_another_rank_write_over_what_was_put():
    """What is looked at is looked at before."""
    for replicas in (2, 3):
        for check in ("fence", *LOOKING):
            code, _, err = job("--check", check, "--nodes", str(3 * replicas), ranks=3, replicas=replicas,
                               program=(ODD, "turns"))
            assert (code, err) == (0, ""), (replicas, check, code, err)


def test_lines_of_the_library_are_the_same_in_all_sets():
    code, _, err = job(ranks=2, program=(ODD, "refused"))
    said = [f"rank {r}: warn: keel_links: not where the program has replicas" for r in range(2)]
    assert (code, sorted(err.splitlines())) == (0, said), (code, err)


def nodes(replicas):
    """Each rank has a node of its own."""
    return ["--nodes", str(2 * replicas)]


def test_as_with_one_set_when_all_is_looked_at():
    for ranks, check, replicas in each((1, 2, 3), LOOKING, (2, 3)):
        assert job("--check", check, ranks=ranks, replicas=replicas) == (0, FINE, ""), (check, replicas, ranks)
    for check, replicas in each(LOOKING, (3, 2)):
        assert job("--check", check, *nodes(replicas), replicas=replicas) == (0, FINE, ""), (check, replicas)


def test_a_question_that_was_flipped_is_outvoted():
    for replicas in (2, 3):
        with tempfile.TemporaryDirectory() as folder:
            env = few(KEEL_TEST_FLIGHT=f"0 1 {folder}/claim", KEEL_TEST_SECOND="1")
            assert job("--check", "all", *nodes(replicas), replicas=replicas, env=env) == (0, FINE, ""), replicas
            assert os.listdir(folder) == ["claim-1"]


def test_what_was_flipped_later_is_told():
    for check in LOOKING:
        for mode in ("report", "keep"):
            code, out, err = spoilt("KEEL_TEST_TARGET", 0, 1, "--check", check, "--on-mismatch", mode, *nodes(2))
            assert code == 0 and re.search(LANDS + r" \d\n", err), (mode, code, err)
            assert "ended with exit code 3" in err, (mode, err)  # the program of that set has seen it
        code, out, err = spoilt("KEEL_TEST_TARGET", 0, 1, "--check", "fence", *nodes(2))
        assert code == 0 and "otherwise" not in err and "ended with exit code 3" in err, (code, err)


def test_a_segment_has_one_copy():
    """But all, if that is asked for: more bytes go for each put."""
    for copies, has in ("one", "0"), ("all", "1"):
        code, _, err = job("--replica-copies", copies, env={"KEEL_TEST_COPIES": has})
        assert (code, err) == (0, ""), (copies, code, err)


def test_who_stands_still_when_another_set_has_found_something_hears_of_it():
    """Both replicas of rank 0 know that the memory of one set is wrong, and stand still. That of this set goes on
    first: its program will see it, too, and end."""
    for check in LOOKING:
        with tempfile.TemporaryDirectory() as folder:
            env = few(KEEL_TEST_TARGET=f"0 1 {folder}/claim",
                      KEEL_FAULT="replica.mending:1:stop:rank=0,replica.mending:1:stop:rank=2")
            looking = ["--replica-files", "all", "--check", check, "--on-mismatch", "report"]
            with keeltest.Job([*FAR, "-n", "2", "--replicas", "2", *looking, *nodes(2), PROGRAM], env=env) as still:
                pids = [still.wait_ranks(4)["nodes"][k]["ranks"][0]["pid"] for k in range(4)]
                for pid in pids[::2]:
                    keeltest.wait_for(lambda: keeltest.state_of(pid) == "T", "rank 0 to stand still")
                with open(f"{folder}/claim-1", encoding="ascii") as f:
                    wrong = pids.index(int(f.read())) // 2
                os.kill(pids[2 * wrong], signal.SIGCONT)
                end = time.monotonic() + 1  # in which the set would end, if it did not wait for the other one
                while "is retired" not in still.stderr() and time.monotonic() < end:
                    time.sleep(0.01)
                os.kill(pids[2 - 2 * wrong], signal.SIGCONT)
                assert still.wait() == 0, still.stderr()
                said = LANDS + rf" {wrong}\n"
                assert re.search(said, still.stderr()), (check, still.stderr())


def cost(check, replicas):
    """Messages and bytes that the replicas of rank 0 send for a put of 16 KiB to another node, and the best time."""
    with tempfile.TemporaryDirectory() as folder:
        code, _, err = job("--check", check, "--replica-files", "all", "--replica-world", "all", *nodes(replicas),
                           replicas=replicas, env=few(KEEL_TEST_COST=folder))
        assert code == 0 and err == "", (check, replicas, code, err)
        said = [[float(x) for x in open(os.path.join(folder, f), encoding="ascii").read().split()]
                for f in os.listdir(folder)]
        assert len(said) == replicas, (check, said)
        return sum(s[0] for s in said), sum(s[1] for s in said), max(s[2] for s in said)


def test_cost():
    """Bytes: r puts, but with all r for each of them. Messages: an exchange is one to each other replica."""
    put = 16 * 1024
    for replicas in (2, 3):
        r, others = replicas, replicas - 1
        for check, most_puts, most in (("none", r, 2 * r), ("fence", r, r * (1 + others) + r),
                                       ("hash", r, r * (2 + others) + r), ("all", r * r, r * (r + 3 * others) + r)):
            messages, count, best = cost(check, replicas)
            print(f"        {check} r={r}: {messages:.2f} messages, {count:.0f} bytes, {best:.0f} us")
            assert most_puts * put < count < most_puts * put + 2000 * r, (check, r, count)
            assert messages <= most, (check, r, messages)


def test_two_find_the_first_that_differs():
    for step, where in WHERE.items():
        code, _, err = spoilt("KEEL_TEST_FLIP", 0, step)
        where = "one of the operations " if step == 8 else where
        assert code == 1 and where in err and err.count("differs between set 0 and set 1\n") == 1, (step, code, err)
        assert "no set is left" in err and "check" not in err, (step, err)


def test_three_write_over_it():
    written_over()


def test_who_is_elsewhere_has_parted():
    """It makes a call that the others do not make, or comes to its end, and has done nothing else that differs."""
    calls = {"KEEL_TEST_FENCE": "keel_fence_all", "KEEL_TEST_END": "keel_finalize", "KEEL_TEST_EXIT": "keel_finalize"}
    for name, call in calls.items():
        code, out, err = spoilt(name, 1, 1)
        assert code == 1 and out == "" and call in err and "no set is left" in err, (name, code, out, err)
        code, out, err = spoilt(name, 1, 1, replicas=3)
        assert (code, out) == (0, FINE) and call in err, (name, code, out, err)
        assert len(re.findall(r"set \d ends\n", err)) == 1 and err.count("is retired") == 1, (name, err)


def test_who_accumulates_alone_has_parted():
    """Its set waits for a turn that no other set gives it, or the others for what they never make."""
    for name in ("KEEL_TEST_ACC", "KEEL_TEST_NO_ACC"):
        code, out, err = spoilt(name, 1, 1)
        assert code == 1 and out == "" and "keel_acc to rank 1" in err and "no set is left" in err, (name, code, err)
        code, out, err = spoilt(name, 1, 1, replicas=3)
        assert (code, out) == (0, FINE) and "keel_acc" in err and err.count("is retired") == 1, (name, code, err)


def test_told_and_not_stopped():
    """What is written over by the program itself: it ends as if nothing had been."""
    for mode in ("report", "keep"):
        for replicas in (2, 3):
            code, out, err = spoilt("KEEL_TEST_FLIP", 0, 8, "--on-mismatch", mode, replicas=replicas)
            assert (code, out) == (0, FINE) and len(re.findall(r"differs between set 0 and set \d\n", err)) == 1, (
                mode, code, out, err)


def test_a_set_without_a_member_ends():
    for step, replicas in each([*WHERE], (2, 3)):
        code, out, err = spoilt("KEEL_TEST_DIE", 1, step, replicas=replicas)
        assert (code, out) == (0, FINE), (step, code, out, err)
        assert re.search(r"set \d has lost rank 1 \(.*SIGKILL.*\) and is retired", err), (step, err)


def test_a_set_without_a_member_ends_when_all_is_looked_at():
    for step, check in each([*WHERE], LOOKING):
        code, out, err = spoilt("KEEL_TEST_DIE", 1, step, "--check", check, *nodes(3), replicas=3)
        assert (code, out) == (0, FINE) and err.count("is retired") == 1, (check, step, code, out, err)


def test_one_that_stands_still_is_waited_for_and_named():
    with tempfile.TemporaryDirectory() as folder:
        env = few(KEEL_TEST_STOP=f"0 4 {folder}/claim")
        with keeltest.Job([*FAR, "-n", "1", "--replicas", "2", "--replica-files", "all", PROGRAM], env=env) as still:
            keeltest.wait_for(lambda: "in a comparison of replicas" in still.stderr(), "a line for whom it waits")
            for pid in keeltest.processes_with(folder):
                if keeltest.state_of(pid) == "T":
                    os.kill(pid, signal.SIGCONT)
            assert (still.wait(), still.stdout()) == (0, FINE), still.stderr()
            said = r"rank 0 of set \d has waited .* in a comparison of replicas for rank 0 of set \d .*stopped"
            assert re.search(said, still.stderr()), still.stderr()


def test_a_program_that_sends_its_time_is_named():
    code, _, err = job("--replica-world", "all", program=(NPB, "ep"))
    assert code == 1 and "keel_group_allgather, 24 bytes, differs between set 0 and set 1" in err, (code, err)


def test_kernels_and_stencil():
    for kernel, replicas in each(("ep", "is", "cg", "mg", "ft", "lu"), (2, 3)):
        code, out, err = job(replicas=replicas, program=(NPB, kernel))
        assert (code, err) == (0, "") and "verification successful" in out, (kernel, replicas, code, out, err)
    alone = re.search("field [0-9a-f]+", job(replicas=1, program=(STENCIL, "5p", "--sweeps=50"))[1])[0]
    for replicas in (2, 3):
        code, out, err = job(replicas=replicas, program=(STENCIL, "5p", "--sweeps=50"))
        assert code == 0 and alone in out and "differs between" not in err, (replicas, code, out, err)


if __name__ == "__main__":
    keeltest.main(globals())
