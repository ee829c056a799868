"""Wrong bits on purpose: as many as were asked for, where they were asked for, the same by the same seed; what comes of
them without replicas and with them."""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../lib"))
import keeltest
from keeltest import run

PROGRAM, SDC, STENCIL, SCF, WATER = (
    os.environ.get(name, "") for name in ("KEEL_INJECT", "KEEL_SDC", "KEEL_STENCIL", "KEEL_SCF", "KEEL_WATER"))
PUTS = ("put", "put_nb", "strided", "vector")
ACCS = ("acc", "acc_nb", "acc_strided", "acc_vector")
WAYS = (*PUTS, *ACCS, "message")
GIVEN = {"bcast": (1, 1), "gather": (1, 1), "allgather": (1, 2), "allgather_begin": (1, 2),
         "allreduce": (2, 2)}  # words that are wrong, and how many of two ranks get some
CALLS = {"strided": "put_strided", "vector": "put_vector", "message": "message_send"}


def job(*args, way="put", steps=10, ranks=2, code=0):
    """What it printed, what it complained of, and the events of each flip and each difference."""
    with keeltest.Job(["-n", str(ranks), *args, PROGRAM, way, str(steps)]) as j:
        got = j.wait()
        assert got == code, (got, j.stdout(), j.stderr())
        return j.stdout(), j.stderr(), [e for e in j.events("application")]


def flips(events):
    return [dict(w.split("=", 1) for w in e["text"].split()) for e in events if e["name"] == "flip"]


def test_each_way_of_sending_gets_one():
    for way in WAYS:
        out, err, events = job("--inject", "where=send,rank=1,step=4,count=1", way=way)
        [f] = flips(events)
        assert (f["where"], f["rank"], f["set"], f["step"], f["target"]) == ("send", "1", "0", "4", "0"), (way, f)
        assert f["call"] == "keel_" + CALLS.get(way, way), f
        assert 0 <= int(f["bit"]) < 64 * 64 and out == "1 wrong words\n" and err == "", (way, f, out, err)


def test_flight_leaves_the_programs_memory_alone():
    """All words of a message are the same, so what is in the sender's memory is known: the next step is right."""
    for way in WAYS:
        for nodes in ("1", "2"):
            out, err, events = job("--nodes", nodes, "--inject", "where=flight,rank=1,step=4,count=1", way=way)
            [f] = flips(events)
            assert (f["where"], f["rank"], f["step"]) == ("flight", "1", "4"), f
            assert f["target"] == "0" and f["call"] == "keel_" + CALLS.get(way, way), f
            assert out == "1 wrong words\n" and err == "", (way, nodes, f, out, err)


def test_flight_of_each_way_finds_every_byte():
    """Of shapes that go as one message, or as stores, other bits each time: always one wrong word, never two."""
    for way in ("strided", "vector", "acc_strided", "acc_vector"):
        out, err, events = job("--nodes", "2", "--inject", "where=flight,rank=1,rate=1", way=way, steps=40)
        said = [f for f in flips(events) if f["call"] == "keel_" + CALLS.get(way, way)]
        assert (len(said), out, err) == (40, "40 wrong words\n", ""), (way, len(said), out, err)


def test_flight_with_replicas():
    """An accumulate comes again whatever is compared; a put is mended by who looks at it, else what follows differs."""
    rule = "where=flight,rank=1,set=0,step=4,count=1"
    for replicas in ("2", "3"):
        for way, check in [(way, "fence") for way in ACCS] + [("acc_strided", "none"), ("acc_vector", "all")]:
            out, err, events = job("--replicas", replicas, "--check", check, "--inject", rule, way=way)
            assert len(flips(events)) == 1 and out == "0 wrong words\n", (replicas, way, check, out, err)
            assert "rank 1 of set 0: an accumulate came otherwise than it was sent, and is sent again\n" in err, err
        for way, check in (("strided", "hash"), ("vector", "all")):
            out, err, events = job("--replicas", replicas, "--check", check, "--inject", rule, way=way)
            assert len(flips(events)) == 1 and out == "0 wrong words\n", (replicas, way, check, out, err)
            assert "has got the bytes of another set" in err, (replicas, way, check, err)
    _, err, _ = job("--replicas", "2", "--check", "fence", "--inject", rule, way="vector", code=1)
    assert "keel_allreduce_sum, 8 bytes, differs between set 0 and set 1" in err, err


def test_flight_of_contributions():
    """What others get of it is wrong, and a sum also for who gave it; the program's memory is not."""
    for way, (wrong, _) in GIVEN.items():
        for nodes in ("1", "2"):
            out, err, events = job("--nodes", nodes, "--inject", "where=flight,rank=1,step=4,count=1", way=way)
            [f] = flips(events)
            assert (f["where"], f["rank"], f["step"], f["call"]) == ("flight", "1", "4", "keel_group_" + way), f
            assert "target" not in f and (out, err) == (f"{wrong} wrong words\n", ""), (way, nodes, f, out, err)


