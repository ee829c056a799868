"""keel-npb: the same bits wherever its ranks run and however they are held up, and what it says when it cannot run
or a rank dies."""
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../lib"))
import keeltest
from keeltest import Job, run, wait_for

NPB = os.environ.get("KEEL_NPB", "build/apps/npb/keel-npb")
FAR = ["--silence", "600s", "--stopped", "never"]
KERNELS = ["ep", "is", "cg", "mg", "ft", "lu"]


def values(out):
    """The computed values, digit by digit; the report is whole and says that they are right."""
    lines = out.splitlines()
    names = [line.split()[0] for line in lines[1:5]]
    assert names == ["size", "iterations", "traffic", "time"] and lines[5].startswith("speed "), out
    assert lines[-1] == "verification successful", out
    checks = lines[6:-1]
    assert checks and all(line.endswith(": right") for line in checks), out
    return checks


def test_each_kernel_has_the_same_bits_on_any_nodes_and_with_any_copies():
    for kernel in KERNELS:
        seen = {}
        for nodes, redundancy in (1, "none"), (2, "shadow"), (4, "triple"):
            code, out, err = run(FAR + ["-n", "4", "--nodes", str(nodes), NPB, kernel, "--redundancy", redundancy])
            assert code == 0 and err == "", (kernel, code, err)
            seen[nodes] = values(out)
        assert seen[1] == seen[2] == seen[4], (kernel, seen)


def test_number_of_ranks_that_a_kernel_cannot_use_is_refused_in_one_line():
    code, out, err = run(FAR + ["-n", "3", NPB, "mg"])
    assert (code, out) == (2, ""), (code, out, err)
    assert "keel-npb: class S of MG needs a power of two of ranks, at most 16, not 3" in err, err
    assert err.count("keel-npb:") == 1, err


def test_wrong_command_line_is_refused_in_one_line():
    for arguments, line in [([], "which kernel? usage: keel-npb ep|is|cg|mg|ft|lu [--class S|W|A]"),
                            (["xx"], "xx: there are the kernels ep, is, cg, mg, ft and lu"),
                            (["ep", "cg"], "cg: there are no two kernels in one run"),
                            (["ep", "--class", "Q"], "Q: there are classes S, W and A"),
                            (["ep", "--redundancy", "most"], "most: there are none, shadow and triple"),
                            (["ep", "--fast"], "--fast: unknown option, or its value is missing (see --help)")]:
        code, out, err = run(FAR + ["-n", "2", NPB] + arguments)
        assert (code, out) == (2, ""), (arguments, code, out, err)
        assert "keel-npb: " + line in err and err.count("keel-npb:") == 1, (arguments, err)


def computing(job):
    """Rank 1's process, in the time that is taken."""
    def started():
        assert job.process.poll() is None, (job.stdout(), job.stderr())
        return [e for e in job.events("application") if e["name"] == "npb_start"]
    wait_for(started, "the clock to start")
    return [e["pid"] for e in job.events("rank_start") if e["rank"] == 1][0]


def test_rank_that_stands_still_is_waited_for():
    with Job(FAR + ["-n", "2", "--nodes", "2", NPB, "ep", "--class", "W"], env={"KEEL_TIMEOUT_MS": "1000"}) as job:
        pid = computing(job)
        os.kill(pid, signal.SIGSTOP)
        time.sleep(5)  # rank 0 needs one for its part, and has waited longer than the limit
        assert job.process.poll() is None, (job.stdout(), job.stderr())
        os.kill(pid, signal.SIGCONT)
        assert job.wait() == 0, (job.stdout(), job.stderr())
        values(job.stdout())


def test_rank_that_dies_ends_the_job_with_a_line_and_no_result():
    with Job(FAR + ["-n", "2", "--nodes", "2", "--on-failure", "degrade", NPB, "ep", "--class", "A"]) as job:
        os.kill(computing(job), signal.SIGKILL)
        assert job.wait() != 0, (job.stdout(), job.stderr())
        assert job.stdout() == "" and "process 1 was killed" in job.stderr(), (job.stdout(), job.stderr())


if __name__ == "__main__":
    keeltest.main(globals())
