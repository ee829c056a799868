"""Who reads keelrun's output and event log slowly, late, not at all, or goes away: nothing of the output is lost,
memory is bounded, and keelrun goes on hearing what happens."""
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../lib"))
import keeltest
import recorder
from keeltest import HANG_S, KEELCTL, Job, state_of, wait_for

# Writes numbered lines for ever, and after each how many it has written into the file named by its rank in $DIR.
COUNTING = [sys.executable, "-c", """import os
rank, i = os.environ["KEEL_RANK"], 0
count = os.open(os.path.join(os.environ["DIR"], rank), os.O_WRONLY | os.O_CREAT)
os.pwrite(count, b"%12d %d" % (0, os.getpid()), 0)
to = 2 if rank == os.environ.get("TO_ERROR") else 1
while True:
    os.write(to, b"%s %d %s\\n" % (rank.encode(), i, b"x" * 100))
    i += 1
    os.pwrite(count, b"%12d" % i, 0)
"""]


def counts(directory):
    """{rank: lines that it has written}"""
    found = {}
    for rank in os.listdir(directory):
        with open(os.path.join(directory, rank)) as f:
            found[rank] = int(f.read(12) or 0)
    return found


def writers(directory):
    """Their pids."""
    texts = []
    for rank in os.listdir(directory):
        with open(os.path.join(directory, rank)) as f:
            texts.append(f.read())
    return [int(text.split()[1]) for text in texts if " " in text.strip()]


def stand_still(directory, ranks):
    """Until all ranks wait for somebody to read."""
    seen = [{}, {}]

    def still():
        seen.append(counts(directory))
        time.sleep(0.3)
        # who waits for a processor is none that stands still
        asleep = all(state_of(pid) == "S" for pid in writers(directory))
        return asleep and len(seen[-1]) == ranks and seen[-1] == counts(directory) and seen[-1] == seen[-2] == seen[-3]
    wait_for(still, "the ranks to stand still")
    return counts(directory)


def expect_whole(data, written):
    """All that each rank has written, in order, and nothing else; its last line may have been cut by its death."""
    lines = data.decode().split("\n")
    for rank, count in written.items():
        numbers = [int(line.split()[1]) for line in lines if line.startswith(rank + " ") and line.endswith("x" * 100)]
        assert numbers == list(range(len(numbers))), (rank, len(numbers))
        assert len(numbers) >= count, "rank %s wrote %d lines, %d came" % (rank, count, len(numbers))


def read_all(fd):
    blocks = []
    while True:
        block = os.read(fd, 1 << 20)
        if not block:
            return b"".join(blocks)
        blocks.append(block)


class Unread(Job):
    """A job whose standard output (and error, on request) goes to pipes that only we read."""

    def __init__(self, args, pipes=("stdout",), together=False, **kw):
        self.place = tempfile.TemporaryDirectory(prefix="keel-test-")
        self.pipes = {name: os.pipe() for name in pipes}
        ends = {name: ends[1] for name, ends in self.pipes.items()}
        if together:
            ends["stderr"] = ends["stdout"]
        super().__init__(args, env=dict(kw.pop("env", {}), DIR=self.place.name), **ends, **kw)
        for _, end in self.pipes.values():
            os.close(end)

    def take(self, name="stdout"):
        return read_all(self.pipes[name][0])

    def __exit__(self, *args):
        try:
            super().__exit__(*args)
        finally:
            for end, _ in self.pipes.values():
                os.close(end)
            self.place.cleanup()


def test_deaths_are_told_while_nobody_reads_the_output():
    with Unread(["-n", "3", "--nodes", "3", "--on-failure", "degrade"] + COUNTING) as job:
        status = job.wait_ranks(3)
        stand_still(job.place.name, 3)
        os.kill(status["nodes"][1]["ranks"][0]["pid"], signal.SIGKILL)
        wait_for(lambda: "rank 1 (pid %d, node 1) was killed by SIGKILL; the job goes on without it"
                 % status["nodes"][1]["ranks"][0]["pid"] in job.stderr(), "the rank's death to be told")
        os.kill(status["nodes"][2]["agent_pid"], signal.SIGKILL)
        wait_for(lambda: re.search(r"node 2 died .* the job goes on without rank 2\n", job.stderr()), "the node's death to be told")
        assert {e["rank"] for e in job.events("exit")} == {1}, job.events("exit")
        job.process.send_signal(signal.SIGINT)
        job.take()
        assert job.wait() == 130, job.stderr()


def test_job_that_ends_while_nobody_reads_loses_nothing():
    """Rank 2 dies before, ranks 0 and 1 at the end of the job: what each had written comes."""
    with Unread(["-n", "3", "--nodes", "3", "--on-failure", "degrade"] + COUNTING) as job:
        status = job.wait_ranks(3)
        stand_still(job.place.name, 3)
        os.kill(status["nodes"][2]["ranks"][0]["pid"], signal.SIGKILL)
        wait_for(lambda: job.events("exit"), "the rank's end")
        # it returns when the agents are gone
        assert subprocess.run([KEELCTL, "stop", job.id()], timeout=HANG_S).returncode == 0
        wait_for(lambda: job.events("over") and job.events("over")[-1]["node"] == -1, "the end to be heard")
        written = counts(job.place.name)
        assert job.process.poll() is None, "the reader is waited for"
        expect_whole(job.take(), written)
        assert job.wait() == 143, job.stderr()
        assert "lost" not in job.stderr().replace("the loss of", ""), job.stderr()


