"""Running jobs under keelrun in tests: deadlines, results, and a check that nothing is left behind.

A test file defines functions test_*, each taking no argument, and ends with keeltest.main(globals()). Its arguments:
all of them, or those that are named, or, behind --but, all but those.
Exit codes as everywhere: 0 passed, 1 failed, 77 skipped; 99 hung, after which the rest is not run. KEEL_BIN is the
folder of the built programs."""
import ctypes
import functools
import glob
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

BIN = os.environ.get("KEEL_BIN", "build/pm")
KEELRUN, KEELCTL = os.path.join(BIN, "keelrun"), os.path.join(BIN, "keelctl")
SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
IS_ROOT = os.geteuid() == 0
# What takes longer hangs; no test is about this number. On two processors with twenty programs on them 60 jobs, one
# after the other, in most of which somebody stands still for three seconds, took 234 s.
HANG_S = int(os.environ.get("KEEL_TEST_HANG_S", "300"))
# what is there for so long after the end was left behind; less than any lease by which what was forgotten ends itself
LEFT_S = 50


SANITIZED = os.environ.get("KEEL_SANITIZE", "none") != "none"
LOOK_S, LOOK_MAX_S = 0.01, 0.1
LOOK_SHARE = 9  # of a look that itself takes time: rest for so many times as long


class Skip(Exception):
    pass


kill_any = os.kill


def kill_one(pid, number):
    """os.kill of tests: the system's would, with 0, which stands for a process that nobody knows, reach our own
    group."""
    assert pid > 1, "no process of a job has the number %d" % pid
    kill_any(pid, number)


os.kill = kill_one


def each(*choices):
    """All combinations. Where a sanitizer watches, which sees the same code in each of them and makes it several times
    as dear: as many as show each choice once."""
    if not SANITIZED:
        return list(itertools.product(*choices))
    return [tuple(c[i % len(c)] for c in choices) for i in range(max(map(len, choices)))]


def rest_after(begun, least=LOOK_S):
    """Between two looks, the last of which began then: who asks all processes, or starts a program to ask, leaves the
    processors to those of whom it asks."""
    time.sleep(max(least, min(LOOK_SHARE * (time.monotonic() - begun), LOOK_MAX_S)))


def wait_for(condition, what, seconds=HANG_S):
    """Poll until condition() is true; its value is returned."""
    end = time.monotonic() + seconds
    while True:
        begun = time.monotonic()
        value = condition()
        if value:
            return value
        if begun > end:
            raise AssertionError("timed out: " + what)
        rest_after(begun)


