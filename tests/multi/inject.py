"""Wrong bits on purpose: as many as were asked for, where they were asked for, the same by the same seed; what comes of
them without replicas and with them."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../lib"))
import keeltest
from keeltest import run

PROGRAM = os.environ.get("KEEL_INJECT", "")
WAYS = ("put", "put_nb", "strided", "acc", "message")


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
        call = {"strided": "put_strided", "message": "message_send"}.get(way, way)
        assert f["call"] == "keel_" + call
        assert 0 <= int(f["bit"]) < 64 * 64 and out == "1 wrong words\n" and err == "", (way, f, out, err)


def test_flight_leaves_the_programs_memory_alone():
    """All words of a message are the same, so what is in the sender's memory is known: the next step is right."""
    for way in ("put", "put_nb", "acc", "message"):
        for nodes in ("1", "2"):
            out, err, events = job("--nodes", nodes, "--inject", "where=flight,rank=1,step=4,count=1", way=way)
            [f] = flips(events)
            assert (f["where"], f["rank"], f["step"]) == ("flight", "1", "4") and (way == "acc" or f["target"] == "0")
            assert out == "1 wrong words\n" and err == "", (way, nodes, f, out, err)
    out, _, events = job("--inject", "where=flight,rate=1", way="strided")
    assert flips(events) == [] and out == "0 wrong words\n", events


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
