"""What keelrun tells about ranks and nodes that die, and what it counts as success."""
import contextlib
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../lib"))
import keeltest
from keeltest import KEELCTL, Job, Skip, run, wait_for

CRASH, MPI_SUM = os.environ["KEEL_CRASH"], os.environ.get("KEEL_MPI_SUM", "")
SEGV, KILL = str(int(signal.SIGSEGV)), str(int(signal.SIGKILL))


def lines(err):
    for line in err.splitlines():
        assert line.startswith("keelrun: "), err
    return [re.sub(r"pid \d+", "pid P", line[len("keelrun: "):]) for line in err.splitlines()]


def test_rank_that_is_started_again_is_told():
    code, _, err = run(["-n", "2", "--nodes", "2", "--spares", "1", CRASH, "1", SEGV, "once"])
    assert code == 0, (code, err)
    assert lines(err) == ["rank 1 (pid P, node 1) was killed by SIGSEGV; started again, 1 of 3",
                          "the job ended with exit code 0 after 1 restart of a rank"], err


def test_rank_that_crashes_too_often_fails_the_job():
    code, _, err = run(["-n", "2", "--nodes", "2", "--spares", "1", CRASH, "1", SEGV, "always"])
    told = lines(err)
    assert code == 128 + signal.SIGSEGV, (code, err)
    assert told[:3] == ["rank 1 (pid P, node 1) was killed by SIGSEGV; started again, %d of 3" % i for i in (1, 2, 3)], err
    assert told[3:] == ["rank 1 (pid P, node 1) was killed by SIGSEGV; the job goes on without it",
                        "rank 1 was killed by SIGSEGV once more than it is started again",
                        "the job ended with exit code 139 after the loss of 1 rank, 3 restarts of a rank"], err


def test_rank_that_crashes_without_spares_fails_the_job():
    code, _, err = run(["-n", "2", "--nodes", "2", CRASH, "1", SEGV, "always"])
    assert code == 139, (code, err)
    assert lines(err)[0] == "rank 1 (pid P, node 1) was killed by SIGSEGV; the job goes on without it", err
    assert lines(err)[1] == "rank 1 was killed by SIGSEGV", err


def test_rank_that_crashed_fails_the_job_when_its_node_is_gone_too():
    with Job(["-n", "3", "--nodes", "3", CRASH, "1", SEGV, "always", "hold"]) as job:
        wait_for(lambda: "the job goes on without it" in job.stderr(), "the crash")
        assert subprocess.run([KEELCTL, "kill-node", job.id(), "1"], stdout=subprocess.DEVNULL).returncode == 0
        wait_for(lambda: "node 1 died" in job.stderr(), "the node's death")
        assert job.wait() == 139, job.stderr()
        assert lines(job.stderr())[2:] == ["rank 1 was killed by SIGSEGV",
                                           "the job ended with exit code 139 after the loss of 1 node, the loss of 1 rank"], job.stderr()


def test_rank_that_crashes_is_no_failure_if_degrade_was_asked_for():
    code, _, err = run(["-n", "2", "--nodes", "2", "--on-failure", "degrade", CRASH, "1", SEGV, "always"])
    assert code == 0, (code, err)
    assert lines(err) == ["rank 1 (pid P, node 1) was killed by SIGSEGV; the job goes on without it",
                          "the job ended with exit code 0 after the loss of 1 rank"], err


def test_rank_that_is_killed_is_no_failure():
    code, _, err = run(["-n", "2", "--nodes", "2", CRASH, "1", KILL, "always"])
    assert code == 0, (code, err)
    assert lines(err)[0] == "rank 1 (pid P, node 1) was killed by SIGKILL; the job goes on without it", err


def test_quiet_tells_nothing_of_deaths():
    code, _, err = run(["-n", "2", "--nodes", "2", "--spares", "1", "--quiet", CRASH, "1", SEGV, "once"])
    assert (code, err) == (0, ""), (code, err)
    code, _, err = run(["-n", "2", "--nodes", "2", "--quiet", CRASH, "1", SEGV, "always"])
    assert code == 139 and lines(err) == ["rank 1 was killed by SIGSEGV"], "why it failed is told: " + err


