"""Every option of keel-place does what it says. Usage: options.py KEEL-PLACE MANUAL-PAGE
Each option in a command's --help has a check here that looks at its effect, and a place in the manual page."""
import csv
import fcntl
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import termios
import time

place, manual = sys.argv[1:3]
checked = {c: set() for c in ("allocate", "substitute", "simulate", "optimise", "figure")}
bad = []


def run(*args):
    for arg in args[1:]:
        if str(arg).startswith("--"):
            checked[args[0]].add(arg)
    return subprocess.run([place, *map(str, args)], capture_output=True, text=True)


def expect(what, holds):
    if not holds:
        bad.append(what)


def output(*args):
    done = run(*args)
    expect("%s ends with %d %s" % (" ".join(map(str, args)), done.returncode, done.stderr), done.returncode == 0)
    return done.stdout


def refused(*args):
    done = run(*args)
    expect("%s: refused with one line, not %d %r" % (" ".join(map(str, args)), done.returncode, done.stderr),
           done.returncode == 2 and done.stderr.count("\n") == 1 and not done.stdout)
    return done.stderr


def data(*args):
    return json.loads(output(*args, "--json"))


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def written(tmp, *args):
    """--out holds what standard output would."""
    path = os.path.join(tmp, "out")
    expect("%s --out: nothing on standard output" % args[0], output(*args, "--out", path) == "")
    with open(path) as f:
        text = f.read()
    os.unlink(path)
    return text


def allocate(tmp):
    base = ("allocate", "--grid", "6x5")
    expect("--grid", data(*base)["nodes"] == 30)
    expect("--grid with a side of one", data("allocate", "--grid", "1x11")["spares"] == "2D(1,1):y")
    expect("--spares", data(*base, "--spares", "2D(1,2)")["spare_nodes"] == 10)
    expect("--spares with named sides", data(*base, "--spares", "2D(1,1):y")["spare_nodes"] == 6)
    for grid in "100x4", "4x100":
        expect("--share " + grid, 0.02 <= data("allocate", "--grid", grid, "--share", "2-5")["share"] <= 0.05)
    expect("--share that there is not", "33.3 %" in refused("allocate", "--grid", "3x3", "--share", "2-5"))
    refused(*base, "--spares", "2D(1,1)", "--share", "2-50")
    for odd in " 1", "+1", "\n1":
        for words in (("--spares", "2D(%s,1)" % odd), ("--share", odd + "-50"), ("--slots", odd), ("--dead", odd),
                      ("--dead", "0", "--method", "repair(%s)" % odd), ("--plane", "z=" + odd), ("--pattern", odd)):
            told = refused(*base, *words)
            expect("%s is shown: %r" % (words, told), odd.replace("\n", "\\n") in told or words[0] == "--plane")
    expect("a count of one", "1 node\n" in output("allocate", "--grid", "1x1", "--spares", "2D(0,1)"))
    expect("--json", data(*base)["map"][5] == 6)
    nodes = rows(output(*base, "--csv"))
    expect("--csv", len(nodes) == 30 and nodes[5]["role"] == "spare" and nodes[0]["role"] == "slot")
    dead = data(*base, "--dead", "1,1", "--method", "0D")
    expect("--dead", dead["dead"] == 1 and dead["map"][6] not in (6, 7))
    slid = data(*base, "--dead", "1,1", "--method", "1D", "--order", "xy")["map"]
    expect("--method", slid != dead["map"] and slid[6] == 8)
    expect("--order", data(*base, "--dead", "1,1", "--method", "1D", "--order", "yx")["map"][6] == 13)
    expect("--pattern", "0 collisions" not in output(*base, "--pattern", "9p", "--dead", "0"))
    expect("--pattern", output(*base, "--dead", "1,1", "--method", "0D", "--pattern", "ring") !=
           output(*base, "--dead", "1,1", "--method", "0D"))
    expect("--slots", [n["role"] for n in rows(output(*base, "--csv", "--slots", 7))][:12] == ["slot"] * 5 + ["spare"] +
           ["slot"] * 2 + ["free"] * 3 + ["spare"])
    refused(*base, "--slots", 21)
    expect("--moves", data(*base, "--dead", "1,1", "--moves", 1)["map"].count(7) == 0 and
           sum(a != b for a, b in zip(data(*base, "--dead", "1,1", "--moves", 1)["map"], data(*base)["map"])) == 1)
    for useless in ("--method", "0D"), ("--order", "xy"), ("--moves", 3), ("--pattern", "9p"):
        expect("%s without --dead" % useless[0], useless[0] in refused(*base, *useless))
    cube = ("allocate", "--grid", "3x3x3", "--spares", "3D(1,1)", "--dead", "0,1,2", "--method", "0D")
    expect("--plane", "X" in output(*cube, "--plane", "z=2") and "X" not in output(*cube, "--plane", "z=1").split("S free")[0])
    expect("--no-draw", "slot at home" not in output(*base, "--no-draw"))
    expect("--out", written(tmp, *base) == output(*base))


