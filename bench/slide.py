#!/usr/bin/env python3
"""Lines of 1, 2 and 4 slots slide by one node, in turn: how long their data take beside those of one slot, and what
puts take meanwhile. With --mbit (root) nodes are network namespaces each of which sends so many Mbit/s at most: then
the network is the limit, and not the processors, which all share."""
import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile

SHAPED = "tc qdisc replace dev veth0 root tbf rate %smbit burst 256kb latency 100ms; exec \"$@\""


def run(o, moves):
    """Milliseconds from the first block of a slot that lives to the last copy that is whole, and what was printed."""
    dies = o.slots - 1 - moves
    bed, shaped = (["--bed", "netns"], ["sh", "-c", SHAPED % o.mbit, "sh"]) if o.mbit else ([], [])
    with tempfile.NamedTemporaryFile("r") as log:
        options = bed + ["--event-log", log.name, "--on-failure", "substitute", "-n", str(o.slots)]
        options += ["--nodes", str(o.slots), "--spares", "1", "--grid", str(o.slots + 1), "--spare-alloc", "1D(1,1)",
                    "--substitution", "1D"]
        killer = "%s kill-node $KEEL_JOB %d" % (o.keelctl, dies)
        slide = shaped + [o.program, str(o.mib), killer, str(moves + 1)]
        done = subprocess.run([o.keelrun] + options + slide, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              universal_newlines=True)
        events = [json.loads(line) for line in log]
    if done.returncode:
        sys.exit("a line of %d: exit code %d: %s" % (moves, done.returncode, done.stderr))
    slots = range(dies + 1, o.slots)
    begun = [e["t_ns"] for e in events if e["event"] == "rebuild" and e["slot"] in slots and e["to"] == e["slot"] + 1]
    whole = [e for e in events if e["event"] == "copied" and e["slot"] in slots and e["to"] == e["slot"] + 1]
    moved = {e["moved_rank"] for e in events if e["event"] == "view" and "moved_rank" in e}
    if moved != set(slots) or {e["slot"] for e in whole if e["bytes"] >= o.mib << 20} != set(slots):
        sys.exit("a line of %d: ranks %s have moved" % (moves, sorted(moved)))
    return (max(e["t_ns"] for e in whole) - min(begun)) / 1e6, done.stdout


def numbers(text):
    found = [int(n) for n in text.split(",")]
    if not found or min(found) < 1:
        raise argparse.ArgumentTypeError("lines have one slot at least")
    return found


def options():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("keelrun")
    p.add_argument("keelctl")
    p.add_argument("program")
    p.add_argument("--lines", type=numbers, default=[1, 2, 4],
                   help="how many slots move, in each line (default: 1,2,4)")
    p.add_argument("--slots", type=int, help="in a row, a node each, and a spare node at its end (default: two more "
                   "than move in the longest line)")
    p.add_argument("--mib", type=int, default=64, help="data of a slot (default: 64)")
    p.add_argument("--runs", type=int, default=3, help="of each line (default: 3)")
    p.add_argument("--mbit", type=int, help="that a node sends in a second")
    o = p.parse_args()
    o.slots = o.slots or max(o.lines) + 2
    if o.slots <= max(o.lines):
        p.error("one slot dies before a line of %d: --slots %d is too few" % (max(o.lines), o.slots))
    return o


def main():
    o = options()
    lines, puts = {moves: [] for moves in o.lines}, {}
    print("%d slots and a spare" % o.slots)
    for _ in range(o.runs):
        for moves in lines:
            ms, out = run(o, moves)
            lines[moves].append(ms)
            for when, half, most in re.findall(r"put 8 B (\w+) .*50% +([\d.]+) us +99% +([\d.]+) us", out):
                puts.setdefault((moves, when), []).append((float(half), float(most)))
    first = o.lines[0]
    for moves, ms in lines.items():
        half = statistics.median(ms)
        print("line of %d: %d MiB each in %.0f ms (median of %d), %.2f of a line of %d" % (
            moves, o.mib, half, o.runs, half / statistics.median(lines[first]), first))
    for (moves, when), us in sorted(puts.items()):
        print("line of %d: put 8 B %-9s 50%% %7.1f us  99%% %8.1f us" % (
            moves, when, statistics.median(u[0] for u in us), statistics.median(u[1] for u in us)))
    return 0


sys.exit(main())
