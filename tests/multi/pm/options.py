"""What each option of keelrun, keelctl and keeld does. An option that --help names and no test is named after fails."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../lib"))
import keeltest
from keeltest import BIN, HANG_S, IS_ROOT, KEELCTL, KEELRUN, Job, alive, run, state_of, wait_for
from recorder import Recorder

CRASH = os.environ["KEEL_CRASH"]
WHO = ["sh", "-c", "echo $KEEL_RANK $KEEL_NODE"]
PROGRAMS = {"keelrun": KEELRUN, "keelctl": KEELCTL, "keeld": os.path.join(BIN, "keeld")}


def said(program, *arguments):
    result = subprocess.run([PROGRAMS[program], *arguments], capture_output=True, text=True, timeout=HANG_S)
    assert result.returncode == 0 and result.stderr == "", (program, arguments, result)
    return result.stdout


def placed(options):
    """{rank: node}"""
    code, out, err = run(options + WHO)
    assert (code, err) == (0, ""), (code, err)
    return dict(map(int, line.split()) for line in out.splitlines())


def ssh(directory):
    """A program that plays ssh and notes how it was called."""
    path = os.path.join(directory, "ssh")
    with open(path, "w") as f:
        f.write('#!/bin/sh\necho "$0 $@" >>%s/calls\nwhile [ "${1#-}" != "$1" ]; do shift; done\n'
                'h=$1; shift\n[ "$h" = 127.0.1.9 ] && exec sleep 10000\neval "exec $*"\n' % directory)
    os.chmod(path, 0o755)
    return path


def calls(directory):
    with open(os.path.join(directory, "calls")) as f:
        return f.read()


# ---- all three

def test_every_option_has_a_test():
    for program in PROGRAMS:
        for option in re.findall(r"--([a-z-]+)", said(program, "--help").split("\n\n", 1)[1]):
            word = option.replace("-", "_")
            assert [n for n in globals() if re.fullmatch("test_(%s|all)_(.*_)?%s(_.*)?" % (program, word), n)], (program, option)


def test_all_version_help_usage():
    for program in PROGRAMS:
        assert re.fullmatch(r"%s \(Keel\) \d+\.\d+\.\d+\n" % program, said(program, "--version"))
        assert said(program, "-V") == said(program, "--version")
        assert "Usage: " in said(program, "--help") and said(program, "-?") == said(program, "--help")
        assert said(program, "--usage").startswith("Usage: ")


def test_keelrun_alone_prints_its_usage_in_one_line():
    result = subprocess.run([KEELRUN], capture_output=True, text=True, timeout=HANG_S)
    assert result.returncode == 2 and result.stdout == "", result
    assert result.stderr.startswith("usage: keelrun -n RANKS ") and len(result.stderr.splitlines()) == 1, result


# ---- keelrun: where

def test_keelrun_ranks_is_their_number():
    assert placed(["-n", "3"]) == placed(["--ranks", "3"]) == {0: 0, 1: 0, 2: 0}


def test_keelrun_nodes_spreads_them():
    assert placed(["-n", "5", "--nodes", "2"]) == {0: 0, 1: 0, 2: 0, 3: 1, 4: 1}


def test_keelrun_ppn_fills_nodes():
    assert placed(["-n", "5", "--ppn", "2"]) == {0: 0, 1: 0, 2: 1, 3: 1, 4: 2}


def test_keelrun_hosts_hostfile_launcher_launcher_exec():
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
        path = ssh(directory)
        code, out, err = run(["-n", "2", "--hosts", "127.0.1.2,127.0.1.3", "--launcher", "ssh", "--launcher-exec", path] + WHO)
        assert code == 0 and sorted(out.splitlines()) == ["0 0", "1 1"], (code, out, err)
        assert " 127.0.1.2 " in calls(directory) and " 127.0.1.3 " in calls(directory), calls(directory)
        os.unlink(os.path.join(directory, "calls"))
        # without --launcher-exec the launcher's own program is looked for: rsh calls rsh
        os.rename(path, os.path.join(directory, "rsh"))
        hosts = os.path.join(directory, "hosts")
        with open(hosts, "w") as f:
            f.write("127.0.1.4\n127.0.1.5:2 # more\n")
        code, out, err = run(["-n", "2", "--hostfile", hosts, "--launcher", "rsh"] + WHO,
                             env={"PATH": directory + ":" + os.environ["PATH"]})
        assert code == 0 and sorted(out.splitlines()) == ["0 0", "1 1"], (code, out, err)
        assert " 127.0.1.4 " in calls(directory) and " 127.0.1.5 " in calls(directory), calls(directory)
        code, out, err = run(["-n", "1", "--hosts", "127.0.1.2", "--hostfile", hosts, "true"])
        assert (code, out, err) == (2, "", "keelrun: --hosts and --hostfile cannot be used together\n"), (code, out, err)


def on_hosts(words, env=None, **files):
    """{rank: node} of a job whose hosts an ssh of ours plays; the words may name the files by {name}."""
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
        for name, text in files.items():
            with open(os.path.join(directory, name), "w") as f:
                f.write(text)
        at = {name: os.path.join(directory, name) for name in files}
        code, out, err = run(["--launcher", "ssh", "--launcher-exec", ssh(directory)] + [w.format(**at) for w in words] + WHO,
                             env={k: v.format(**at) for k, v in (env or {}).items()})
        assert (code, err) == (0, ""), (words, code, err)
        return dict(map(int, line.split()) for line in out.splitlines())


def test_keelrun_host_np_machinefile_are_other_names():
    for words in (["-np", "3", "-host", "127.0.1.2,127.0.1.3"], ["--np", "3", "--host", "127.0.1.2,127.0.1.3"],
                  ["-np", "3", "-machinefile", "{hosts}"], ["--np=3", "--machinefile={hosts}"]):
        assert on_hosts(words, hosts="127.0.1.2\n127.0.1.3\n") == {0: 0, 1: 0, 2: 1}, words


def test_keelrun_hosts_have_slots():
    assert on_hosts(["-n", "4", "--hosts", "127.0.1.2:3,127.0.1.3:5"]) == {0: 0, 1: 0, 2: 0, 3: 1}
    assert on_hosts(["--hosts", "127.0.1.2:2,127.0.1.3"]) == {0: 0, 1: 0, 2: 1}  # as many ranks as there are slots
    assert on_hosts(["-n", "4", "--hosts", "127.0.1.[2-3]"]) == {0: 0, 1: 0, 2: 1, 3: 1}  # nobody says slots
    assert on_hosts(["-n", "2", "--ppn", "1", "--hosts", "127.0.1.2:3,127.0.1.3:3"]) == {0: 0, 1: 1}
    assert on_hosts(["-n", "3", "--hostfile", "{hosts}"], hosts="127.0.1.2 slots=1\nroot@127.0.1.3 slots=2 # b\n") == {0: 0, 1: 1, 2: 1}
    assert on_hosts(["-n", "2", "--spares", "1", "--hosts", "127.0.1.2:1,127.0.1.3:1,127.0.1.4:1"]) == {0: 0, 1: 1}
    code, _, err = run(["-n", "4", "--hostfile", "/dev/stdin", "true"], stdin=b"127.0.1.2 slots=2 max_slots=3\n")
    assert (code, err) == (2, "keelrun: 4 ranks are more than the max_slots of the hosts allow\n"), (code, err)


def test_keelrun_hosts_are_those_of_the_batch_system():
    for env, files in ((dict(SLURM_JOB_NODELIST="127.0.1.[2-3]", SLURM_TASKS_PER_NODE="2,1"), {}),
                       (dict(PBS_NODEFILE="{nodes}"), dict(nodes="127.0.1.2\n127.0.1.2\n127.0.1.3\n")),
                       (dict(LSB_DJOB_HOSTFILE="{nodes}"), dict(nodes="127.0.1.2\n127.0.1.2\n127.0.1.3\n")),
                       (dict(LSB_HOSTS="127.0.1.2 127.0.1.2 127.0.1.3"), {}),
                       (dict(PE_HOSTFILE="{nodes}"), dict(nodes="127.0.1.2 2 all.q@a UNDEFINED\n127.0.1.3 1 all.q@b UNDEFINED\n"))):
        assert on_hosts([], env=env, **files) == {0: 0, 1: 0, 2: 1}, env
        assert on_hosts(["-n", "4", "--ppn", "2"], env=env, **files) == {0: 0, 1: 0, 2: 1, 3: 1}, env
    code, out, err = run(["-n", "1"] + WHO, env={"SLURM_JOB_NODELIST": "n["})
    assert code == 2 and len(err.splitlines()) == 1 and "SLURM_JOB_NODELIST" in err and "--hosts" in err, (code, err)
    code, out, err = run(["-n", "1", "--nodes", "1"] + WHO, env={"SLURM_JOB_NODELIST": "n["})
    assert (code, out, err) == (0, "0 0\n", ""), (code, out, err)


def test_keelrun_hosts_that_cannot_be_are_refused_before_anything_is_contacted():
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
        launcher = ["--launcher", "ssh", "--launcher-exec", ssh(directory), "-n", "1"]
        for hosts, what in ((":2", "empty"), ("a:x", "not a number"), ("[fd00::2", "missing"), ("[fd00::x]:4", "IPv6"), ("n[3-1]", "no range"), ("-oProxyCommand=x", "no host name"), ("a,,b", "empty")):
            code, out, err = run(launcher + ["--hosts", hosts, "true"])
            assert code == 2 and out == "" and len(err.splitlines()) == 1 and what in err, (hosts, code, err)
        assert not os.path.exists(os.path.join(directory, "calls"))


def test_keelrun_fan_out_is_how_many_keelrun_starts():
    """What agents do with the others: tree.py."""
    for most, ours in (("1", 1), ("3", 3), ("100", 4)):
        with Job(["-n", "4", "--nodes", "4", "--fan-out", most, "true"]) as job:
            assert job.wait() == 0
            by = job.events("started")[0]["started_by"]
            assert [node for node, starter in enumerate(by) if starter < 0] == list(range(ours)), by


def test_keelrun_bed_gives_nodes_networks():
    script = ["sh", "-c", "ip -o -4 addr show | grep -c 'inet 10\\.77\\.0\\.'; true"]
    code, out, _ = run(["-n", "2", "--nodes", "2", "--bed", "loopback"] + script)
    assert (code, out.split()) == (0, ["0", "0"]), out
    if IS_ROOT:
        code, out, _ = run(["-n", "2", "--nodes", "2", "--bed", "netns"] + script)
        assert (code, out.split()) == (0, ["1", "1"]), out


def test_keelrun_link_rate_is_of_the_bed_grid():
    """What it does: fault/grid_bed.py."""
    refused_on_grid(["--link-rate", "1000"], "--link-rate is of use only with --bed grid")
    refused_on_grid(["--bed", "grid", "--link-rate", "99"], "--link-rate: 99 is not a number from 100 to 100000000")
    refused_on_grid(["--bed", "grid", "--rails", "veth0,veth1"], "--bed grid has one network: --rails names 2")
    refused(["--bed", "grid", "-n", "2", "--nodes", "2"], "--bed grid is of use only with --grid")


# ---- keelrun: when something dies

def crashed(*options):
    return run(["-n", "2", "--nodes", "2", *options, CRASH, "1", "9", "once"])


def test_keelrun_spares_are_used():
    with Job(["-n", "1", "--nodes", "1", "--spares", "1", "sh", "-c", "read x; exec %s 9 9 once" % CRASH]) as job:
        assert sorted(n["spare"] for n in job.wait_ranks(1)["nodes"].values()) == [False, True]
        assert job.wait() == 0


def test_keelrun_on_failure_decides():
    code, _, err = crashed("--on-failure", "substitute")
    assert code == 0 and "started again, 1 of 3" in err, err
    code, _, err = crashed("--on-failure", "degrade")
    assert code == 0 and "goes on without it" in err, err
    code, _, err = crashed("--on-failure", "copies", "--spares", "1")
    assert code == 0 and "goes on without it" in err, err
    code, _, err = crashed("--on-failure", "abort")
    # what libfabric loads may have its say, too, when a rank is told to end
    assert code == 137 and len([line for line in err.splitlines() if line.startswith("keelrun: ")]) == 1, err


def watching(*options):
    """{node: (probe, whose heartbeats it reads)} of a job of 4 nodes"""
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
        path = os.path.join(directory, "log")
        result = run(["--event-log", path, "-n", "4", "--nodes", "4", *options, "true"])
        assert result == (0, "", ""), result
        with open(path) as f:
            events = [json.loads(line) for line in f]
    return {e["node"]: (e["probe"], e["reads"]) for e in events if e["event"] == "watch"}


def test_keelrun_probe_is_how_nodes_watch_each_other():
    assert [way for way, _ in watching("--probe", "ofi").values()] == ["ofi"] * 4
    assert len(watching("--probe", "auto")) == 4
    if not os.path.isdir("/sys/class/infiniband") or not os.listdir("/sys/class/infiniband"):
        code, out, err = run(["--probe", "verbs", "-n", "4", "--nodes", "4", "echo", "ran"])
        assert (code, out) == (1, "") and re.fullmatch(r"keelrun: node \d: detect: no verbs probe on 127\.0\.0\.\d: there is no RDMA device\n", err), (
            code, out, err)
    code, _, err = run(["--probe", "magic", "-n", "1", "true"])
    assert (code, err) == (2, "keelrun: --probe: magic is not known\n"), (code, err)


def test_keelrun_rails_that_make_no_sense_are_one_line():
    for args, said in (
            (["--rails", "eth0,eth0"], "--rails: eth0 is there twice"),
            (["--rails", ""], "--rails: \"\" is no interface and no subnet"),
            (["--rails", "a,b,c,d,e"], "--rails: more than 4 networks"),
            (["--rails", "10.0.0.1/8"], "--rails: \"10.0.0.1/8\" is no interface and no subnet"),
            (["--rails", "eth0"], "--rails is of use only with --hosts"),
            (["--rails", "eth0", "--bed", "netns"], "on the netns bed they are called veth0,veth1"),
            (["--rails", "lo", "--hosts", "localhost", "--provider", "verbs"], "cannot be used with --provider verbs"),
            (["--rails", "lo", "--hosts", "localhost", "--probe", "verbs"], "cannot be used with --probe verbs")):
        code, out, err = run(["-n", "1", *args, "true"])
        assert code == 2 and err.count("\n") == 1 and said in err, (args, code, err)


def test_keelrun_rails_that_a_host_does_not_have_are_told():
    code, out, err = run(["-n", "1", "--hosts", "localhost", "--rails", "lo,nowhere0", "true"])
    assert code == 1 and "node 0: this host has no IPv4 address on an interface nowhere0 (--rails)" in err, (code, err)


def test_keelrun_provider_is_what_carries_data():
    def provider(*options):
        with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
            path = os.path.join(directory, "log")
            assert run(["--event-log", path, "-n", "2", "--nodes", "2", *options, "true"]) == (0, "", "")
            with open(path) as f:
                return {e["provider"] for e in map(json.loads, f) if e["event"] == "watch"}
    assert provider() == {"tcp"}
    if not os.path.isdir("/sys/class/infiniband") or not os.listdir("/sys/class/infiniband"):
        assert provider("--provider", "auto") == {"tcp"}
        code, out, err = run(["--provider", "verbs", "-n", "2", "--nodes", "2", "echo", "ran"])
        assert (code, out, err.count("\n")) == (1, "", 1), (code, out, err)
        assert re.match(r'keelrun: node \d: transport: libfabric\'s provider "verbs" cannot be used on 127\.0\.0\.\d: ', err), err
    code, _, err = run(["--provider", "pigeon", "-n", "1", "true"])
    assert (code, err) == (2, "keelrun: --provider: pigeon is not known\n"), (code, err)
    code, _, err = run(["--secure", "--provider", "verbs", "-n", "1", "true"])
    assert code == 2 and "--secure cannot be used with --provider verbs" in err, (code, err)


def test_keelrun_secure_seals_every_data_connection():
    for options, sealed in [([], False), (["--secure"], True)]:
        recorder = Recorder()
        code, _, err = run(["-n", "2", "--nodes", "2", *options, CRASH, "1", "0", "never"])
        assert code == 0, err
        begun = [data[:300] for data in recorder.read()[0].values() if b"ihleek" in data[:300]]  # a hello
        assert sum((b"KEELSEAL" in data) == sealed for data in begun) >= 2, (options, begun)


def test_keelrun_silence_and_stopped_are_times_that_fit():
    """What they do: tests/fault/failures.py."""
    for words, said in ((["--silence", "199ms"], "--silence: 199ms is not a time from 200ms to 600s, as 0.5s or 500ms is"),
                        (["--silence", "0.1"], "--silence: 0.1 is not a time from 200ms to 600s, as 0.5s or 500ms is"),
                        (["--silence", "601s"], "--silence: 601s is not a time from 200ms to 600s, as 0.5s or 500ms is"),
                        (["--silence", "never"], "--silence: never is not a time from 200ms to 600s, as 0.5s or 500ms is"),
                        (["--dark", "x"], "--dark: x is not a number from 200 to 600000"),
                        (["--stopped", "0"], "--stopped: 0 is neither a time from 1s to 86400s nor never"),
                        (["--stopped", "999ms"], "--stopped: 999ms is neither a time from 1s to 86400s nor never"),
                        (["--stopped", "soon"], "--stopped: soon is neither a time from 1s to 86400s nor never")):
        code, _, err = run([*words, "-n", "1", "true"])
        assert (code, err) == (2, "keelrun: %s\n" % said), (code, err)
    for words in (["--silence", "4", "--stopped", "2"], ["--silence", "4000ms", "--stopped", "1.5s"], ["--silence", "0.5min", "--stopped", "never"]):
        assert run([*words, "-n", "1", "true"])[::2] == (0, ""), words
    code, _, err = run(["--silence", "4000", "-n", "1", "true"])
    assert (code, err) == (0, "keelrun: --silence 4000 without a unit is taken for milliseconds, which is deprecated: say 4000ms\n"), (code, err)
    code, _, err = run(["--dark", "500", "-n", "1", "true"])
    assert (code, err) == (0, "keelrun: --dark is deprecated: --silence says when a node is dead whose host does not answer, "
                           "--stopped when one is whose host does\n"), (code, err)


def test_keelrun_room_is_bounded():
    """What it does: tests/fault/returns.py."""
    for words, said in ((["--room", "-1"], "--room: -1 is not a number from 0 to 4096"),
                        (["--room", "4097"], "--room: 4097 is not a number from 0 to 4096"),
                        (["--room", "some"], "--room: some is not a number from 0 to 4096"),
                        (["--room", "4096"], "--room 4096: a job has 4096 nodes at most, with those that come later")):
        code, _, err = run([*words, "-n", "1", "true"])
        assert (code, err) == (2, "keelrun: %s\n" % said), (code, err)
    for words, room in (([], 4), (["--spares", "3"], 5), (["--room", "0"], 0), (["--room", "7"], 7),
                        (["--on-failure", "abort"], 0)):
        with Job(["-n", "2", "--nodes", "2", *words, "true"]) as job:
            assert job.wait() == 0, job.stderr()
            assert job.events("started")[0]["room"] == room, (words, job.events("started"))


def test_keelrun_refuses_more_nodes_than_a_job_has():
    with tempfile.NamedTemporaryFile("w") as hosts:
        hosts.write("".join("node%d\n" % n for n in range(4097)))
        hosts.flush()
        for words, said in ((["--nodes", "4097"], "--nodes: 4097 is not a number from 1 to 4096"),
                            (["--hostfile", hosts.name],
                             "%s: line 4097: more than 4096 hosts: a job has no more nodes" % hosts.name)):
            code, out, err = run(["-n", "1", *words, "true"])
            assert (code, out, err) == (2, "", "keelrun: %s\n" % said), (code, out, err)


def test_keelrun_topology_says_who_watches_whom():
    assert watching()[3][1] == watching("--topology", "ring")[3][1] == [0, 1]
    assert watching("--topology", "hypercube")[3][1] == [1, 2]
    assert watching("--topology", "torus")[3][1] == [1, 2]
    distances = [sorted((read - node) % 4 for read in reads) for node, (_, reads) in watching("--topology", "random").items()]
    # the draw is the same on all, and no ring
    assert len(distances) == 4 and distances == distances[:1] * 4 and distances[0] != [1, 2], distances
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
        path = os.path.join(directory, "who")
        for text, why in [("0 1\n1 2\n2 3\n3 0 # closed\n3 1\n", None), ("0 1\n1 4\n", "line 2 names a node that the job does not have"),
                          ("0 0\n", "line 1 lets a node watch itself"), ("0 1\n1 2\n2 0\n", "nobody reads node 3"),
                          ("0 one\n", 'line 1 is not "READER WATCHED", two node numbers')]:
            with open(path, "w") as f:
                f.write(text)
            if why:
                code, out, err = run(["-n", "4", "--nodes", "4", "--topology", "file:" + path, "echo", "ran"])
                assert (code, out, err) == (2, "", f"keelrun: {path}: {why}\n"), (code, out, err)
            else:
                assert {node: reads for node, (_, reads) in watching("--topology", "file:" + path).items()} == {
                    0: [1], 1: [2], 2: [3], 3: [0, 1]}


def refused(options, why):
    code, out, err = run(["-n", "4", "--nodes", "4"] + options + ["echo", "ran"])
    assert (code, out, err) == (2, "", "keelrun: %s\n" % why), (options, code, out, err)


def test_keelrun_replicas_with_replica_map_check_and_on_mismatch():
    """What else they do, and all that is refused: replicas.py."""
    assert placed(["-n", "4", "--replicas", "2", "--ppn", "2"]) == {0: 0, 1: 0, 2: 1, 3: 1}
    with Job(["-n", "2", "--nodes", "4", "--replicas", "2", "--check", "none", "--on-mismatch", "report", "sleep", "10000"]) as job:
        assert [(rank["rank"], rank["set"], rank["as_rank"], node) for node, of in job.wait_ranks(4)["nodes"].items() for rank in of["ranks"]] == [
            (0, 0, 0, 0), (1, 0, 1, 1), (2, 1, 0, 2), (3, 1, 1, 3)]
        said("keelctl", "stop", job.id())
        assert job.wait() == 143
    with tempfile.NamedTemporaryFile("w") as f:
        f.write("# rank native replica\n0 0 0\n1 3 0\n0 2 1\n1 1 1\n")
        f.flush()
        with Job(["-n", "2", "--nodes", "4", "--replicas", "2", "--replica-map", f.name, "sleep", "10000"]) as job:
            assert [(rank["rank"], rank["set"], rank["as_rank"], node) for node, of in job.wait_ranks(4)["nodes"].items() for rank in of["ranks"]] == [
                (0, 0, 0, 0), (1, 1, 1, 1), (2, 1, 0, 2), (3, 0, 1, 3)]
            said("keelctl", "stop", job.id())
            assert job.wait() == 143
    for way in "hash", "all":  # what they find: multi/replicas.py
        assert run(["-n", "2", "--replicas", "2", "--check", way, "true"]) == (0, "", "")
    refused(["--replicas", "2", "--check", "sums"], "--check: sums is not known")
    refused(["--replicas", "2", "--on-mismatch", "vote"], "--on-mismatch: vote is not known")


def test_keelrun_on_death():
    """What a set that loses a process comes to: fault/replicas.py."""
    assert run(["-n", "1", "--replicas", "2", "--on-death", "retire", "true"]) == (0, "", "")
    refused(["--on-death", "retire"], "--on-death is of use only with --replicas")
    refused(["--replicas", "2", "--on-death", "vote"], "--on-death: vote is not known")
    partner = ["--replicas", "2", "--on-death", "partner"]
    refused([*partner, "--check", "none"],
            "--on-death partner cannot be used with --check none: replicas that do not meet cannot do the part of each "
            "other")
    for mode in "report", "keep":
        refused([*partner, "--on-mismatch", mode],
                "--on-death partner cannot be used with --on-mismatch but for stop: replicas that differ cannot do the "
                "part of each other")
    for check in "hash", "all":
        assert run(["-n", "1", *partner, "--check", check, "true"]) == (0, "", "")
    assert run(["-n", "1", *partner, "true"]) == (0, "", "")


def test_keelrun_scrub_takes_a_rate():
    """What it finds and mends: fault/scrub.py."""
    for rate in "off", "16":
        assert run(["-n", "2", "--scrub", rate, "true"]) == (0, "", "")
    refused(["--scrub", "0"], "--scrub: 0 is neither off nor a number of MB/s from 1 to 10000")


def test_keelrun_replica_world_and_replica_files():
    """What else they do: multi/world.py."""
    for world, number in ("one", "4194305\n"), ("all", None):
        code, out, _ = run(["-n", "1", "--replicas", "2", "--replica-world", world, "sh", "-c", "echo $$"])
        assert code == 0 and (out == number or not number and out != "4194305\n"), (world, code, out)
    for files, lines in ("one", "a\n"), ("all", "a\na\n"):
        with tempfile.TemporaryDirectory() as folder:
            adds = ["sh", "-c", f"echo a >>{folder}/x"]
            assert run(["-n", "1", "--replicas", "2", "--replica-files", files, *adds])[0] == 0
            with open(folder + "/x") as f:
                assert f.read() == lines
    for option in "--replica-world", "--replica-files":
        refused(["--replicas", "2", option, "some"], "%s: some is not known" % option)
        refused([option, "all"], "%s is of use only with --replicas" % option)


def test_keelrun_replica_copies():
    """What becomes of segments: multi/replicas.py."""
    for copies in "one", "all":
        assert run(["-n", "1", "--replicas", "2", "--replica-copies", copies, "true"]) == (0, "", "")
    refused(["--replicas", "2", "--replica-copies", "some"], "--replica-copies: some is not known")
    refused(["--replica-copies", "all"], "--replica-copies is of use only with --replicas")


def test_keelrun_inject_makes_bits_wrong():
    """Which ones, and what comes of them: multi/inject.py."""
    assert run(["-n", "2", "--inject", "rate=0", "true"]) == (0, "", "")
    refused(["--inject", "rate=1.5"], "--inject rate=1.5: rate=1.5 is no number from 0 to 1")
    refused(["--inject", "count=1,rank=4"], "--inject rank=4: the last rank is 3")


def test_keelrun_copies_at_is_half_or_next():
    """Where copies are then: fault/halves.py."""
    for where in "half", "next":
        assert run(["-n", "4", "--nodes", "4", "--copies-at", where, "true"]) == (0, "", "")
    refused(["--copies-at", "opposite"], "--copies-at: opposite is not known")
    for option in "--topology-file", "--rack-of":
        refused(["--copies-at", "next", option, "x"], "--copies-at next cannot be used with %s: the next node may be in the same rack" % option)


def test_keelrun_numbers_are_digits_alone():
    for option in "--nodes", "--spares", "--ppn", "--room", "--moves", "--timeout", "--start-timeout", "--fan-out":
        for text in " 4", "+4", "4 ", "\t4", "0x4", "4.0", "":
            code, out, err = run(["-n", "4", option, text, "echo", "ran"])
            assert code == 2 and out == "" and len(err.splitlines()) == 1, (option, text, code, out, err)
            assert err.startswith("keelrun: %s: %s is not a number from " % (option, text.replace("\t", "\\t"))), err
    for option in "--silence", "--stopped":
        for text in " 4s", "+4s", "+4", "0x4":
            code, out, err = run(["-n", "4", option, text, "echo", "ran"])
            assert code == 2 and out == "" and len(err.splitlines()) == 1, (option, text, code, out, err)


def test_keelrun_counts_of_one_are_of_one():
    refused(["-n", "1", "--nodes", "2"], "1 rank on 2 nodes: every node needs at least one rank")
    refused(["-n", "3", "--ppn", "3", "--nodes", "2"], "3 ranks with 3 on each node need 1 node, not 2")
    code, _, err = run(["-n", "4", "--hosts", "127.0.1.2", "--spares", "1", "true"])
    assert (code, err) == (2, "keelrun: 1 host is too few for 1 spare and a node\n"), (code, err)
    refused_on_grid(["--grid", "3x3", "--spare-alloc", "2D(0,1)", "-n", "9", "--nodes", "9", "--dead", "0"],
                    "the grid 3x3 with 1 dead node has 8 that live, and 9 are to compute")


def test_all_show_what_is_wrong_in_one_line():
    for program, words, line in (
            ("keelrun", ["-n", "4", "--on-failure", "a\nb", "true"], "keelrun: --on-failure: a\\nb is not known"),
            ("keelrun", ["-n", "4", "--hostfile", "/no\nsuch", "true"], "keelrun: cannot open /no\\nsuch: No such file or directory"),
            ("keelrun", ["-n", "\ufeff4", "true"], "keelrun: -n: \\ufeff4 is not a number from 1 to 1048576"),
            ("keelrun", ["--a\x1b[2J\rb"], "keelrun: --a\\x1b[2J\\rb is not an option, or its value is missing; see keelrun --help"),
            ("keelctl", ["status", "--host", "-a\nb"], "keelctl: --host: -a\\nb is not a host")):
        done = subprocess.run([PROGRAMS[program], *words], capture_output=True, text=True, timeout=HANG_S)
        assert (done.returncode, done.stdout, done.stderr) == (2, "", line + "\n"), (program, words, done)


GRID = ["-n", "9", "--grid", "4x4"]


def host_of(options, nodes, node):
    """What keelrun calls the node when it has died; what it said before."""
    with Job(options + ["sleep", "5"]) as job:
        starts = wait_for(lambda: len(job.events("start")) == nodes and job.events("start"), "all nodes")
        before = job.stderr()
        os.kill([e["pid"] for e in starts if e["node"] == node][0], signal.SIGKILL)
        job.wait()
        return re.search(r"node %d \((.*?)\)" % node, job.stderr()[len(before):])[1], before, job.events("started")[0]["grid"]


def refused_on_grid(options, why):
    code, out, err = run(GRID + options + ["echo", "ran"])
    assert (code, out, err) == (2, "", "keelrun: %s\n" % why), (options, code, out, err)


def on_grid(options):
    """What the job says of its grid in the event log."""
    with Job(GRID + options + ["true"]) as job:
        assert job.wait() == 0 and job.stderr() == "", job.stderr()
        started = job.events("started")[0]
        return started["grid"], (started["nodes"], started["spares"])


def test_keelrun_grid_places_nodes_and_spares():
    grid, counts = on_grid([])
    assert counts == (9, 7) and grid == {"nodes": "4x4", "spare_alloc": "2D(2,1)", "substitution": "auto", "moves": 0, "dead": [],
                                         "place": [0, 1, 2, 4, 5, 6, 8, 9, 10, 3, 7, 11, 12, 13, 14, 15]}, grid
    assert on_grid(["--nodes", "9", "--spares", "7"])[0] == grid
    assert on_grid(["--nodes", "8"])[1] == (8, 8) and on_grid(["--ppn", "3"])[1] == (3, 13)
    refused_on_grid(["--spares", "3"], "the grid 4x4 has 16 places: with 9 nodes that compute there are 7 spares, not 3")
    refused_on_grid(["--nodes", "10"], "10 nodes that compute do not fit the grid 4x4 with 2D(2,1) spares: it has places for 9")
    refused_on_grid(["-n", "8"], "8 ranks on 9 nodes: every node needs at least one rank")
    refused_on_grid(["--hosts", "a,b,c"], "the grid 4x4 has 16 places, and there are 3 hosts")
    refused_on_grid(["--grid", "4x"], "--grid 4x: a grid is written like 12x12x12, or 8tx8tx16 with t for a torus dimension")
    refused_on_grid(["--grid", "80x80"], "--grid 80x80: a job has 4096 nodes at most")


def test_keelrun_grid_gives_hosts_the_places_in_their_order():
    """x first; so the last of a row is a spare."""
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
        hosts = ["--launcher-exec", ssh(directory), "--hosts", "127.0.1.[1-4]", "--grid", "2x2", "-n", "1"]
        assert host_of(hosts, 4, 1)[0] == "127.0.1.2"
        assert host_of(hosts + ["-n", "2", "--spare-alloc", "2D(1,1)"], 4, 1)[0] == "127.0.1.3"


def test_keelrun_torus_names_dimensions():
    assert on_grid(["--torus", "y"])[0]["nodes"] == "4x4t" and on_grid(["--torus", "yx"])[0]["nodes"] == "4tx4t"
    assert on_grid(["--grid", "4tx4", "--torus", "y"])[0]["nodes"] == "4tx4t"
    refused_on_grid(["--torus", "xz"], "--torus xz: z is no dimension of the grid 4x4, which has xy")
    refused_on_grid(["--torus", "xyx"], "--torus xyx names x twice")
    refused_on_grid(["--torus", ""], "--torus: no dimension is named, as in --torus xy")
    refused(["--torus", "x"], "--torus is of use only with --grid")


def test_keelrun_spare_alloc_says_which_sides():
    for spares, last in ("2D(1,1)", [3, 7, 11, 15]), ("2D(1,1):y", [12, 13, 14, 15]):
        grid, counts = on_grid(["-n", "12", "--spare-alloc", spares])
        assert counts == (12, 4) and grid["place"] == [p for p in range(16) if p not in last] + last, (spares, grid)
    for spares, why in [("2D(3,1)", "r in qD(r,s) must be 0 to q"), ("3D(2,1)", "q in qD(r,s) must be the number of dimensions of the grid"),
                        ("2D(2,4)", "s in qD(r,s) must be at least 1 and less than the sides of the grid"),
                        ("two", "a spare allocation is written like 3D(2,1), or 3D(2,1):xz with its sides named")]:
        refused_on_grid(["--spare-alloc", spares], "--spare-alloc %s on the grid 4x4: %s" % (spares, why))
    refused(["--spare-alloc", "2D(1,1)"], "--spare-alloc is of use only with --grid")


def test_keelrun_substitution_is_a_method():
    """What becomes of it: fault/grid.py."""
    for method in "0D", "2D", "hybrid(2D+0D)", "hybrid(-2D)", "balance", "repair", "repair(3)", "none":
        assert on_grid(["--substitution", method])[0]["substitution"] == method
    refused_on_grid(["--substitution", "hybird(all)"], "--substitution hybird(all) is not known; is hybrid(all) meant?")
    refused_on_grid(["--substitution", "ballance"], "--substitution ballance is not known; is balance meant?")
    for method, why in [("3D", "a sliding method cannot have more dimensions than the grid"),
                        ("repair(0)", "the bound of repair(N) is 1 to 256 moves per failure")]:
        refused_on_grid(["--substitution", method], "--substitution %s: %s; or balance, repair, repair(N), auto, user:FILE, none" % (method, why))
    refused_on_grid(["--substitution", "0D", "--on-failure", "abort"], "--substitution is of use only with --on-failure substitute")
    refused(["--substitution", "0D"], "--substitution is of use only with --grid")


def test_keelrun_moves_are_bounded():
    assert on_grid(["--moves", "3"])[0]["moves"] == 3
    for bad in "0", "-1", "1048577", "x":
        refused_on_grid(["--moves", bad], "--moves: %s is not a number from 1 to 1048576" % bad)
    refused(["--moves", "3"], "--moves is of use only with --grid")


def test_keelrun_positions_and_plans_come_from_files():
    """What the files may say: unit/pm/test_grid_files.c."""
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
        path = os.path.join(directory, "file")
        def write(text):
            with open(path, "w") as f:
                f.write(text)
        hosts = ["--launcher-exec", ssh(directory), "--hosts", "127.0.1.[1-3]", "--grid", "2x2", "--positions", path, "-n", "1"]
        write("127.0.1.1 1 1\n127.0.1.2 0 1\n127.0.1.3 0 0\n")  # and nobody at 1,0
        host, _, grid = host_of(hosts, 3, 0)
        assert host == "127.0.1.3" and grid["dead"] == [1] and grid["place"] == [0, 2, 3], (host, grid)
        write("127.0.1.1 1 1\n127.0.1.1 0 1\n")
        refused_on_grid(hosts, "%s: line 2: host 127.0.1.1 is named twice" % path)
        refused_on_grid(["--positions", path], "--positions is of use only with hosts: emulated nodes stand anywhere")
        refused(["--positions", path], "--positions is of use only with --grid")
        write("5: 6>7 5>6\n")
        grid, _ = on_grid(["--substitution", "user:" + path, "--dead", "5"])
        assert grid["substitution"] == "user" and grid["place"][4:6] == [6, 7], grid
        write("5: 6>7 6>5\n")
        refused_on_grid(["--substitution", "user:" + path], "%s: line 1: what is on 6 moves twice" % path)
        refused_on_grid(["--substitution", "user:"], "--substitution user:: which file has the plans? user:FILE")
        refused_on_grid(["--substitution", "user:/no/such"], "cannot open /no/such: No such file or directory")


def user_file_options(path):
    """Each option and variable by which keelrun reads a file of its user's whole."""
    hosts = ["--launcher-exec", "/bin/false", "--hosts", "127.0.1.[1-4]"]
    batch = [({name: path}, []) for name in ("PBS_NODEFILE", "COBALT_NODEFILE", "LSB_DJOB_HOSTFILE", "PE_HOSTFILE")]
    on_grid = ["--grid", "2x2", "--substitution", "user:" + path]
    nodes = ["--nodes", "4"]
    return batch + [({}, words) for words in (["--hostfile", path], nodes + ["--topology", "file:" + path],
                                              nodes + ["--topology-file", path], on_grid,
                                              hosts + ["--grid", "2x2", "--positions", path])]