def substitute(tmp):
    base = ("substitute", "--grid", "9x9", "--fail", "4,4")
    first = data(*base)[0]
    expect("--grid, --fail", first["node"] == 40 and first["collisions"] == 1 and first["by"] == "2D")
    expect("--method", data(*base, "--method", "0D")[0]["collisions"] == 5)
    for own in "balance", "repair", "repair(2)":
        expect(own, data(*base, "--method", own)[0]["by"] == own)
    expect("repair with a bound", len(data(*base, "--method", "repair(2)")[0]["moves"]) <= 2)
    refused(*base, "--method", "repair(0)")
    refused(*base, "--method", "0D", "--method", "1D")
    expect("--order", data(*base, "--method", "1D", "--order", "xy")[0]["moves"][-1]["to"] == 41 and
           data(*base, "--method", "1D", "--order", "yx")[0]["moves"][-1]["to"] == 49)
    refused(*base, "--order", "xx")
    refused(*base, "--order", "xy", "--method", "balance")
    expect("--order beside 0D", "--order" in refused(*base, "--order", "xy", "--method", "0D"))
    expect("no --fail", "--fail" in refused("substitute", "--grid", "9x9"))
    wide = ("substitute", "--grid", "100x100", "--fail", 0)
    expect("hybrid(all) moves all", len(data(*wide)[0]["moves"]) == 9801 and not data(*wide)[0]["bounded"])
    for method in "hybrid(all)", "hybrid(-2D)", "1D", "2D", "0D", "balance", "repair":
        bounded = data(*wide, "--method", method, "--moves", 5)[0]
        expect("--moves with " + method, 1 <= len(bounded["moves"]) <= 5 and bounded["result"] == "moved")
        expect("--moves is told with %s" % method, bounded["bounded"] == (method != "0D") or method == "repair")
    expect("--moves is told in words", "bound on moves" in output(*wide, "--moves", 5, "--no-draw"))
    line = data(*base, "--method", "1D", "--order", "xy", "--bytes", 1000)[0]
    cost = ("lines", "longest", "bytes", "one_by_one", "pipelined")
    expect("--bytes: %r" % line, [line[c] for c in cost] == [1, 4, 4000, 4000, 1000])
    plane = data(*base, "--method", "2D", "--order", "xy", "--bytes", 10)[0]
    expect("lines of a plane: %r" % plane, [plane[c] for c in cost] == [8, 4, 320, 40, 10])
    expect("--bytes in words", "4000 bytes, one by one 4000, pipelined 1000" in
           output(*base, "--method", "1D", "--order", "xy", "--bytes", 1000))
    few = data(*base[:3], "--fail", "3,0", "--method", "0D", "--slots", 5)[0]
    expect("--slots: the next place is free", few["moves"][0]["to"] == 12)
    expect("--count", data(*base, "--method", "0D", "--count", "received")[0]["collisions"] == 3)
    expect("--spares", data(*base, "--method", "0D", "--spares", "2D(1,1):y")[0]["moves"][0]["to"] == 76)
    expect("--share", len(data(*base, "--method", "1D", "--share", "10-12", "--order", "xy")[0]["moves"]) == 4)
    expect("--pattern", data(*base, "--method", "0D", "--pattern", "ring")[0]["collisions"] == 2)
    expect("--fattree", data(*base, "--method", "0D", "--fattree", "9,9")[0]["collisions"] != 5)
    expect("--dead", len(data(*base, "--dead", "4,4")) == 1 and data(*base, "--dead", "4,4")[0]["result"] == "repeated")
    table = rows(output(*base, "--csv", "--method", "1D", "--order", "xy"))
    expect("--csv, --json", [int(r["to"]) for r in table] ==
           [m["to"] for m in data(*base, "--method", "1D", "--order", "xy")[0]["moves"]])
    expect("--csv: lines", {r["line"] for r in rows(output(*base, "--csv", "--method", "2D"))} == set("01234567"))
    cube = ("substitute", "--grid", "4x4x4", "--fail", "0,1,2", "--method", "0D")
    expect("plane of the first failure", "X" in output(*cube).split("plane z=2")[1].split("S free")[0])
    expect("--plane", "X" not in output(*cube, "--plane", "z=1").split("plane z=1")[1].split("S free")[0])
    expect("--no-draw", "S free" not in output(*base, "--no-draw"))
    text = re.sub(r"\(\d+ us\)", "", written(tmp, *base))
    expect("--out", text == re.sub(r"\(\d+ us\)", "", output(*base)))


