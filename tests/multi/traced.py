"""KEEL_TRACE_CALLS: each call that the program makes is counted once, with its errors and its time."""
import collections
import os
import resource
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../lib"))
import keeltest
from keeltest import run

PROGRAM = os.environ["KEEL_TRACED"]
FAR = ["--silence", "600s", "--stopped", "never"]
CALLS = {  # as traced.c makes them: how often, and with how many errors
    "keel_segment_alloc": (1, 0), "keel_put": (11, 1), "keel_put_signal": (1, 0), "keel_message_test": (1, 0),
    "keel_group_agree": (1, 0), "keel_rank_alive": (1, 0), "keel_barrier": (2, 0), "keel_finalize": (1, 0)}


def traced(*args, ranks=2, nodes=2):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "calls")
        job = FAR + ["-n", str(ranks), "--nodes", str(nodes), PROGRAM, *args]
        code, _, err = run(job, env={"KEEL_TRACE_CALLS": path})
        assert code == 0, (code, err)
        with open(path, encoding="utf-8") as f:
            rows = [line.split("\t") for line in f.read().splitlines()]
    found = collections.defaultdict(dict)
    for rank, call, calls, errors, seconds, longest in rows:
        assert call not in found[rank], (rank, call)
        assert 0 <= float(longest) <= float(seconds), (rank, call, seconds, longest)
        found[rank][call] = (int(calls), int(errors))
    return found


def test_each_rank_once():
    assert traced() == {"0": CALLS, "1": CALLS}
    assert traced(ranks=3, nodes=1) == {"0": CALLS, "1": CALLS, "2": CALLS}


def test_an_end_without_keel_finalize():
    calls = {name: n for name, n in CALLS.items() if name != "keel_finalize"}
    assert traced("exit", ranks=1, nodes=1) == {"0": calls}


def test_a_file_that_cannot_be_written():
    with tempfile.TemporaryDirectory() as folder:
        fifo = folder + "/nobody_reads"
        os.mkfifo(fifo)
        for path, why in [("/nowhere/calls", "No such file or directory"), ("/", "Is a directory"),
                          ("/dev/full", "No space left on device"), (fifo, "No such device or address"),
                          ("x" * 5000, "File name too long")]:
            code, _, err = run(FAR + ["-n", "1", PROGRAM], env={"KEEL_TRACE_CALLS": path}, seconds=60)
            assert code == 0 and "KEEL_TRACE_CALLS: " in err and " cannot be written: " + why in err, (path, code, err)


def test_a_file_that_may_become_no_larger():
    limit = 1 << 30
    with tempfile.NamedTemporaryFile() as f:
        f.truncate(limit)
        code, _, err = run(FAR + ["-n", "1", PROGRAM], env={"KEEL_TRACE_CALLS": f.name},
                           before=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        assert code == 0 and f.name + " cannot be written: File too large" in err, (code, err)


def test_a_reader_that_stands_still():
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/fifo"
        os.mkfifo(path)
        fd = os.open(path, os.O_RDWR)
        os.set_blocking(fd, False)
        try:
            while True:
                os.write(fd, b"x" * 4096)
        except BlockingIOError:
            pass
        code, _, err = run(FAR + ["-n", "1", PROGRAM], env={"KEEL_TRACE_CALLS": path}, seconds=60)
        os.close(fd)
        assert code == 0 and path + " cannot be written: Resource temporarily unavailable" in err, (code, err)


if __name__ == "__main__":
    keeltest.main(globals())