def refused_file(path, why):
    for env, words in user_file_options(path):
        code, out, err = run(["-n", "4"] + words + ["echo", "ran"], env=env)
        assert code == 2 and out == "" and len(err.splitlines()) == 1, (env, words, code, out, err)
        assert why in err, (env, words, err, why)


def test_keelrun_files_of_users_are_texts_that_nobody_is_waited_for():
    """What else they may be: unit/base/test_user_file.c."""
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
        path = os.path.join(directory, "fifo")
        os.mkfifo(path)
        refused_file(path, "cannot read %s: it is a fifo, and no regular file" % path)
        refused_file(directory, "cannot read %s: it is a folder, and no regular file" % directory)
        path = os.path.join(directory, "file")
        for text, why in ((b"# a\n0: 0>1\n\0", "%s: line 3: a zero byte, which no text has" % path),
                          (b"\xef\xbb\xbf0: 0>1\n", "%s: line 1: the text begins with a byte order mark" % path)):
            with open(path, "wb") as f:
                f.write(text)
            refused_file(path, why)


def auto(directory, topology, hosts, more=(), config="TopologyPlugin = topology/tree"):
    """keelrun --grid auto in an allocation of Slurm's, whose scontrol is a program of ours that prints this."""
    path = os.path.join(directory, "scontrol")
    with open(path, "w") as f:
        f.write("#!/bin/sh\n[ \"$2\" = topology ] && cat <<'E' || echo '%s'\n%s\nE\n" % (config, topology))
    os.chmod(path, 0o755)
    ssh(directory)
    return ["--launcher", "ssh", "--launcher-exec", os.path.join(directory, "ssh"), "-n", "4", "--hosts", hosts, "--grid", "auto", *more], \
        {"SLURM_JOB_ID": "7", "PATH": directory + ":" + os.environ["PATH"]}


