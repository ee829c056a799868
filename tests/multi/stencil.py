"""keel-stencil: the same bits on any number of ranks and nodes, and what it says when it cannot run."""
import os
import struct
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import keeltest
from keeltest import run

STENCIL = os.environ.get("KEEL_STENCIL", "build/apps/stencil/keel-stencil")


def field(ranks, nodes, *arguments):
    code, out, err = run(["-n", str(ranks), "--nodes", str(nodes), STENCIL, *arguments])
    assert code == 0 and err == "", (arguments, code, err)
    return out.splitlines()[-1]


def test_each_stencil_has_the_same_bits_however_the_field_is_cut():
    for arguments in (["5p", "--cells", "40x33"], ["9p", "--cells", "40x33", "--periodic"],
                      ["7p", "--cells", "12x13x14", "--periodic"], ["27p", "--cells", "12x13x14"],
                      ["7p", "--cells", "11x8x1"], ["27p", "--cells", "1x9x7"]):
        seen = {field(ranks, nodes, "--sweeps", "12", *arguments) for ranks, nodes in ((1, 1), (2, 2), (6, 3))}
        assert len(seen) == 1, (arguments, seen)


def test_copies_change_no_bit():
    seen = {field(3, 3, "5p", "--cells", "30x30", "--sweeps", "9", "--redundancy", copies)
            for copies in ("none", "shadow", "triple")}
    assert len(seen) == 1, seen


def test_picture_is_a_png_of_the_field():
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/field.png"
        field(2, 2, "7p", "--cells", "21x17x9", "--sweeps", "5", "--png", path)
        with open(path, "rb") as f:
            head = f.read(24)
        assert head[:8] == b"\x89PNG\r\n\x1a\n" and struct.unpack(">II", head[16:]) == (17, 21), head
        code, _, err = run(["-n", "2", STENCIL, "5p", "--sweeps", "1", "--png", folder + "/no/such.png"])
        assert code == 1 and "keel-stencil: %s/no/such.png: " % folder in err, (code, err)


def test_what_cannot_be_written_is_not_removed():
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/full.png"
        os.symlink("/dev/full", path)
        code, _, err = run(["-n", "2", STENCIL, "5p", "--sweeps", "1", "--png", path])
        assert code == 1 and "keel-stencil: %s: No space left on device" % path in err, (code, err)
        assert os.path.islink(path), "it was removed"


def test_wrong_command_line_is_refused_in_one_line():
    for arguments, line in [([], "which stencil? usage: keel-stencil 5p|9p|7p|27p"),
                            (["4p"], "4p: there are the stencils 5p, 9p, 7p and 27p"),
                            (["5p", "9p"], "9p: one stencil in a run"),
                            (["5p", "--cells", "8x8x8"], "5p is a stencil of two dimensions: --cells NxM"),
                            (["7p", "--cells", "8x8"], "7p is a stencil of three dimensions: --cells NxMxK"),
                            (["5p", "--cells", "8x"], "8x: cells are NxM or NxMxK"),
                            (["5p", "--cells", "8x-1"], "8x-1: cells are NxM or NxMxK"),
                            (["5p", "--cells", "1x1x1x1"], "1x1x1x1: cells are NxM or NxMxK"),
                            (["5p", "--cells", "1x1"], "the field cannot be cut into a block for each rank"),
                            (["5p", "--cells", "1x8", "--periodic"], "a periodic field has at least two cells"),
                            (["5p", "--sweeps", "0"], "0: the number of sweeps is a number from 1 on"),
                            (["5p", "--pause", "60001"], "60001: a pause has from 0 to 60000 milliseconds"),
                            (["5p", "--tolerance", "nan"], "nan: a tolerance is a number, not less than 0"),
                            (["5p", "--redundancy", "most"], "most: there are none, shadow and triple"),
                            (["5p", "--fast"], "--fast: unknown option, or its value is missing (see --help)")]:
        code, out, err = run(["-n", "2", STENCIL] + arguments)
        assert (code, out) == (2, ""), (arguments, code, out, err)
        assert "keel-stencil: " + line in err and err.count("keel-stencil:") == 1, (arguments, err)


if __name__ == "__main__":
    keeltest.main(globals())
