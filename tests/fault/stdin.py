"""Standard input of rank 0 when its process dies, its node does, or it moves: the next process gets it from its
beginning (ADR 0012)."""
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from keeltest import KEELCTL, Job, main, wait_for

FED = os.environ.get("KEEL_FED", "build/tests/fault/fed")
MSG_MOVE = 69
KEPT = 1 << 20
LINE = ["-n", "3", "--nodes", "3", "--spares", "1", "--on-failure", "substitute"]


def line(which, data):
    total = 0
    for byte in data:
        total = (total * 31 + byte) % (1 << 64)
    return "%s process read %d bytes, %016x" % (which, len(data), total)


def pid_of_rank_0(job):
    begun = [e for e in job.events("rank_start") + job.events("assigned") if e["rank"] == 0]
    return max(begun, key=lambda e: e["t_ns"])["pid"]


def kill_process(job):
    os.kill(pid_of_rank_0(job), signal.SIGKILL)


def kill_another_node(job):
    """As kill_node, of input that has come to its end."""
    kill_node(job)


def kill_node(job):
    subprocess.run([KEELCTL, "kill-node", job.id(), "0"], check=True, capture_output=True, timeout=30)


def move(job):
    body = bytes([MSG_MOVE]) + json.dumps({"rank": 0, "node": 2}).encode()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as console:
        console.connect("\0keel/%s/0" % job.id())
        console.sendall(struct.pack("<I", len(body)) + body)


def wait_read(job, name):
    def said():
        assert job.process.poll() is None, "the job ended: " + job.stderr()
        return [e for e in job.events("application") if e["name"] == name]
    wait_for(said, "rank 0 to say that it has " + name)


def lines(job):
    return [text for text in job.stdout().splitlines() if "process read" in text]


def feed(data, first, how, stdin, options=(), env=None):
    """What rank 0's processes have read, and the job."""
    with Job(LINE + list(options) + [FED, str(first), "120"], stdin=stdin, env=env) as job:
        wait_read(job, "read")
        how(job)
        wait_read(job, "read again")
        assert job.wait() == 0, job.stderr()
        assert lines(job) == [line("the first", data[:first]), line("another", data)], (lines(job), job.stderr())
        return job.stderr()


def in_file(data):
    f = tempfile.TemporaryFile()
    f.write(data)
    f.seek(0)
    return f


def in_pipe(data):
    end, writes = os.pipe()
    if os.fork() == 0:
        os.close(end)
        with os.fdopen(writes, "wb") as f:
            try:
                f.write(data)
                f.flush()
            finally:
                os._exit(0)
    os.close(writes)
    return os.fdopen(end, "rb")


def each(how):
    data = os.urandom(3000)
    for stdin in in_file, in_pipe:
        for first in 100, 3000:
            with stdin(data) as f:
                err = feed(data, first, how, f)
                assert "standard input" not in err, err
    with open(os.devnull, "rb") as f:
        feed(b"", 10, how, f)


def test_a_process_that_is_killed_has_a_next_one_with_its_input():
    each(kill_process)


def test_a_node_that_is_killed():
    each(kill_node)


def test_a_move():
    each(move)


def test_input_that_is_closed_is_empty():
    with Job(LINE + [FED, "10", "60"], before=lambda: os.close(0)) as job:
        wait_read(job, "read")
        kill_process(job)
        assert job.wait() == 0, job.stderr()
        assert lines(job) == [line("the first", b""), line("another", b"")], (lines(job), job.stderr())


def test_as_much_as_is_kept_begins_again_also_beyond_the_window():
    data = os.urandom(KEPT)
    for how, stdin in (kill_process, in_file), (kill_node, in_pipe):
        for first in 100, KEPT:
            with stdin(data) as f:
                feed(data, first, how, f)