def test_keelrun_grid_auto_needs_somebody_who_knows():
    code, out, err = run(["-n", "2", "--grid", "auto", "true"])
    assert (code, out) == (2, "") and "--grid auto is of use only with hosts" in err, (code, out, err)
    code, out, err = run(["-n", "2", "--hosts", "127.0.1.1,127.0.1.2", "--grid", "auto", "true"])
    assert (code, out, err.count("\n")) == (2, "", 1) and "neither --positions nor a job of Slurm's (SLURM_JOB_ID)" in err, (code, out, err)
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
        words, env = auto(directory, "scontrol: error: No topology information available", "127.0.1.1,127.0.1.2", config="none")
        code, out, err = run(words + ["true"], env=env)
        assert (code, out, err.count("\n")) == (2, "", 1) and "Slurm tells of no switches" in err and "No topology information" in err, err
        words, env = auto(directory, "SwitchName=a Level=0 Nodes=n[1-4]", "127.0.1.1,127.0.1.2")
        code, out, err = run(words + ["true"], env=env)
        assert (code, out, err.count("\n")) == (2, "", 1) and "host 127.0.1.1 of the job is on no leaf switch" in err, err
        env["PATH"] = "/nowhere"
        code, out, err = run(words + ["true"], env=env)
        assert (code, out, err.count("\n")) == (2, "", 1) and "scontrol" in err, err


