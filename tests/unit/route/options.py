"""Every option of keel-route does what it says. Usage: options.py KEEL-ROUTE MANUAL-PAGE
Each option in a command's --help has a check here that looks at its effect, and a place in the manual page."""
import csv
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import time

route, manual = sys.argv[1:3]
checked = {"simulate": set(), "optimise": set(), "figure": set(), "trace": set()}
bad = []


def run(*args, **more):
    done = subprocess.run([route, *map(str, args)], capture_output=True, text=True, **more)
    for arg in args[1:]:
        if str(arg).startswith("--"):
            checked.get(args[0], set()).add(arg)
    return done


def expect(what, holds):
    if not holds:
        bad.append(what)


def refused(*args):
    done = run(*args)
    expect("%s: refused with one line, not %d %r" % (" ".join(map(str, args)), done.returncode, done.stderr),
           done.returncode == 2 and done.stderr.count("\n") == 1 and not done.stdout)
    return done.stderr


BASE = {"--topology": "6tx6t", "--time": 1, "--reps": 2, "--json": None, "--no-progress": None}


def runs(**options):
    """The means of a run: of the one without failures and of the one with them, if any."""
    given = dict(BASE, **{"--" + name.replace("_", "-"): value for name, value in options.items()})
    args = [part for name, value in given.items() for part in ([name] if value is None else [name, value])]
    done = run("simulate", *args)
    if done.returncode:
        sys.exit("\n".join(bad + ["%s: %s" % (args, done.stderr)]))
    whole = json.loads(done.stdout)
    return [{name: value["mean"] if isinstance(value, dict) else value for name, value in cell.items()}
            for cell in whole["runs"]] + [whole]


def network():
    plain = runs()[0]
    expect("--topology", runs(topology="12tx12t")[0]["hops"] > 1.7 * plain["hops"])
    expect("--link-gbps", runs(link_gbps=4, rate=0.01)[0]["latency_ns"] < 0.5 * runs(rate=0.01)[0]["latency_ns"])
    expect("--hop-ns", runs(hop_ns=10220)[0]["latency_ns"] > plain["latency_ns"] + 30000)
    tight, wide = runs(buffer=40960, load=1.5)[0], runs(load=1.5)[0]
    expect("--buffer", tight["max_out"] <= 2 < wide["max_out"])
    expect("--store-forward", runs(store_forward=None)[0]["latency_ns"] > 1.5 * plain["latency_ns"])
    with_queue = runs(buffer=20480, load=1.5)[0]
    without = runs(buffer=20480, load=1.5, no_avoidance=None)[0]
    expect("--no-avoidance", with_queue["exchanges"] + with_queue["bypasses"] > 0)
    expect("--no-avoidance", without["exchanges"] + without["bypasses"] == 0)


def traffic():
    plain = runs()[0]
    expect("--pattern", runs(pattern="neighbor")[0]["hops"] == 1)
    expect("--load", 1.8 < runs(load=0.1)[0]["offered_gbps"] / plain["offered_gbps"] < 2.2)
    expect("--rate", abs(runs(rate=0.5, time=4)[0]["offered_gbps"] - 0.5) < 0.02)
    refused("simulate", "--load", 0.1, "--rate", 1)
    expect("--sizes", runs(sizes=256)[0]["latency_ns"] < 0.6 * plain["latency_ns"])
    expect("--ack", runs(ack=0)[0]["acks"] == 0 < plain["acks"])
    expect("--poisson", runs(poisson=None, load=0.4)[0]["latency_ns"] > 1.1 * runs(load=0.4)[0]["latency_ns"])


