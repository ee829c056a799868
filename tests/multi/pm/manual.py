"""Every sentence of keelrun(1), keelctl(1), keeld(8) and README.md with the tests that try it: manual.txt, in the order
of the pages. A sentence that has no line there, a line whose sentence is gone and a test that does not exist fail.
Below are the tests of what no other file tries.

manual.txt: "== PAGE"; then of each sentence its beginning, and on the next line FILE:TEST ... (from tests/), or - for
what promises nothing or is tried elsewhere, with the place."""
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../lib"))
import keeltest
import recorder
from keeltest import HANG_S, IS_ROOT, KEELCTL, KEELRUN, Job, Skip, alive, run, wait_for

CRASH = os.environ["KEEL_CRASH"]
TESTS, PAGES = os.path.join(HERE, "../.."), os.path.join(HERE, "../../../docs/man")
README = os.path.join(HERE, "../../../README.md")
MACRO = re.compile(r"\.(BR|BI|IR|RB|RI|IB) (.*)")


def paragraphs(page):
    """(section, text) without the marks of roff and without examples."""
    section, words, example = "", [], False
    with open(os.path.join(PAGES, page)) as f:
        lines = f.read().splitlines() + [".PP"]
    for line in lines:
        if line.startswith((".SH", ".PP", ".TP", ".IP", ".br", ".TH", ".nf", ".fi")):
            if words and not example:
                yield section, " ".join(words)
            words, example = [], line.startswith(".nf")
            section = line[4:] if line.startswith(".SH") else section
            continue
        alternating = MACRO.match(line)
        if alternating:
            line = "".join(part.strip('"') for part in re.findall(r'"[^"]*"|\S+', alternating.group(2)))
        line = re.sub(r"^\.[BI] |\\f[A-Z]|\\c", "", line).replace("\\-", "-").replace("\\(bu", "*").replace("\\ ", " ")
        words.append(re.sub(r'\\\([lr]q|"', "", line).strip())