def ends_so(script, line):
    """A scontrol that has answered in part, and then this. Nothing that it has started is left."""
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
        words, env = auto(directory, "", "127.0.1.1,127.0.1.2")
        with open(os.path.join(directory, "scontrol"), "w") as f:
            f.write("#!/bin/sh\necho 'SwitchName=a Level=0 Nodes=127.0.1.[1-2]'\n" + script)
        with Job(words + ["true"], env=env) as job:
            assert job.wait() == 2 and job.stdout() == "", job.stderr()
            assert job.stderr().count("\n") == 1 and line in job.stderr(), job.stderr()


def test_keelrun_grid_auto_tells_how_scontrol_ended():
    ends_so("kill -11 $$", "scontrol show topology was ended by signal 11")
    ends_so("sleep 1000 >/dev/null 2>&1 &\nkill -9 $$", "scontrol show topology was ended by signal 9")
    ends_so("sleep 1000 &\nsleep 1000", "scontrol show topology has not answered within 10 s")


def test_keelrun_grid_auto_is_of_slurm_s_switches():
    """Two leaf switches with three nodes and two: 2x3, of which the last place has no node."""
    hosts = ["127.0.1.%d" % i for i in range(1, 6)]
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
        said = "SwitchName=a Level=0 LinkSpeed=1 Nodes=%s\nSwitchName=b Level=0 LinkSpeed=1 Nodes=%s\nSwitchName=c Level=1 Nodes=%s" % (
            ",".join(hosts[:3]), ",".join(hosts[3:]), ",".join(hosts))
        words, env = auto(directory, said, ",".join(hosts), ["--spare-alloc", "2D(1,1)"])
        with Job(words + ["true"], env=env) as job:
            assert job.wait() == 0, job.stderr()
            grid = job.events("started")[0]["grid"]
            assert (grid["nodes"], grid["dead"]) == ("2x3", [5]), grid


