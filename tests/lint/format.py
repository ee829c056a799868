"""The C files are formatted as .clang-format says, and no line of theirs, comments too, or of a page's text has more
than 120 columns, nor has one of Python, but for those that long.txt counts: a file with more of them than there, or
with fewer, fails, so that the list only shrinks. Usage: format.py TOP; prints what clang-format-14 would change and
what is too long, exit 1 if anything."""
import os
import shutil
import subprocess
import sys

if not shutil.which("clang-format-14"):
    print("clang-format-14 is not installed")
    sys.exit(77)

COLUMNS = 120


def tracked(top, ends):
    """Of the tree, build folders left out: they are no part of it, wherever they are."""
    found = []
    for folder, folders, names in os.walk(top):
        folders[:] = [f for f in folders if f[0] != "." and not os.path.exists(os.path.join(folder, f, "meson-private"))]
        found += [os.path.join(folder, name) for name in names if name.endswith(ends)]
    return sorted(found)


def is_text(line):
    """Of a page: no table, heading, picture or command."""
    return not line.startswith(("|", "#", "    ", "<", "```"))


def too_long(path):
    """Numbers of lines."""
    page, code, found = path.endswith(".md"), False, []
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            code = code != line.startswith("```")
            if len(line.rstrip("\n")) > COLUMNS and not (page and (code or not is_text(line))):
                found.append(number)
    return found


def python_too_long(top):
    """What is wrong with the lines of Python, against the list."""
    with open(os.path.join(top, "tests/lint/long.txt"), encoding="utf-8") as f:
        listed = {path: int(count) for count, path in (line.split() for line in f if not line.startswith("#"))}
    bad = []
    ci = os.path.join(top, ".ci/run")
    for path in tracked(top, (".py",)) + [ci] * os.path.exists(ci):
        name, found = os.path.relpath(path, top), too_long(path)
        most = listed.pop(name, 0)
        if len(found) > most:
            bad += ["%s:%d: more than %d columns" % (path, number, COLUMNS) for number in found]
            bad += ["%s: %d such lines, and tests/lint/long.txt has %d" % (name, len(found), most)] * (most > 0)
        elif len(found) < most:
            bad.append("tests/lint/long.txt: %s has %d long lines now, not %d" % (name, len(found), most))
    return bad + ["tests/lint/long.txt: there is no %s" % name for name in listed]


top = sys.argv[1]
files = tracked(top, (".c", ".h"))
if len(files) < 20:
    sys.exit("hardly any C files found: is this the top of the tree?")
long = ["%s:%d: more than %d columns" % (path, number, COLUMNS)
        for path in files + tracked(top, (".md",)) for number in too_long(path)]
long += python_too_long(top)
print("\n".join(long))
sys.exit(subprocess.run(["clang-format-14", "--dry-run", "-Werror", *files]).returncode or bool(long))