def test_flight_of_contributions_with_replicas():
    rule = "where=flight,rank=1,set=1,step=4,count=1"
    for way, (_, hit) in GIVEN.items():
        brought = f"what keel_group_{way} has brought, "
        for check in ("hash", "all"):
            out, err, events = job("--replicas", "2", "--check", check, "--inject", rule, way=way, code=1)
            assert len(flips(events)) == 1 and brought in err, (way, events, err)
            assert "differs between set 0 and set 1\n" in err, (way, err)
            out, err, events = job("--replicas", "3", "--check", check, "--inject", rule, way=way)
            assert len(flips(events)) == 1 and out == "0 wrong words\n", (way, check, out, err)
            assert err.count(brought) == hit and err.count("set 1 has got the bytes of the others\n") == hit, err
        out, err, events = job("--replicas", "2", "--check", "none", "--inject", rule, way=way)
        assert len(flips(events)) == 1 and brought not in err, (way, out, err)
        out, err, events = job("--replicas", "2", "--inject", rule, way=way, code=1)  # what follows differs
        assert len(flips(events)) == 1 and brought not in err, (way, events, err)
        assert "keel_put to rank" in err and "differs between set 0 and set 1\n" in err, (way, err)


def test_rules_that_hit_nothing_are_told_of():
    """All that is put is nothing."""
    for replicas in ([], ["--replicas", "2"]):
        _, err, events = job(*replicas, "--inject", "where=flight,step=8,count=1,rank=1", way="empty")
        assert not flips(events) and err == (
            "keel: --inject rate=1,where=flight,step=8..8,seed=1,rank=1,count=1: rank 1 was at step 9 when it ended, "
            "and none of its operations at these steps had bits that could be hit there\n"), err


def test_many_differences_are_few_lines():
    """The first sixteen of a rank whole, then how many at each power of two; each is in the event log."""
    out, err, events = job("--replicas", "3", "--inject", "where=send,rank=1,set=0,rate=1", way="put", steps=100)
    told, lines = sum(e["name"] == "mismatch" for e in events), err.splitlines()
    assert told >= 100 and out == "0 wrong words\n", (told, out)
    assert sum("differs between set 0 and set 1" in x for x in lines) == 16, err
    counted = [int(n) for n in re.findall(r"rank 1: its sets have differed (\d+) times by now; the event log has", err)]
    assert counted == [n for n in (32, 64, 128, 256) if n <= told] and len(lines) == 16 + len(counted), err


def test_rest_is_in_the_own_part():
    out, err, events = job("--inject", "where=rest,rank=1,step=4,count=1", way="rest")
    [f] = flips(events)
    assert (f["where"], f["rank"], f["step"]) == ("rest", "1", "4") and "target" not in f and int(f["offset"]) < 512, f
    assert (out, err) == ("6 wrong words\n", ""), (out, err)


def test_count_is_exact_and_so_is_the_window():
    _, _, events = job("--inject", "where=send,step=3..8,count=4,rank=0")
    assert [f["step"] for f in flips(events)] == ["3", "4", "5", "6"], events
    _, _, events = job("--inject", "where=send,step=3..8,count=4,rank=0", "--inject", "count=1,rank=1,step=7")
    assert [f["rank"] for f in flips(events)].count("1") == 1 and len(flips(events)) == 5, events
    _, _, events = job("--inject", "rate=1,step=2..4")
    assert len(flips(events)) == 6, events
    out, _, events = job("--inject", "rate=0")
    assert not flips(events) and out == "0 wrong words\n", events


def test_the_seed_repeats_them():
    def bits(seed):
        _, _, events = job("--inject", f"rate=0.05,seed={seed}", steps=200)
        return sorted((f["rank"], f["step"], f["bit"]) for f in flips(events))
    a, b, c = bits(7), bits(7), bits(8)
    assert a == b and a != c and 5 < len(a) < 50, (a, b, c)


def test_replicas_find_what_is_sent_wrong():
    rule = "where=send,set=1,rank=0,step=4,count=1"
    for way in WAYS:
        out, err, events = job("--replicas", "2", "--inject", rule, way=way, code=1)
        assert len(flips(events)) == 1 and "differs between set 0 and set 1" in err, (way, err)
        out, err, events = job("--replicas", "3", "--inject", rule, way=way)
        assert len(flips(events)) == 1 and out == "0 wrong words\n", (way, out, err)
        assert "set 1 has got the bytes of the others" in err or "set 1 ends" in err, (way, err)