def test_keelrun_grid_auto_is_of_a_file_of_positions():
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
        path = os.path.join(directory, "positions")
        with open(path, "w") as f:
            f.write("127.0.1.1 1 0\n127.0.1.2 0 0\n127.0.1.3 0 1\n")
        ssh(directory)
        words = ["--launcher", "ssh", "--launcher-exec", os.path.join(directory, "ssh"), "-n", "2", "--hosts", "127.0.1.1,127.0.1.2,127.0.1.3",
                 "--grid", "auto", "--positions", path, "--spare-alloc", "2D(1,1)"]
        with Job(words + ["true"]) as job:
            assert job.wait() == 0, job.stderr()
            grid = job.events("started")[0]["grid"]
            assert (grid["nodes"], grid["dead"]) == ("2x2", [3]), grid
        with open(path, "w") as f:
            f.write("127.0.1.1 1 0\n127.0.1.2 0\n")
        code, out, err = run(words + ["true"])
        assert (code, out) == (2, "") and err.startswith("keelrun: %s: line 2: " % path), err


def test_keelrun_dead_nodes_are_not_started():
    grid, counts = on_grid(["--dead", "5,15", "--substitution", "1D"])
    assert counts == (9, 5) and grid["dead"] == [5, 15], (grid, counts)
    assert grid["place"] == [0, 1, 2, 4, 9, 6, 8, 13, 10, 3, 7, 11, 12, 14], grid  # 5 and 9 have gone along y
    for dead, why in [("5,5", "--dead names 5 twice"), ("16", "--dead: 16 is neither a place from 0 to 15 nor a host"),
                      ("", "--dead:  is neither a place from 0 to 15 nor a host"),
                      ("0,1,2,3,4,5,6,7", "the grid 4x4 with 8 dead nodes has 8 that live, and 9 are to compute")]:
        refused_on_grid(["--dead", dead], why)
    refused_on_grid(["--dead", "5", "--substitution", "none"], "--substitution none has no node of the grid 4x4 for 1 of 1 dead ones")
    refused(["--dead", "5"], "--dead is of use only with --grid")
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
        with Job(["--launcher-exec", ssh(directory), "--hosts", "127.0.1.[1-3],127.0.1.9", "--grid", "2x2", "-n", "1", "--dead", "127.0.1.9", "true"]) as job:
            assert job.wait() == 0 and "127.0.1.9" not in calls(directory), job.stderr()