def test_exit_code_is_the_programs_while_nobody_reads():
    with Unread(["-n", "2", "--nodes", "2", "sh", "-c", """head -c 700000 /dev/zero
if [ $KEEL_RANK = 0 ]; then : >$DIR/written; exec sleep 10000; fi
until [ -e $DIR/written ]; do sleep 0.05; done; exit 9"""]) as job:
        wait_for(lambda: job.events("over") and job.events("over")[-1]["node"] == -1, "the end to be heard")
        assert len(job.take()) == 1400000
        assert job.wait() == 9 and "keelrun: rank 1 " in job.stderr(), job.stderr()


def test_streams_do_not_hold_each_other_up():
    for flooded, other in (("stdout", "stderr"), ("stderr", "stdout")):
        with Unread(["-n", "2", "--nodes", "1"] + COUNTING, pipes=("stdout", "stderr"),
                    env={"TO_ERROR": "0" if flooded == "stderr" else "1"}) as job:
            job.wait_ranks(2)
            fd = job.pipes[other][0]
            got = 0
            while got < 5 << 20:  # rank 1's, while that of rank 0 is not read
                got += len(os.read(fd, 1 << 20))
            assert counts(job.place.name)["0"] * 100 < 3 << 20, "more was taken of what nobody reads"
            job.process.send_signal(signal.SIGINT)
            job.take(other)
            job.take(flooded)
            assert job.wait() == 130


def test_keelrun_that_was_stopped_for_long_has_lost_nothing():
    """Ctrl-Z, and fg after a while: its sockets are full meanwhile, which looks like a host that is gone to
    TCP_USER_TIMEOUT."""
    if keeltest.IS_ROOT:
        recorder.own_network()  # with small buffers
        with open("/proc/sys/net/ipv4/tcp_rmem", "w") as f:
            f.write("4096 16384 16384")
    with Unread(["-n", "2", "--nodes", "2"] + COUNTING) as job:
        job.wait_ranks(2)
        job.process.send_signal(signal.SIGSTOP)
        stand_still(job.place.name, 2)
        time.sleep(30)  # longer than what is left to a host that says nothing
        job.process.send_signal(signal.SIGCONT)
        stand_still(job.place.name, 2)
        assert job.status()["keelrun"] is True
        job.process.send_signal(signal.SIGINT)
        written = counts(job.place.name)
        expect_whole(job.take(), written)
        assert job.wait() == 130, job.stderr()


def memory(pid):
    with open("/proc/%d/status" % pid) as f:
        return int(re.search(r"VmRSS:\s+(\d+) kB", f.read()).group(1)) << 10


def test_what_nobody_reads_is_bounded():
    """A rank is started again and again: what each left in its pipe comes on top, and that is all."""
    with Unread(["-n", "4", "--nodes", "2"] + COUNTING, together=True) as job:
        job.wait_ranks(4)
        total = sum(stand_still(job.place.name, 4).values()) * 105
        assert total < 8 << 20, total  # two windows, four pipes
        before = memory(job.process.pid)
        time.sleep(1)
        assert memory(job.process.pid) - before < 1 << 20, "it goes on growing"
        job.process.send_signal(signal.SIGINT)
        expect_whole(job.take(), counts(job.place.name))
        assert job.wait() == 130


def test_two_jobs_with_one_reader_that_stands_still():
    """Each finds the pipe writable and full a moment later."""
    with Unread(["-n", "1"] + COUNTING) as job:
        ends = os.open("/proc/self/fd/%d" % job.pipes["stdout"][0], os.O_WRONLY)
        with Job(["-n", "1"] + COUNTING, stdout=ends, env={"DIR": job.place.name}) as other:
            os.close(ends)
            job.wait_ranks(1)
            other.wait_ranks(1)
            stand_still(job.place.name, 1)
            for one in (job, other):
                one.process.send_signal(signal.SIGINT)
            job.take()
            assert job.wait() == 130 and other.wait() == 130


def test_what_a_child_of_a_dead_rank_has_written_comes():
    """It holds the pipe open; what it wrote while nobody read is not thrown away."""
    script = 'head -c 3000000 /dev/zero; (exec sleep 10000) & kill -KILL $$'
    with Unread(["-n", "1", "--on-failure", "degrade", "sh", "-c", script]) as job:
        time.sleep(1)
        assert job.process.poll() is None
        assert len(job.take()) == 3000000
        assert job.wait() == 137, job.stderr()