def test_node_that_dies_is_told():
    for options, outcome in (([], "the job goes on without rank 1"), (["--spares", "1"], "rank 1 continues on node 2")):
        with Job(["-n", "2", "--nodes", "2"] + options + [CRASH, "9", "9", "once", "hold"]) as job:
            wait_for(lambda: job.stdout() == "here\n", "keel_init")
            assert subprocess.run([KEELCTL, "kill-node", job.id(), "1"], stdout=subprocess.DEVNULL).returncode == 0
            wait_for(lambda: "died" in job.stderr(), "keelrun to tell")
            assert job.wait() == 0, job.stderr()
            told = lines(job.stderr())
            assert re.fullmatch(r"node 1 died \d+\.\d s after the start; " + outcome, told[0]), told
            assert told[1:] == ["the job ended with exit code 0 after the loss of 1 node" +
                                ("" if options else ", the loss of 1 rank")], told


def test_agent_that_crashes_leaves_no_file():
    with tempfile.TemporaryDirectory() as directory:
        def there():
            os.chdir(directory)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        with Job(["-n", "2", "--nodes", "2", CRASH, "9", "9", "once", "hold"], before=there) as job:
            wait_for(lambda: job.stdout() == "here\n", "keel_init")
            os.kill(job.status()["nodes"][1]["agent_pid"], signal.SIGSEGV)
            wait_for(lambda: "node 1 died" in job.stderr(), "keelrun to tell")
            assert job.wait() == 0, job.stderr()
        assert os.listdir(directory) == [], os.listdir(directory)


def test_program_without_keel_ends_with_its_first_death():
    # rank 1 dies only when rank 0 has written: else the job may end before rank 0 runs
    script = 'echo rank $KEEL_RANK; if [ $KEEL_RANK = 0 ]; then : >"$1"; else until [ -e "$1" ]; do :; done; kill -KILL $$; fi; ' \
             'exec sleep 10000'
    for options in ([], ["--spares", "1"]):
        with tempfile.TemporaryDirectory() as directory:
            code, out, err = run(["-n", "2", "--nodes", "2"] + options +
                                 ["sh", "-c", script, "sh", os.path.join(directory, "written")])
        assert code == 137, (code, err)
        assert lines(err) == ["rank 1 (pid P, node 1) was killed by SIGKILL before it called keel_init, so it cannot be replaced"], err
        assert sorted(out.splitlines()) == ["rank 0", "rank 1"], "all is passed on, nothing runs on the spare: " + out


def test_program_without_keel_ends_when_a_node_dies():
    cases = ([], "the job goes on without rank 1"), (["--spares", "1"], "rank 1 continues on node 2")
    with contextlib.ExitStack() as stack:  # at once: each waits for seconds whether the program calls keel_init
        jobs = [stack.enter_context(Job(["-n", "2", "--nodes", "2"] + options + ["sh", "-c", "echo rank $KEEL_RANK; exec sleep 10000"]))
                for options, _ in cases]
        for job in jobs:
            wait_for(lambda: job.stdout().count("rank") == 2, "both ranks")
            assert subprocess.run([KEELCTL, "kill-node", job.id(), "1"], stdout=subprocess.DEVNULL).returncode == 0
        for job, (_, outcome) in zip(jobs, cases):
            assert job.wait() == 137, job.stderr()
            told = lines(job.stderr())
            assert re.fullmatch(r"node 1 died \d+\.\d s after the start; " + outcome + " if the program calls keel_init", told[0]), told
            assert told[1] == "rank 1 died with node 1 before the program called keel_init, so it cannot be replaced", told
            assert told[2].startswith("the job ended with exit code 137 after the loss of 1 node") and len(told) == 3, told
            assert sorted(job.stdout().splitlines()) == ["rank 0", "rank 1"], "it runs on the spare: " + job.stdout()


def test_program_without_keel_that_lost_a_node_has_not_succeeded():
    for options, expected in (([], 137), (["--on-failure", "degrade"], 0)):
        with Job(["-n", "2", "--nodes", "2"] + options + ["sh", "-c", "echo begun; [ $KEEL_RANK = 1 ] && exec sleep 10000; exec cat"]) as job:
            wait_for(lambda: job.stdout().count("begun") == 2, "both ranks")
            assert subprocess.run([KEELCTL, "kill-node", job.id(), "1"], stdout=subprocess.DEVNULL).returncode == 0
            wait_for(lambda: job.events("view"), "the view without node 1")
            assert job.wait() == expected, job.stderr()


def test_mpi_program_whose_rank_crashes_ends():
    if not MPI_SUM:
        raise Skip("no mpicc")
    code, _, err = run(["-n", "4", "--nodes", "2", MPI_SUM, "crash"])
    ours = [line for line in err.splitlines() if line.startswith("keelrun: ")]  # MPI's libraries may tell of it in their way
    assert code == 139 and len(ours) == 1 and "rank 1 (" in ours[0] and "SIGSEGV" in ours[0], (code, err)