def test_keelrun_grid_leaves_out_who_does_not_come():
    """The others have the numbers of a grid on which that node is dead from the start."""
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
        hosts = ["127.0.1.%d" % i for i in (1, 2, 3, 4, 9, 5, 6, 7, 8)]
        host, said, grid = host_of(["--launcher-exec", ssh(directory), "--hosts", ",".join(hosts), "--grid", "3x3", "--substitution", "1D",
                                    "-n", "4", "--start-timeout", "3"], 8, 3)
        assert said == "keelrun: node 3 (127.0.1.9) has not joined within 3 s; its ranks start elsewhere on the grid\n", said
        assert grid["dead"] == [4] and grid["place"] == [0, 1, 3, 7, 2, 5, 6, 8] and host == hosts[7], (grid, host)


def test_keelrun_topology_file_says_which_hosts_share_a_rack():
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
        path = os.path.join(directory, "racks")
        for text, why in [("node[0-1] r s\nnode[02-03],node[2-3] q s # and one that is not here\nlogin q s\n", None),
                          ("node[0-1],node2.lan r\nnode3 q", None),
                          ("node[0-3] r\n", "rack r holds all 4 nodes: no copy would be in another one"),
                          ("node[0-2] r\nlogin q\n", "host node3 is in no line"),
                          ("node[0-2] r\nnode[2-3] q\n", "line 2: host node2 is in rack r, and in rack q"),
                          ("node[0-1] r\nnode[2-3]\n", 'line 2 is not "HOSTS RACK [SWITCH ...]"'),
                          ("node[0-1] r s1\nnode2 r s2\nnode3 q s2", "r is behind switch s1, and behind switch s2"),
                          ("node[0-2] r s\nnode3 q", "host node0 has 1 switches, host node3 0")]:
            with open(path, "w") as f:
                f.write(text)
            if why:
                refused(["--topology-file", path], path + ": " + why)
            else:
                assert run(["-n", "4", "--nodes", "4", "--topology-file", path, "true"]) == (0, "", "")
        refused(["--topology-file", path, "--rack-of", "x"], "--topology-file and --rack-of cannot be used together")
        refused(["--topology-file", path + "s"], "cannot open %ss: No such file or directory" % path)


