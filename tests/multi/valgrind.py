"""Programs that valgrind runs: they come through, and it tells of no error that is not theirs."""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../lib"))
import keeltest
from keeltest import Skip, run

FAR = ["--silence", "600s", "--stopped", "never"]
VALGRIND = ["valgrind", "-q", "--error-exitcode=99", "--leak-check=full"]
RMA, PLAIN, JOINED = os.environ["KEEL_RMA"], os.environ["KEEL_PLAIN"], os.environ["KEEL_JOINED"]


def without_its_notice(err):
    return [line for line in err.splitlines() if "set address range perms: large range" not in line and "KEEL_SEED=" not in line
            and "a copy of a segment would be of" not in line and "another node's ranks allocate it with other arguments" not in line]


def test_every_kind_of_operation():
    code, out, err = run(FAR + ["-n", "2", "--nodes", "2"] + VALGRIND + [RMA])
    assert code == 0 and "all right on 2 ranks" in out and not without_its_notice(err), (code, out, err)


def test_memory_that_is_tracked():
    code, out, err = run(FAR + ["-n", "2", "--nodes", "2"] + VALGRIND + [PLAIN])
    assert code == 0 and not without_its_notice(err), (code, out, err)


def test_in_a_script_it_is_told_what_to_do():
    script = ["sh", "-c", " ".join(VALGRIND + [RMA])]
    code, out, err = run(["-n", "1"] + script)
    assert code != 0 and "which cannot hold the 32 TiB of addresses" in err and "KEEL_ADDRESS_RANGE=small" in err, (code, out, err)
    assert err.count("keel_init: ") == 1, err
    code, out, err = run(FAR + ["-n", "2", "--nodes", "2"] + script, env={"KEEL_ADDRESS_RANGE": "small"})
    assert code == 0 and not without_its_notice(err), (code, out, err)


def test_only_one_of_the_ranks():
    """All have the same addresses."""
    script = ["sh", "-c", "if [ $KEEL_RANK = 1 ]; then exec %s; else exec %s; fi" % (" ".join(VALGRIND + [RMA]), RMA)]
    code, out, err = run(FAR + ["-n", "2", "--nodes", "2"] + script, env={"KEEL_ADDRESS_RANGE": "0x400000000,32G"})
    assert code == 0 and not without_its_notice(err), (code, out, err)


def test_a_range_that_is_none_is_refused():
    for text in "big", "0x400000000", "0x400000001,32G":
        code, out, err = run(["-n", "1", "true"], env={"KEEL_ADDRESS_RANGE": text})
        assert code == 2 and err == "keelrun: KEEL_ADDRESS_RANGE=%s is not small, or BASE,BYTES in whole megabytes such as 0x400000000,32G\n" % text, err


def test_a_range_that_is_taken_is_told():
    code, out, err = run(["-n", "1", RMA], env={"KEEL_ADDRESS_RANGE": "0x7f0000000000,1T"})
    assert code != 0 and "keel_init: rank 0 cannot keep the addresses 0x7f0000000000 to 0x800000000000 free" in err, (code, err)


def test_started_by_mpiexec():
    if not shutil.which("mpiexec.hydra"):
        raise Skip("no mpiexec.hydra")
    done = subprocess.run(["mpiexec.hydra", "-n", "2"] + VALGRIND + [JOINED], capture_output=True, text=True, timeout=keeltest.HANG_S,
                          env=dict(os.environ, KEEL_KEELD=os.path.join(keeltest.BIN, "keeld")))
    assert done.returncode == 0 and not without_its_notice(done.stderr), (done.returncode, done.stdout, done.stderr)


if __name__ == "__main__":
    keeltest.main(globals())
