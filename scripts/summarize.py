"""Print 'N passed, N failed, N skipped' for runs of meson test; exit 1 if one failed or none passed.

Usage: summarize.py [--failed|--hung] LOG[+LOG...]...   each LOG is a testlog.json; of logs joined by + a later result
                                                        counts instead of an earlier one of the same test
Above that line each test is named that failed at first and passed when it was run once more.
With --failed, print instead the names of the failed tests that ended by themselves, a line each; with --hung, of those
that meson ended at their limit, or that say so by exit code 99 (tests/lib/keeltest.py).
"""
import json
import os
import sys


def results(logs):
    """Of each test the result that counts, and whether an earlier one was another."""
    last = {}
    for path in logs.split("+"):
        if os.path.exists(path):
            with open(path) as log:
                for line in log:
                    entry = json.loads(line)
                    again = entry["name"] in last and kind(last[entry["name"]][0]) == "failed"
                    last[entry["name"]] = (entry["result"], again)
    return last


def kind(result):
    return "passed" if result in ("OK", "EXPECTEDFAIL") else "skipped" if result == "SKIP" else "failed"


arguments = sys.argv[1:]
HUNG = ("TIMEOUT", "ERROR")
names_only = arguments[:1] in (["--failed"], ["--hung"])
counts = {"passed": 0, "failed": 0, "skipped": 0}
for logs in arguments[names_only:]:
    for name, (result, again) in results(logs).items():
        counts[kind(result)] += 1
        if again and not names_only and kind(result) == "passed":
            print(f"failed at first, passed when run once more, alone: {name}")
        if names_only and kind(result) == "failed" and (result in HUNG) == (arguments[0] == "--hung"):
            print(name.split(" / ")[-1].split(":")[-1].strip())
if not names_only:
    print(", ".join(f"{n} {word}" for word, n in counts.items()))
    sys.exit(0 if counts["passed"] and not counts["failed"] else 1)