def method():
    broken = {"failures": 10, "permanent": None, "load": 0.3, "time": 4}
    expect("--method", runs(method="dor", **broken)[1]["lost"] > 0 == runs(method="ft", **broken)[1]["lost"])
    expect("--threshold", runs(threshold=100000, **broken)[1]["hit"] > 1.2 * runs(threshold=1, **broken)[1]["hit"])
    for name in ("dor", "ft-perm", "ft-plus", "ft-plan"):  # their thresholds are none, or 1
        refused("simulate", "--method", name, "--threshold", 5)
    refused("simulate", "--method", "dor", "--max-paths", 2)
    one = {"method": "single", **broken}
    expect("--threshold, single", runs(threshold=100000, **one)[1]["multistep"] == 0 < runs(**one)[1]["multistep"])
    for number in (0, 9):
        refused("simulate", "--max-paths", number)
    expect("--max-paths", runs(max_paths=1, load=1)[0]["multistep"] == 0 < runs(max_paths=4, load=1)[0]["multistep"])


def failures(folder):
    short = runs(failures=10, load=0.3, lasting=0.1)[1]
    lasting = runs(failures=10, load=0.3, lasting=1)[1]
    permanent = runs(failures=10, load=0.3, permanent=None)[1]
    expect("--failures", 0 < short["hit"] < runs(failures=20, load=0.3, lasting=0.1)[1]["hit"])
    expect("--lasting", 2 * short["hit"] < lasting["hit"])
    expect("--permanent", permanent["hops"] > lasting["hops"])
    expect("--onset", runs(failures=10, permanent=None, load=0.3, onset=1)[1]["hops"] < permanent["hops"])
    brief = runs(failures=2000, length=5, load=0.3)[1]
    longer = runs(failures=200, length=50, load=0.3)[1]
    expect("--length", brief["hit"] > longer["hit"] > 0)  # as many broken at a time; who learns of five us?
    refused("simulate", "--length", 5)
    refused("simulate", "--length", 5, "--failures", 3, "--permanent")
    for more in (["--permanent"], ["--length", 5]):
        refused("simulate", "--failures", 3, "--lasting", 0.5, *more)
    for alone in (["--permanent"], ["--allow-cut"], ["--onset", 0.5], ["--lasting", 0.5]):
        refused("simulate", *alone)
    refused("simulate", "--profile", "pnnl", "--onset", 0.5)
    refused("simulate", "--profile", "pnnl", "--failures", 0)
    refused("simulate", "--topology", "8t", "--failures", 2, "--permanent")
    expect("--allow-cut", runs(topology="8t", failures=2, permanent=None, allow_cut=None)[1]["undeliverable"] > 0)
    with open(os.path.join(folder, "list"), "w") as out:
        out.write("0,,0,0\n")
    one = runs(failure_file=os.path.join(folder, "list"), load=0.3)[1]
    expect("--failure-file", 0 < one["hit"] < permanent["hit"])


LOG = "start,end,node,cause,downtime_min\n2003-11-12 14:42:00,2003-11-12 14:43:00,153,Interconnect,1\n"


