"""keel-hpccg: the same digits wherever its ranks run, also where replicas take messages from whoever is first, and
what it says when it cannot run."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import keeltest
from keeltest import run

HPCCG = os.environ.get("KEEL_HPCCG", "build/apps/hpccg/keel-hpccg")


def result(out):
    """All but the time."""
    lines = out.splitlines()
    assert [line.split()[0] for line in lines] == ["box", "iterations", "residual", "error", "time"], out
    assert lines[3].endswith(": right"), out
    return lines[:4]


def test_the_same_digits_on_any_nodes_and_with_replicas():
    seen = []
    for options in (["--nodes", "1"], ["--nodes", "3"], ["--replicas", "2"], ["--replicas", "3"]):
        code, out, err = run(["-n", "3"] + options + [HPCCG, "40", "110", "6"])  # a plane is more than a message
        assert (code, err) == (0, ""), (options, code, err)
        seen.append(result(out))
    assert all(lines == seen[0] for lines in seen), seen


def test_one_rank_has_no_neighbour():
    code, out, err = run(["-n", "1", HPCCG, "8", "8", "8"])
    assert code == 0 and err == "", (code, err)
    result(out)


def test_what_is_not_solved_is_wrong():
    code, out, err = run(["-n", "2", HPCCG, "16", "16", "16", "--iterations", "2"])
    assert code == 1 and "exit code 1" in err and "iterations  2\n" in out and ": wrong\n" in out, (code, out, err)


def test_wrong_command_line_is_refused_in_one_line():
    for arguments, line in [([], "which box? usage: keel-hpccg NX NY NZ [--iterations N] [--tolerance X]"),
                            (["4", "4"], "which box? usage: keel-hpccg NX NY NZ [--iterations N] [--tolerance X]"),
                            (["4", "4", "4", "4"], "4: a box has three sides"),
                            (["4", "-4", "4"], "unknown option, or its value is missing (see --help)"),
                            (["4", "x", "4"], "x: a side of a box is a number from 1 to 1000000"),
                            (["4000", "4000", "4000"], "a box of 4000 x 4000 x 4000 has too many points"),
                            (["4", "4", "4", "--iterations", "0"], "0: --iterations is a number from 1 to 1000000"),
                            (["4", "4", "4", "--tolerance", "nan"], "nan: --tolerance is a number from 0 on")]:
        code, out, err = run(["-n", "2", HPCCG] + arguments)
        assert (code, out) == (2, ""), (arguments, code, out, err)
        assert "keel-hpccg: " + line in err and err.count("keel-hpccg:") == 1, (arguments, err)


if __name__ == "__main__":
    keeltest.main(globals())
