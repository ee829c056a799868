"""What becomes of one flipped bit: each kind of operation, at the sender, on the way and at the target, with each way
to check and two and three replicas. The table is that of docs/replica-checks.md; a cell that nobody notices is one,
too."""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../lib")]
import keeltest
from keeltest import each
from replicas import FINE, nodes, spoilt

CHECKS = ("none", "fence", "hash", "all")
LOOKING = ("hash", "all")
KINDS = {  # steps of replicas.c: the family, and how a line names the operation
    1: ("put", "keel_put to rank 1, segment 1 at 0, 8 bytes"),
    2: ("put", "keel_put_nb to rank 1, segment 1 at 8, 8 bytes"),
    5: ("put", "keel_put_signal to rank 1, segment 1 at 16, 8 bytes"),
    7: ("shape", "keel_put_strided to rank 1, segment 1 at 1024, 128 bytes"),
    9: ("shape", "keel_put_vector to rank 1, segment 1 at 1400, 24 bytes"),
    3: ("sent", "keel_message_send to rank 1, tag 7, 8 bytes"), 4: ("sent", "keel_allreduce_sum, 8 bytes"),
    10: ("sent", "keel_group_allgather, 8 bytes"),
    6: ("sum", "keel_acc to rank 1, segment 1 at 4072, 8 bytes"),
    13: ("sum", "keel_acc_nb to rank 1, segment 1 at 3600, 8 bytes"),
    11: ("sums", "keel_acc_strided to rank 1, segment 1 at 3200, 128 bytes"),
    12: ("sums", "keel_acc_vector to rank 1, segment 1 at 3520, 24 bytes"),
    14: ("how", "keel_acc to rank 1, segment 1 at 3608"),
    15: ("number", "keel_fetch_add to rank 1, segment 1 at 3616, 8 bytes"),
    16: ("number", "keel_compare_swap to rank 1, segment 1 at 3624, 16 bytes"),
    17: ("signal", "keel_signal to rank 1, segment 1 at")}
LIES = {1: ("keel_put", 0, 8), 2: ("keel_put_nb", 8, 8), 5: ("keel_put_signal", 16, 8),
        7: ("keel_put_strided", 1088, 16), 9: ("keel_put_vector", 1480, 8)}
BROUGHT = {3: "what keel_message_receive has brought from rank 0, tag 7, 8 bytes",
           4: "what keel_allreduce_sum has brought, 8 bytes", 10: "what keel_group_allgather has brought, 16 bytes"}
MANY = "one of the operations "  # step 8: of more than are remembered
AT_TARGET = (1, 2, 7, 9)  # a signal tells of its put before anybody could flip a bit there
COUNTED = ("sum", "sums", "how", "number", "signal")
BODY, HEAD = "an accumulate came otherwise than it was sent, and is sent again", \
    "a message came otherwise than it was sent, and its connection is made anew"


def verdict(place, family, check, replicas):
    """unseen: by replicas, and the program of that set finds it. named: so, and an agent has seen that sets differ."""
    if place == "FLIGHT" and family in COUNTED:
        return "again"
    if place == "FLIP" and check != "none":
        mended = family in ("put", "sent", "sum", "number")
        return "told" if replicas == 2 else "mended" if mended else "ends"
    if place == "FLIP":
        return "named" if family in COUNTED and family != "signal" else "unseen"
    if check not in LOOKING:
        return "unseen"
    return "lies" if family != "sent" else "told" if replicas == 2 else "mended"


def line(verdict, place, step):
    """What is said of it, as a regular expression."""
    where = re.escape(BROUGHT[step] if place == "FLIGHT" and step in BROUGHT else KINDS[step][1])
    if verdict == "lies":
        call, at, size = LIES[step]
        return (rf"rank 0: what operation \d+ since the start, {call} to rank 1, segment 1, has put at {at}, "
                rf"{size} bytes, "
                r"lies there otherwise in set \d, and has got the bytes of another set\n")
    if verdict == "again":
        return rf"rank 0 of set \d: {BODY if KINDS[step][0] in ('sum', 'sums') else HEAD}\n"
    end = {"told": r"differs between set 0 and set 1\n", "mended": r": set \d has got the bytes of the others\n",
           "ends": r": set \d ends\n"}[verdict]
    return rf"{where}.*{end}"


def all_at_once(place, check, replicas, steps, what):
    """Each is told once, and nobody ends."""
    code, out, err = spoilt("KEEL_TEST_" + place, 0, steps, "--check", check, *nodes(replicas), replicas=replicas)
    assert (code, out) == (0, FINE) and "is retired" not in err, (place, check, replicas, steps, code, out, err)
    lines = [line(what, place, step) for step in steps]
    for said in set(lines):
        assert len(re.findall(said, err)) == lines.count(said), (place, check, replicas, said, err)
    assert err.count("\n") == len(steps), (place, check, replicas, err)


def alone(place, check, replicas, step, what):
    code, out, err = spoilt("KEEL_TEST_" + place, 0, step, "--check", check, *nodes(replicas), replicas=replicas)
    cell = (place, check, replicas, step, what, code, out, err)
    differs = re.search("differs between|lies there otherwise|has got the bytes|sent again|made anew", err)
    if what == "told":
        assert code == 1 and "no set is left" in err and len(re.findall(line(what, place, step), err)) == 1, cell
    elif what == "ends":
        assert (code, out) == (0, FINE) and err.count("is retired") == 1, cell
        assert len(re.findall(line(what, place, step), err)) == 1, cell
    else:
        assert (code, out) == (0, FINE) and "ended with exit code 3" in err and not differs, cell
        assert ("is not what the leading set has there" in err) == (what == "named"), cell


def look_at(place, steps):
    """All cells of a place: those after which all go on, at one start for each way to check."""
    cells = 0
    for check, replicas in each(CHECKS, (2, 3)):
        of = {}
        for step in steps:
            of.setdefault(verdict(place, KINDS[step][0], check, replicas), []).append(step)
        for what, those in of.items():
            cells += len(those)
            if what in ("mended", "lies", "again"):
                all_at_once(place, check, replicas, those, what)
                continue
            for step in those:
                alone(place, check, replicas, step, what)
    print(f"        {cells} cells")


def test_at_the_sender():
    """A signal's number is not looked at without a check: who waits for it may wait in all sets."""
    look_at("FLIP", [step for step in KINDS if step != 17])
    for check, replicas in each(CHECKS[1:], (2, 3)):
        alone("FLIP", check, replicas, 17, verdict("FLIP", "signal", check, replicas))
    for check in CHECKS[1:]:
        code, _, err = spoilt("KEEL_TEST_FLIP", 0, 8, "--check", check, *nodes(2))
        assert code == 1 and MANY in err and "no set is left" in err, (check, code, err)


def test_on_the_way():
    look_at("FLIGHT", [*KINDS])


def test_at_the_target():
    look_at("TARGET", AT_TARGET)


if __name__ == "__main__":
    keeltest.main(globals())