def simulate(tmp):
    base = ("simulate", "--grid", "8x8", "--cases", 2000, "--method", "0D")
    plain = rows(output(*base, "--csv"))
    expect("--grid, --cases", int(plain[1]["cases"]) == 134 and plain[-1]["failures"] == "15")
    expect("--cases", int(rows(output(*base[:3], "--cases", 1000, "--csv"))[1]["cases"]) == 67)
    expect("--failures", rows(output(*base, "--csv", "--failures", 3))[-1]["failures"] == "3")
    expect("--seed", output(*base, "--csv", "--seed", 2) != output(*base, "--csv") == output(*base, "--csv", "--seed", 1))
    expect("--threads", output(*base, "--csv", "--threads", 3) == output(*base, "--csv", "--threads", 1))
    refused(*base, "--threads", 0)
    both = rows(output(*base, "--method", "hybrid(all)", "--csv"))
    expect("--method twice", {r["method"] for r in both} >= {"0D", "hybrid(all)"})
    expect("--order", output(*base[:5], "--csv", "--order", "xy") != output(*base[:5], "--csv", "--order", "yx"))
    expect("--spares", rows(output(*base, "--csv", "--spares", "2D(1,1)"))[-1]["failures"] == "8")
    expect("--share", rows(output(*base, "--csv", "--share", "12-13"))[-1]["failures"] == "8")
    expect("--pattern", rows(output(*base, "--csv", "--pattern", "barrier"))[0]["mean"] > plain[0]["mean"])
    expect("--count", float(rows(output(*base, "--csv", "--count", "received"))[1]["mean"]) < float(plain[1]["mean"]))
    expect("--fattree", output(*base, "--csv", "--fattree", "8,8") != output(*base, "--csv"))
    expect("--dead", float(rows(output(*base, "--csv", "--dead", "3,3"))[0]["mean"]) > 1)
    idle = {d: sum(int(r["idle"]) for r in rows(output(*base, "--csv", "--draw", d))) for d in ("job", "any", "active")}
    expect("--draw %r" % idle, idle["job"] == 0 == idle["active"] and idle["any"] > 0)
    expect("--json", json.loads(output(*base, "--json"))["rows"][1]["worst"] == int(plain[1]["worst"]))
    expect("--out", written(tmp, *base) == output(*base, "--csv"))
    links = os.path.join(tmp, "links")
    output(*base, "--links", links)
    with open(links) as f:
        sums = sum(float(r["links_per_case"]) for r in rows(f.read()) if r["failures"] == "2")
        expect("--links", abs(sums - 8 * 8 * 4) < 0.01)
    expect("--resume", "no state" in refused(*base, "--out", os.path.join(tmp, "never"), "--resume"))
    expect("--resume of two methods",
           "no state" in refused(*base, "--method", "1D", "--out", os.path.join(tmp, "never"), "--resume"))
    expect("--moves", all(float(r["moves"]) <= 2 for r in rows(output(*base[:5], "--csv", "--moves", 2))))
    by = rows(output(*base[:5], "--method", "2D", "--csv", "--moves", 2))[1]
    expect("--moves: 0D for want of others: %r" % by, int(by["by_0D"]) == int(by["cases"]))
    worst = ("simulate", "--grid", "5x4", "--method", "1D", "--order", "xy", "--worst", "--failures", 4)
    expect("--worst", [r["worst"] for r in rows(output(*worst))] == ["3", "4", "4", "5"])
    expect("--worst --draw", rows(output(*worst, "--draw", "active"))[3]["worst"] == "6")
    expect("--worst --json", data(*worst)[0]["rows"][3]["worst"] == 5)
    expect("--worst --dead", rows(output(*worst[:-1], 2, "--dead", "1,1"))[0]["worst"] == "4")
    expect("--worst of two methods", {r["method"] for r in rows(output(*worst, "--method", "0D"))} == {"0D", "1D"})
    maps = [int(re.search(r"(\d+) maps", run(*worst, *full).stderr)[1]) for full in ((), ("--full",))]
    expect("--full", maps[0] < maps[1])
    refused(*base, "--full")
    for useless in ("--cases", 5), ("--seed", 5), ("--links", links):
        expect("--worst with " + useless[0], useless[0] in refused(*worst, *useless))
    expect("--worst with --moves", "--moves" in refused(*worst, "--moves", 3))
    for threads in 1, 3:
        expect("--worst --threads", output(*worst, "--threads", threads) == output(*worst))
    expect("--worst --out", written(tmp, *worst) == output(*worst))
    refused(*worst, "--resume")
    refused(*base, "--memory", 5)
    small = ("simulate", "--grid", "3x3", "--worst", "--method", "0D", "--draw", "any", "--failures")
    expect("--draw any: more failures than slots", rows(output(*small, 5))[-1]["worst"] == rows(output(*small, 4))[-1]["worst"])
    refused(*small, 10)
    worst_memory()
    interrupted_worst(tmp)
    interrupted_sequence(tmp)


