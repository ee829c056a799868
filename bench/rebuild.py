#!/usr/bin/env python3
"""rebuild.py KEELRUN PROGRAM [MIB]: a node of three dies; how fast its copies are filled again, beside what keel_put
reaches."""
import json
import os
import re
import subprocess
import sys
import tempfile


def main():
    keelrun, program, mib = sys.argv[1], sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "512"
    with tempfile.NamedTemporaryFile("r") as log:
        env = dict(os.environ, KEEL_FAULT="acc.done:1:node:rank=2")
        out = subprocess.run([keelrun, "--event-log", log.name, "--on-failure", "degrade", "-n", "3", "--nodes", "3", program, mib],
                             env=env, stdout=subprocess.PIPE, universal_newlines=True).stdout
        copied = [e for e in map(json.loads, log) if e["event"] == "copied" and e["bytes"] > 1 << 20]
    print(out, end="")
    for e in copied:
        print("slot %d: %d MiB in %.1f ms, %.3f GB/s" % (e["slot"], e["bytes"] >> 20, e["ms"], e["bytes"] / e["ms"] / 1e6))
    together = sum(e["bytes"] / e["ms"] / 1e6 for e in copied)
    put = {what: float(rate) for what, rate in re.findall(r"put 1 MiB(?:, (.*))? ([\d.]+) GB/s", out)}
    if copied and put:
        print("all streams %.3f GB/s:" % together, ", ".join(
            "%.2f of keel_put %s" % (together / rate, what or "to the same MiB") for what, rate in put.items()))
    raw = re.findall(r"raw streams ([\d.]+) GB/s", out)
    if copied and raw:
        print("%.2f of the raw streams" % (together / float(raw[0])))
    slow = [float(us) for us in re.findall(r"get 8 B (?!raw).* 99% +([\d.]+) us", out)]
    if len(slow) == 2:
        print("99%% of the gets meanwhile: %.1f times as long" % (slow[1] / slow[0]))
    return 0 if copied and put else 1


sys.exit(main())
