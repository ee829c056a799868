"""Strangers at mpiexec.hydra's port and with what a start is told: another user of the machine, and another host."""
import base64
import encodings.idna  # another user may not be able to load it
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../lib"))
import keeltest
from keeltest import BIN, HANG_S, IS_ROOT, Job, Skip, alive, run, state_of, wait_for

THIEF = os.environ["KEEL_THIEF"]
MPIEXEC = shutil.which("mpiexec.hydra")
TOKEN = "sesame-open-%d" % os.getpid()

# keelrun stands still while its mpiexec.hydra listens
HOLDER = """#!/bin/sh
kill -STOP $PPID
exec %s "$@"
""" % MPIEXEC

FAKE_SSH = """#!/bin/sh
# like ssh: options, host, command
while [ "${1#-}" != "$1" ]; do shift; done
shift
"""


class Tools:
    """A folder with programs: with Tools(ssh="...") as tools: tools.path("ssh")."""

    def __init__(self, **programs):
        self.place = tempfile.TemporaryDirectory(prefix="keel-test-")
        os.chmod(self.place.name, 0o755)
        for name, text in programs.items():
            self.add(name, text)

    def path(self, name):
        return os.path.join(self.place.name, name)

    def add(self, name, text):
        with open(self.path(name), "w") as f:
            f.write(text)
        os.chmod(self.path(name), 0o755)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.place.cleanup()


def as_stranger(function, *words):
    """What function returns (text) in a process of another user."""
    if not IS_ROOT:
        raise Skip("needs root to become another user")
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
            os.write(theirs, function(*words).encode())
        except BaseException as why:
            print("as another user: %r" % why, file=sys.stderr)
            os._exit(1)
        os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as f:
        text = f.read().decode()
    assert os.waitpid(child, 0)[1] == 0
    return text


def listening(pids):
    """Ports of their listeners on all addresses."""
    found = set()
    for pid in pids:
        try:
            links = {os.readlink("/proc/%d/fd/%s" % (pid, fd)) for fd in os.listdir("/proc/%d/fd" % pid)}
            with open("/proc/%d/net/tcp" % pid) as f:
                lines = [line.split() for line in list(f)[1:]]
        except OSError:
            continue
        found |= {int(part[1].split(":")[1], 16) for part in lines
                  if part[3] == "0A" and part[1].startswith("00000000") and "socket:[%s]" % part[9] in links}
    return found


def ask(address, proxy=0):
    """As Hydra's proxy of that number: all that mpiexec.hydra tells."""
    heard = b""
    with socket.create_connection(address, timeout=HANG_S) as s:
        s.sendall(struct.pack("<i", proxy))
        s.settimeout(HANG_S)
        while b"--exec-args" not in heard:
            data = s.recv(65536)
            if not data:
                break
            heard += data
        s.settimeout(0.5)
        try:
            heard += s.recv(65536)
        except socket.timeout:
            pass
    return heard


class Standing(Job):
    """A job of one node whose keelrun stands still just when mpiexec.hydra listens. self.port: there."""

    def __init__(self, options=("--nodes", "1"), program=("echo", "hello"), wrap=()):
        self.tools = Tools(**{"mpiexec.hydra": HOLDER})
        path = self.tools.place.name + ":" + os.environ["PATH"]
        if wrap:
            self.tools.add("keelrun", "#!/bin/sh\nexec %s %s \"$@\"\n" % (" ".join(wrap), os.path.realpath(keeltest.KEELRUN)))
        super().__init__(["-n", "1", *options, *program], env={"PATH": path, "TOKEN": TOKEN},
                         program=self.tools.path("keelrun") if wrap else None)
        try:
            wait_for(lambda: state_of(self.process.pid) == "T", "mpiexec.hydra to be run")
            self.port = wait_for(lambda: listening(keeltest.processes_with(self.tag)), "mpiexec.hydra to listen").pop()
        except BaseException:
            self.kill_all()
            self.close()
            raise

    def launchers(self):
        return [p for p in keeltest.processes_with(self.tag) if "--control-port" in keeltest.command_of(p)]

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def __exit__(self, *args):
        try:
            self.go_on()
            super().__exit__(*args)
        finally:
            self.tools.place.cleanup()


def need_hydra():
    if not MPIEXEC:
        raise Skip("no mpiexec.hydra")