def traces(folder):
    made = os.path.join(folder, "made.csv")
    for profile, count in (("lanl12", 52), ("lanl19", 58)):
        done = run("trace", "--generate", "--profile", profile)
        with open(made, "w") as out:
            out.write(done.stdout)
        expect("--profile %s" % profile, "%d failures kept" % count in run("trace", made).stdout)
    expect("trace --seed", run("trace", "--generate", "--profile", "lanl19", "--seed", 2).stdout != done.stdout)
    refused("trace", "--generate")
    expect("trace --json", json.loads(run("trace", made, "--json").stdout)["failures"] == 58)
    again = run("trace", made, "--csv").stdout
    expect("trace --csv", again.count("\n") == 59)
    expect("simulate --trace", runs(trace=made, lasting=1000, load=0.3)[1]["hit"] > 0)
    expect("simulate --profile", runs(profile="pnnl", load=0.3, topology="12tx12t")[1]["hit"] > 0)
    for more in (["--profile", "lanl12"], ["--seed", 2], ["--system", 12], ["--all-failures"]):
        refused("trace", made, *more)
    for more in ([made], ["--json"], ["--csv"], ["--system", 12], ["--all-failures"], ["--skip-bad"]):
        refused("trace", "--generate", "--profile", "lanl12", *more)
    refused("simulate", "--trace", made, "--system", 12)
    single = os.path.join(folder, "single.csv")
    with open(single, "w") as out:
        out.write(LOG)
    fits = json.loads(run("trace", single, "--json").stdout)
    expect("one failure has no fits: %s" % fits, fits["failures"] == 1 and fits["weibull_shape"] is fits["repair_mu"] is None)
    expect("one failure has no fits", run("trace", single).stdout.count("too few times to fit") == 2)
    rubbish = os.path.join(folder, "rubbish.csv")
    with open(rubbish, "w") as out:
        out.write(LOG + "rubbish\n")
    refused("trace", rubbish)
    expect("trace --skip-bad", "1 malformed" in run("trace", rubbish, "--skip-bad").stdout)
    refused("simulate", "--trace", rubbish)
    expect("simulate --skip-bad", len(runs(trace=rubbish, skip_bad=None)) == 3)
    real = os.path.join(os.environ.get("TRACES", ""), "LA-UR-05-7318-failure-data-1996-2005.csv.xz")
    if not os.access(real, os.R_OK):
        for command in ("trace", "simulate"):  # these need the log itself
            checked[command] |= {"--system", "--all-failures"}
        return
    kept = {}
    for args in ((), ("--system", 12), ("--system", 12, "--all-failures")):
        kept[args] = json.loads(run("trace", real, "--json", *args).stdout)["failures"]
    expect("trace --system, --all-failures", kept["--system", 12] == 52 < kept[()] < 24000)
    expect("trace --all-failures", kept["--system", 12, "--all-failures"] > 52)
    hits = [runs(trace=real, system=12, lasting=10, load=0.3, topology="24tx24t", time=4)[1]["hit"],
            runs(trace=real, system=12, lasting=10, load=0.3, topology="24tx24t", time=4, all_failures=None)[1]["hit"]]
    expect("simulate --system, --all-failures: %s" % hits, hits[0] < hits[1])


