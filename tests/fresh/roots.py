"""Bare Debian 12 roots: the system that a stranger has, with the host's way to its packages (sources, their keys,
proxies).

All of it is in memory, on mounts of a mount namespace and with processes of a process namespace that end with the
process that made them, however that ends. Downloaded packages are kept in CACHE, beside the tree. A user at a time: the
others wait."""
import ctypes
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys

CACHE = "/var/cache/keel-fresh"
RELEASE = "bookworm"
DEFAULT = """Types: deb
URIs: http://deb.debian.org/debian
Suites: %s
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
""" % RELEASE
LIMIT_S = 1200  # what takes longer hangs
PR_SET_PDEATHSIG = 1


def alone(program, *arguments):
    """Run this Python program in namespaces of its own, and return its exit code. Its processes end with it, and it
    ends with the caller."""
    def die_with_the_caller():
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    command = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, program,
               *arguments]
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, preexec_fn=die_with_the_caller)
    return child.wait()


def as_init(function):
    """The first process of a process namespace: waits for whatever it is left, and ends with the result of function,
    which runs in a child."""
    child = os.fork()
    if child == 0:
        return function()
    while True:
        pid, status = os.wait()
        if pid == child:
            os._exit(os.waitstatus_to_exitcode(status) & 255)


def suites_of_the_release(suites):
    return any(re.match(RELEASE + r"(-updates|-security|$)", suite) for suite in suites.split())


def sources():
    """The host's sources of this release, as deb822; others (of other makers) a bare system has not."""
    kept = []
    folder = "/etc/apt/sources.list.d"
    paths = ["/etc/apt/sources.list"] + sorted(os.path.join(folder, name) for name in os.listdir(folder))
    for path in filter(os.path.isfile, paths):
        with open(path) as f:
            text = re.sub(r"^#.*\n", "", f.read(), flags=re.MULTILINE)
        if path.endswith(".sources"):
            for stanza in re.split(r"\n\s*\n", text):
                suites = "".join(re.findall(r"^Suites:(.*)$", stanza, re.M))
                kept += [stanza.strip() + "\n"] * (suites_of_the_release(suites) and not re.search(r"^Enabled:\s*no", stanza, re.M))
        elif path.endswith(".list"):
            for options, uri, suite, components in re.findall(r"^deb\s+(?:\[(.*?)\]\s+)?(\S+)\s+(\S+)\s+(.*)$", text, re.M):
                key = "".join("Signed-By: %s\n" % name for name in re.findall(r"signed-by=(\S+)", options))
                stanza = "Types: deb\nURIs: %s\nSuites: %s\nComponents: %s\n%s" % (uri, suite, components, key)
                kept += [stanza] * suites_of_the_release(suite)
    return kept or [DEFAULT]


def copy(path, root):
    """A file or folder of the host, if there is one, to the same place."""
    target = root + path
    if os.path.isdir(path):
        shutil.copytree(path, target, dirs_exist_ok=True)
    elif os.path.exists(path):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy(path, target)


def call(*command, **kw):
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, **kw)


class Roots:
    def __init__(self):
        os.makedirs(CACHE + "/archives", exist_ok=True)
        os.makedirs(CACHE + "/roots", exist_ok=True)
        self.lock = open(CACHE + "/lock", "w")
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.folder = CACHE + "/roots"
        call("mount", "-t", "tmpfs", "-o", "mode=755,size=8g", "keel-fresh", self.folder)

    def bare(self, name):
        """What mmdebstrap makes of nothing, and the host's way to packages. Raises if there is no network."""
        root = os.path.join(self.folder, name)
        text = "\n".join(sources())
        written = os.path.join(self.folder, name + ".sources")
        with open(written, "w") as f:
            f.write(text)
        archives = 'mkdir -p "$1/var/cache/apt/archives" && mount --bind %s/archives "$1/var/cache/apt/archives"' % CACHE
        call("mmdebstrap", "--quiet", "--mode=root", "--format=directory", "--variant=minbase",
             "--skip=essential/unlink,cleanup/apt/cache", "--setup-hook=" + archives, RELEASE, root, written, timeout=LIMIT_S)
        for path in ("/etc/resolv.conf", "/etc/hosts", "/etc/apt/trusted.gpg", "/etc/apt/trusted.gpg.d", "/etc/apt/keyrings",
                     "/etc/apt/auth.conf", "/etc/apt/auth.conf.d", *re.findall(r"^Signed-By:\s*(/\S+)$", text, re.M)):
            copy(path, root)
        if "https://" in text:
            copy("/etc/ssl/certs/ca-certificates.crt", root)
        with open(root + "/etc/apt/apt.conf.d/99host", "w") as f:  # proxies and the like
            said = subprocess.run(["apt-config", "dump", "Acquire"], check=True, capture_output=True, text=True).stdout
            f.write("".join(line + "\n" for line in said.splitlines() if not line.endswith('"";')))
        return Root(root)

    def copy(self, root, name):
        path = os.path.join(self.folder, name)
        call("cp", "-a", "--one-file-system", root.path, path)
        return Root(path)


class Root:
    def __init__(self, path):
        self.path = path

    def enter(self):
        """The mounts that programs need."""
        for what in (["-t", "proc", "proc", "/proc"], ["-t", "tmpfs", "-o", "mode=1777", "tmpfs", "/dev/shm"],
                     ["-t", "devpts", "-o", "newinstance,ptmxmode=0666", "devpts", "/dev/pts"],
                     ["--bind", CACHE + "/archives", "/var/cache/apt/archives"]):
            os.makedirs(self.path + what[-1], exist_ok=True)
            if not os.path.ismount(self.path + what[-1]):
                call("mount", *what[:-1], self.path + what[-1])
        return self

    def forget(self):
        """Its memory, for the next one."""
        for where in ("/proc", "/dev/shm", "/dev/pts", "/var/cache/apt/archives"):
            if os.path.ismount(self.path + where):
                call("umount", "--lazy", self.path + where)
        call("rm", "-r", "--one-file-system", self.path)

    def put(self, path, text):
        with open(self.path + path, "w") as f:
            f.write(text)

    def try_to(self, command, folder="/keel"):
        """A line of shell in the root, as root, without input: what subprocess.run gives."""
        proxies = ["%s=%s" % each for each in os.environ.items() if each[0].lower() in ("http_proxy", "https_proxy", "no_proxy", "ftp_proxy")]
        environment = ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "DEBIAN_FRONTEND=noninteractive"]
        return subprocess.run(["chroot", self.path, "env", "-i", *environment, *proxies, "sh", "-c", "cd %s && %s" % (folder, command)],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S)

    def do(self, command, folder="/keel"):
        """The same; its output, and an error if it fails."""
        done = self.try_to(command, folder)
        if done.returncode != 0:
            raise AssertionError("%s\nexit code %d\n%s%s" % (command, done.returncode, done.stdout[-4000:], done.stderr[-4000:]))
        return done.stdout

    def install(self, *packages):
        self.do("apt-get install -y --no-install-recommends " + " ".join(packages), "/")
