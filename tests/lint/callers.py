"""What a source of the program shows to others, somebody of the program uses: what only tests call, or nobody, is no
part of it, and what only its own file uses is static.

Usage: callers.py TOP BUILD; prints each offence, exit 1 if there is one. test_callers.py plants offences.

A test may call what the program calls in the same file: so it sees a rule without the rest. Sources that are not built
here (no verbs, no benchmarks) count by their words.
"""
import collections
import pathlib
import re
import subprocess
import sys

import layers

PROGRAM = ("runtime/", "pm/", "detect/", "collectives/", "armci/", "sim/")
# Called by programs of users, or in the place of functions of other libraries.
PUBLIC = re.compile("main|(keel|ARMCI|armci)_.*")
STANDS_IN = ("runtime/world/", "runtime/net/nopsm/", "armci/graft/", "armci/mpi.c")
# The reason for each.
ALLOWED = {
    "client_fini": "a process that leaves a job ends; tests and simulations have many clients in one process",
    "detour_alive": "docs/routing.md, nodes as relays: route-relay holds the rule, which is there before its caller",
    "detour_relay": "the same",
    "detour_silent": "the same",
    "fabric_full": "the same",
}


def shown(objects):
    """{name: [sources that define it]}, {name: {sources that need it}}, of what the linker sees."""
    defined, needed = collections.defaultdict(list), collections.defaultdict(set)
    source_of = {str(built): source for source, built in objects.items()}
    said = subprocess.run(["nm", "--format=posix", "-A", "-g", *source_of], capture_output=True, text=True, check=True)
    for line in said.stdout.splitlines():
        where, rest = line.split(": ", 1)
        name, kind, *_ = rest.split()
        if kind in "TDBR":
            defined[name].append(source_of[where])
        elif kind in "Uwv":
            needed[name].add(source_of[where])
    return defined, needed


def names_itself(built, name):
    """Does the object refer to what it defines, as a table made by macros does?"""
    said = subprocess.run(["readelf", "--relocs", "--wide", built], capture_output=True, text=True, check=True).stdout
    return re.search(rf"\s{re.escape(name)}(\s|$)", said, re.MULTILINE) is not None


def words_of(path):
    return layers.COMMENT.sub(" ", path.read_text())


def not_built(top, objects):
    """The words of all sources of the program, its benchmarks and its programs that have no object here."""
    words = set()
    for path in layers.sources(top):
        if path.suffix != ".h" and not str(path).startswith("tests/") and str(path) not in objects:
            words.update(re.findall(r"\w+", words_of(top / path)))
    return words


def wrong_callers(top, objects):
    defined, needed = shown(objects)
    elsewhere, bad = not_built(top, objects), []
    for name, sources in sorted(defined.items()):
        for source in sources:
            if not source.startswith(PROGRAM) or source.startswith(STANDS_IN) or PUBLIC.fullmatch(name):
                continue
            users = needed[name] - {source}
            if name in ALLOWED or name in elsewhere or any(not user.startswith("tests/") for user in users):
                continue
            text = re.sub(rf"^\w[\w *]*\b{name}\([^;{{}}]*\);", "", words_of(top / source), flags=re.MULTILINE)
            own = len(re.findall(rf"\b{name}\b", text)) > 1
            pasted = not own and names_itself(objects[source], name)
            if not own and not pasted:
                bad.append(f"{source}: {'only tests call' if users else 'nobody calls'} {name}")
            elif own and not users:
                bad.append(f"{source}: nobody else uses {name}: it is static")
    bad += [f"tests/lint/callers.py: there is no {name} any more" for name in ALLOWED if name not in defined]
    return bad


def main():
    top, build = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
    bad = wrong_callers(top, layers.built_objects(top, build))
    for offence in bad:
        print(offence)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
