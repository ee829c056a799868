"""tests/lib/keeltest.py: a file of tests ends with 99 where one hung, and does not run the others; with 1 where one
failed at once."""
import os
import pathlib
import subprocess
import sys
import tempfile

LIB = pathlib.Path(__file__).resolve().parents[2] / "lib"
TESTS = """import sys, time
sys.path.insert(0, %r)
import keeltest
def test_one():
    time.sleep(%s)
    assert False
def test_another():
    print("the other was run")
keeltest.main(globals())
"""


def run(seconds):
    with tempfile.NamedTemporaryFile("w", suffix=".py") as f:
        f.write(TESTS % (str(LIB), seconds))
        f.flush()
        done = subprocess.run([sys.executable, f.name], capture_output=True, text=True,
                              env=dict(os.environ, KEEL_TEST_HANG_S="5" if seconds < 1 else "1"))
    return done.returncode, "the other was run" in done.stdout, "hung    test_one" in done.stdout


def main():
    assert run(0) == (1, True, False), run(0)
    assert run(1.1) == (99, False, True), run(1.1)


if __name__ == "__main__":
    main()
