"""A rank that dies inside a script which hides it: what the script goes on to say is not the rank's end. And scripts
that hide nothing."""
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../lib"))
import keeltest
from keeltest import Job, Skip, alive

HIDDEN = os.environ["KEEL_HIDDEN"]
# kernels before it do not say how a process ended that somebody else has awaited
KERNEL_SAYS = tuple(int(n) for n in os.uname().release.split(".")[:2]) >= (6, 15)
# rank 1's first script would go on for that long
LONGER = "[ $KEEL_RANK = 0 ] || sleep 20"


def script(how, tail="exit 0", options=(), before="", program_of_keelrun=None, **kw):
    """Each rank is a script that starts the program, and goes on."""
    return Job(["-n", "2", "--nodes", "2", *options, "bash", "-c", "%s%s %s; %s" % (before, HIDDEN, how, tail)], program=program_of_keelrun, **kw)


def said(job):
    return [line[9:] for line in job.stderr().splitlines() if line.startswith("keelrun: ")]


def shell_of_first(job):
    """Of rank 1's first process."""
    return int(re.search(r"^rank 1 pid \d+ of (\d+)$", job.stdout(), re.M).group(1))


def death(job, signal, pid=r"\d+"):
    did = "was killed by %s" % signal if KERNEL_SAYS else "ended without keel_finalize inside its script"
    return r"rank 1 \(pid %s, node 1\) %s" % (pid, did)


def test_killed_rank_is_dead_though_its_script_ends_with_0():
    with script("kill", tail=LONGER) as job:
        assert job.wait() == (0 if KERNEL_SAYS else 1), job.stderr()
        pid = re.search(r"^rank 1 pid (\d+)", job.stdout(), re.M).group(1)
        assert re.fullmatch(death(job, "SIGKILL", pid) + "; the job goes on without it", said(job)[0]), job.stderr()
        assert not alive(shell_of_first(job)), "the script goes on without its rank"
        assert "failure rank 1 signal %d\n" % (9 if KERNEL_SAYS else -1) in job.stdout(), job.stdout()
        assert [e["pid"] for e in job.events("hidden_death")] == [int(pid)]


def test_crash_is_no_success_whatever_the_script_says():
    with script("segv") as job:
        assert job.wait() == (139 if KERNEL_SAYS else 1), job.stderr()
        assert re.match(death(job, "SIGSEGV"), said(job)[0]), job.stderr()


def test_it_is_begun_anew_when_its_script_is_gone():
    for first in "true", "sleep 20":
        with tempfile.TemporaryDirectory() as place, \
             script("kill", tail='[ $KEEL_RANK = 0 ] || [ -e "$F" ] || { : >"$F"; %s; }; exit 0' % first, options=["--on-failure", "substitute"],
                    env={"F": os.path.join(place, "first")}) as job:
            assert job.wait() == 0, job.stderr()
            assert re.fullmatch(death(job, "SIGKILL") + "; started again, 1 of 3", said(job)[0]), job.stderr()
            assert re.search(r"^rank 1 pid \d+ of \d+ again$", job.stdout(), re.M), job.stdout()
            assert not alive(shell_of_first(job))


def test_in_mode_abort_the_job_ends():
    with script("kill", tail=LONGER, options=["--on-failure", "abort"]) as job:
        assert job.wait() == (137 if KERNEL_SAYS else 1), job.stderr()
        assert re.search(r"rank 1 (was killed by SIGKILL|ended without keel_finalize inside its script)", said(job)[-1]), job.stderr()


def test_exit_with_a_code_is_the_ranks_end():
    for how in ["exit3"] + ["_exit3"] * KERNEL_SAYS:
        with script(how, tail=LONGER) as job:
            assert job.wait() == 3, (how, job.stderr())
            assert said(job) == ["rank 1 ended with exit code 3"], job.stderr()


def test_orderly_ends_are_the_scripts_matter():
    for how in ["exit0", "quick", "left", "exec"] + ["_exit0"] * KERNEL_SAYS:
        with script(how, tail="echo goes on") as job:
            assert job.wait() == 0 and said(job) == [], (how, job.stderr())
            assert job.stdout().count("goes on\n") == 2, (how, job.stdout())


def test_abort_is_the_jobs_end():
    with script("abort", tail=LONGER) as job:
        assert job.wait() == 5, job.stderr()
        assert [e for e in job.events("hidden_death")] == []