def test_program_without_keel_does_not_run_on_spares():
    with Job(["-n", "1", "--nodes", "1", "--spares", "2", "sh", "-c", "echo run >>$OUT"],
             env={"OUT": "/dev/stderr"}) as job:
        assert job.wait() == 0
        assert len(job.events("rank_start")) == 1, job.events()


def test_mpi_abort_says_who():
    if not MPI_SUM:
        raise Skip("no mpicc")
    code, _, err = run(["-n", "4", "--nodes", "2", MPI_SUM, "abort"])
    assert code == 7 and "keelrun: rank 1 on node 0 aborted the job with code 7\n" in err, (code, err)


def test_limit_that_keeps_a_job_from_starting_is_named():
    def below(kind, limit):
        return lambda: resource.setrlimit(kind, (limit, limit))
    with Job(["-n", "2", "--nodes", "2", "true"], before=below(resource.RLIMIT_FSIZE, 64 * 1024)) as job:
        assert job.wait() == 1
        assert re.fullmatch(r"keelrun: node \d: .*: File too large \(ulimit -f is 64 KiB\)\n", job.stderr()), job.stderr()
    for few in ("6", "10", "16", "18"):
        code, out, err = run(["-n", "1", "sh", "-c", 'ulimit -n %s; exec "$KEEL_FABRIC"' % few])
        line = "keel_init: the operating system refused a request: Too many open files (ulimit -n is %s descriptors)\n" % few
        assert code == 2 and line in err, (few, code, err)


def test_limit_of_processes_is_named():
    if not keeltest.IS_ROOT:
        raise Skip("needs root, for a user without processes")

    def poor():
        resource.setrlimit(resource.RLIMIT_NPROC, (3, 3))
        os.setgroups([])
        os.setgid(65533)
        os.setuid(65533)
    try:
        done = subprocess.run([keeltest.KEELRUN, "-n", "2", "--nodes", "2", "true"], preexec_fn=poor, capture_output=True, text=True,
                              timeout=keeltest.HANG_S, cwd="/")
    except PermissionError:
        raise Skip("the build folder is closed to others")
    assert done.returncode == 1 and "Resource temporarily unavailable (ulimit -u is 3 processes and threads)" in done.stderr, done


def pids_group():
    """A cgroup of our own in which processes are counted; None: there is no such."""
    for mount in "/sys/fs/cgroup/pids", "/sys/fs/cgroup":
        path = "%s/keel-test-%d" % (mount, os.getpid())
        try:
            os.mkdir(path)
        except OSError:
            continue
        if os.path.exists(path + "/pids.max"):
            return path
        os.rmdir(path)
    return None


def test_limit_of_the_cgroup_is_named():
    group = keeltest.IS_ROOT and pids_group()
    if not group:
        raise Skip("needs root, and a cgroup of its own with pids.max")

    def few():
        with open(group + "/cgroup.procs", "w") as f:
            f.write("0")
        resource.setrlimit(resource.RLIMIT_NPROC, (1000, 1000))
    try:
        with open(group + "/pids.max", "w") as f:
            f.write("3")
        done = subprocess.run([keeltest.KEELRUN, "-n", "2", "--nodes", "2", "true"], preexec_fn=few, capture_output=True, text=True,
                              timeout=keeltest.HANG_S)
    finally:
        keeltest.wait_for(lambda: not open(group + "/cgroup.procs").read(), "the group to be empty")
        os.rmdir(group)
    assert done.returncode == 1 and "Resource temporarily unavailable (pids.max of its cgroup is 3 processes and threads)" in done.stderr, done


def test_rank_without_a_way_to_another_node_says_so():
    if not keeltest.IS_ROOT:
        raise keeltest.Skip("needs root, for a network of its own")
    script = '[ "$KEEL_RANK" = 0 ] && exec "$KEEL_FABRIC"; exec unshare -n "$KEEL_FABRIC"'
    with Job(["-n", "2", "--nodes", "2", "--silence", "600s", "--stopped", "never", "sh", "-c", script]) as job:
        line = r"rank 1: warn: .*no connection to node 0 \(127\.0\.0\.2:\d+\) for \d+ s: Network is unreachable; .*"
        wait_for(lambda: re.search(line, job.stderr()), "the line")
        job.process.send_signal(signal.SIGTERM)
        assert job.wait() == 143
        assert len(re.findall(line, job.stderr())) <= 2, job.stderr()


keeltest.main(globals())
