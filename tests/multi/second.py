"""A program that is started again in a rank's place, or beside the one that is the rank: it is told so at once, and
disturbs nobody."""
import os
import signal
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../lib"))
import keeltest
from keeltest import Job, run, wait_for

PROGRAM = os.environ["KEEL_SECOND"]
FAR = ["--silence", "600s", "--stopped", "never"]


def script(ranks, nodes, text):
    return run(FAR + ["-n", str(ranks), "--nodes", str(nodes), "bash", "-c", text.replace("PROGRAM", PROGRAM)])


def codes(out):
    return sorted(out.split())


def test_after_keel_finalize():
    code, out, err = script(2, 2, "PROGRAM; echo $?; PROGRAM; echo $?")
    assert code == 0 and codes(out) == ["0", "0", "7", "7"], (code, out, err)
    for rank in 0, 1:
        assert "was rank %d of this job and has left it by keel_finalize; a second program" % rank in err, err


def test_after_an_end_without_keel_finalize():
    code, out, err = script(1, 1, "PROGRAM unsaid; echo $?; PROGRAM; echo $?")
    assert code == 0 and codes(out) == ["0", "7"], (code, out, err)
    assert "was rank 0 of this job and has ended without keel_finalize; a second program" in err, err


def test_others_at_the_same_time():
    """The first works on undisturbed, whoever it is."""
    code, out, err = script(3, 2, "for i in 1 2 3 4 5; do (PROGRAM long 100; echo $?) & done; wait")
    assert code == 0 and codes(out) == ["0"] * 3 + ["7"] * 12, (code, out, err)
    assert err.count(" is rank 0 of this job; a second program") == 4, err


def test_child_of_a_fork_that_lives_longer():
    code, out, err = script(2, 2, "PROGRAM forks; echo $?; PROGRAM; echo $?")
    assert code == 0 and codes(out) == ["0", "0", "7", "7"], (code, out, err)


def test_both_on_a_spare():
    """The place is the first one's, before anybody knows which rank it is."""
    text = "PROGRAM taker & PROGRAM taker & wait -n; touch $KEEL_TEST_TOLD/$KEEL_NODE; wait -n; true".replace("PROGRAM", PROGRAM)
    with tempfile.TemporaryDirectory() as told, Job(FAR + ["-n", "2", "--nodes", "2", "--spares", "1", "bash", "-c", text],
                                                    env={"KEEL_TEST_TOLD": told}) as job:
        wait_for(lambda: len(os.listdir(told)) == 3, "the second ones to be told")
        os.kill([e["pid"] for e in job.events("start") if e["node"] == 1][0], signal.SIGKILL)
        assert job.wait() == 0, job.stderr()
        assert " is its rank of this job; a second program" in job.stderr(), job.stderr()


if __name__ == "__main__":
    keeltest.main(globals())
