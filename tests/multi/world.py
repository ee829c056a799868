"""One world for all replicas of a rank: clocks, random bytes, names and files, whatever dies."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../lib"))
from keeltest import Skip, main, run

PROGRAM = os.environ.get("KEEL_WORLD", "")
ALLOCATOR = os.environ.get("KEEL_CLOCKED", "")
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
    names = sorted(f"{name}.{r}" for name in ("both", "log", "renamed", "folder", "ways", "child")
                   for r in range(ranks))
    made = [name for name in os.listdir(folder) if re.fullmatch(r"t[0-9]+-\w{6}", name)]
    assert sorted(os.listdir(folder)) == sorted(names + made) and len(made) == ranks, os.listdir(folder)
    for name in made:
        assert os.listdir(f"{folder}/{name}") == ["x"], os.listdir(f"{folder}/{name}")
    for r in range(ranks):
        with open(f"{folder}/ways.{r}", encoding="ascii") as f:
            assert f.read() == "abc34567abc3ab"
        with open(f"{folder}/child.{r}", encoding="ascii") as f:
            assert f.read() == "child\nagain\nagain\nforked\n"
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


SCRIPT = """import ctypes, os, random, socket, subprocess, tempfile, threading, time
begin = time.monotonic()
print(random.random(), time.time(), os.getpid(), os.getppid(), socket.gethostname(), os.urandom(8).hex(), hash("a"))
time.sleep(0.1)
threading.Event().wait(0.1)
assert time.monotonic() - begin > 0.2
with tempfile.NamedTemporaryFile("w", dir=".", delete=False) as f:
    print(f.name, file=f)
print(os.path.basename(f.name), open(f.name).read(), sorted(os.listdir(".")))
os.remove(f.name)
for name in "mktemp", "tempnam", "tmpnam":
    call = getattr(ctypes.CDLL(None), name)
    call.restype = ctypes.c_char_p
    print(call(*{"mktemp": [ctypes.create_string_buffer(b"./xXXXXXX")], "tempnam": [b".", b"n"]}.get(name, [None])))
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


FORTRAN = """program files
  integer :: i, n, u
  character(len=20) :: text
  logical :: there
  open(newunit=u, file='made', status='new', action='readwrite')
  write(u, '(a,i0)') ('line ', i, i = 1, 3)
  rewind(u)
  read(u, '(a)') text
  if (text /= 'line 1') stop 1
  close(u)
  open(newunit=u, file='made', status='old', position='append')
  write(u, '(a)') 'more'
  close(u)
  open(newunit=u, file='made', status='new', iostat=n)
  if (n == 0) stop 2
  open(newunit=u, file='direct', access='direct', recl=8, form='unformatted')
  write(u, rec=3) 1.5d0
  write(u, rec=1) 2.5d0
  close(u)
  open(newunit=u, file='old', status='replace')
  write(u, '(a)') 'new'
  close(u)
  open(newunit=u, status='scratch')
  write(u, '(a)') 'x'
  close(u)
  open(newunit=u, file='away', status='old')
  close(u, status='delete')
  inquire(file='away', exist=there)
  if (there) stop 3
  inquire(file='made', exist=there, size=n)
  if (.not. there .or. n /= 26) stop 4
end program
"""


def test_files_of_fortran():
    if not shutil.which("gfortran"):
        raise Skip("no gfortran")
    with tempfile.TemporaryDirectory() as place:
        source, program = f"{place}/files.f90", f"{place}/files"
        with open(source, "w", encoding="ascii") as f:
            f.write(FORTRAN)
        subprocess.run(["gfortran", "-o", program, source], check=True)
        for replicas in 2, 3:
            folder = f"{place}/{replicas}"
            os.mkdir(folder)
            for name in "old", "away":
                with open(f"{folder}/{name}", "w", encoding="ascii") as f:
                    f.write("something long\n")
            code, out, err = job(replicas, "sh", "-c", f"cd {folder} && exec {program}")
            assert (code, out, err) == (0, "", ""), (code, out, err)
            assert sorted(os.listdir(folder)) == ["direct", "made", "old"], os.listdir(folder)
            with open(f"{folder}/made", encoding="ascii") as made, open(f"{folder}/old", encoding="ascii") as old:
                assert made.read() == "line 1\nline 2\nline 3\nmore\n" and old.read() == "new\n"
            assert os.path.getsize(f"{folder}/direct") == 24


def test_allocators_that_read_clocks_get_the_hosts():
    """Ours at each allocation, with its lock held; those of Debian, where they are, now and then."""
    if not ALLOCATOR:
        raise Skip("the program has the allocator of a sanitizer")
    libraries = [ALLOCATOR] + [path for name in ("jemalloc.so.2", "tcmalloc_minimal.so.4", "mimalloc.so.2")
                               for path in glob.glob(f"/usr/lib/*/lib{name}")]
    for library in libraries:
        with tempfile.TemporaryDirectory() as folder:
            prepare(folder, 2)
            code, out, err = job(2, PROGRAM, folder, env={"LD_PRELOAD": library}, ranks=2)
            assert (code, err) == (0, "") and "node0 4194305 1 " in out, (library, code, out, err)
            found(folder, 2)


def test_sanitizers_are_told_what_they_need():
    script = "echo $ASAN_OPTIONS; echo $TSAN_OPTIONS"
    ours, users = "allocator_release_to_os_interval_ms=-1", "allocator_release_to_os_interval_ms=7"
    order = "verify_asan_link_order=0"
    for asan, tsan, shown in (("", "", [f"{ours}:{order}", ours]),
                              ("verbosity=0", users, [f"verbosity=0:{ours}:{order}", users])):
        code, out, err = job(2, "sh", "-c", script, env={"ASAN_OPTIONS": asan, "TSAN_OPTIONS": tsan})
        assert (code, out.split(), err) == (0, shown, ""), (code, out, err)
    code, out, err = job(2, "sh", "-c", script, options=["--replica-world", "all"],
                         env={"ASAN_OPTIONS": "verbosity=0", "TSAN_OPTIONS": ""})
    assert (code, out.split(), err) == (0, ["verbosity=0"], ""), (code, out, err)


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