def expect_worthless(heard, job):
    text = heard.decode(errors="replace")
    assert "--exec-args" in text, "that was not Hydra's answer: %r" % heard
    assert TOKEN not in text, "the user's environment: " + text
    assert not re.search("[0-9a-f]{64}", text), "a ticket: " + text
    assert re.search(rb"--exec-wdir\0....?/\0", heard, re.S), "the working directory: " + text
    variables = set(re.findall(r"'([A-Za-z_0-9]+)=", text))
    allowed = {"PATH", "HOME", "LD_LIBRARY_PATH", "PWD", "HYDRA_LAUNCHER_AUTOFORK", "GFORTRAN_UNBUFFERED_PRECONNECTED"}
    assert all(v in allowed or v.startswith("KEEL_") for v in variables), variables


def test_hydras_protocol_tells_another_user_nothing():
    need_hydra()
    with Standing() as job:
        wait_for(job.launchers, "keel-launch")

        def attack():
            found = ask(("127.0.0.1", job.port))
            return found.decode(errors="replace")
        expect_worthless(as_stranger(attack).encode(), job)
        job.go_on()
        assert job.wait() == 0 and job.stdout() == "hello\n", job.stderr()


def test_hydras_protocol_tells_another_host_nothing():
    need_hydra()
    if not IS_ROOT or not shutil.which("ip"):
        raise Skip("needs root and ip")
    names = ["keel-stranger-%d-%s" % (os.getpid(), end) for end in "ab"]

    def ip(*words):
        subprocess.run(["ip", *words], check=True, timeout=HANG_S)
    try:
        for name in names:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", names[0], "link", "add", "v0", "type", "veth", "peer", "name", "v0", "netns", names[1])
        for k, name in enumerate(names):
            ip("-n", name, "addr", "add", "10.79.0.%d/24" % (k + 1), "dev", "v0")
            ip("-n", name, "link", "set", "v0", "up")
        with Standing(wrap=["ip", "netns", "exec", names[0]]) as job:
            wait_for(job.launchers, "keel-launch")
            script = "import sys; sys.argv[1:] = []\nHANG_S = %d\nimport socket, struct\n" % HANG_S
            with open(__file__) as f:
                script += re.search(r"def ask\(.*?\n\n\n", f.read(), re.S).group()
            script += "sys.stdout.buffer.write(ask(('10.79.0.1', %d)))\n" % job.port
            there = subprocess.run(["ip", "netns", "exec", names[1], sys.executable, "-c", script], capture_output=True, timeout=HANG_S)
            assert there.returncode == 0, there.stderr.decode()
            expect_worthless(there.stdout, job)
            job.go_on()
            assert job.wait() == 0 and job.stdout() == "hello\n", job.stderr()
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True)


def test_what_strangers_say_to_hydra_does_not_matter_to_the_start():
    """One byte makes mpiexec.hydra wait, garbage ends it: its launcher is not its own any more."""
    need_hydra()
    for said in (b"\0", os.urandom(300), struct.pack("<i", 0), struct.pack("<i", 77)):
        with Standing() as job:
            wait_for(job.launchers, "keel-launch")

            def speak():
                with socket.create_connection(("127.0.0.1", job.port), timeout=HANG_S) as s:
                    s.sendall(said)
                    s.settimeout(0.3)
                    try:
                        s.recv(100)
                    except (socket.timeout, ConnectionError):
                        pass
                return "said"
            assert as_stranger(speak) == "said"
            job.go_on()
            assert job.wait() == 0 and job.stdout() == "hello\n" and job.stderr() == "", (said, job.stderr())


def test_nobody_listens_on_all_addresses_once_the_job_runs():
    need_hydra()
    with Job(["-n", "1", "--nodes", "1", "sh", "-c", "read x; echo done"]) as job:
        job.wait_ranks(1)
        assert not listening(keeltest.processes_with(job.tag)), "ports %s" % listening(keeltest.processes_with(job.tag))
        assert job.wait() == 0


# ---- tickets ----

def fake(before="", after='eval "exec $*"\n'):
    return FAKE_SSH + before + after


def test_ticket_goes_by_the_launchers_input_and_not_by_what_others_see():
    look = 'cat /proc/$$/cmdline /proc/$$/environ >"$SEEN/seen"\n'
    with Tools(ssh=fake(look)) as tools:
        code, out, err = run(["-n", "1", "--hosts", "127.0.1.2", "--launcher-exec", tools.path("ssh"), "echo", "hello"], env={"SEEN": tools.place.name})
        assert (code, out, err) == (0, "hello\n", "")
        with open(tools.path("seen"), "rb") as f:
            assert not re.search(b"[0-9a-f]{64}", f.read())


