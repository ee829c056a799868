"""Standard input that keelrun shares with others, that cannot be read, or that is cut off when keelrun is killed:
nobody else is disturbed, and what is not all of it is not taken for all."""
import fcntl
import os
import pty
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from keeltest import KEELCTL, KEELRUN, Job, main, wait_for

COUNT = ["sh", "-c", "wc -c"]


def test_the_descriptor_is_as_it_was():
    """Its flags are the shell's, too: a program that reads after keelrun, or writes there, would fail with EAGAIN."""
    reads, writes = os.pipe()
    run = subprocess.Popen([KEELRUN, "-n", "1", "sh", "-c", "echo ready; wc -c"], stdin=reads, stdout=subprocess.PIPE,
                           text=True)
    assert run.stdout.readline() == "ready\n"
    assert not fcntl.fcntl(reads, fcntl.F_GETFL) & os.O_NONBLOCK
    os.write(writes, b"12345")
    os.close(writes)
    assert run.communicate(timeout=60)[0].strip() == "5" and run.returncode == 0
    assert not fcntl.fcntl(reads, fcntl.F_GETFL) & os.O_NONBLOCK
    os.close(reads)


def test_who_reads_behind_keelrun_gets_the_rest():
    command = f"(sleep 1; echo a) | ({KEELRUN} -n 1 true; cat)"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("a\n", ""), done


def test_what_cannot_be_read_is_no_end():
    folder = os.open("/tmp", os.O_RDONLY | os.O_DIRECTORY)
    done = subprocess.run([KEELRUN, "-n", "1", *COUNT], stdin=folder, capture_output=True, text=True, timeout=60)
    os.close(folder)
    assert done.returncode == 1 and "standard input cannot be read any further than 0 bytes: Is a directory" \
        in done.stderr, done


def test_input_that_keelrun_took_with_it_is_not_all():
    """Killed while it might have got more: rank 0 sees an end that is none, and cannot end with 0."""
    with Job(["-n", "1", *COUNT], stdin=subprocess.PIPE) as job:
        job.process.stdin.write(b"x" * 1000)
        job.process.stdin.flush()
        name = job.id()
        attached = subprocess.Popen([KEELCTL, "attach", name], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True)
        job.process.kill()
        job.process.wait()
        out, err = attached.communicate(timeout=60)
        assert attached.returncode == 1 and "had not come to its end when keelrun ended" in err, (out, err)


def test_input_that_keelrun_had_read_and_not_sent_is_not_all():
    with Job(["-n", "1", *COUNT], stdin=subprocess.PIPE, env={"KEEL_FAULT": "run.input_came:1:kill:node=-1"}) as job:
        attached = subprocess.Popen([KEELCTL, "attach", job.id()], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True)
        job.process.stdin.write(b"x" * 1000)
        job.process.stdin.flush()
        out, err = attached.communicate(timeout=60)
        assert job.process.wait() == -signal.SIGKILL and out == "0\n", (out, err)
        assert attached.returncode == 1 and "had not come to its end when keelrun ended, after 0 bytes" in err, \
            (attached.returncode, out, err)


def test_whole_input_is_whole_without_keelrun():
    with Job(["-n", "1", "sh", "-c", "wc -c; sleep 3"], stdin=subprocess.PIPE) as job:
        job.process.stdin.write(b"x" * 1000)
        job.process.stdin.close()
        wait_for(lambda: "1000" in job.stdout(), "the program to have it")
        name = job.id()
        job.process.kill()
        job.process.wait()
        attached = subprocess.run([KEELCTL, "attach", name], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  timeout=60)
        assert attached.returncode == 0, attached


def background(tty):
    """keelrun in a process group of its own that does not have the terminal; then it gets it, and no signal."""
    run = subprocess.Popen([KEELRUN, "-n", "1", "sh", "-c", "echo ready; read x; echo got $x"], stdin=tty,
                           stdout=subprocess.PIPE, process_group=0)
    run.stdout.readline()  # it has begun, and looked at its input
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    os.tcsetpgrp(tty, run.pid)
    os.write(tty, run.stdout.read())
    code = run.wait()
    os.tcsetpgrp(tty, os.getpgrp())
    return code


def test_who_gets_the_terminal_later_reads_it():
    pid, terminal = pty.fork()
    if pid == 0:
        os._exit(background(0))
    os.write(terminal, b"word\n")
    end, said = time.monotonic() + 30, b""
    while b"got word" not in said and time.monotonic() < end:
        try:
            said += os.read(terminal, 1000)
        except OSError:
            break
    code = os.waitpid(pid, 0)[1]
    os.close(terminal)
    assert b"got word" in said and code == 0, (said, code)


main(globals())