def processes_with(tag):
    """pids whose initial environment has the tag (zombies have none)."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/environ" % name, "rb") as f:
                    if tag.encode() in f.read():
                        found.append(int(name))
            except OSError:
                pass
    return found


def state_of(pid):
    """The letter of /proc/PID/stat; "" if it is not there."""
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return ""


def threads_stand_still(pid):
    """All are stopped, or gone."""
    try:
        threads = os.listdir("/proc/%d/task" % pid)
    except OSError:
        return True
    return all(state_of(int(t)) in ("", "T", "t", "Z", "X") for t in threads)


def alive(pid):
    return state_of(pid) not in ("", "Z")


def command_of(pid):
    try:
        with open("/proc/%d/cmdline" % pid) as f:
            return f.read().replace("\0", " ").strip()
    except OSError:
        return "?"


def children_of(pid, word):
    """Processes that it has started, and has not awaited, whose command has this word."""
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        return [child for child in map(int, f.read().split()) if word in command_of(child)]


PIDFD_GETFD = 438


def shut_connections(pid):
    """Those of the process that lead to agents. How many."""
    libc = ctypes.CDLL(None, use_errno=True)
    watch, count = os.pidfd_open(pid), 0
    try:
        for name in os.listdir("/proc/%d/fd" % pid):
            try:
                if not os.readlink("/proc/%d/fd/%s" % (pid, name)).startswith("socket:"):
                    continue
            except OSError:
                continue
            fd = libc.syscall(PIDFD_GETFD, watch, int(name), 0)
            if fd < 0:
                if ctypes.get_errno() in (1, 38):
                    raise Skip("this system does not let us take a descriptor of a child")
                continue
            with socket.socket(fileno=fd) as s:
                try:
                    s.getpeername()
                    if s.family == socket.AF_INET:
                        s.shutdown(socket.SHUT_RDWR)
                        count += 1
                except OSError:
                    pass
    finally:
        os.close(watch)
    return count


@functools.lru_cache(None)
def fault_points():
    """Those that the sources name."""
    points = set()
    for folder in "runtime", "collectives", "detect", "pm":
        for source in glob.glob(os.path.join(SOURCE, folder, "**", "*.c"), recursive=True):
            with open(source) as f:
                points.update(re.findall(r'FAULT_POINT\("([^"]+)"\)', f.read()))
    return points


def expect_points(faults):
    """Who is to die at a point that no source names never dies."""
    for fault in faults.split(",") if faults else ():
        assert fault.split(":")[0] in fault_points(), "no fault point has the name " + fault


class Job:
    """One keelrun. with Job(["-n", "4", "--nodes", "4", "prog"]) as job: ... ; leaving the block checks for
    leftovers."""

    count = 0

    def __init__(self, args, stdin=None, env=None, seconds=HANG_S, program=None, before=None, stdout=None, stderr=None, log=None):
        Job.count += 1
        self.tag = "KEEL_TEST_TAG=%d.%d.%d" % (os.getpid(), Job.count, time.monotonic_ns())
        self.known_id = None
        self.seconds, self.deadline = seconds, time.monotonic() + seconds
        self.directory = tempfile.TemporaryDirectory(prefix="keel-test-")
        self.log = log or os.path.join(self.directory.name, "events")
        self.shm_before = set(os.listdir("/dev/shm"))
        environment = dict(os.environ, **(env or {}))
        expect_points(environment.get("KEEL_FAULT", ""))
        name, value = self.tag.split("=")
        environment[name] = value
        self.out = open(os.path.join(self.directory.name, "out"), "w+b")
        self.err = open(os.path.join(self.directory.name, "err"), "w+b")
        self.process = subprocess.Popen([program or KEELRUN, "--event-log", self.log, "--start-timeout", str(HANG_S)] + args,
                                        stdout=stdout or self.out, stderr=stderr or self.err, env=environment,
                                        stdin=subprocess.PIPE if stdin is None else stdin, preexec_fn=before)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        clean = False
        try:
            if kind:
                print("--- stdout\n%s--- stderr\n%s--- events\n%s" % (self.stdout()[-3000:], self.stderr()[-3000:],
                                                                  self.events_text()[-3000:]), file=sys.stderr)
            elif self.process.poll() is None:
                self.wait()
            if not kind:
                self.check_leftovers()
                clean = True
        finally:
            if not clean:
                self.kill_all()
                self.remove_namespaces()
            self.close()

    def kill_all(self):
        """SIGKILL to everything of the job."""
        for pid in processes_with(self.tag):
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass

    def remove_namespaces(self):
        """Those of a failed test, whose guardian kill_all has killed too."""
        for left in self.leftovers():
            if left.startswith("namespace "):
                subprocess.run(["ip", "netns", "del", left.split()[1]], stderr=subprocess.DEVNULL)

    def close(self):
        self.process.stdin and self.process.stdin.close()
        self.process.wait()
        self.out.close()
        self.err.close()
        self.directory.cleanup()

    def wait(self):
        """Exit code of keelrun (negative: signal)."""
        if self.process.stdin and not self.process.stdin.closed:
            self.process.stdin.close()
        try:
            return self.process.wait(self.seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError("keelrun did not end in time: " +
                                 str([(p, command_of(p)) for p in processes_with(self.tag)]))

    def _text(self, f):
        f.flush()
        with open(f.name, "rb") as again:
            return again.read().decode(errors="replace")

    def stdout(self):
        return self._text(self.out)

    def stderr(self):
        return self._text(self.err)

    def events_text(self):
        try:
            with open(self.log) as f:
                return f.read()
        except OSError:
            return ""

    def events(self, name=None):
        text = self.events_text()
        # the last one may be half there
        lines = [json.loads(line) for line in text[:text.rfind("\n") + 1].splitlines()]
        return [e for e in lines if name is None or e["event"] == name]

    def wait_for_ranks(self, processes):
        """Waits until so many processes that have a rank have been started; those of spares have none."""
        wait_for(lambda: sum(e["rank"] >= 0 for e in self.events("rank_start")) >= processes, "all ranks to begin")

    def id(self):
        """Waits until the job runs."""
        if self.known_id:
            return self.known_id

        def started():
            assert self.process.poll() is None, "keelrun ended before the job ran: " + self.stderr()
            return self.events("started")
        self.known_id = wait_for(started, "the job to start")[0]["job"]
        return self.known_id

    def status(self):
        """keelctl status --json, nodes as a dict by number. Of an agent that got no processor for too long nothing is
        known: again."""
        def answered():
            text = subprocess.run([KEELCTL, "status", "--json", self.id()], capture_output=True, timeout=HANG_S)
            assert text.returncode == 0, text.stderr.decode()
            status = json.loads(text.stdout)
            status["nodes"] = {n["node"]: n for n in status["nodes"]}
            agents = {e["node"]: e["pid"] for e in self.events("start")}
            silent = [n for n, node in status["nodes"].items() if node["state"] == "silent"]
            return None if any(state_of(agents[n]) not in ("T", "") for n in silent if n in agents) else status
        return wait_for(answered, "all agents that run to answer")

    def verify(self, *codes):
        """What keelctl verify says; its exit code is one of these (0)."""
        text = subprocess.run([KEELCTL, "verify", "--json", self.id()], capture_output=True, timeout=HANG_S)
        assert text.returncode in (codes or (0,)), (text.returncode, text.stdout, text.stderr)
        return json.loads(text.stdout)

    def expect_equal(self):
        """At a moment when the program rests: all copies of everything are equal."""
        verdict = self.verify()
        assert verdict["result"] == "equal", verdict

    def wait_ranks(self, count):
        """Until that many processes (standbys too) run; returns the status."""
        def running():
            status = self.status()
            ranks = [r for n in status["nodes"].values() for r in n.get("ranks", [])
                     if r["state"] in ("running", "standby")]
            return status if len(ranks) == count else None
        self.id()
        return wait_for(running, "%d processes" % count)

    def leftovers(self):
        left = ["process %d: %s" % (p, command_of(p)) for p in processes_with(self.tag)]
        started = self.events("started")
        if started:
            prefix = "keel-" + started[0]["job"][:8]
            if os.path.isdir("/run/netns"):
                left += ["namespace " + n for n in os.listdir("/run/netns") if n.startswith(prefix)]
            with open("/proc/net/unix") as f:
                left += ["socket " + line.split()[-1] for line in f if started[0]["job"] in line]
        left += ["/dev/shm/" + n for n in set(os.listdir("/dev/shm")) - self.shm_before if "keel" in n]
        return left

    def check_leftovers(self, seconds=LEFT_S):
        """Nothing of the job is there any more, at once or very soon."""
        end = time.monotonic() + seconds
        while True:
            begun = time.monotonic()
            left = self.leftovers()
            if not left:
                return
            if begun > end:
                raise AssertionError("left behind: " + "; ".join(left))
            rest_after(begun)


def run(args, stdin=b"", **kw):
    """A whole job: (exit code, stdout, stderr). stdin: bytes."""
    with Job(args, **kw) as job:
        try:
            job.process.stdin.write(stdin)
            job.process.stdin.close()
        except BrokenPipeError:
            pass
        code = job.wait()
        return code, job.stdout(), job.stderr()


def end_in_order():
    """Who is told to end (meson does it to what takes too long) ends the jobs that it has first, also stopped ones."""
    started = os.getpid()

    def told(number, frame):
        if os.getpid() != started:  # a fork of it has none
            os._exit(128 + number)
        sys.exit(128 + number)
    signal.signal(signal.SIGTERM, told)


def main(names):
    end_in_order()
    failed = skipped = passed = 0
    but = sys.argv[1:2] == ["--but"]
    named = sys.argv[1 + but:]
    unknown = [name for name in named if name not in names]
    assert not unknown, "no such test: %s" % unknown
    for name, function in list(names.items()):
        if not name.startswith("test_") or (named and (name in named) == but):
            continue
        begin = time.monotonic()
        try:
            function()
            passed += 1
            print("ok      %s (%.2f s)" % (name, time.monotonic() - begin))
        except Skip as why:
            skipped += 1
            print("skipped %s: %s" % (name, why))
        except Exception:
            failed += 1
            print("FAILED  %s" % name)
            traceback.print_exc()
            if time.monotonic() - begin > HANG_S:  # the others would hang as long, one after the other
                print("hung    %s: the rest is not run" % name)
                sys.exit(99)
        sys.stdout.flush()
    sys.exit(1 if failed else 0 if passed else 77)
