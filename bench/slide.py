#!/usr/bin/env python3
"""slide.py KEELRUN KEELCTL PROGRAM [MIB [RUNS [MBIT]]]: lines of 1, 2 and 4 slots slide by one node, in turn; how long
their data take beside those of one slot, and what puts take meanwhile. With MBIT (root) nodes are network namespaces
each of which sends so many Mbit/s at most: then the network is the limit, and not the processors, which all share."""
import json
import re
import statistics
import subprocess
import sys
import tempfile

SLOTS = 6  # in a row, and a spare at its end
SHAPED = "tc qdisc replace dev veth0 root tbf rate %smbit burst 256kb latency 100ms; exec \"$@\""


def run(keelrun, keelctl, program, mib, mbit, moves):
    """Milliseconds from the first block of a slot that lives to the last copy that is whole, and what was printed."""
    dies = SLOTS - 1 - moves
    bed, shaped = (["--bed", "netns"], ["sh", "-c", SHAPED % mbit, "sh"]) if mbit else ([], [])
    with tempfile.NamedTemporaryFile("r") as log:
        options = bed + ["--event-log", log.name, "--on-failure", "substitute", "-n", str(SLOTS), "--nodes", str(SLOTS),
                         "--spares", "1", "--grid", str(SLOTS + 1), "--spare-alloc", "1D(1,1)", "--substitution", "1D"]
        killer = "%s kill-node $KEEL_JOB %d" % (keelctl, dies)
        slide = shaped + [program, str(mib), killer, str(moves + 1)]
        done = subprocess.run([keelrun] + options + slide, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              universal_newlines=True)
        events = [json.loads(line) for line in log]
    if done.returncode:
        sys.exit("a line of %d: exit code %d: %s" % (moves, done.returncode, done.stderr))
    slots = range(dies + 1, SLOTS)
    begun = [e["t_ns"] for e in events if e["event"] == "rebuild" and e["slot"] in slots and e["to"] == e["slot"] + 1]
    whole = [e for e in events if e["event"] == "copied" and e["slot"] in slots and e["to"] == e["slot"] + 1]
    moved = {e["moved_rank"] for e in events if e["event"] == "view" and "moved_rank" in e}
    if moved != set(slots) or {e["slot"] for e in whole if e["bytes"] >= mib << 20} != set(slots):
        sys.exit("a line of %d: ranks %s have moved" % (moves, sorted(moved)))
    return (max(e["t_ns"] for e in whole) - min(begun)) / 1e6, done.stdout


def main():
    keelrun, keelctl, program = sys.argv[1:4]
    mib = int(sys.argv[4]) if len(sys.argv) > 4 else 64
    runs = int(sys.argv[5]) if len(sys.argv) > 5 else 3
    mbit = sys.argv[6] if len(sys.argv) > 6 else None
    lines, puts = {1: [], 2: [], 4: []}, {}
    for _ in range(runs):
        for moves in lines:
            ms, out = run(keelrun, keelctl, program, mib, mbit, moves)
            lines[moves].append(ms)
            for when, half, most in re.findall(r"put 8 B (\w+) .*50% +([\d.]+) us +99% +([\d.]+) us", out):
                puts.setdefault((moves, when), []).append((float(half), float(most)))
    for moves, ms in lines.items():
        print("line of %d: %d MiB each in %.0f ms (median of %d), %.2f of one slot's" % (
            moves, mib, statistics.median(ms), runs, statistics.median(ms) / statistics.median(lines[1])))
    for (moves, when), us in sorted(puts.items()):
        print("line of %d: put 8 B %-9s 50%% %7.1f us  99%% %8.1f us" % (
            moves, when, statistics.median(u[0] for u in us), statistics.median(u[1] for u in us)))
    return 0


sys.exit(main())