def differences(events):
    return [dict(w.split("=", 1) for w in e["text"].split()) for e in events if e["name"] == "differs"]


def test_who_sent_what_to_whom_is_in_the_event_log():
    rule = "where=send,set=1,rank=0,step=4,count=1"
    out, err, events = job("--replicas", "2", "--on-mismatch", "report", "--inject", rule)
    assert "rank 0 at step 4: the " in err and "differs between set 0 and set 1" in err, err
    first, then = differences(events)
    assert first == {"sets": "0,1", "rank": "0", "step": "4", "target": "1", "call": "keel_put", "operations": "1",
                     "bytes": "512"}, events
    assert then == {"sets": "0,1", "rank": "1", "step": "9", "call": "keel_allreduce_sum", "operations": "1",
                    "bytes": "8"}, events  # it has counted the word
    _, _, events = job("--replicas", "3", "--inject", rule)
    assert [d["rank"] for d in differences(events)] == ["0"], events


def sdc(lines, *args):
    """keel-sdc on an event log of these lines: exit code, what it printed, what it complained of, steps.csv."""
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        with open(log, "w") as f:
            f.writelines(lines)
        p = subprocess.run([SDC, *args, log], capture_output=True, text=True)
        csv = os.path.join(folder, "steps.csv")
        subprocess.run([SDC, "--dir", folder, log], capture_output=True)
        for name in os.listdir(folder): # what draws an image of few pixels smears them
            assert not name.endswith(".svg") or "<image" not in open(os.path.join(folder, name)).read(), name
        return p.returncode, p.stdout, p.stderr, open(csv).read().split("\n") if os.path.exists(csv) else []


def lines_of(*args, program, ranks):
    with keeltest.Job(["-n", str(ranks), "--replicas", "2", "--on-mismatch", "report", *args, *program]) as j:
        assert j.wait() == 0, j.stderr()
        return j.events_text()


def test_sdc_of_a_bit_that_lives_for_one_step_is_localised():
    text = lines_of("--inject", "where=send,set=1,rank=2,step=4,count=1", program=[PROGRAM, "put", "10"], ranks=6)
    code, out, err, csv = sdc([text], "--without", "keel_allreduce_sum")
    assert (code, err) == (0, ""), err
    assert out == "localised: 1 wrong bit, 1 bad messages, 2 of 6 ranks tainted, steps 4 to 4\n", out
    assert csv[1] == "4,1,1,1,1,1,2", csv
    code, out, err, csv = sdc([text])  # all hear of it by the sum
    assert out.startswith("progressive: 1 wrong bit, 6 bad messages, 6 of 6 ranks tainted, steps 4 to 9\n"), out
    assert csv[2] == "9,0,5,6,1,5,6", csv


def test_sdc_knows_the_three_kinds():
    start = '{"event":"started","ranks":16,"replicas":{"sets":2,"native":[]}}\n'

    def said(name, step, rank, more):
        return f'{{"event":"application","name":"{name}","text":"set=1 rank={rank} step={step}{more}"}}\n'
    flip = said("flip", 3, 1, " where=send call=keel_put bit=4")
    bad = " call=keel_put operations=2 bytes=8"
    grows = [said("differs", 3 + k, k, f" target={k + 1}" + bad) for k in range(1, 7)]
    assert sdc([start, *reversed(grows), flip])[1].startswith("progressive: 1 wrong bit, 12 bad messages, 7 of 8 ")
    to_all = said("differs", 4, 1, bad)
    assert sdc([start, flip, to_all])[1].startswith("immediate: 1 wrong bit, 14 bad messages, 8 of 8")
    assert sdc([start, flip, grows[0]])[1].startswith("localised: 1 wrong bit, 2 bad messages, 2 of 8")
    assert sdc([start])[:3] == (0, "no wrong bit: 0 wrong bits, 0 bad messages, 0 of 8 ranks tainted\n", "")
    own = said("differs", 4, 1, " target=1" + bad)
    assert sdc([start, flip, own])[1].startswith("localised: 1 wrong bit, 0 bad messages, 1 of 8"), "to itself"
    there = said("flip", 3, 1, " where=flight target=5 bit=4")
    assert sdc([start, there])[3][1] == "3,1,0,0,1,0,1"


def test_sdc_bad_inputs_are_one_line():
    for lines, why in ((["no\n"], "line 1 is no line of an event log"), ([], "no job has started in it"),
                       (['{"event":"started","ranks":0}\n'], "no job has started in it")):
        code, out, err, _ = sdc(lines)
        assert (code, out) == (2, "") and why in err and err.count("\n") == 1, (code, out, err)
    assert sdc([], "--dir", "/nowhere")[0] == 2
    p = subprocess.run([SDC, "/nowhere"], capture_output=True, text=True)
    assert p.returncode == 2 and p.stderr == "keel-sdc: /nowhere: No such file or directory\n", p