def test_program_behind_or_before_it_does_not_matter():
    with script("exit0", before="true; ", tail="true; sh -c 'exit 0'") as job:
        assert job.wait() == 0 and said(job) == [], job.stderr()
    # one that is refused has not been the rank
    with script("exit0", tail="%s exit0; echo $?" % HIDDEN) as job:
        assert job.wait() == 0, job.stderr()
        assert job.stderr().count("give it a keelrun of its own") == 2 and not job.events("hidden_death"), job.stderr()


def test_rank_that_outlives_its_script_is_not_dead():
    with tempfile.TemporaryDirectory() as place:
        go = os.path.join(place, "go")
        with script("stay %s" % go, tail="wait", before="(sleep 1; : > %s) & " % go) as job:
            assert job.wait() == 0 and said(job) == [], job.stderr()


def test_killed_by_somebody_else_while_it_waits():
    with tempfile.TemporaryDirectory() as place:
        with script("stay %s" % os.path.join(place, "never"), tail="exit 0", options=["--on-failure", "degrade"]) as job:
            keeltest.wait_for(lambda: re.search(r"^rank 1 pid \d+", job.stdout(), re.M), "rank 1")
            os.kill(int(re.search(r"^rank 1 pid (\d+)", job.stdout(), re.M).group(1)), 9)
            assert job.wait() == 0, job.stderr()
            assert re.match(death(job, "SIGKILL"), said(job)[0]), job.stderr()


def test_process_that_has_closed_its_descriptors_is_the_rank_still():
    """And no more when it has another program, whether it closes them before or by exec."""
    # exit leaves a word in memory, whatever the kernel says
    for how, code in ("exit0", 0), ("exit3", 3), *[("kill", 0), ("_exit3", 3), ("exec", 0), ("exec9", 0)] * KERNEL_SAYS:
        with tempfile.TemporaryDirectory() as place:
            go = os.path.join(place, "go")
            with script("%s %s closed" % (how, go), before="(sleep 1; : > %s) & " % go) as job:
                assert job.wait() == code, (how, job.stderr())
                lines = [line for line in said(job) if "have waited" not in line and "is over after" not in line]
                if how == "kill":
                    assert re.match(death(job, "SIGKILL"), lines[0]), job.stderr()
                else:
                    assert lines == (["rank 1 ended with exit code 3"] if code else []), (how, job.stderr())


def test_interpreter_that_starts_the_program_is_a_script_too():
    code = "import subprocess; subprocess.run([%r, 'kill'], close_fds=False)" % HIDDEN
    with Job(["-n", "2", "--nodes", "2", sys.executable, "-c", code]) as job:
        assert job.wait() == (0 if KERNEL_SAYS else 1) and re.match(death(job, "SIGKILL"), said(job)[0]), job.stderr()


def test_library_that_was_closed_is_no_trouble_to_exit():
    if os.environ.get("KEEL_SANITIZE", "none") != "none":
        raise Skip("an interpreter without the sanitizer does not load such a library")
    code = "import ctypes, _ctypes; k = ctypes.CDLL('libkeel.so'); s = k.keel_init(), k.keel_finalize(); _ctypes.dlclose(k._handle); print(s)"
    with Job(["-n", "2", "--nodes", "2", sys.executable, "-c", code]) as job:
        assert job.wait() == 0 and job.stdout() == "(0, 0)\n" * 2, (job.stdout(), job.stderr())


def test_kernel_that_does_not_say_how_it_ended():
    # perhaps the program has not been awaited yet when the agent looks: then its number is known all the same
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
        path = os.path.join(directory, "keelrun")
        with open(path, "w") as f:
            f.write('#!/bin/sh\nexec "%s" ENOSYS "%s" "$@"\n' % (os.path.abspath(os.environ["KEEL_OLDKERNEL"]), os.path.abspath(keeltest.KEELRUN)))
        os.chmod(path, 0o755)
        for how, known in ("kill", 0), ("exit0", 0), ("exit3", 3):
            with script(how, program_of_keelrun=path) as job:
                code, lines = job.wait(), said(job)
                if how != "kill":
                    assert code == known and len(lines) == (code != 0), (how, code, job.stderr())
                elif "ended without keel_finalize inside its script" in lines[0]:
                    assert code == 1 and lines[1] == "rank 1 ended without keel_finalize inside its script", (code, job.stderr())
                    assert "failure rank 1 signal -1\n" in job.stdout(), job.stdout()
                else:
                    assert code == 0 and "was killed by SIGKILL" in lines[0], (code, job.stderr())


keeltest.main(globals())