def test_input_that_comes_later_goes_to_the_next_process_too():
    for how in kill_process, kill_node, move:
        with Job(LINE + [FED, "4", "100"]) as job:
            job.process.stdin.write(b"one\n")
            job.process.stdin.flush()
            wait_read(job, "read")
            how(job)
            wait_for(lambda: job.events("stdin_again"), "keelrun to hear of the next process")
            job.process.stdin.write(b"two\n")
            job.process.stdin.close()
            assert job.wait() == 0, job.stderr()
            assert lines(job) == [line("the first", b"one\n"), line("another", b"one\ntwo\n")], lines(job)


def test_other_ranks_have_an_empty_one():
    with Job(LINE + [FED, "4", "100"]) as job:
        job.process.stdin.write(b"one\n")
        job.process.stdin.flush()
        wait_read(job, "read")
        subprocess.run([KEELCTL, "kill-node", job.id(), "1"], check=True, capture_output=True, timeout=30)
        wait_for(lambda: job.events("substituted"), "rank 1 to begin on the spare")
        assert job.wait() == 0 and not job.events("stdin_again"), job.stderr()


def test_it_begins_again_as_often_as_rank_0_does():
    data = os.urandom(2000)
    with in_file(data) as f, Job(LINE + [FED, "7", "200"], stdin=f) as job:
        wait_read(job, "read")
        kill_process(job)
        wait_read(job, "read again")
        kill_node(job)
        assert job.wait() == 0, job.stderr()
        assert lines(job) == [line("the first", data[:7])] + 2 * [line("another", data)], (lines(job), job.stderr())


def lost(data, first, options, code):
    with in_file(data) as f, Job(LINE + options + [FED, str(first), "100"], stdin=f) as job:
        wait_read(job, "read")
        kill_process(job)
        assert job.wait() == code, job.stderr()
        assert ("its exit code 0 counts as 1" in job.stderr()) == (code == 1), job.stderr()
        assert lines(job) == [line("the first", data[:first]), line("another", b"")], lines(job)
        return job.stderr()


def test_more_than_is_kept_is_lost_with_a_line():
    text = "keelrun: rank 0 has begun again, without standard input: %d bytes of it went to its process before, more " \
           "than the %d that are kept (--stdin-keep)"
    err = lost(os.urandom(101), 101, ["--stdin-keep", "100"], 1)
    assert text % (101, 100) in err, err
    err = lost(b"a", 1, ["--stdin-keep", "0"], 0)
    assert text % (1, 0) in err, err
    err = lost(os.urandom(KEPT + 1), KEPT + 1, [], 1)
    assert text % (KEPT + 1, KEPT) in err, err


def without_keelrun(how, given, options=()):
    """keelrun is killed, and rank 0 begins again: the job's exit code and lines, as somebody sees them who has attached
    himself."""
    with Job(LINE + list(options) + [FED, "4", "150"]) as job:
        job.process.stdin.write(given)
        job.process.stdin.close() if how != kill_node else job.process.stdin.flush()
        wait_read(job, "read")
        job_id, pid = job.id(), pid_of_rank_0(job)
        job.process.kill()
        job.process.wait()
        with subprocess.Popen([KEELCTL, "attach", job_id], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True) as attached:
            if how == kill_process:
                os.kill(pid, signal.SIGKILL)
            else:
                assert subprocess.run([KEELCTL, "kill-node", job_id, "0"], capture_output=True,
                                      timeout=30).returncode == 0
            out, err = attached.communicate(timeout=60)
        assert line("another", b"") in out, (out, err)
        return attached.returncode, err


def test_without_keelrun_the_next_process_has_an_empty_one_and_no_success():
    for how in kill_node, kill_process, kill_another_node:
        code, err = without_keelrun(how, b"one\n")
        assert code == 1 and "rank 0 has begun again without standard input, as keelrun has ended" in err and \
            "rank 0 had begun again without standard input, as keelrun had ended: its exit code 0 counts as 1" in err, \
            (code, err)


def test_without_keelrun_who_needs_no_input_again_may_succeed():
    for given, options in (b"one\n", ["--stdin-keep", "0"]), (b"", []):
        for how in kill_process, kill_another_node:
            code, err = without_keelrun(how, given, options)
            assert code == 0 and "standard input" not in err, (code, err)


main(globals())