def blocks(markdown):
    """(section, text) of paragraphs, items, rows of tables and lines of commands; without programs and what they
    print."""
    section, words = "", []
    with open(markdown) as f:
        text = re.sub(r"^```.*?^```$", "", f.read(), flags=re.MULTILINE | re.DOTALL)
    for line in text.splitlines() + [""]:
        line = re.sub(r"^    rank .*", "", line)
        if not line.strip() or line.startswith(("#", "|", "    ", "- ")):
            if words:
                yield section, " ".join(words)
            words = []
        if line.startswith("#"):
            section = line.strip("# ")
        elif line.startswith("|") or line.startswith("    "):
            yield section, "" if set(line) <= set("|- ") else line.strip("| ").replace(" | ", ": ")
        else:
            words.append(re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", line.removeprefix("- ")).strip())


def sentences(page):
    for section, text in blocks(README) if page == "README.md" else paragraphs(page):
        if section in ("NAME", "SYNOPSIS", "SEE ALSO"):
            continue
        for sentence in re.split(r"(?<=[.;:]) (?=[A-Za-z(`\[-])", text):
            if len(sentence.strip()) > 3:
                yield re.sub(r"\s+", " ", sentence).strip()


def table():
    """{page: [(beginning of a sentence, its tests)]}"""
    pages, rows = {}, None
    with open(os.path.join(HERE, "manual.txt")) as f:
        for line in f:
            if line.startswith("== "):
                rows = pages.setdefault(line[3:].strip(), [])
            elif line.startswith("    "):
                rows[-1][1] = line.strip()
            else:
                rows.append([line.rstrip("\n").removesuffix("..."), None])
    return pages


def test_every_sentence_has_a_line():
    pages = table()
    assert set(pages) == {"keelrun.1", "keelctl.1", "keeld.8", "README.md"}
    for page, rows in pages.items():
        found = list(sentences(page))
        for i, (beginning, _) in enumerate(rows):
            assert i < len(found) and found[i].startswith(beginning), (page, beginning, found[i] if i < len(found) else None)
        assert len(found) == len(rows), (page, found[len(rows)])


def test_every_test_that_is_named_exists():
    tried = 0
    for page, rows in table().items():
        for beginning, tests in rows:
            for name in [] if tests.startswith("-") else tests.split():
                file, function = name.split(":")
                with open(os.path.join(TESTS, file)) as f:
                    assert re.search(r"\b%s\(" % function, f.read()), (page, beginning, name)
                tried += 1
    assert tried > 150, tried


def test_every_test_that_the_page_of_security_names_exists():
    with open(os.path.join(PAGES, "../security.md")) as f:
        names = re.findall(r"([\w/]+\.(?:py|c)):(test_\w+)", f.read())
    assert len(names) > 30, names
    for file, function in names:
        with open(os.path.join(TESTS, file)) as f:
            assert re.search(r"\b%s\(" % function, f.read()), (file, function)


# ---- keelrun

def test_terminal_that_is_gone_ends_nothing():
    master, terminal = os.openpty()
    with Job(["-n", "1", "sh", "-c", 'echo begun; read line; echo lost; echo done >"$DIR/done"'], stdout=terminal,
             env={"DIR": tempfile.gettempdir()}) as job:
        os.close(terminal)
        told = b""
        while not told.endswith(b"\n"):  # a terminal passes on a line and its end one after the other
            told += os.read(master, 100)
        assert told == b"begun\r\n", told
        os.close(master)
        job.process.stdin.write(b"go\n")
        assert job.wait() == 1, job.stderr()
        assert "cannot write standard output: Input/output error" in job.stderr(), job.stderr()
        assert [e["code"] for e in job.events("exit")] == [0], "the rank came to its own end"
    os.unlink(os.path.join(tempfile.gettempdir(), "done"))


def test_spares_wait_in_keel_init():
    with Job(["-n", "1", "--spares", "1", CRASH, "9", "9", "once", "hold"]) as job:
        wait_for(lambda: job.stdout() == "here\n", "keel_init")
        ranks = wait_for(lambda: job.status()["nodes"][1]["ranks"], "the spare's process")
        assert [r["state"] for r in ranks] == ["standby"], ranks
        with open("/proc/%d/environ" % ranks[0]["pid"], "rb") as f:
            names = {word.split(b"=")[0] for word in f.read().split(b"\0")}
        assert b"KEEL_RANK" not in names and b"KEEL_SIZE" in names, names
        assert job.wait() == 0 and job.stdout() == "here\n", job.stdout()


def test_ranks_find_four_variables():
    with Job(["-n", "3", "--nodes", "2", "sh", "-c", "echo $KEEL_RANK $KEEL_SIZE $KEEL_NODE $KEEL_JOB"]) as job:
        assert job.wait() == 0
        known = job.events("started")[0]["job"]
        assert sorted(job.stdout().splitlines()) == ["%d 3 %d %s" % (rank, node, known) for rank, node in ((0, 0), (1, 0), (2, 1))]


def test_a_bed_has_at_most_a_thousand_nodes():
    code, _, err = run(["-n", "1001", "--nodes", "1001", "true"])
    assert code == 2 and "1000" in err, (code, err)


def test_nodes_of_the_loopback_bed_have_addresses_of_their_own():
    with Job(["-n", "3", "--nodes", "3", "sleep", "10000"]) as job:
        hosts = [n["host"] for n in job.wait_ranks(3)["nodes"].values()]
        assert len(set(hosts)) == 3 and all(host.startswith("127.") for host in hosts), hosts
        assert ctl("stop", job.id()).returncode == 0
    with Job(["-n", "1", "sleep", "10000"], env={"KEEL_BED_NET": "127.9"}) as job:
        assert [n["host"] for n in job.wait_ranks(1)["nodes"].values()] == ["127.9.0.2"]
        assert ctl("stop", job.id()).returncode == 0
    r = subprocess.run([KEELRUN, "-n", "1", "true"], env={**os.environ, "KEEL_BED_NET": "here"}, capture_output=True, text=True)
    assert (r.returncode, r.stderr) == (2, "keelrun: KEEL_BED_NET=here is not two numbers, as 127.0\n"), r


def test_defaults_are_those_of_the_help():
    words = re.sub(r"\s+", " ", subprocess.run([KEELRUN, "--help"], capture_output=True, text=True, timeout=HANG_S).stdout)
    page = " ".join(sentences("keelrun.1"))
    for option, default in (("start-timeout", "30"), ("console-timeout", "600"), ("fan-out", "100"), ("silence", "3s"), ("stopped", "30s")):
        assert re.search(r"--%s=\S+ [^(]*\(?[^-]*default %s\b" % (option, default), words), (option, words)
        assert re.search(r"--%s=[^-]*[Dd]efault %s\b" % (option, default), page), option


def test_ranks_get_sigterm_and_a_second():
    deaf = ["python3", "-c", "import signal, time\n"
            "signal.signal(signal.SIGTERM, lambda *_: print(time.monotonic_ns(), flush=True))\nprint(0, flush=True)\nwhile True: time.sleep(9)"]
    with Job(["-n", "1"] + deaf) as job:
        wait_for(lambda: job.stdout() == "0\n", "the rank")
        job.process.send_signal(signal.SIGTERM)
        assert job.wait() == 143
        end = job.events("exit")[0]
        assert end["signal"] == signal.SIGKILL, end
        assert end["t_ns"] - int(job.stdout().split()[1]) > 800e6, "less than a second between the two"


def test_keel_log_says_how_much_is_told():
    def told(level):
        code, _, err = run(["-n", "1", "true"], env={"KEEL_LOG": level} if level else {})
        assert code == 0
        return set(re.findall(r"^(keelrun|keeld node 0): (\w+): ", err, re.MULTILINE))
    assert told(None) == told("error") == told("warn") == set()
    assert ("keelrun", "debug") in told("debug") and ("keeld node 0", "info") in told("debug")
    assert not [level for _, level in told("info") if level == "debug"]


def test_what_is_no_level_is_told_once():
    code, _, err = run(["-n", "2", "--nodes", "2", "true"], env={"KEEL_LOG": "rubbish"})
    assert code == 0 and err.endswith("KEEL_LOG='rubbish' is none of error, warn, info, debug, trace; using warn\n"), err
    assert len(err.splitlines()) == 1, err


# ---- keelctl

def ctl(*arguments):
    return subprocess.run([KEELCTL, *arguments], capture_output=True, text=True, timeout=HANG_S)


def test_status_has_what_the_page_says():
    with Job(["-n", "2", "--nodes", "2", "--spares", "1", "sleep", "10000"]) as job:
        job.wait_ranks(2)
        status = json.loads(ctl("status", "--json", job.id()).stdout)
        for name in ("job", "program", "size", "epoch", "alive", "rank_node", "keelrun", "nodes"):
            assert name in status, name
        assert status["alive"] == [True] * 3 and status["rank_node"] == [0, 1] and status["program"] == "sleep", status
        for node in status["nodes"]:
            for name in ("node", "host", "state", "agent_pid", "stub_pid", "launcher_pid", "spare", "ranks", "waiting"):
                assert name in node, name
            for rank in node["ranks"]:
                assert set(rank) == {"rank", "pid", "incarnation", "state"} and rank["state"] == "running", rank
        text = ctl("status", job.id()).stdout
        assert "epoch" in text and text.count("node ") >= 3, text
        assert ctl("stop", job.id()).returncode == 0


def test_stop_returns_when_the_agents_are_gone():
    with Job(["-n", "2", "--nodes", "2", "sleep", "10000"]) as job:
        agents = [n["agent_pid"] for n in job.wait_ranks(2)["nodes"].values()]
        assert ctl("stop", job.id()).returncode == 0
        assert not [pid for pid in agents if alive(pid)]
        assert job.wait() == 143


def test_keelctl_exit_codes():
    with Job(["-n", "1", "cat"]) as job:
        job.wait_ranks(1)
        for words, code in ((("status", "ffffffffffffffff"), 1), (("kill-node", job.id(), "7"), 1), (("bogus",), 2), ((), 2),
                            (("kill-node",), 2), (("status", job.id()), 0)):
            result = ctl(*words)
            assert result.returncode == code and (code == 0 or len(result.stderr.splitlines()) >= 1), (words, result)


def test_what_keelctl_cannot_write_is_a_failure():
    with Job(["-n", "1", "cat"]) as job:
        job.wait_ranks(1)
        for words in ("list",), ("status", job.id()), ("status", "--json", job.id()):
            with open("/dev/full", "w") as full:
                result = subprocess.run([keeltest.KEELCTL, *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=HANG_S)
            said = "keelctl: cannot write standard output: No space left on device\n"
            assert (result.returncode, result.stderr) == (1, said), (words, result)


# ---- keeld

def test_keeld_is_not_started_by_hand():
    for options in (), ("--join",):
        result = subprocess.run([os.path.join(keeltest.BIN, "keeld"), *options], capture_output=True, text=True, timeout=HANG_S)
        assert result.returncode == 2 and result.stderr.startswith("keeld: not started by "), (options, result)
        assert len(result.stderr.splitlines()) == 1, result


def test_agent_has_a_session_and_nothing_of_the_launcher():
    def ends(pid):
        found = set()
        for fd in os.listdir("/proc/%d/fd" % pid):
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile, such as one of a connection
                found.add(os.readlink("/proc/%d/fd/%s" % (pid, fd)))
        return found - {"/dev/null"}
    with Job(["-n", "1", "cat"]) as job:
        node = job.wait_ranks(1)["nodes"][0]
        assert os.getsid(node["agent_pid"]) == node["agent_pid"] != os.getsid(node["stub_pid"])
        shared = ends(node["agent_pid"]) & ends(node["stub_pid"])
        assert not [end for end in shared if end.startswith(("pipe:", "socket:"))], shared


# ---- in a network of our own, in which nobody else has jobs: last, for it stays

def test_a_job_may_be_abbreviated_or_left_out():
    if not IS_ROOT:
        raise Skip("needs root for a network of its own")
    recorder.own_network()

    def alone(*words):
        """keelctl, which does not find the beds of others."""
        script = '[ ! -d /run/netns ] || mount -t tmpfs none /run/netns; exec "$@"'
        return subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", KEELCTL, *words], capture_output=True, text=True, timeout=HANG_S)
    with Job(["-n", "1", "cat"]) as one:
        one.wait_ranks(1)
        assert json.loads(alone("status", "--json").stdout)["job"] == one.id(), "the only one"
        with Job(["-n", "1", "cat"]) as two:
            two.wait_ranks(1)
            both = alone("status")
            assert both.returncode != 0 and both.stderr, both
            same = len(os.path.commonprefix([one.id(), two.id()]))
            for job in (one, two):
                assert json.loads(alone("status", "--json", job.id()[:same + 1]).stdout)["job"] == job.id()
            assert len(alone("list").stdout.splitlines()) >= 2


keeltest.main(globals())
