"""Programs under keelrun on the loopback bed: output, input, exit codes, MPI."""
import ctypes
import hashlib
import json
import os
import platform
import re
import resource
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../lib"))
import keeltest
from keeltest import HANG_S, IS_ROOT, KEELCTL, KEELRUN, Job, Skip, processes_with, run, wait_for

MPI_SUM = os.environ.get("KEEL_MPI_SUM", "")


def sh(script):
    return ["sh", "-c", script]


def test_hello_runs_on_every_node():
    code, out, err = run(["-n", "8", "--nodes", "4"] + sh("echo $KEEL_RANK $KEEL_SIZE $KEEL_NODE"))
    assert code == 0 and err == "", (code, err)
    assert sorted(out.splitlines()) == ["%d 8 %d" % (r, r // 2) for r in range(8)], out


def slice_of(thread):
    """Nanoseconds of a turn that the thread asks for; 0 on a kernel that has no such thing."""
    number = {"x86_64": 315, "aarch64": 275}.get(platform.machine())
    if not number:
        raise Skip("the number of sched_getattr is not known here")
    attributes = (ctypes.c_uint64 * 6)()
    assert ctypes.CDLL(None, use_errno=True).syscall(number, thread, attributes, ctypes.sizeof(attributes), 0) == 0, os.strerror(ctypes.get_errno())
    return attributes[3]


def threads(pid, name):
    for task in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/comm" % (pid, task)) as f:
            if f.read().strip() == name:
                yield int(task)


def test_data_thread_asks_for_short_turns_and_ranks_do_not():
    with Job(["-n", "2", "--nodes", "2", "sleep", "10000"]) as job:
        status, usual = job.wait_ranks(2), slice_of(0)
        agents = [e["pid"] for e in job.events("start")]
        data = [wait_for(lambda: [slice_of(t) for t in threads(pid, "keel-data")], "the data thread") for pid in agents]
        assert data == [[100000 if usual else 0]] * 2, data
        ranks = [r["pid"] for n in status["nodes"].values() for r in n["ranks"]]
        assert [slice_of(pid) for pid in ranks] == [usual] * 2, ranks
        for pid in ranks:
            os.kill(pid, signal.SIGTERM)
        job.wait()


def test_label_names_the_rank_of_every_line():
    code, out, _ = run(["-n", "3", "--nodes", "3", "--label"] + sh("echo a$KEEL_RANK; echo; printf b"))
    assert code == 0
    assert sorted(out.splitlines()) == sorted(x for r in range(3) for x in ("[%d] a%d" % (r, r), "[%d] " % r, "[%d] b" % r)), out


def test_programs_of_mpi_one_after_the_other_do_not_hang():
    """MPICH has closed what its launcher gave it."""
    if not MPI_SUM:
        raise Skip("no MPICH")
    code, out, err = run(["-n", "2", "--nodes", "2"] + sh("%s; echo code $?; %s; echo code $?" % (MPI_SUM, MPI_SUM)))
    assert code == 0 and out.count("sum") == 2 and out.count("code 0") == 2 and out.count("code 141") == 2, (code, out, err)


def test_lines_of_ranks_never_mix():
    script = "i=0; while [ $i -lt 3000 ]; do echo rank$KEEL_RANK-line$i-%s; i=$((i+1)); done" % ("x" * 100)
    code, out, _ = run(["-n", "4", "--nodes", "4"] + sh(script))
    assert code == 0
    expected = sorted("rank%d-line%d-%s" % (r, i, "x" * 100) for r in range(4) for i in range(3000))
    assert sorted(out.splitlines()) == expected


def test_stdout_and_stderr_stay_apart():
    code, out, err = run(["-n", "2", "--nodes", "2"] + sh("echo out; echo err >&2"))
    assert (code, out, err) == (0, "out\nout\n", "err\nerr\n"), (code, out, err)


def test_stdin_goes_to_rank_0_whole():
    data = os.urandom(5000000)
    code, out, _ = run(["-n", "2", "--nodes", "2"] + sh("test $KEEL_RANK = 0 && md5sum || wc -c"), stdin=data)
    assert code == 0
    assert sorted(out.split()) == sorted([hashlib.md5(data).hexdigest(), "-", "0"]), out


def test_stdin_that_nobody_reads_is_no_problem():
    code, out, _ = run(["-n", "2", "--nodes", "2"] + sh("echo done"), stdin=os.urandom(3000000))
    assert (code, out) == (0, "done\ndone\n"), (code, out)


def keelrun(*args, **kw):
    """Without a file between keelrun and us."""
    return subprocess.Popen([keeltest.KEELRUN, *args], **kw)


def test_output_is_the_programs_to_the_byte():
    data = os.urandom(300000) + b"\n\0no newline at the end"
    with tempfile.NamedTemporaryFile() as f:
        f.write(data)
        f.flush()
        for program in (["cat", f.name], ["printf", "abc"], ["printf", "a\\n"]):
            direct = subprocess.run(program, capture_output=True).stdout
            under = keelrun("-n", "1", *program, stdout=subprocess.PIPE)
            assert under.communicate(timeout=HANG_S)[0] == direct and under.returncode == 0, program


def test_prompt_without_newline_is_shown():
    job = keelrun("-n", "1", "sh", "-c", "printf 'name? '; read name; echo hello $name", stdin=subprocess.PIPE,
                  stdout=subprocess.PIPE)
    shown = b""
    while shown != b"name? ":  # the program waits for us
        shown += os.read(job.stdout.fileno(), 100)
    assert job.communicate(b"you\n", timeout=HANG_S)[0] == b"hello you\n" and job.returncode == 0


def test_reader_that_goes_away_ends_an_endless_job():
    script = "set -o pipefail; %s -n 2 --nodes 2 yes | head -1" % keeltest.KEELRUN
    result = subprocess.run(["bash", "-c", script], capture_output=True, timeout=HANG_S)
    assert (result.returncode, result.stdout, result.stderr) == (141, b"y\n", b""), result


def test_output_that_cannot_be_written_is_told_and_fails():
    with open("/dev/full", "w") as full:
        job = keelrun("-n", "1", "echo", "lost", stdout=full, stderr=subprocess.PIPE)
        err = job.communicate(timeout=HANG_S)[1]
    assert job.returncode == 1 and len(err.splitlines()) == 1 and b"No space left" in err, (job.returncode, err)


def test_output_to_a_file_that_may_not_become_so_large_is_told_and_fails():
    limit = 16 << 20  # nodes keep their memory in files, too
    with tempfile.TemporaryFile() as out:
        job = keelrun("-n", "1", "head", "-c", str(limit + 1), "/dev/zero", stdout=out, stderr=subprocess.PIPE,
                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        err = job.communicate(timeout=HANG_S)[1]
        assert job.returncode == 1 and len(err.splitlines()) == 1 and b"File too large" in err, (job.returncode, err)
        assert os.fstat(out.fileno()).st_size == limit


def test_closed_descriptors_are_no_trouble():
    def shell(redirection, *program):
        return subprocess.run(["sh", "-c", '"$@" ' + redirection, "sh", keeltest.KEELRUN, "-n", "1", *program],
                              capture_output=True, timeout=HANG_S)
    silent = shell(">&-", "true")
    assert (silent.returncode, silent.stderr) == (0, b""), silent
    lost = shell(">&-", "echo", "lost")
    assert lost.returncode == 1 and b"cannot write standard output" in lost.stderr, lost
    assert shell("2>&-", "sh", "-c", "echo out; echo err >&2").stdout == b"out\n"
    assert shell("<&-", "cat").returncode == 0
    assert shell("<&- >&- 2>&-", "true").returncode == 0


def test_what_a_rank_prints_without_standard_output_goes_nowhere():
    code, out, err = run(["-n", "2", "--nodes", "2", os.environ["KEEL_CLOSED"]])
    assert (code, out, err) == (0, "", ""), (code, out, err)


def test_what_a_rank_writes_to_its_agent_is_told_a_few_times():
    noise = "import os\nfor i in range(1000): os.write(int(os.environ['KEEL_FD']), bytes(300))\nprint('after')"
    code, out, err = run(["-n", "1", sys.executable, "-c", noise])
    assert (code, out) == (0, "after\n") and 1 <= len(err.splitlines()) <= 5 and "KEEL_FD" in err, (code, out, err)


def test_missing_dev_null_is_told():
    if not IS_ROOT:
        raise Skip("needs root for a /dev of its own")
    done = subprocess.run(["unshare", "-m", "--propagation", "private", "sh", "-c", 'mount -t tmpfs none /dev && exec "$@"', "sh",
                           KEELRUN, "-n", "1", "true"], capture_output=True, text=True, timeout=HANG_S)
    assert done.returncode == 1 and "/dev/null" in done.stderr and len(done.stderr.splitlines()) == 1, done


def test_ignored_hangup_stays_ignored():
    job = keelrun("-n", "1", "sh", "-c", "echo begun; read line; echo $line", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                  preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))  # as nohup does
    assert job.stdout.readline() == b"begun\n"
    os.kill(job.pid, signal.SIGHUP)
    assert job.communicate(b"end\n", timeout=HANG_S)[0] == b"end\n" and job.returncode == 0


def test_program_name_of_any_bytes():
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
        name = os.path.join(directory.encode(), b"pr\xff\xfeg")
        missing = subprocess.run([keeltest.KEELRUN, "-n", "1", name], capture_output=True, timeout=HANG_S)
        assert missing.returncode == 127 and b"No such file" in missing.stderr, missing
        with open(name, "w") as f:
            f.write("#!/bin/sh\necho \"$1\"; read line\n")
        os.chmod(name, 0o755)
        job = keelrun("-n", "1", name, b"\xc3(", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert job.stdout.readline() == b"\xc3(\n"
        listed = subprocess.run([keeltest.KEELCTL, "list", "--json"], capture_output=True, timeout=HANG_S)
        assert any(j.get("program", "").endswith("/pr??g") for j in json.loads(listed.stdout)), listed
        job.communicate(b"\n", timeout=HANG_S)
        assert job.returncode == 0


def test_exit_code_is_the_failing_ranks_with_one_line():
    code, out, err = run(["-n", "4", "--nodes", "4"] + sh("test $KEEL_RANK != 2 || exit 9; sleep 10000"))
    assert code == 9
    assert len(err.splitlines()) == 1 and err.startswith("keelrun: rank 2 ") and "exit code 9" in err, err


def test_abort_mode_signal_ends_the_job_with_128_more():
    code, _, err = run(["-n", "3", "--nodes", "3", "--on-failure", "abort"] +
                       sh("test $KEEL_RANK != 1 || kill -SEGV $$; sleep 10000"))
    assert code == 128 + 11, code
    assert len(err.splitlines()) == 1 and "rank 1 was killed by SIGSEGV" in err, err


def test_missing_program_is_one_line_and_127():
    code, _, err = run(["-n", "2", "--nodes", "2", "/nowhere/program"])
    assert code == 127
    assert len(err.splitlines()) == 1 and "/nowhere/program: No such file" in err, err


def test_missing_programs_are_one_line_that_names_the_package():
    with tempfile.TemporaryDirectory() as nothing:
        wanted = [(["-n", "2", "--nodes", "2"], KEELRUN, "mpiexec.hydra", "mpich"), (["--host", "n1", "list"], KEELCTL, "ssh", "openssh-client")]
        if IS_ROOT:
            wanted.append((["-n", "2", "--nodes", "2", "--bed", "netns"], KEELRUN, "ip", "iproute2"))
        for args, program, missing, package in wanted:
            done = subprocess.run([program, *args, *([] if program == KEELCTL else ["true"])], env=dict(os.environ, PATH=nothing),
                                  capture_output=True, text=True, timeout=HANG_S)
            assert (done.returncode, done.stdout) == (1, ""), done
            text = r"cannot run %s: it is not in the PATH \(Debian has it in the package %s\)$" % (re.escape(missing), package)
            assert len(done.stderr.splitlines()) == 1 and re.search(text, done.stderr), done


def test_program_that_may_not_be_run_is_126():
    code, _, err = run(["-n", "2", "--nodes", "2", "/etc/passwd"])
    assert code == 126 and len(err.splitlines()) == 1 and "Permission denied" in err, err


def test_bad_command_lines_are_one_line_and_2():
    for args in (["true"], ["-n", "0", "true"], ["-n", "x", "true"], ["-n", "2"], ["-n", "2", "--nodes", "3", "true"],
                 ["-n", "4", "--nodes", "3", "--ppn", "1", "true"], ["-n", "2", "--bed", "moon", "true"],
                 ["-n", "2", "--on-failure", "cry", "true"], ["-n", "2", "--hosts", "a,,b", "true"],
                 ["-n", "2", "--hosts", "-x", "true"], ["-n", "2", "--hostfile", "/nowhere", "true"],
                 ["-n", "2", "--hosts", "a", "--nodes", "2", "true"], ["-n", "2", "--launcher", "ssh", "true"],
                 ["-n", "2", "--hosts", "a", "--spares", "1", "true"], ["-n", "1", "--nodes", "300", "true"],
                 ["-n", "2", "--bogus", "true"], ["-n"]):
        code, out, err = run(args)
        assert code == 2 and out == "" and len(err.splitlines()) == 1 and err.startswith("keelrun: "), (args, code, err)


def test_event_log_that_cannot_be_written_is_refused():
    code, _, err = run(["--event-log", "/nowhere/log", "-n", "1", "true"])
    assert code == 2 and "/nowhere/log" in err, err


def test_event_log_that_becomes_full_is_told_and_fails():
    job = keelrun("--event-log", "/dev/full", "-n", "1", "echo", "out", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = job.communicate(timeout=HANG_S)
    assert (job.returncode, out) == (1, b"out\n") and len(err.splitlines()) == 1, (job.returncode, out, err)
    assert b"cannot write the event log: No space left" in err, err


def test_environment_and_directory_reach_the_ranks():
    code, out, _ = run(["-n", "1", "--nodes", "1"] + sh('echo "$ODD"; pwd; env | grep -c KEEL_LAUNCH'),
                       env={"ODD": "a b\tc=\"'\\"})
    assert code == 1 or code == 0
    assert out.splitlines() == ["a b\tc=\"'\\", os.getcwd(), "0"], out


def test_directory_that_is_gone_is_one_line():
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
        gone = os.path.join(directory, "gone")
        os.mkdir(gone)
        result = subprocess.run(["sh", "-c", 'cd "$1" && rmdir "$1" && exec "$2" -n 1 true', "sh", gone, os.path.abspath(keeltest.KEELRUN)],
                                capture_output=True, text=True, timeout=HANG_S)
    said = "keelrun: the working directory, which is that of the ranks: No such file or directory\n"
    assert (result.returncode, result.stderr) == (1, said), result


def test_secret_is_in_no_argument_list_and_no_environment():
    with Job(["-n", "2", "--nodes", "2"] + sh("sleep 0.5")) as job:
        job.wait_ranks(2)
        for pid in keeltest.processes_with(job.tag):
            with open("/proc/%d/environ" % pid, "rb") as f:
                known = keeltest.command_of(pid) + f.read().decode(errors="replace").replace("\0", " ")
            assert not re.search("[0-9a-f]{64}", known), known
        assert job.wait() == 0


def test_spares_that_are_not_needed_leave_no_trace():
    code, out, err = run(["-n", "2", "--nodes", "2", "--spares", "2"] +
                         sh("test -n \"$KEEL_RANK\" || { echo idle; sleep 10000; }; echo rank"))
    assert (code, out, err) == (0, "rank\nrank\n", ""), (code, out, err)


def test_children_that_a_rank_leaves_are_ended():
    code, _, _ = run(["-n", "2", "--nodes", "2"] + sh("setsid sleep 10000 & sleep 10000 & exit 0"))
    assert code == 0


def test_timeout_ends_the_job_with_124():
    code, out, err = run(["-n", "2", "--nodes", "2", "--timeout", "1"] + sh("sleep 10000; echo slept"))
    assert (code, out) == (124, "") and len(err.splitlines()) == 1, (code, out, err)


def test_ranks_that_ignore_sigterm_are_ended_too():
    code, _, _ = run(["-n", "2", "--nodes", "2", "--timeout", "1"] + sh("trap '' TERM; while :; do sleep 1; done"))
    assert code == 124


def test_mpi_program_runs_on_four_nodes():
    if not MPI_SUM:
        raise Skip("no mpicc")
    code, out, err = run(["-n", "8", "--nodes", "4", MPI_SUM])
    assert code == 0, (code, err)
    assert sorted(out.splitlines()) == ["rank %d of 8 sum 28" % r for r in range(8)], out
    code, out, err = run(["-n", "5", "--nodes", "3", MPI_SUM])
    assert code == 0 and len(out.splitlines()) == 5, (code, out, err)


def test_mpi_abort_gives_its_code():
    if not MPI_SUM:
        raise Skip("no mpicc")
    code, _, err = run(["-n", "4", "--nodes", "2", MPI_SUM, "abort"])
    assert code == 7 and "rank 1" in err, (code, err)


def test_event_log_has_the_whole_life():
    with Job(["-n", "2", "--nodes", "2", "--spares", "1", "true"]) as job:
        assert job.wait() == 0
        events = job.events()
        for name, count in (("started", 1), ("start", 3), ("exit", 2), ("over", 1)):
            assert len([e for e in events if e["event"] == name]) >= count, (name, events)
        assert all(isinstance(e["t_ns"], int) and isinstance(e["node"], int) for e in events)


STOPPED_FOR_GOOD = """import sys, signal
sys.path.insert(0, sys.argv.pop(1))
import keeltest
def test_forever():
    with keeltest.Job(["-n", "2", "--nodes", "2", "sleep", "10000"]) as job:
        job.wait_ranks(2)
        job.process.send_signal(signal.SIGSTOP)
        print("here", flush=True)
        signal.pause()
keeltest.main(globals())
"""


def test_a_test_that_is_told_to_end_leaves_nothing():
    """As those that take too long are: what it has stopped does not outlive it."""
    name = "KEEL_TEST_OF_TESTS=%d" % os.getpid()
    with subprocess.Popen([sys.executable, "-c", STOPPED_FOR_GOOD, os.path.dirname(keeltest.__file__)], stdout=subprocess.PIPE,
                          env=dict(os.environ, **dict([name.split("=")]))) as test:
        assert test.stdout.readline() == b"here\n"
        assert len(processes_with(name)) > 5
        test.send_signal(signal.SIGTERM)
        assert test.wait(HANG_S) == 143
    wait_for(lambda: not processes_with(name), "its processes to be gone")


keeltest.main(globals())
