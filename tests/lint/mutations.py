"""mutations.py SOURCE: can each rule still be taken out?

Each change of tests/sim/mutate/rules.py names a text that stands once in its file. One that does not fit any more would
be noticed by nobody until the rules are taken out again, which takes hours. No two changes have one name."""
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(sys.argv[1], "tests/sim/mutate"))
from rules import RULES


def main():
    source, bad, names = sys.argv[1], [], set()
    for rule in RULES:
        path = os.path.join(source, rule["file"])
        text = open(path, encoding="utf-8").read() if os.path.exists(path) else ""
        if text.count(rule["old"]) != 1:
            bad.append("%s: %s: the text stands %d times in %s" % (rule["rule"], rule["name"], text.count(rule["old"]), rule["file"]))
        if rule["old"] == rule["new"] or rule["name"] in names:
            bad.append("%s: %s: changes nothing, or stands twice" % (rule["rule"], rule["name"]))
        names.add(rule["name"])
    print("\n".join(bad) if bad else "%d changes fit" % len(RULES))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