def test_stencil_without_replicas_is_wrong_and_spreads_progressively():
    """Exit code 0, and another field: a wrong bit in the border between two ranks."""
    right = re.search("field .*", run(["-n", "4", STENCIL, "5p", "--sweeps=50"])[1])[0]
    code, out, _ = run(["-n", "4", "--inject", "where=send,rank=1,step=20,count=1,seed=3",
                        STENCIL, "5p", "--sweeps=50"])
    assert code == 0 and "field " in out and right not in out, (code, out)
    text = lines_of("--inject", "where=send,set=1,rank=5,step=10,count=1,seed=1",
                    program=[STENCIL, "9p", "-c", "32x32", "-s", "40"], ranks=16)
    code, out, err, csv = sdc([text])
    assert code == 0 and out.startswith("progressive: 1 wrong bit"), (out, err)
    tainted = [int(line.split(",")[6]) for line in csv[1:-1]]
    assert tainted == sorted(tainted) and tainted[0] == 2 and tainted[-1] > 8, tainted
    code, out, _ = run(["-n", "4", "--replicas", "3", "--inject", "where=send,set=2,rank=1,step=20,count=1,seed=3",
                        STENCIL, "5p", "--sweeps=50"])
    assert code == 0 and right in out, (code, out)


def test_scf_takes_longer_or_does_not_converge():
    """A single bit is ironed out, at the cost of iterations; bits in each iteration are not."""
    right = run(["-n", "1", SCF, WATER])[1]
    longer = 0
    for seed in range(1, 13):
        code, out, err = run(["-n", "1", "--inject", f"where=send,step=8,count=1,rate=0.3,seed={seed}", SCF, WATER])
        assert code != 0 or re.search("Total.*", out)[0] == re.search("Total.*", right)[0], (seed, code, out, err)
        longer += code == 0 and out.count("\niteration") > right.count("\niteration")
    assert longer, "no bit cost an iteration"
    code, out, err = run(["-n", "1", "--inject", "where=send,step=1..,rate=0.6", SCF, "-n", "15", WATER])
    assert code == 3 and "no convergence in 15 iterations" in err and "Converged" not in out, (code, out, err)


def test_the_demonstration_votes_bits_out():
    top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
    for replicas, ok in (("2", 4), ("3", 7)):
        done = subprocess.run([sys.executable, os.path.join(top, "scripts/demo_replicas.py"), "--build",
                               os.path.join(keeltest.BIN, ".."), "--top", top, "--replicas", replicas],
                              capture_output=True, text=True, timeout=250)
        assert (done.returncode, done.stderr) == (0, ""), (done.stdout, done.stderr)
        assert len(re.findall("^ok ", done.stdout, re.M)) == ok and "BAD" not in done.stdout, done.stdout
        assert re.search("^ok   without replicas: exit code [1-9]", done.stdout, re.M), done.stdout


def test_sets_get_different_ones():
    _, _, events = job("--replicas", "2", "--check", "none", "--inject", "rate=1,step=4")
    assert len(flips(events)) == 4 and len({f["bit"] for f in flips(events)}) > 2, events


def test_bad_rules_are_one_line():
    bad = {"rate=1.5": "rate=1.5 is no number from 0 to 1", "rate=-1": "rate=-1", "rate=1,rank=2": "the last rank is 1",
           "rate=1,set=1": "the last set is 0", "rate=1,where=nowhere": "where=nowhere", "rank=1": "neither",
           "rate=1,step=4..2": "ends before it begins", "rate=1,colour=red": "colour", "": "KEY=VALUE"}
    for rule, why in bad.items():
        code, out, err = run(["-n", "2", "--inject", rule, PROGRAM])
        assert (code, out) == (2, "") and why in err and err.count("\n") == 1, (rule, code, err)
    code, _, err = run(["-n", "2", *["--inject", "rate=0"] * 9, PROGRAM])
    assert code == 2 and "more than 8 rules" in err, err
    code, _, err = run(["-n", "2", "--replicas", "2", "--inject", "rate=0,set=2", PROGRAM])
    assert code == 2 and "the last set is 1" in err, err


def test_steps_that_never_come_are_told_of():
    for replicas in ([], ["--replicas", "2"]):
        out, err, events = job(*replicas, "--inject", "count=1,step=10..20,rank=1", "--inject", "count=1,step=30")
        assert out == "0 wrong words\n" and not flips(events), (out, events)
        lines = sorted(re.findall(r"rank (\d) was at step 9 when it ended, and none", err))
        assert lines == ["0", "1"] and err.count("\n") == 2, err


if __name__ == "__main__":
    keeltest.main(globals())