def test_write_error_is_told_and_ends_the_job():
    for stream in ("stdout", "stderr"):
        script = ["yes"] if stream == "stdout" else ["sh", "-c", "exec yes >&2"]
        with open("/dev/full", "w") as full, Job(["-n", "2", "--nodes", "2"] + script, **{stream: full}) as job:
            assert job.wait() == 1, job.stderr()
            if stream == "stdout":
                assert job.stderr() == "keelrun: cannot write standard output: No space left on device; the rest of it is lost\n"


# ---- the event log

def fifo(directory):
    path = os.path.join(directory, "log")
    os.mkfifo(path)
    return path


def events_of(data):
    return [keeltest.json.loads(line)["event"] for line in data.splitlines()]


def test_event_log_to_a_fifo_that_nobody_opens_holds_nothing_up():
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
        result = subprocess.run([keeltest.KEELRUN, "--event-log", fifo(directory), "-n", "1", "echo", "out"], capture_output=True,
                                timeout=HANG_S)
        assert (result.returncode, result.stdout) == (1, b"out\n"), result
        assert result.stderr == b"keelrun: cannot write the event log: its reader stands still; the rest of it is lost\n", result
        job = subprocess.Popen([keeltest.KEELRUN, "--event-log", os.path.join(directory, "log"), "-n", "1", "sh", "-c",
                                "echo runs; exec sleep 10000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert job.stdout.readline() == b"runs\n"
        job.send_signal(signal.SIGTERM)
        assert b"ended by signal 15" in job.communicate(timeout=HANG_S)[1] and job.returncode == 143


def test_event_log_to_a_fifo_that_is_opened_late_is_whole():
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
        path = fifo(directory)
        job = subprocess.Popen([keeltest.KEELRUN, "--event-log", path, "-n", "1", "sh", "-c", "echo runs; read line || :"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert job.stdout.readline() == b"runs\n"
        log = os.open(path, os.O_RDONLY)
        job.stdin.close()
        told = events_of(read_all(log))
        os.close(log)
        err = job.stderr.read()
        assert job.wait(HANG_S) == 0 and err == b"", err
        assert told[0] == "started" and told[-1] == "over" and "exit" in told, told
        job.stdout.close()
        job.stderr.close()


def test_event_log_whose_reader_goes_away_is_told_and_fails():
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
        path = fifo(directory)
        job = subprocess.Popen([keeltest.KEELRUN, "--event-log", path, "-n", "1", "sh", "-c", "read line; echo $line"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        log = os.open(path, os.O_RDONLY)
        assert b"started" in os.read(log, 1 << 16)
        os.close(log)
        out, err = job.communicate(b"end\n", timeout=HANG_S)
        assert (job.returncode, out) == (1, b"end\n"), (job.returncode, out, err)
        assert err == b"keelrun: cannot write the event log: Broken pipe; the rest of it is lost\n", err


# ---- the end of a reader

def test_reader_that_goes_away_ends_the_job_as_sigpipe_would():
    environment = dict(os.environ)
    pipe = subprocess.Popen([keeltest.KEELRUN, "-n", "2", "--nodes", "2", "seq", "300000"], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=environment)
    pipe.stdout.read(10)
    pipe.stdout.close()
    assert pipe.wait(HANG_S) == 128 + signal.SIGPIPE, pipe.stderr.read()
    assert pipe.stderr.read() == b""
    pipe.stderr.close()


def test_reader_that_stands_still_gets_everything_in_the_end():
    job = subprocess.Popen([keeltest.KEELRUN, "-n", "1", "seq", "300000"], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    try:
        code = job.wait(4)  # longer than what is left to a reader after a signal
    except subprocess.TimeoutExpired:
        code = None
    out, _ = job.communicate(timeout=HANG_S)
    assert out == b"".join(b"%d\n" % i for i in range(1, 300001)), (code, len(out))
    assert job.returncode == 0


def test_reader_that_stands_still_does_not_hold_an_interrupt():
    job = subprocess.Popen([keeltest.KEELRUN, "-n", "2", "--nodes", "2", "yes"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                           stdin=subprocess.DEVNULL)

    def read_so_far():
        with open("/proc/%d/io" % job.pid) as f:
            return int(f.readline().split()[1])
    seen = [0, -1]

    def stands_still():
        seen.append(read_so_far())
        time.sleep(0.2)
        return seen[-1] > 1 << 20 and seen[-1] == read_so_far()
    wait_for(stands_still, "keelrun to read no more")
    job.send_signal(signal.SIGINT)
    _, err = job.communicate(timeout=HANG_S)
    assert job.returncode == 130 and len(err.splitlines()) == 1 and b"signal 2" in err, (job.returncode, err)


def test_reader_that_is_slow_gets_everything():
    pipe = subprocess.Popen([keeltest.KEELRUN, "-n", "2", "--nodes", "2", "seq", "400000"], stdout=subprocess.PIPE,
                            stdin=subprocess.DEVNULL)
    time.sleep(1)
    total = 0
    while True:
        block = pipe.stdout.read(100000)
        if not block:
            break
        total += len(block)
        time.sleep(0.002)
    assert pipe.wait(HANG_S) == 0
    assert total == 2 * len("".join("%d\n" % i for i in range(1, 400001))), total


keeltest.main(globals())