def test_keelrun_rack_of_finds_the_rack_in_a_hosts_name():
    for expression in "[0-9]$", "^node([0-2])|3":
        assert run(["-n", "4", "--nodes", "4", "--rack-of", expression, "true"]) == (0, "", "")
    refused(["--rack-of", "(a"], "--rack-of: (a is no regular expression: Unmatched ( or \\(")
    refused(["--rack-of", "^rack[0-9]"], "--rack-of: ^rack[0-9] finds no rack in host node0")
    refused(["--rack-of", "^(no)de"], "--rack-of: rack no holds all 4 nodes: no copy would be in another one")


def test_keelrun_quiet_leaves_out_the_lines():
    assert "was killed by SIGKILL" in crashed("--spares", "1")[2]
    assert crashed("--spares", "1", "--quiet") == (0, "", "")


# ---- keelrun: output and time

def test_keelrun_stdin_keep_is_how_much_rank_0_reads_again():
    program = ["sh", "-c", "read word; echo $KEEL_RANK $word", "x"]
    for given in "-1", "1073741825", "x":
        code, out, err = run(["-n", "1", "--stdin-keep", given, *program], stdin=b"word\n")
        assert code == 2 and out == "" and "--stdin-keep" in err, (given, code, err)
    for given in "0", "1073741824":  # what it does: tests/fault/stdin.py
        assert run(["-n", "1", "--stdin-keep", given, *program], stdin=b"word\n") == (0, "0 word\n", "")


def test_keelrun_label_begins_lines_with_the_rank():
    code, out, err = run(["-n", "2", "--label", "sh", "-c", "echo a; echo b >&2; printf c"])
    assert code == 0 and sorted(out.splitlines()) == ["[0] a", "[0] c", "[1] a", "[1] c"], out
    assert sorted(err.splitlines()) == ["[0] b", "[1] b"], err


def test_keelrun_event_log_is_json_lines():
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
        path = os.path.join(directory, "log")
        assert subprocess.run([KEELRUN, "--event-log", path, "-n", "1", "true"], timeout=HANG_S).returncode == 0
        with open(path) as f:
            events = [json.loads(line)["event"] for line in f]
        assert events[0] == "started" and "over" in events and "rank_start" in events, events


def test_keelrun_restore_wants_what_was_saved():
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
        for folder, words in (directory, "no manifest"), (directory + "/none", "No such file"):
            code, out, err = run(["-n", "2", "--restore", folder] + WHO)
            assert code == 2 and out == "" and err.count("\n") == 1 and words in err, (folder, code, out, err)


def test_keelrun_start_timeout_is_the_patience():
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
        path = ssh(directory)
        begin = time.monotonic()
        code, _, err = run(["-n", "2", "--hosts", "127.0.1.2,127.0.1.9", "--launcher", "ssh", "--launcher-exec",
                            path, "--start-timeout", "4", "true"])
        assert code == 1 and re.search("has not (joined|become ready) within 4 s", err), (code, err)
        assert time.monotonic() - begin >= 4


def test_keelrun_console_timeout_is_how_long_output_waits():
    """keelrun is stopped while the job ends, and an agent does not wait for it for ever; what it has sent by then is
    not lost."""
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
        go = os.path.join(directory, "go")
        with Job(["-n", "1", "--console-timeout", "2", "sh", "-c", "while [ ! -e %s ]; do sleep 0.02; done; seq 1000" % go]) as job:
            agent = job.wait_ranks(1)["nodes"][0]["agent_pid"]
            job.process.send_signal(signal.SIGSTOP)
            begin = time.monotonic()
            open(go, "w").close()
            wait_for(lambda: not alive(agent), "the agent to leave")
            assert time.monotonic() - begin >= 2
            job.process.send_signal(signal.SIGCONT)
            assert job.wait() == 0 and len(job.stdout().splitlines()) == 1000, job.stderr()


def test_keelrun_timeout_ends_the_job():
    code, _, err = run(["-n", "1", "--timeout", "1", "sleep", "10000"])
    assert code == 124 and err == "keelrun: the job's time of 1 s is over\n", (code, err)


# ---- keelctl