def test_launcher_without_standard_input_is_told():
    with Tools(ssh=fake("exec </dev/null\n")) as tools:
        code, _, err = run(["-n", "1", "--hosts", "127.0.1.2", "--launcher-exec", tools.path("ssh"), "true"])
        assert code == 1 and "nothing came on standard input" in err and len(err.splitlines()) == 1, (code, err)
    for name in ("manual", "persist", "pbs"):
        code, _, err = run(["-n", "1", "--hosts", "127.0.1.2", "--launcher", name, "true"])
        assert code == 2 and name in err and len(err.splitlines()) == 1, (code, err)


def test_each_launcher_carries_the_order():
    """Programs of ours that take what srun, blaunch, qrsh and rsh take; a call that they do not know ends them."""
    call = {"slurm": 'test "$1 $3 $4 $5 $6 $7 $8" = "--nodelist -N 1 -n 1 --input all" && test "$2" = 127.0.1.2 && shift 8 && exec "$@"\n',
            "lsf": 'test "$1" = 127.0.1.2 && shift && eval "exec $*"\n',
            "sge": 'test "$1 $2 $3" = "-inherit -V 127.0.1.2" && shift 3 && eval "exec $*"\n',
            "rsh": 'test "$1" = 127.0.1.2 && shift && eval "exec $*"\n',
            "ssh": 'test "$1 $2" = "-x 127.0.1.2" && shift 2 && eval "exec $*"\n'}
    for name, text in call.items():
        with Tools(launcher="#!/bin/sh\n" + text + 'echo "$@" >&2\n') as tools:
            options = ["-n", "1", "--hosts", "127.0.1.2", "--launcher-exec", tools.path("launcher")]
            assert run([*options, "--launcher", name, "echo", "hello"]) == (0, "hello\n", ""), name
    with Tools(launcher="#!/bin/sh\n" + call["slurm"]) as tools:  # as Hydra finds it in an allocation
        slurm = {"SLURM_NODELIST": "127.0.1.2", "SLURM_NNODES": "1", "SLURM_TASKS_PER_NODE": "1"}
        options = ["-n", "1", "--hosts", "127.0.1.2", "--launcher-exec", tools.path("launcher")]
        assert run([*options, "echo", "hello"], env=slurm) == (0, "hello\n", "")
    assert run(["-n", "2", "--hosts", "127.0.1.2,127.0.1.3", "--launcher", "fork", "echo", "hello"]) == (0, "hello\n" * 2, "")


def test_second_agent_with_a_ticket_ends_the_job_with_a_line():
    """What the launcher carries is copied; the copy is used once the first has come, or before."""
    keep = 'cat >"$SEEN/order"\nexec <"$SEEN/order"\n'
    with Tools(ssh=fake(keep)) as tools:
        with Job(["-n", "1", "--hosts", "127.0.1.2", "--launcher-exec", tools.path("ssh"), "sleep", "10000"], env={"SEEN": tools.place.name}) as job:
            job.wait_ranks(1)
            with open(tools.path("order"), "rb") as f:
                second = subprocess.run([os.path.join(BIN, "keel-launch")], stdin=f, capture_output=True, timeout=HANG_S)
            assert second.returncode != 0, second
            assert job.wait() == 1
            assert len(job.stderr().splitlines()) == 1 and "with the ticket of node 0 (127.0.1.2)" in job.stderr(), job.stderr()


def test_ticket_of_an_attempt_that_was_given_up_is_refused_quietly():
    """The first launcher is killed when it has carried the order; its agent comes when the next one has been
    started."""
    wait = 'if [ ! -e "$SEEN/order" ]; then cat >"$SEEN/half"; mv "$SEEN/half" "$SEEN/order"; kill -KILL $$; fi\n'
    with Tools(ssh=fake(wait)) as tools:
        with Job(["-n", "1", "--hosts", "127.0.1.2", "--launcher-exec", tools.path("ssh"), "sh", "-c", "read x; echo hello"],
                 env={"SEEN": tools.place.name}) as job:
            job.wait_ranks(1)
            with open(tools.path("order"), "rb") as f:
                late = subprocess.run([os.path.join(BIN, "keel-launch")], stdin=f, capture_output=True, timeout=HANG_S)
            assert late.returncode != 0, late
            assert job.wait() == 0 and job.stdout() == "hello\n", job.stderr()
            told = job.stderr().splitlines()
            assert len(told) == 1 and "was started again" in told[0], told


def test_launcher_that_is_stopped_or_killed_before_its_agent_came_is_started_again():
    for how in ("KILL", "STOP"):
        first = '[ -e "$SEEN/once" ] || { : >"$SEEN/once"; kill -%s $$; }\n' % how
        with Tools(ssh=fake(first)) as tools:
            code, out, err = run(["-n", "1", "--hosts", "127.0.1.2", "--launcher-exec", tools.path("ssh"), "echo", "hello"],
                                 env={"SEEN": tools.place.name})
            assert (code, out) == (0, "hello\n") and len(err.splitlines()) == 1 and "was started again" in err, (how, code, err)


