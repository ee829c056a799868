"""The sentences of keel-place(1) that promise something. Usage: manual.py KEEL-PLACE MANUAL-PAGE
What single options do is in options.py."""
import csv
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time

place, manual = sys.argv[1:3]
bad = []


def expect(what, holds):
    if not holds:
        bad.append(what)


def run(*args, **how):
    return subprocess.run([place, *map(str, args)], capture_output=True, text=True, **how)


def output(*args):
    done = run(*args)
    expect("%s ends with %d: %s" % (" ".join(map(str, args)), done.returncode, done.stderr), done.returncode == 0)
    return done.stdout


def refused(*args):
    done = run(*args)
    expect("%s: 2 and one line, not %d %r" % (" ".join(map(str, args)), done.returncode, done.stderr),
           done.returncode == 2 and done.stderr.count("\n") == 1)
    return done.stderr


def data(*args):
    return json.loads(output(*args, "--json"))


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def fails(*args):
    """The substitutions without the time they took."""
    steps = data("substitute", *args)
    for step in steps:
        del step["microseconds"]
    return steps


def grids_and_spares():
    expect("GRID: 1 to 6 dimensions", data("allocate", "--grid", "11")["nodes"] == 11 and
           data("allocate", "--grid", "2x2x2x2x2x3")["nodes"] == 96)
    refused("allocate", "--grid", "2x2x2x2x2x2x2")
    mesh, ring = (fails("--grid", g, "--spares", "2D(1,1)", "--method", "0D", "--fail", "0,2")[0]["moves"][0]["to"]
                  for g in ("9x5", "9tx5"))
    expect("GRID: a torus is shorter the other way", mesh == ring == 26 and
           fails("--grid", "9tx5", "--method", "0D", "--spares", "2D(1,1)", "--fail", "0,2")[0]["collisions"] <
           fails("--grid", "9x5", "--method", "0D", "--spares", "2D(1,1)", "--fail", "0,2")[0]["collisions"])
    role = {(int(r["x"]), int(r["y"])): r["role"] for r in rows(output("allocate", "--grid", "6x5", "--spares", "2D(2,2)", "--csv"))}
    expect("the last s layers of each of the first r sides", all((role[at] == "spare") == (at[0] >= 4 or at[1] >= 3) for at in role))
    expect("named sides", data("allocate", "--grid", "4x4x4", "--spares", "3D(2,1):xz")["slot_grid"] == "3x4x3")
    expect("default spares", data("allocate", "--grid", "1x5x4x3")["slot_grid"] == "1x4x3x3")
    expect("NODE: coordinates or a number", fails("--grid", "5x4", "--fail", "3,2") == fails("--grid", "5x4", "--fail", 13))