def test_keelctl_json_is_one_object_a_line():
    with Job(["-n", "1", "sh", "-c", "read x"]) as job:
        job.wait_ranks(1)
        listed = json.loads(said("keelctl", "list", "--json"))
        assert job.id() in [j["job"] for j in listed], listed
        status = json.loads(said("keelctl", "status", "-j", job.id()))
        assert status["job"] == job.id() and status["size"] == 1, status
        assert job.id() in said("keelctl", "list") and "rank 0" in said("keelctl", "status", job.id())


def test_keelctl_option_of_another_command_is_not_good():
    for words in (["stop", "--json"], ["attach", "--json"], ["kill-node", "--json", "x", "0"], ["stop", "--position", "1,1"], ["bed", "--json", "cut", "x", "0"],
                  ["list", "--detect"], ["verify", "--detect"], ["status", "--signal", "9"], ["stop", "--signal", "9"]):
        result = subprocess.run([KEELCTL, *words], capture_output=True, text=True, timeout=HANG_S)
        assert result.returncode == 2 and " is for " in result.stderr, (words, result)


def test_keelctl_position_is_a_place_of_the_grid():
    with Job(["-n", "1", "sleep", "10000"]) as job:
        result = subprocess.run([KEELCTL, "add-node", job.id(), "--position", "0,0"], capture_output=True, text=True, timeout=HANG_S)
        assert result.returncode == 2 and "of use only in a job on a grid" in result.stderr, result
        said("keelctl", "stop", job.id())


def test_keelctl_host_asks_there():
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory, Job(["-n", "1", "sleep", "10000"]) as job:
        ssh(directory)
        job.wait_ranks(1)

        def there(*arguments):
            return subprocess.run([KEELCTL, "--host", "n1", *arguments], capture_output=True, text=True, timeout=HANG_S,
                                  env=dict(os.environ, PATH=directory + ":" + os.environ["PATH"]))
        assert json.loads(there("status", "--json", job.id()).stdout)["job"] == job.id()
        assert " n1 " + os.path.realpath(KEELCTL) + " --json status " + job.id() in calls(directory), calls(directory)
        assert there("stop", "x; true").returncode == 2 and "true" not in calls(directory)
        assert there("stop", job.id()).returncode == 0
        assert job.wait() == 143


def test_keelctl_host_that_is_not_reached_gives_ssh_s_code():
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
        with open(directory + "/ssh", "w", encoding="ascii") as f:
            f.write("#!/bin/sh\necho 'ssh: nobody is there' >&2\nexit 255\n")
        os.chmod(directory + "/ssh", 0o755)
        result = subprocess.run([KEELCTL, "-H", "n1", "list"], capture_output=True, text=True, timeout=HANG_S,
                                env=dict(os.environ, PATH=directory + ":" + os.environ["PATH"]))
        assert (result.returncode, result.stdout, result.stderr) == (255, "", "ssh: nobody is there\n"), result


def test_keelctl_counters_are_shown_when_asked_for():
    """What they say: tests/multi/pm/counters.py."""
    with Job(["-n", "2", "--nodes", "2", CRASH, "9", "9", "once", "hold"]) as job:
        wait_for(lambda: job.stdout() == "here\n", "keel_init")
        assert "counters of the job" not in said("keelctl", "status", job.id())
        assert said("keelctl", "status", "--counters", job.id()).count("counters of the job\n") == 1
        assert subprocess.run([KEELCTL, "stop", job.id()], timeout=HANG_S).returncode == 0
        assert job.wait() == 143


def test_keelctl_detect_shows_what_nodes_see_of_each_other():
    with Job(["-n", "3", "--nodes", "3", "--silence", "20s", "sleep", "10000"]) as job: # a doubt stays one for a while
        job.wait_ranks(3)
        assert "watches" not in said("keelctl", "status", job.id())

        def all_read():
            seen = [node.get("detection") for node in job.status()["nodes"].values()]
            return all(d and len(d["watches"]) == 2 and all(w["reads"] > 3 for w in d["watches"]) for d in seen) and seen
        seen = wait_for(all_read, "reads of all heartbeats")
        for d in seen:
            for w in d["watches"]:
                assert 0 <= w["age_ms"] and sum(w["latency_us"]) == w["reads"], w
        assert len(re.findall(r"watches node \d by \w+: heartbeat \d+ ms old, \d+ reads, half of them below \d+ us",
                              said("keelctl", "status", "--detect", job.id()))) == 6
        agent = job.status()["nodes"][2]["agent_pid"]
        os.kill(agent, signal.SIGSTOP)
        wait_for(lambda: len(re.findall(r"    node 2: suspect for \d+ ms; 1 asked, 0 reach it, 1 do not\n", said("keelctl", "status", "-d", job.id()))) == 2,
                 "both others to doubt it")
        os.kill(agent, signal.SIGKILL)
        wait_for(lambda: len(re.findall("verdict node 2, evidence refused: ", said("keelctl", "status", "-d", job.id()))) == 2,
                 "the verdict at both others")
        said("keelctl", "stop", job.id())
        assert job.wait() == 143


def test_keelctl_status_tells_of_dead_nodes_and_used_spares():
    with Job(["-n", "2", "--nodes", "2", "--spares", "1", CRASH, "9", "9", "once", "hold"]) as job:
        wait_for(lambda: job.stdout() == "here\n", "keel_init")
        assert "spare" in said("keelctl", "status", job.id())
        said("keelctl", "kill-node", job.id(), "1")
        wait_for(lambda: job.events("view"), "the view without node 1")
        wait_for(lambda: job.status()["nodes"][2]["ranks"], "the spare to take over")
        lines = [line for line in said("keelctl", "status", job.id()).splitlines() if line.startswith("node")]
        assert len(lines) == 3 and re.fullmatch(r"node 1 +dead", lines[1]) and "spare" not in lines[2], lines
        assert job.status()["nodes"][1]["state"] == "dead"
        assert job.wait() == 0, job.stderr()


def test_keelctl_time_is_seconds_of_a_rebalance():
    """How long a job is taken to run: fault/auto.py."""
    for given in "0", "-1", "10000001", "1s", "":
        result = subprocess.run([KEELCTL, "rebalance", "--time=" + given], capture_output=True, text=True, timeout=HANG_S)
        assert result.returncode == 2 and "--time: %s is not 1 to 10000000 seconds" % given in result.stderr, result
    result = subprocess.run([KEELCTL, "verify", "--time", "5"], capture_output=True, text=True, timeout=HANG_S)
    assert result.returncode == 2 and "--time is for rebalance" in result.stderr, result


def test_keelctl_signal_is_the_one_sent():
    with Job(["-n", "2", "--nodes", "2", "sleep", "10000"]) as job:
        pid = job.wait_ranks(2)["nodes"][1]["ranks"][0]["pid"]
        told = json.loads(said("keelctl", "kill-node", "--signal", "19", job.id(), "1"))
        assert told["signal"] == 19 and pid in told["pids"], told
        wait_for(lambda: state_of(pid) == "T", "the rank to be frozen")
        thawed = json.loads(said("keelctl", "kill-node", "--signal", "18", job.id(), "1"))
        assert thawed["signal"] == 18 and sorted(thawed["pids"]) == sorted(told["pids"]), (told, thawed)
        for frozen in told["pids"]:
            wait_for(lambda pid=frozen: state_of(pid) != "T", "it to go on")
        assert subprocess.run([KEELCTL, "stop", job.id()], timeout=HANG_S).returncode == 0
        assert job.wait() == 143


keeltest.main(globals())