def test_launcher_that_never_succeeds_is_tried_three_times():
    with Tools(ssh=fake('echo try >>"$SEEN/tries"; echo "no route" >&2; exit 255\n')) as tools:
        code, _, err = run(["-n", "1", "--hosts", "127.0.1.2", "--launcher-exec", tools.path("ssh"), "true"], env={"SEEN": tools.place.name})
        with open(tools.path("tries")) as f:
            assert len(f.readlines()) == 3
        assert code == 1 and err == "keelrun: node 0 (127.0.1.2) could not be started: no route\n", (code, err)


def test_process_that_a_hello_names_is_not_killed():
    """The agent is a thief of ours, beside keelrun; it names a process that is none of keelrun's."""
    victim = subprocess.Popen(["sleep", "10000"])
    try:
        with Tools() as tools:
            for name in ("keelrun", "keel-launch"):
                shutil.copy(os.path.join(BIN, name), tools.place.name)
            shutil.copy(THIEF, tools.path("keeld"))
            with Job(["-n", "1", "--nodes", "1", "--start-timeout", "2", "true"], program=tools.path("keelrun"),
                     env={"VICTIM": str(victim.pid)}) as job:
                assert job.wait() == 1 and "has not become ready" in job.stderr(), job.stderr()
                assert victim.poll() is None and alive(victim.pid), "keelrun has killed what the hello named"
    finally:
        victim.kill()
        victim.wait()


def test_no_host_needs_to_know_the_name_of_keelruns():
    """... which resolves to nothing here."""
    if not IS_ROOT:
        raise Skip("needs root")
    with Tools(ssh=fake()) as tools:
        tools.add("keelrun", "#!/bin/sh\nhostname name-that-nobody-knows.invalid\nexec %s \"$@\"\n" % os.path.realpath(keeltest.KEELRUN))
        tools.add("apart", "#!/bin/sh\nexec unshare --uts %s \"$@\"\n" % tools.path("keelrun"))
        with Job(["-n", "2", "--hosts", "127.0.1.2,127.0.1.3", "--launcher-exec", tools.path("ssh"), "hostname"],
                 program=tools.path("apart")) as job:
            assert job.wait() == 0 and job.stdout() == "name-that-nobody-knows.invalid\n" * 2, (job.stdout(), job.stderr())


# ---- core dumps ----

def memory(pid, left_out):
    """Of what a core dump of this process leaves out, or has: name, bytes."""
    maps = []
    with open("/proc/%d/smaps" % pid) as f:
        for line in f:
            region = re.match(r"([0-9a-f]+)-([0-9a-f]+) (....) \S+ \S+ \d+ *(.*)", line)
            if region:
                maps.append([int(region[1], 16), int(region[2], 16), region[3], region[4], []])
            elif line.startswith("VmFlags:"):
                maps[-1][4] = line.split()[1:]
    with open("/proc/%d/mem" % pid, "rb", 0) as f:
        for begin, end, rights, name, flags in maps:
            if rights[:2] != "rw" or name.startswith("[v") or end - begin > 1 << 28 or ("dd" in flags) != left_out:
                continue
            try:
                f.seek(begin)
                yield name, f.read(end - begin)
            except OSError:
                pass


def test_secrets_are_in_no_core_dump():
    """What looks random in keelrun's memory that is left out is nowhere in what is dumped: keelrun's, agents', stubs',
    ranks'."""
    for how in ([], ["--secure"]):
        with Job([*how, "-n", "2", "--nodes", "2", os.environ["KEEL_CRASH"], "9", "9", "never", "hold"]) as job:
            wait_for(lambda: job.stdout() == "here\n", "keel_init")
            secrets = {data[i:i + 32] for _, data in memory(job.process.pid, True) for i in range(0, len(data) - 31, 8)}
            secrets = {s for s in secrets if len(set(s)) >= 20}
            assert len(secrets) >= 3, "the job's, and two tickets"
            forms = secrets | {base64.b64encode(s).rstrip(b"=") for s in secrets} | {s.hex().encode() for s in secrets}
            nodes = job.status()["nodes"].values()
            pids = [job.process.pid] + [n[k] for n in nodes for k in ("agent_pid", "stub_pid")] + [r["pid"] for n in nodes for r in n["ranks"]]
            for pid in pids:
                for name, data in memory(pid, False):
                    found = [s for s in forms if s in data]
                    assert not found, "%s has %d of them, in %s" % (keeltest.command_of(pid), len(found), name or "anonymous memory")
            assert job.wait() == 0


keeltest.main(globals())