def running():
    plain = runs()
    expect("--time", 1.7 < runs(time=2)[0]["created"] / plain[0]["created"] < 2.3)
    expect("--warmup", runs(warmup=0.9)[0]["measured"] < 0.3 * plain[0]["measured"])
    expect("--drain", runs(drain=0, load=2)[0]["unfinished"] > 0 == runs(drain=50, load=2)[0]["unfinished"])
    expect("--reps", plain[0]["repetitions"] == 2 and runs(reps=5)[0]["repetitions"] == 5)
    expect("--seed", runs(seed=2)[0]["latency_ns"] != plain[0]["latency_ns"] == runs(seed=1)[0]["latency_ns"])
    expect("--check", runs(check=100)[0]["checks"] > 5 > 0 == plain[0]["checks"])
    job = subprocess.Popen([route, "simulate", "--topology", "6tx6t", "--threads", "3", "--reps", "100000", "--no-progress"],
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    threads = 0
    while job.poll() is None and threads < 4:  # one waits for the others; a sanitizer has one of its own
        with open("/proc/%d/status" % job.pid) as status:
            threads = int(re.search(r"Threads:\s+(\d+)", status.read()).group(1))
        time.sleep(0.01)
    job.terminate()
    job.wait()
    expect("--threads", threads in (4, 5))
    checked["simulate"].add("--threads")


def nothing_measured():
    """Nothing is not a latency of zero."""
    short = ["simulate", "--topology", "8tx8t", "--time", 0.0001, "--reps", 2, "--no-progress"]
    done = run(*short)
    expect("nothing measured: a line and code 1, not %d %r" % (done.returncode, done.stderr),
           done.returncode == 1 and "nothing is measured" in done.stderr)
    expect("nothing measured: none, not %r" % done.stdout, re.search(r"latency +none", done.stdout) and
           re.search(r"delivered +none", done.stdout))
    done = run(*short, "--json")
    cell = json.loads(done.stdout)["runs"][0]
    expect("nothing measured: null", done.returncode == 1 and cell["latency_ns"] is None and cell["repetitions"] == 2)
    row = next(csv.DictReader(io.StringIO(run(*short, "--csv").stdout)))
    expect("nothing measured: an empty field", row["latency_ns"] == "" and row["hops"] == "" and row["created"] == "0")
    # with failures only, while without all is well
    cut = run("simulate", "--topology", "4t", "--time", 1, "--reps", 1, "--no-progress", "--failures", 4, "--permanent",
              "--allow-cut")
    expect("all cut: %r" % cut.stderr, cut.returncode == 1 and "with failures: no message" in cut.stderr)


def output(folder):
    small = ["simulate", "--topology", "8tx8t", "--time", 1, "--reps", 2]
    rows = list(csv.DictReader(io.StringIO(run(*small, "--csv", "--failures", 3).stdout)))
    expect("--csv", len(rows) == 4 and float(rows[0]["latency_ns"]) > 0)
    expect("--json", runs()[-1]["topology"] == "6tx6t")
    refused(*small, "--json", "--csv")
    refused(*small, "--json", "--heat")
    nothing_measured()
    expect("--heat", "X" in run(*small, "--heat", "--failures", 3, "--permanent").stdout)
    for end, magic in ((".png", b"\x89PNG"), (".svg", b"<?xml")):
        picture = os.path.join(folder, "heat" + end)
        run(*small, "--heat-image", picture)
        expect("--heat-image " + end, os.path.exists(picture) and open(picture, "rb").read(5).startswith(magic))
    before = set(os.listdir(tempfile.gettempdir()))
    refused(*small, "--heat-image", os.path.join(folder, "none/heat.png"))
    refused(*small, "--heat-image", os.path.join(folder, "heat.gif"))
    refused("simulate", "--topology", "8t", "--heat-image", os.path.join(folder, "heat.png"))
    left = [name for name in set(os.listdir(tempfile.gettempdir())) - before if name.startswith("keel-route")]
    expect("--heat-image leaves %s" % left, not left)
    expect("--progress", " of 2 runs" in run(*small, "--progress").stderr)
    expect("--no-progress", " of 2 runs" not in run(*small, "--progress", "--no-progress").stderr)


def optimise(folder):
    """What simulate and optimise share is parsed and used by the same code; here that each reaches the run."""
    base = ["optimise", "--topology", "8tx8t", "--time", 2, "--reps", 2, "--failures", 12, "--load", 0.3]

    def best(*more):
        done = run(*base, "--json", "--no-progress", *more)
        expect("optimise %s: %s" % (more, done.stderr), done.returncode == 0)
        result = json.loads(done.stdout)
        expect("optimise is not called one of the methods", result["method"] == "optimise")
        cell = result["runs"][1]
        return {name: value["mean"] if isinstance(value, dict) else value for name, value in cell.items()}

    plain = best()
    expect("optimise's heading", ", method optimise," in run(*base, "--no-progress").stdout)
    learnt = {"topology": "8tx8t", "time": 2, "failures": 12, "load": 0.3, "permanent": None}
    expect("optimise", plain["delivered"] == plain["created"] and plain["hit"] == 0)
    expect("optimise", plain["latency_ns"] < runs(method="ft", **learnt)[1]["latency_ns"])
    expect("optimise --sweeps", best("--sweeps", 1)["latency_ns"] != plain["latency_ns"])
    expect("optimise --all-move", best("--all-move")["multistep"] > plain["multistep"])
    expect("optimise --longer", best("--longer", "--load", 0.8)["hops"] > best("--load", 0.8)["hops"])
    for more in (["--topology", "6tx6t"], ["--link-gbps", 2], ["--hop-ns", 500], ["--store-forward"], ["--load", 0.1],
                 ["--pattern", "complement"], ["--sizes", 256], ["--ack", 0], ["--poisson"], ["--failures", 5], ["--time", 1],
                 ["--warmup", 1], ["--seed", 5], ["--buffer", 20480, "--load", 0.9],
                 ["--buffer", 20480, "--no-avoidance"], ["--topology", "8tx8t", "--load", 2, "--drain", 0]):
        expect("optimise %s" % more, best(*more)["latency_ns"] != plain["latency_ns"])
    expect("optimise --reps", best("--reps", 3)["repetitions"] == 3)
    expect("optimise --check", best("--check", 500)["checks"] > 0)
    expect("optimise --threads", best("--threads", 2)["latency_ns"] == plain["latency_ns"])
    given = base[:7] + ["--no-progress"]
    with open(os.path.join(folder, "two"), "w") as out:
        out.write("0,,0,0\n0,,9,2\n")
    rows = run(*given, "--failure-file", os.path.join(folder, "two"), "--csv").stdout
    expect("optimise --csv --failure-file", rows.count("\n") == 5)
    for ends in ("0,500,0,0\n", "0,,0,0\n5,,9,2\n"):  # not for good; not from the begin
        with open(os.path.join(folder, "ends"), "w") as out:
            out.write(ends)
        refused(*given, "--failure-file", os.path.join(folder, "ends"))
    rate = run(*given, "--failures", 3, "--rate", 0.01).stdout
    expect("optimise --rate", rate.count("0.01 Gbps per endpoint") == 1)
    expect("optimise --heat", "X" in run(*given, "--failures", 3, "--heat").stdout)
    picture = os.path.join(folder, "best.png")
    run(*given, "--failures", 3, "--heat-image", picture)
    expect("optimise --heat-image", os.path.exists(picture))
    expect("optimise --allow-cut", run("optimise", "--topology", "8t", "--time", 1, "--reps", 1, "--failures", 2,
                                       "--allow-cut", "--no-progress").stdout.count("undeliverable") == 1)
    expect("optimise --progress", " of 4 runs" in run(*base[:7], "--failures", 3, "--progress").stderr)
    refused(*given)
    refused(*given, "--failures", 3, "--pattern", "hotspot")
    tree = {name: json.loads(run(name, "--topology", "tree:4,3", "--time", 1, "--reps", 2, "--failures", 12, "--load", 0.3,
                                 "--json", "--no-progress", *more).stdout)["runs"][1]
            for name, more in (("optimise", []), ("simulate", ["--permanent", "--method", "ft-plus"]))}
    expect("optimise --topology tree", tree["optimise"]["hit"]["mean"] == 0 and
           tree["optimise"]["latency_ns"]["mean"] < tree["simulate"]["latency_ns"]["mean"])
    refused("optimise", "--topology", "4x4x4", "--failures", 1)
    refused("optimise", "--topology", "300x300", "--failures", 1, "--time", 0.01)


def figures(folder):
    args = ["figure", "deadlock", "--reps", 1, "--time", 0.3]
    out = os.path.join(folder, "pictures")
    expect("figure", run(*args, "--out", out, "--no-progress").returncode == 0)
    for end in ("csv", "gp", "png", "svg"):
        expect("figure --out: deadlock." + end, os.path.getsize(os.path.join(out, "deadlock." + end)) > 0)
    expect("figure leaves nothing else", len(os.listdir(out)) == 4)

    def data(*more):
        done = run(*args, "--out", out, *more)
        expect("figure %s: %s" % (more, done.stderr), done.returncode == 0)
        with open(os.path.join(out, args[1] + ".csv")) as text:
            return list(csv.DictReader(text)), done.stderr

    for name in ("deadlock", "outages", "tree"):  # of tree before the search for the best ways
        refused("figure", name, "--out", out, "--reps", 1, "--time", 0.000001)
    args[5] = 3  # some runs are at a standstill before anything is measured, and count
    still = [row for row in data("--no-progress")[0] if not row["latency_us"]]
    expect("figure's runs at a standstill", still and all(row["deadlock_pct"] == "100.00" for row in still))
    args[5] = 0.3
    plain, stderr = data("--no-progress")
    expect("figure --no-progress", "runs  " not in stderr)
    expect("figure --reps", {row["reps"] for row in plain} == {"1"} and data("--reps", 2)[0][0]["reps"] == "2")
    expect("figure --seed", data("--seed", 3)[0] != plain == data("--seed", 1)[0])
    expect("figure --progress", "runs  " in data("--progress")[1])
    expect("figure --threads", data("--threads", 2)[0] == plain)
    expect("figure --time", data("--time", 0.6)[0] != plain)
    expect("figure --check", data("--check", 50)[0] == plain)
    args[1], args[5] = "patterns", 0.02
    light, busy = data("--load", 0.05)[0], data("--load", 0.2)[0]
    expect("figure --load", float(busy[0]["latency_us"]) > float(light[0]["latency_us"]))
    known = [float(row["delivered_pct"]) for row in light if row["series"] == "complement permanent: best known"]
    expect("figure's best known ways: %s" % known, known == [100, 100])
    drawn = ["deadlock", "patterns"]  # of the others the cells and scripts have a test of their own
    with open(os.path.join(folder, "lanl19_interconnect.csv"), "w") as text:
        text.write(run("trace", "--generate", "--profile", "lanl19").stdout)
    args[1], args[5] = "traces", 0.05
    series = {(row["series"], row["x"]) for row in data("--trace", folder)[0]}
    expect("figure --trace", ("log: ft", "2") in series and ("log: ft", "0") not in series)
    for name in drawn + ["traces"]:
        with open(os.path.join(out, name + ".gp")) as text:
            panels = text.read().split("\nplot ")[1:]
        expect("figure %s has two panels" % name, len(panels) == 2)
        for panel in panels:
            colours = re.findall(r"lc rgb '(#[0-9a-f]+)'", panel)
            expect("figure %s uses a colour twice: %s" % (name, colours), 1 < len(colours) == len(set(colours)))
            style = set(re.findall(r"with (yerror\w+)", panel))  # what lies between two categories is nothing
            expect("figure %s: %s" % (name, style), style == {"yerrorbars" if name == "traces" else "yerrorlines"})


def helps():
    with open(manual) as page:
        text = page.read().replace("\\-", "-")
    everything = set()
    for command, seen in checked.items():
        done = subprocess.run([route, command, "--help"], capture_output=True, text=True)
        listed = set(re.findall(r"--[a-z][a-z-]+", done.stdout.split("\n\n", 1)[1]))
        listed -= {"--help", "--version", "--usage"}
        expect("%s --help lists options" % command, done.returncode == 0 and len(listed) > 5)
        everything |= listed
        for option in sorted(listed - seen):
            bad.append("%s %s: its effect is not looked at here" % (command, option))
        for option in sorted(listed):
            expect("%s is not in the manual page" % option, re.search(re.escape(option) + r"\b", text))
    for option in sorted(set(re.findall(r"(--[a-z][a-z-]+)", text)) - everything - {"--help"}):
        bad.append("%s is in the manual page only" % option)
    overview = subprocess.run([route, "--help"], capture_output=True, text=True).stdout
    expect("--help names the commands", all("keel-route " + command in overview for command in checked))
    refused("simulate", "--out", "x")
    refused("trace", "--load", "1")
    refused("figure", "tree", "--topology", "4tx4t")
    # have loads of their own
    for name in ("outages", "turn", "load", "latency", "saturation", "connectivity", "deadlock"):
        refused("figure", name, "--load", 0.1)
    refused("figure", "latency", "--time", 1)


with tempfile.TemporaryDirectory() as scratch:
    network()
    traffic()
    method()
    failures(scratch)
    traces(scratch)
    running()
    output(scratch)
    optimise(scratch)
    figures(scratch)
helps()
print("\n".join(bad))
sys.exit(1 if bad else 0)