def methods():
    def by(method, *nodes):
        return [s["by"] for s in fails("--grid", "8x8x8", "--method", method, *(a for n in nodes for a in ("--fail", n)))]

    nodes = ["1,2,3", "4,4,4", "5,1,2", "2,2,2"]
    expect("hybrid(all) from the highest down", by("hybrid(all)", *nodes)[:3] == ["3D", "3D", "2D"])
    expect("hybrid(-2D) without one", "2D" not in by("hybrid(-2D)", *nodes))
    expect("hybrid(2D+1D+0D) as listed", by("hybrid(2D+1D+0D)", *nodes)[0] == "2D")
    expect("2D slides a plane", len(fails("--grid", "8x8x8", "--method", "2D", "--fail", "1,2,3")[0]["moves"]) == 5 * 7)
    row = fails("--grid", "9x9", "--method", "0D", "--fail", "7,4", "--fail", "6,4")
    expect("0D: failures in one line take different sides", [s["moves"][0]["to"] % 9 == 8 for s in row] == [True, False])
    many = ["--grid", "9x9"] + [a for n in range(0, 60, 5) for a in ("--fail", n)]
    eight = fails(*many, "--method", "repair(8)")
    for step in eight:
        step["by"] = "repair"
    expect("repair is repair(8)", fails(*many, "--method", "repair") == eight)
    expect("repair(256) is the largest", refused("substitute", *many, "--method", "repair(257)") and fails(*many, "--method", "repair(256)"))
    expect("--order: y, x, then the others is the default",
           fails("--grid", "8x8x8", "--fail", "1,2,3", "--fail", "4,4,4", "--fail", "5,1,2", "--order", "yxz") ==
           fails("--grid", "8x8x8", "--fail", "1,2,3", "--fail", "4,4,4", "--fail", "5,1,2"))
    plane = {o: {m["to"] // 64 for m in fails("--grid", "8x8x8", "--method", "2D", "--fail", "1,2,3", "--order", o)[0]["moves"]}
             for o in ("xyz", "xyz-")}
    expect("--order: further dimensions from the first up, with - from the last down", len(plane["xyz"]) == 1 < len(plane["xyz-"]))


def patterns():
    def launch(grid, *args):
        return rows(output("simulate", "--grid", grid, "--cases", 1, "--method", "0D", "--failures", 1, "--csv", *args))[0]["worst"]

    for grid, kinds in ("6x6", {"5p": "1", "9p": "3"}), ("4x4x4", {"7p": "1", "27p": "9"}), ("3x3x3x3", {"star": "1"}):
        for kind, most in kinds.items():
            expect("--pattern " + kind, launch(grid, "--pattern", kind) == most)
        refused("simulate", "--grid", grid, "--pattern", "7p" if grid == "6x6" else "5p")
    for grid, kind in ("7x6", "5p"), ("4x4x4", "7p"), ("3x3x3x3", "star"):
        expect("the default is the stencil that fits", output("simulate", "--grid", grid, "--cases", 50, "--csv", "--pattern", kind) ==
               output("simulate", "--grid", grid, "--cases", 50, "--csv"))
    expect("barrier and allreduce are the same messages", output("simulate", "--grid", "6x6", "--cases", 50, "--csv", "--pattern", "barrier") ==
           output("simulate", "--grid", "6x6", "--cases", 50, "--csv", "--pattern", "allreduce"))
    # 3x4 slots: four fold in, three steps among eight, four fold out
    expect("several phases add their maxima", int(launch("4x4", "--spares", "2D(1,1)", "--pattern", "barrier")) >= 5)
    expect("stencils do not wrap around", launch("5tx5t", "--spares", "2D(1,1):x") == "1" ==
           launch("5x5", "--spares", "2D(1,1):x"))


def simulate(tmp):
    path = os.path.join(tmp, "s.csv")
    expect("a million cases", int(rows(output("simulate", "--grid", "3x3", "--method", "0D", "--csv"))[1]["cases"]) == 200000)
    expect("a case is one map", sum(int(r["cases"]) for r in rows(output("simulate", "--grid", "6x6", "--cases", 110, "--csv"))[1:]) == 110)
    command = [place, "simulate", "--grid", "16x16x16", "--cases", "2000000", "--threads", "2", "--out", path]

    def interrupted():
        job = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        while job.poll() is None and len(os.listdir("/proc/%d/task" % job.pid)) < 3:  # until the workers run
            pass
        job.send_signal(signal.SIGINT)
        said = job.communicate()[1]
        expect("SIGINT: 130, not %d" % job.returncode, job.returncode == 130)
        return said

    os.mkdir(path + ".state.tmp")  # the state cannot be written
    expect("a state that cannot be written is told", "--resume cannot go on" in interrupted())
    expect("and the CSV is there", os.path.exists(path) and not os.path.exists(path + ".state"))
    os.rmdir(path + ".state.tmp")
    interrupted()
    with open(path) as f:
        counts = {r["cases"] for r in rows(f.read())}
    expect("SIGINT: whole sequences only: %s" % counts, len(counts) <= 1)
    expect("SIGINT: the state is kept", os.path.exists(path + ".state"))
    expect("the state of another study", "another" in refused(*command[1:], "--resume", "--seed", 7))
    with open(path + ".state", "r+") as f:
        head, body = f.read().split("\n", 1)
        f.seek(0)
        f.write(head + "\n" + body.replace("0 ", "1 "))
    expect("a changed state", "damaged" in refused(*command[1:], "--resume"))


def optimise(tmp):
    path = os.path.join(tmp, "o.csv")
    five = ("optimise", "--grid", "5x4", "--failures", 8)
    found = data(*five)
    expect("optimise: hybrid(all) is the default, and two million steps: %s" % found, found["start"] == "hybrid(all)" and
           (found["steps"] >= 2000000 or found["collisions"] == found["at_least"]))
    large = ("optimise", "--grid", "12x12x12", "--failures", 100, "--steps", 40000, "--method", "0D", "--csv")
    whole = output(*large)
    expect("optimise: the CSV is the map", whole.startswith("slot,node\n0,"))
    job = subprocess.Popen([place, *map(str, large), "--out", path], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.3)  # any moment will do
    job.send_signal(signal.SIGTERM)
    expect("optimise interrupted: 130", job.wait() in (0, 130, -signal.SIGTERM))
    if os.path.exists(path + ".state"):
        output(*large, "--out", path, "--resume")
        with open(path) as f:
            expect("optimise resumed: the same map", f.read() == whole)


def figures(tmp):
    for name in "3", "22":
        texts = set()
        for cases in "5", "500":
            expect("figure %s has no cases" % name,
                   "--cases" in refused("figure", name, "--dir", tmp, "--cases", cases))
            output("figure", name, "11", "--dir", tmp, "--cases", cases)
            with open(os.path.join(tmp, "fig%s.csv" % name)) as f:
                texts.add(f.read())
        expect("figure %s does not depend on cases" % name, len(texts) == 1)
    os.mkdir(os.path.join(tmp, "bin"))
    done = run("figure", "3", "--dir", tmp, env={"PATH": os.path.join(tmp, "bin")})
    expect("gnuplot failed: 1, not %d" % done.returncode, done.returncode == 1 and "gnuplot" in done.stderr)


def json_and_names():
    one = ("simulate", "--grid", "4x4", "--cases", 10, "--method", "0D")
    expect("--json: one method", data(*one)["method"] == "0D")
    expect("--json: two methods", [m["method"] for m in data(*one, "--method", "balance")] == ["0D", "balance"])
    expect("--json: an object or a list", isinstance(data("allocate", "--grid", "4x4"), dict) and
           isinstance(data("optimise", "--grid", "4x4"), dict) and isinstance(data("substitute", "--grid", "4x4", "--fail", 1), list) and
           isinstance(data("simulate", "--grid", "4x4", "--worst", "--failures", 1), list))
    expect("--json and --csv", "not both" in refused(*one, "--json", "--csv"))
    for wide in ("--method", "repair(4294967297)"), ("--fattree", "4294967297,1"):
        refused("substitute", "--grid", "4x4", "--fail", 0, *wide)
    with open("/dev/full", "w") as full:
        for help in ("--help",), ("--version",), ("simulate", "--help"):
            expect("%s into a full disk" % (help,), subprocess.run([place, *help], stdout=full, stderr=subprocess.DEVNULL).returncode == 2)
    expect("optimise: several phases", "one phase" in refused("optimise", "--grid", "4x4", "--pattern", "barrier"))
    expect("optimise: steps come in bursts of 64", data("optimise", "--grid", "9x9", "--method", "0D", "--failures", 12, "--steps", 100)["steps"] == 128)
    expect("cases are maps after a failure", " 300 cases" in run("simulate", "--grid", "4x4", "--cases", 300, "--failures", 3).stderr)
    expect("names of options are written out", "--fail'" in refused("simulate", "--grid", "4x4", "--fail", 3))
    expect("a value that looks like an option", "/--seed" in refused("simulate", "--grid", "4x4", "--out", "/no/folder/--seed"))


def ends():
    for grid in ("1x1",), ("4x4", "--spares", "2D(0,1)"):
        expect("no spares: no failures", "of up to 0 failures" in output("simulate", "--cases", 3, "--grid", *grid))
    done = run("substitute", "--grid", "2x2", "--fail", 0, "--fail", 1, "--fail", 2, "--fail", 3)
    expect("no live node: 1, not %d" % done.returncode, done.returncode == 1)


def examples(tmp):
    """Those of the page, with fewer cases and steps where they take long."""
    with open(manual) as f:
        page = f.read().replace("\\-", "-")
    lines = re.search(r"\.SH EXAMPLES\n\.nf\n(.*?)\.fi", page, re.S)[1].strip().split("\n")
    expect("examples", len(lines) >= 6)
    for line in lines:
        args = shlex.split(line)[1:]
        for option, less in ("--cases", "3686"), ("--out", os.path.join(tmp, "x")), ("--dir", tmp):
            if option in args:
                args[args.index(option) + 1] = less
        args += {"optimise": ["--steps", "2000"], "figure": ["--cases", "2000"]}.get(args[0], [])
        output(*args)


grids_and_spares()
methods()
patterns()
json_and_names()
ends()
for check in simulate, optimise, figures, examples:
    with tempfile.TemporaryDirectory() as folder:
        check(folder)
for text in bad:
    print(text)
sys.exit(1 if bad else 0)
