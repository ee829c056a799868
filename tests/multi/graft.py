"""graft.py RUN PROGRAM LACKING ARMCI...: programs that were linked with Debian's libarmci-mpich.a under keel-armci-run.

They run on Keel, children of theirs do not; whatever stands against it is told in one line, and nothing runs then."""
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import keeltest

RUN, PROGRAM, LACKING, *ARMCI = sys.argv[1:]
del sys.argv[1:]
FAR = ["--silence", "600s", "--stopped", "never"]
ARCHIVE = "/usr/lib/x86_64-linux-gnu/libarmci-mpich.a"


def expect_refused(command, words, code=2):
    """By keel-armci-run alone: one line, and nothing of the program."""
    said = subprocess.run([RUN] + command, capture_output=True, text=True, timeout=keeltest.HANG_S)
    assert said.returncode == code, (command, said)
    assert re.fullmatch("keel-armci-run: .*\n", said.stderr) and words in said.stderr, (command, said)
    assert said.stdout == "", (command, said)


def changed(folder, name, change):
    """A copy of the program with other bytes."""
    path = os.path.join(folder, name)
    with open(PROGRAM, "rb") as f:
        data = bytearray(f.read())
    change(data)
    with open(path, "wb") as f:
        f.write(data)
    os.chmod(path, 0o755)
    return path


def functions():
    """Where the program's file has each function of ARMCI's; as many bytes from the begin of the file as from that of
    the memory."""
    said = subprocess.run(["nm", "-S", PROGRAM], check=True, capture_output=True, text=True).stdout
    lines = [line.split() for line in said.splitlines()]
    text = {line[3]: (int(line[0], 16), int(line[1], 16)) for line in lines if len(line) == 4 and line[2] in "tTW"}
    assert "PARMCI_Rmw" in text, said
    return text


def test_every_call_is_keels():
    for program in ARMCI:
        for copies in "none", "shadow":
            code, out, err = keeltest.run(FAR + ["-n", "4", "--nodes", "2", RUN, program], env={"KEEL_ARMCI_REDUNDANCY": copies})
            assert (code, out) == (0, "armci: all right on 4 processes\n"), (program, code, out, err)


def test_nodes_are_keels():
    """ARMCI-MPI of this version has a node for each process."""
    code, out, err = keeltest.run(FAR + ["-n", "4", "--nodes", "2", RUN, PROGRAM])
    assert (code, out) == (0, "nodes 2 wrong 0\n"), (code, out, err)


def test_children_are_left_alone():
    for before in "", "libm.so.6":
        code, out, err = keeltest.run(FAR + ["-n", "2", "--nodes", "2", RUN, PROGRAM, "child"], env={"LD_PRELOAD": before})
        assert (code, out) == (0, "nodes 2 wrong 0\npreloaded: %s\n" % before), (code, out, err)


def test_without_keelrun():
    """mpiexec.hydra starts it as any program of MPI: then MPI carries the addresses."""
    hydra = shutil.which("mpiexec.hydra")
    if not hydra:
        raise keeltest.Skip("no mpiexec.hydra")
    environment = dict(os.environ, KEEL_KEELD=os.path.join(keeltest.BIN, "keeld"))
    said = subprocess.run([hydra, "-n", "2", RUN, PROGRAM], capture_output=True, text=True, env=environment, timeout=keeltest.HANG_S)
    assert (said.returncode, said.stdout) == (0, "nodes 1 wrong 0\n"), said


def test_what_keel_lacks_is_refused():
    expect_refused([LACKING], "it calls ARMCIX_Progress, which Keel's ARMCI does not have")
    code, out, err = keeltest.run(FAR + ["-n", "2", "--nodes", "2", RUN, PROGRAM, "pointer"])
    assert code == 2 and "calls ARMCIX_Progress, which Keel's ARMCI does not have" in err, (code, out, err)


def test_a_program_that_is_not_as_the_library_is_refused():
    at, size = functions()["PARMCI_Rmw"]

    def flip(data):
        data[at + size // 2] ^= 0x40

    def leave_out(data):
        data[at:at + size] = b"\xcc" * size
    with tempfile.TemporaryDirectory(prefix="keel-graft-") as folder:
        expect_refused([changed(folder, "flipped", flip)], "ARMCI_Rmw (rmw.o) is there, but altered")
        other_at, other_size = functions()["ARMCI_Group_create_child"]

        def leave_out_another(data):
            data[other_at:other_at + other_size] = b"\xcc" * other_size
        expect_refused([changed(folder, "left-out", leave_out_another)], "is there, but altered")


def test_a_library_that_is_not_there_or_another_is_refused():
    expect_refused(["--archive", "/nowhere/libarmci-mpich.a", PROGRAM], "libarmci-mpi-dev")
    expect_refused(["--archive=/nowhere/libarmci-mpich.a", PROGRAM], "libarmci-mpi-dev")
    with tempfile.TemporaryDirectory(prefix="keel-graft-") as folder:
        half = os.path.join(folder, "half.a")
        with open(ARCHIVE, "rb") as f, open(half, "wb") as to:
            to.write(f.read()[:50001])
        expect_refused(["--archive", half, PROGRAM], "it is cut off")
        expect_refused(["--archive", PROGRAM, PROGRAM], "it is no static library")
    expect_refused(["--archive", ARCHIVE.replace("mpich", "openmpi"), PROGRAM], "is there, but altered; --archive names the library that it was linked with")


def test_programs_that_nothing_can_be_put_into_are_refused():
    expect_refused(["/bin/true"], "it loads no library of MPI")
    expect_refused(["no-such-program"], "not found", 127)
    expect_refused(["/nowhere/program"], "No such file", 127)
    expect_refused([], "the program to run is missing")
    expect_refused(["--wrong", PROGRAM], "is not an option")
    with tempfile.TemporaryDirectory(prefix="keel-graft-") as folder:
        script = os.path.join(folder, "script")
        with open(script, "w") as f:
            f.write("#!/bin/sh\nexec %s\n" % PROGRAM)
        os.chmod(script, 0o755)
        expect_refused([script], "is a script; write keel-armci-run in it")
        other = changed(folder, "setuid", lambda data: None)
        os.chmod(other, 0o755 | stat.S_ISUID)
        expect_refused([other], "the system preloads nothing into it")


def test_a_refusal_ends_the_job():
    with tempfile.TemporaryDirectory(prefix="keel-graft-") as folder:
        at, size = functions()["PARMCI_Rmw"]

        def flip(data):
            data[at + size // 2] ^= 0x40
        code, out, err = keeltest.run(FAR + ["-n", "2", "--nodes", "2", RUN, changed(folder, "flipped", flip)])
        assert code == 2 and out == "" and "keel-armci-run: flipped: ARMCI_Rmw (rmw.o) is there, but altered" in err, (code, out, err)


keeltest.main(globals())
