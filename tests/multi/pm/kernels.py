"""Jobs where system calls of newer kernels are not there (ENOSYS) or refused (EPERM): they run, die and are replaced,
and what they inherit is closed."""
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../lib"))
import keeltest
from keeltest import IS_ROOT, KEELCTL, KEELRUN, Job, alive, run, wait_for

OLD, CRASH = os.environ["KEEL_OLDKERNEL"], os.environ["KEEL_CRASH"]
ERRORS = ("ENOSYS", "EPERM")


def on_old_kernels(function):
    """function(program): what stands for keelrun."""
    for error in ERRORS:
        with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
            path = os.path.join(directory, "keelrun")
            with open(path, "w") as f:
                f.write('#!/bin/sh\nexec "%s" %s "%s" "$@"\n' % (os.path.abspath(OLD), error, os.path.abspath(KEELRUN)))
            os.chmod(path, 0o755)
            function(path)


def test_old_kernel_runs_jobs_to_their_end():
    def check(program):
        code, out, err = run(["-n", "4", "--nodes", "2", "sh", "-c", "cat; echo $KEEL_RANK"], stdin=b"in\n", program=program)
        assert (code, err, sorted(out.split())) == (0, "", ["0", "1", "2", "3", "in"]), (code, out, err)
        code, out, err = run(["-n", "2", "--nodes", "2", os.environ["KEEL_FABRIC"]], program=program)
        assert (code, err) == (0, ""), (code, out, err)
        code, out, err = run(["-n", "2", "--nodes", "2", "sh", "-c", "exit 7"], program=program)
        assert code == 7 and len(err.splitlines()) == 1, (code, err)
        code, out, err = run(["-n", "1", "no-such-program"], program=program)
        assert code == 127 and len(err.splitlines()) == 1, (code, err)
        if IS_ROOT:
            code, out, err = run(["-n", "2", "--nodes", "2", "--bed", "netns", "echo", "x"], program=program)
            assert (code, out, err) == (0, "x\nx\n", ""), (code, out, err)
    on_old_kernels(check)


def test_old_kernel_lets_an_idle_job_sleep():
    def check(program):
        def used():
            usage = resource.getrusage(resource.RUSAGE_CHILDREN)
            return usage.ru_utime + usage.ru_stime
        before, begin = used(), time.monotonic()
        code, out, err = run(["-n", "2", "--nodes", "2", "sleep", "2"], program=program)
        assert (code, out, err) == (0, "", ""), (code, out, err)
        assert used() - before < (time.monotonic() - begin) / 2, used() - before
    on_old_kernels(check)


def test_old_kernel_closes_what_is_inherited():
    def check(program):
        # an agent may close one between its name and the look at it
        script = "for p in $$ $PPID; do all=$(ls -l /proc/$p/fd 2>/dev/null); echo $all | grep -q '[-]>' && echo $all | grep -c /etc/passwd; done; true"
        code, out, err = run(["-n", "2", "--nodes", "2", "sh", "-c", script], program=program)
        assert (code, out, err) == (0, "0\n" * 4, ""), (code, out, err)
    on_old_kernels(check)


def test_old_kernel_replaces_a_killed_rank_and_a_killed_node():
    def check(program):
        # rank 1 kills itself, and is started again; the others wait for rank 0, which waits for its input
        with Job(["-n", "2", "--nodes", "2", "--spares", "1", "--silence", "600s", "--stopped", "never", CRASH, "1", "9", "once", "hold"], program=program) as job:
            def started(node):
                return [e for e in job.events("rank_start") if e["node"] == node]
            wait_for(lambda: len(started(1)) == 2, "rank 1 to be started again")
            wait_for(lambda: started(2) and "here" in job.stdout(), "the spare's process, and rank 0")
            agent = [e["pid"] for e in job.events("start") if e["node"] == 1][0]
            os.kill(agent, signal.SIGKILL)
            wait_for(lambda: job.events("assigned"), "the spare to take over")
            wait_for(lambda: not any(alive(e["pid"]) for e in started(1)), "the ranks of the dead node to end")
            job.process.stdin.close()
            assert job.wait() == 0, job.stderr()
    on_old_kernels(check)


def test_old_kernel_stops_a_job_with_keelctl():
    def check(program):
        with Job(["-n", "2", "--nodes", "2", "sleep", "10000"], program=program) as job:
            stop = subprocess.run([OLD, "ENOSYS", KEELCTL, "stop", job.id()], capture_output=True, text=True)
            assert (stop.returncode, stop.stdout, stop.stderr) == (0, "", ""), stop
            assert job.wait() == 143, job.stderr()
    on_old_kernels(check)


keeltest.main(globals())
