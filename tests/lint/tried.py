"""Every test that tests/multi/README.md names exists, and each sentence's row names one or says that it is not tried.
A name in brackets is in the file that stands before them; outside, it is a file or folder, a program of the tests, or a
function of the section's file. Usage: tried.py TOP; prints what is not there, exit 1 if something is not."""
import pathlib
import re
import sys

top = pathlib.Path(sys.argv[1])
table = "tests/multi/README.md"
programs = {}
for path in (top / "tests").rglob("*"):
    if path.suffix in (".c", ".py"):
        for name in (path.name, path.stem):
            programs.setdefault(name, []).append(path)


def places(name):
    if "/" in name:
        return [top / name] if (top / name).exists() else []
    here = [path for path in programs.get(name, []) if path.parent == top / "tests/multi"]
    return here or programs.get(name, [])


def says(places, name):
    return any(path.is_file() and re.search(r"\b%s\b" % re.escape(name), path.read_text()) for path in places)


bad, tried, functions_of = [], 0, []
for number, line in enumerate((top / table).read_text().splitlines(), 1):
    if line.startswith("## "):
        functions_of = []
        header = re.match(r"## (keel/\w+\.h)", line)
        if not header or not (top / "include" / header.group(1)).is_file():
            bad.append("%s:%d: no such header: %s" % (table, number, line))
    if line.startswith("Functions of"):
        functions_of = [path for name in re.findall(r"`([^`]+)`", line) for path in places(name)]
    cells = line.strip("|").split("|")
    if not line.startswith("| ") or cells[0].strip() == "sentence":
        continue
    if "`" not in cells[1] and "not tried" not in cells[1] and cells[1].strip() != "all":
        bad.append("%s:%d: neither a test nor \"not tried\"" % (table, number))
    before = []
    for part in re.findall(r"\([^)]*\)|[^(]+", cells[1].replace("*not tried*", "")):
        for name in re.findall(r"`([^`]+)`", part):
            tried += 1
            if part[0] == "(":
                there = says(before, name)
            else:
                words = name.split()
                before = places(words[0]) or (functions_of if says(functions_of, words[0]) else [])
                there = before and all(says(before, word) for word in words[1:])
            if not there:
                bad.append("%s:%d: no test %s" % (table, number, name))
if tried < 60:
    bad.append("%s: only %d names of tests found" % (table, tried))
print(*bad, sep="\n", end="\n" if bad else "")
sys.exit(1 if bad else 0)