def worst_memory():
    """--memory bounds what the program takes, it says so, and what it finds is the same."""
    wide = ("simulate", "--grid", "6x6", "--method", "hybrid(all)", "--worst", "--failures", 5, "--threads", 2)
    took, said, found = {}, {}, {}
    for mib in 8, 2048:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            job = subprocess.Popen([place, *map(str, wide), "--memory", str(mib)], stdout=out, stderr=err)
            took[mib] = peak(job)
            out.seek(0)
            err.seek(0)
            said[mib], found[mib] = err.read().decode(), out.read()
            expect("--memory %d ends with 0" % mib, job.returncode == 0)
    expect("--memory: the same result", found[8] == found[2048] != b"")
    expect("--memory says that it was met: %r" % said, "--memory 8" in said[8] and "--memory" not in said[2048])
    if os.environ.get("KEEL_SANITIZE", "none") == "none":  # a sanitizer keeps what was freed
        expect("--memory bounds what is taken: %r MiB" % took, took[8] < 8 + 6)  # program, libraries, stacks
    expect("--memory too small", "--memory" in refused("simulate", "--grid", "40x40x40", "--worst", "--failures", 3, "--memory", 1))


def peak(job):
    """Waits for its end. The highest memory it was seen to take, in MiB."""
    highest = 0
    while job.poll() is None:
        try:
            with open("/proc/%d/status" % job.pid) as f:
                highest = max([highest] + [int(line.split()[1]) for line in f if line.startswith("VmHWM")])
        except OSError:
            pass
        time.sleep(0.002)
    return highest / 1024


