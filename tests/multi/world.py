"""One world for all replicas of a rank: clocks, random bytes, names and files, whatever dies."""
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../lib"))
from keeltest import main, run

PROGRAM = os.environ.get("KEEL_WORLD", "")
FAR = ["--silence", "600s", "--stopped", "never"]


def job(replicas, *command, options=(), env=None, ranks=1):
    return run([*FAR, "-n", str(ranks), "--replicas", str(replicas), *options, *command], env=env or {}, seconds=200)


def prepare(folder, ranks):
    for r in range(ranks):
        for name in "both", "away":
            with open(f"{folder}/{name}.{r}", "w", encoding="ascii") as f:
                f.write("old content\n")


def found(folder, ranks):
    """All is as after one run of the program, and nothing is beside it."""
    names = sorted(f"{name}.{r}" for name in ("both", "log", "renamed", "folder") for r in range(ranks))
    assert sorted(os.listdir(folder)) == names, os.listdir(folder)
    for r in range(ranks):
        with open(f"{folder}/both.{r}", encoding="ascii") as f:
            assert f.read() == "new content\n"
        with open(f"{folder}/log.{r}", encoding="ascii") as f:
            assert f.read() == "".join(f"line {i}\n" for i in range(200))
        with open(f"{folder}/renamed.{r}", encoding="ascii") as f:
            assert f.read() == "made\n"


def test_all_is_the_same_and_files_are_written_once():
    for replicas in 2, 3:
        with tempfile.TemporaryDirectory() as folder:
            prepare(folder, 2)
            code, out, err = job(replicas, PROGRAM, folder, ranks=2)
            assert (code, err) == (0, "") and "node0 4194305 1 " in out and "node0 4194306 1 " in out, (code, out, err)
            found(folder, 2)


def test_files_are_whole_when_a_set_is_lost():
    for replicas, dies in ((2, 0), (2, 1), (3, 0), (3, 2)):
        with tempfile.TemporaryDirectory() as folder:
            prepare(folder, 2)
            code, out, err = job(replicas, PROGRAM, folder, env={"KEEL_TEST_DIE": str(dies)}, ranks=2)
            assert code == 0 and f"set {dies} has lost rank 0" in err and "differ" not in err, (code, out, err)
            found(folder, 2)


def test_end_without_exit_is_compared():
    code, out, err = job(3, PROGRAM, "", "_exit", ranks=2)
    assert code == 0 and "keel_finalize" in err and "set 1 ends" in err, (code, out, err)
    code, out, err = job(2, PROGRAM, "", "_exit", ranks=2)
    assert code == 1 and "keel_finalize" in err and "no set is left" in err, (code, out, err)


SCRIPT = """import os, random, socket, subprocess, tempfile, threading, time
begin = time.monotonic()
print(random.random(), time.time(), os.getpid(), os.getppid(), socket.gethostname(), os.urandom(8).hex(), hash("a"))
time.sleep(0.1)
threading.Event().wait(0.1)
assert time.monotonic() - begin > 0.2
with tempfile.NamedTemporaryFile("w", dir=".", delete=False) as f:
    print(f.name, file=f)
print(os.path.basename(f.name), open(f.name).read(), sorted(os.listdir(".")))
os.remove(f.name)
print(subprocess.run(["date", "+%s.%N"], capture_output=True).stdout)
os.kill(os.getpid(), 0)"""


def test_programs_that_know_nothing_of_keel():
    for replicas in 2, 3:
        with tempfile.TemporaryDirectory() as folder:
            code, out, err = job(replicas, sys.executable, "-c", f"import os; os.chdir({folder!r})\n{SCRIPT}")
            assert (code, err) == (0, "") and " 4194305 1 node0 " in out, (code, out, err)
            assert os.listdir(folder) == []
            script = f"""cd {folder}; echo $$; date +%s.%N; mktemp -u; head -c 8 /dev/urandom | od -x
                echo a >x; cat x; echo b >>x; mv x y; cat y"""
            code, out, err = job(replicas, "sh", "-c", script)
            assert (code, err, out[:8], out[-7:]) == (0, "", "4194305\n", "\na\na\nb\n"), (code, out, err)
            with open(folder + "/y", encoding="ascii") as f:
                assert f.read() == "a\nb\n"
            assert os.listdir(folder) == ["y"], os.listdir(folder)


def test_all_have_their_own_if_asked():
    code, out, err = job(2, "sh", "-c", "echo $$", options=["--replica-world", "all"])
    assert code == 0 and re.search("has not written the same in all sets", err) and out != "4194305\n", (code, out, err)
    with tempfile.TemporaryDirectory() as folder:
        code, out, err = job(2, "sh", "-c", f"echo a >>{folder}/x", options=["--replica-files", "all"])
        assert (code, err) == (0, ""), err
        with open(folder + "/x", encoding="ascii") as f:
            assert f.read() == "a\na\n"


if __name__ == "__main__":
    main(globals())
