"""--hosts and --hostfile: a program of ours plays ssh; hosts are names for this machine."""
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../lib"))
import keeltest
from keeltest import KEELRUN, run

FAKE_SSH = """#!/bin/sh
# like ssh: options, host, command; the last host is one that never answers
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
[ "$host" = silent.invalid ] && exec sleep 10000
[ "$host" = broken ] && { echo "ssh: connect to host broken port 22: No route to host" >&2; exit 255; }
eval "exec $*"
"""


def with_ssh(function):
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
        path = os.path.join(directory, "ssh")
        with open(path, "w") as f:
            f.write(FAKE_SSH)
        os.chmod(path, 0o755)
        function(directory, ["--launcher", "ssh", "--launcher-exec", path])


def test_hosts_run_one_agent_each():
    def check(_, launcher):
        code, out, err = run(launcher + ["-n", "4", "--hosts", "127.0.1.1,127.0.1.2", "sh", "-c", "echo $KEEL_RANK $KEEL_NODE"])
        assert code == 0, err
        assert sorted(out.splitlines()) == ["0 0", "1 0", "2 1", "3 1"], out
    with_ssh(check)


def test_hostfile_with_spare_is_read():
    def check(directory, launcher):
        path = os.path.join(directory, "hosts")
        with open(path, "w") as f:
            f.write("# three\n127.0.1.1\n127.0.1.2:8\n\n127.0.1.3 # spare\n")
        code, out, err = run(launcher + ["-n", "2", "--hostfile", path, "--spares", "1", "sh", "-c",
                                         "test -n \"$KEEL_RANK\" || sleep 10000; echo $KEEL_NODE"])
        assert code == 0, err
        assert sorted(out.split()) == ["0", "1"], out
    with_ssh(check)


def test_host_that_cannot_be_reached_is_one_line():
    def check(_, launcher):
        hosts = "127.0.1.1,127.0.1.2"
        path = launcher[3]
        with open(path) as f:
            text = f.read().replace("= broken", "= 127.0.1.2")
        with open(path, "w") as f:
            f.write(text)
        code, _, err = run(launcher + ["-n", "2", "--hosts", hosts, "true"])
        assert code == 1 and len(err.splitlines()) == 1 and "node 1 (127.0.1.2)" in err, (code, err)
        assert "No route to host" in err and "has not joined within" not in err, "it was waited for: " + err
    with_ssh(check)


def test_host_that_never_answers_ends_at_the_limit():
    def check(_, launcher):
        path = launcher[3]
        with open(path) as f:
            text = f.read().replace("= silent.invalid", "= 127.0.1.2")
        with open(path, "w") as f:
            f.write(text)
        code, _, err = run(launcher + ["-n", "2", "--hosts", "127.0.1.1,127.0.1.2", "--start-timeout", "4", "true"])
        # on a slow machine the other one, too, and it is the first to be named
        assert re.search(r"node \d \(127.0.1.[12]\) has not (joined|become ready) within 4 s", err), err
        assert code == 1 and len(err.splitlines()) == 1, (code, err)
    with_ssh(check)


def test_unknown_host_name_is_one_line():
    code, _, err = run(["-n", "1", "--hosts", "no-such-host.invalid", "true"])
    assert code == 1 and len(err.splitlines()) == 1 and "no-such-host.invalid" in err, (code, err)


# hosts that have IPv6 addresses only, in a network and with a table of names of its own
SIX = """#!/bin/sh
exec unshare -m -n --propagation private sh -ec '
    directory=$1; shift
    { cat /etc/hosts; echo "fd00:88::2 six2"; echo "fd00:88::3 six3"; } >"$directory/names"
    mount --bind "$directory/names" /etc/hosts
    ip link set lo up
    for k in 2 3; do ip -6 addr add fd00:88::$k/64 dev lo nodad; done
    exec "$0" "$@"' '%s' '%s' "$@"
"""


def test_hosts_with_ipv6_addresses_by_name_and_by_address():
    if not keeltest.IS_ROOT or not os.path.exists("/proc/net/if_inet6"):
        raise keeltest.Skip("needs root and IPv6")

    def check(directory, launcher):
        path = os.path.join(directory, "six")
        with open(path, "w") as f:
            f.write(SIX % (os.path.abspath(KEELRUN), directory))
        os.chmod(path, 0o755)
        for hosts in ("six2,six3", "fd00:88::2,[fd00:88::3]:1"):
            code, out, err = run(launcher + ["-n", "2", "--hosts", hosts, os.environ["KEEL_FABRIC"]], program=path)
            assert (code, err) == (0, "") and len(out.splitlines()) == 2, (hosts, code, out, err)
    with_ssh(check)


def test_missing_keeld_is_one_line():
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
        alone = os.path.join(directory, "keelrun")
        with open(KEELRUN, "rb") as source, open(alone, "wb") as target:
            target.write(source.read())
        os.chmod(alone, 0o755)
        code, _, err = run(["-n", "1", "true"], program=alone)
        assert code == 1 and len(err.splitlines()) == 1 and "keeld" in err, (code, err)


keeltest.main(globals())