def cpu_seconds(job):
    with open("/proc/%d/stat" % job.pid) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def interrupted_worst(tmp):
    """SIGINT, and --resume to the same result; the state of another search, or a damaged one, is refused."""
    search = ("simulate", "--grid", "8x8", "--method", "1D", "--worst", "--failures", 4, "--threads", 2)
    whole = output(*search)
    path = os.path.join(tmp, "worst.csv")
    times = 0
    for delay in [0.02 * 1.5 ** i for i in range(40)]:
        job = subprocess.Popen([place, *map(str, search), "--out", path] + ["--resume"] * (times > 0),
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(delay)
        job.send_signal(signal.SIGINT)
        if job.wait() == 0:
            break
        expect("interrupted: 130, not %d" % job.returncode, job.returncode in (130, -signal.SIGINT))
        if os.path.exists(path + ".state"):
            times += 1
    with open(path) as f:
        expect("--worst --resume (%d times): the same result" % times, f.read() == whole)
    expect("--worst --resume: no state is left", not os.path.exists(path + ".state"))
    hard = [place, *map(str, search[:2]), "20x20", *map(str, search[3:]), "--out", path]
    job = subprocess.Popen(hard, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while cpu_seconds(job) < 0.3:  # the first bad sequences are known
        time.sleep(0.01)
    job.send_signal(signal.SIGINT)
    expect("a long search is interrupted with 130", job.wait() == 130)
    state = path + ".state"
    with open(state) as f:
        text = f.read()
    expect("an interrupted search has lower bounds", len(rows(open(path).read())) > 0)
    for other in ("--failures", 3), ("--method", "0D"), ("--count", "received"), ("--order", "xy"), ("--dead", 5):
        done = subprocess.run([*hard, *map(str, other), "--resume"] if other[0] != "--method" else
                              [a if a != "1D" else "0D" for a in hard] + ["--resume"], capture_output=True, text=True)
        expect("--resume of another search %s: %s" % (other, done.stderr), done.returncode == 2 and "another" in done.stderr)
    for bad_text in text[:len(text) // 2], text.replace("1", "2"), text[:-20] + "\n", text + "x", "", text.split("\n")[0] + "\n":
        with open(state, "w") as f:
            f.write(bad_text)
        done = subprocess.run([*hard, "--resume"], capture_output=True, text=True)
        expect("--resume of a damaged state: %d %s" % (done.returncode, done.stderr),
               done.returncode == 2 and done.stderr.count("\n") == 1)
    os.unlink(state)
    os.mkfifo(state)
    done = subprocess.run([*hard, "--resume"], capture_output=True, text=True, timeout=60)
    expect("--resume of a fifo: %d %s" % (done.returncode, done.stderr), done.returncode == 2
           and "damaged" in done.stderr)
    os.unlink(state)
    os.unlink(path)


def interrupted_sequence(tmp):
    """One long sequence: SIGTERM breaks it off, it is not counted, and it is still to be done; so is an early one."""
    path = os.path.join(tmp, "long.csv")
    long = [place, "simulate", "--grid", "40x40x40", "--method", "repair(256)", "--cases", "1", "--threads", "1", "--out", path]
    for seconds in 0, 1:
        job = subprocess.Popen(long, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while cpu_seconds(job) < seconds:
            time.sleep(0.01)
        job.send_signal(signal.SIGTERM)
        ended = job.wait()
        if not seconds and ended == -signal.SIGTERM:  # it had not begun
            continue
        expect("a sequence is broken off with 130, not %d" % ended, ended == 130)
        with open(path) as f:
            expect("a sequence that was broken off is not counted", f.read().count("\n") == 1)
        with open(path + ".state") as f:
            counts = f.read().split("\n")[1].split()  # done, begun, of these to be done
            expect("a sequence that was broken off is to be done: %s" % counts, counts[0] == "0" and counts[1] == counts[2])


def signalled_while_it_draws(tmp):
    """A SIGTERM to the process, and one to its group that meets gnuplot: the picture is there all the same."""
    begun, drawn = os.path.join(tmp, "begun"), os.path.join(tmp, "drawn")
    gnuplot = os.path.join(tmp, "gnuplot")
    with open(gnuplot, "w") as f:
        f.write('#!/bin/sh\n: >"$BEGUN"\ncat >/dev/null\nsleep 0.3\n: >"$DRAWN"\n')
    os.chmod(gnuplot, 0o755)
    env = dict(os.environ, PATH=tmp + ":" + os.environ["PATH"], BEGUN=begun, DRAWN=drawn)
    job = subprocess.Popen([place, "figure", "10", "--dir", tmp], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                           text=True, env=env, start_new_session=True)
    while cpu_seconds(job) < 0.2:
        time.sleep(0.01)
    first = time.monotonic()
    job.send_signal(signal.SIGTERM)
    while not os.path.exists(begun) and job.poll() is None:
        time.sleep(0.005)
    os.killpg(job.pid, signal.SIGTERM)
    late = time.monotonic() - first >= 1  # then it is a second one, and meant
    said = job.communicate()[1]
    expect("two SIGTERMs while gnuplot draws: 130, not %d: %s" % (job.returncode, said),
           job.returncode == 130 or (late and job.returncode == -signal.SIGTERM))
    end = time.monotonic() + 60
    while not os.path.exists(drawn) and time.monotonic() < end:
        time.sleep(0.01)
    expect("gnuplot comes to its end: %s" % said, os.path.exists(drawn))


def in_pipe(fd):
    return int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, bytes(4)), sys.byteorder)


def signalled_twice(tmp):
    """Two signals at once are one; a second one later ends the program at once."""
    path = os.path.join(tmp, "twice.csv")
    long = [place, "simulate", "--grid", "24x24x24", "--cases", "100000000", "--threads", "1", "--out", path]
    job = subprocess.Popen(long, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while cpu_seconds(job) < 0.2:
        time.sleep(0.01)
    job.send_signal(signal.SIGTERM)
    job.send_signal(signal.SIGTERM)
    expect("two SIGTERMs at once: 130, not %d" % job.wait(), job.returncode == 130)
    expect("two SIGTERMs at once: the result and the state are there",
           os.path.exists(path) and os.path.exists(path + ".state"))
    os.unlink(path)
    os.unlink(path + ".state")
    # an output that nobody reads: the program cannot end by itself
    pipe = os.path.join(tmp, "twice.pipe")
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    job = subprocess.Popen([place, "simulate", "--grid", "64x64", "--spares", "2D(2,16)", "--draw", "any",
                            "--cases", "2000", "--method", "0D", "--out", pipe],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while job.poll() is None and time.monotonic() < end and in_pipe(reader) < 60000:
        time.sleep(0.01)
    expect("it waits for a reader, %d bytes are in the pipe" % in_pipe(reader),
           job.poll() is None and in_pipe(reader) >= 60000)
    job.send_signal(signal.SIGTERM)
    time.sleep(1.3)
    expect("one SIGTERM lets it end by itself", job.poll() is None)
    job.send_signal(signal.SIGTERM)
    expect("a second SIGTERM later ends it, not %d" % job.wait(), job.returncode == -signal.SIGTERM)
    os.close(reader)
    os.unlink(pipe)


def killed(tmp):
    """kill -9 at any moment: no piece of a file under another name, and no file that is not whole."""
    path = os.path.join(tmp, "k.csv")
    command = [place, "simulate", "--grid", "8x8", "--cases", "300", "--csv", "--out", path]
    subprocess.run(command, capture_output=True)
    with open(path) as f:
        whole = f.read()
    for i in range(60):
        if i % 2:
            os.unlink(path)
        job = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(i * 0.0003)
        job.kill()
        job.wait()
        for _ in range(1000):  # the last steps are a process of their own
            left = [n for n in os.listdir(tmp) if ".part" in n]
            if not left:
                break
            time.sleep(0.01)
        expect("kill -9 leaves %s" % left, not left)
        if os.path.exists(path):
            with open(path) as f:
                expect("kill -9 leaves a piece", f.read() == whole)
        else:
            subprocess.run(command, capture_output=True)


def optimise(tmp):
    base = ("optimise", "--grid", "9x9", "--failures", 12, "--steps", 20000, "--method", "0D")
    found = data(*base)
    expect("--failures", found["dead"] == 12)
    expect("--steps, --method", found["collisions"] < found["start_collisions"] and found["start"] == "0D")
    expect("no --steps", data(*base, "--steps", 0)["collisions"] == found["start_collisions"])
    expect("--method", data(*base[:-2], "--method", "repair")["start_collisions"] < found["start_collisions"])
    expect("--seed", data(*base, "--seed", 2)["map"] != found["map"])
    five = ("optimise", "--grid", "5x4", "--fail", "0,1", "--fail", "1,1", "--method", "0D", "--steps", 0)
    expect("--fail", data(*five)["dead"] == 2 and 5 not in data(*five)["map"])
    expect("--dead", data(*five, "--dead", "3,1")["dead"] == 3)
    proven = data(*five, "--prove")
    expect("--prove", proven["collisions"] == proven["at_least"] < data(*five)["collisions"])
    expect("--order", data(*five[:5], "--method", "1D", "--order", "xy", "--steps", 0)["map"] !=
           data(*five[:5], "--method", "1D", "--order", "yx", "--steps", 0)["map"])
    expect("--moves", data(*five[:7], "--moves", 1, "--steps", 0)["displaced"] <= 2)
    expect("--moves when no node dies", "--moves" in refused("optimise", "--grid", "5x4", "--moves", 3))
    expect("--spares", len(data(*five, "--spares", "2D(1,1)")["map"]) == 16)
    expect("--share", len(data(*five, "--share", "20-22")["map"]) == 16)
    expect("--count", data(*five, "--count", "received")["start_collisions"] < data(*five)["start_collisions"])
    expect("--pattern", data(*five, "--pattern", "9p")["start_collisions"] > data(*five)["start_collisions"])
    expect("--pattern of several phases", "one phase" in refused(*five, "--pattern", "barrier"))
    expect("--fattree", data(*five, "--fattree", "4,4")["at_least"] == 4)
    expect("--csv", [int(r["node"]) for r in rows(output(*base, "--csv"))] == found["map"])
    path = os.path.join(tmp, "map")
    expect("--out", output(*base, "--out", path) == "")
    with open(path) as f:
        expect("--out", f.read() == output(*base))
    longer = base[:6] + (60000,) + base[7:]
    output(*longer, "--out", path, "--resume", "--csv")
    with open(path) as f:
        expect("--resume", f.read() == output(*longer, "--csv"))
    expect("--resume of another study", "another" in refused(*longer, "--seed", 3, "--out", path, "--resume"))


def figure(tmp):
    def make(*args):
        return run("figure", "11", "--dir", tmp, *args)

    def mean():
        with open(os.path.join(tmp, "fig11.csv")) as f:
            return rows(f.read())[9]["mean"], rows(open(os.path.join(tmp, "fig11.csv")).read())[9]["cases"]

    expect("figure --cases, --dir", make("--cases", 3000).returncode == 0 and mean()[1] == "11")
    first = mean()[0]
    again = make("--cases", 3000, "--resume", "--threads", 1)
    expect("figure --resume uses what there is", "cases in" not in again.stderr and mean()[0] == first)
    make("--cases", 3000, "--resume", "--seed", 2)
    other = mean()[0]
    expect("figure --seed, --resume with another seed", other != first)
    make("--cases", 3000, "--seed", 1, "--threads", 3)
    expect("figure --threads", mean()[0] == first)
    make("--cases", 6000, "--resume")
    expect("figure --resume with other cases", mean()[1] == "22")
    for useless in ("8", "--cases"), ("3", "--seed"):
        expect("figure %s %s" % useless, useless[1] in refused("figure", useless[0], useless[1], 5, "--dir", tmp))
    for ext in "png", "svg", "csv":
        expect("figure ." + ext, os.path.getsize(os.path.join(tmp, "fig11." + ext)) > 1000)


def interrupted_figure(tmp):
    """SIGINT while the second study runs: the picture shows what there is, and --resume ends as if nothing had been."""
    whole, cut = os.path.join(tmp, "whole"), os.path.join(tmp, "cut")
    os.mkdir(whole)
    os.mkdir(cut)
    args = [place, "figure", "11", "--cases", "150000", "--threads", "1", "--dir"]
    subprocess.run([*args, whole], capture_output=True)
    job = subprocess.Popen([*args, cut], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while job.poll() is None and not os.path.exists(os.path.join(cut, "12x12x12_3D-2-1_7p_hybrid-all.csv")):
        time.sleep(0.001)
    job.send_signal(signal.SIGINT)
    expect("an interrupted figure ends with 130, not %d" % job.wait(), job.returncode == 130)
    files = {}
    for folder in whole, cut:
        with open(os.path.join(folder, "fig11.csv")) as f:
            files[folder] = f.read()
    expect("an interrupted figure has what was done", files[cut].count("hybrid(all)") == files[whole].count("hybrid(all)"))
    expect("an interrupted figure is not whole", files[cut] != files[whole])
    expect("an interrupted figure is drawn", os.path.getsize(os.path.join(cut, "fig11.png")) > 1000)
    done = subprocess.run([*args, cut, "--resume"], capture_output=True, text=True)
    expect("--resume does not make what was done: " + done.stderr,
           done.returncode == 0 and "hybrid(all): " not in done.stderr)
    with open(os.path.join(cut, "fig11.csv")) as f:
        expect("a resumed figure is the same", f.read() == files[whole])


with open(manual) as f:
    page = f.read().replace("\\-", "-")
shown = subprocess.run([place, "--help"], capture_output=True, text=True)
commands = re.findall(r"^  ([a-z]+) ", shown.stdout, re.M)
expect("commands without a check here: %s" % commands, shown.returncode == 0 and sorted(commands) == sorted(checked))
for command in commands:
    expect("%s is not in the manual page" % command, "keel-place " + command in page)
for command in checked:
    with tempfile.TemporaryDirectory() as folder:
        globals()[command](folder)
        left = [n for n in os.listdir(folder) if ".part" in n or n.endswith(".tmp")]
        expect("%s leaves %s" % (command, left), not left)
    shown = run(command, "--help")
    expect(command + " --help", shown.returncode == 0 and shown.stdout.startswith("Usage: keel-place " + command))
    options = set(re.findall(r"^ +(--[a-z][a-z-]+)", shown.stdout, re.M))
    for option in sorted(options):
        expect("%s %s has no check here" % (command, option), option in checked[command])
        expect("%s is not in the manual page" % option, option in page)
with tempfile.TemporaryDirectory() as folder:
    interrupted_figure(folder)
with tempfile.TemporaryDirectory() as folder:
    signalled_twice(folder)
    signalled_while_it_draws(folder)
with tempfile.TemporaryDirectory() as folder:
    killed(folder)
for text in bad:
    print(text)
sys.exit(1 if bad else 0)
