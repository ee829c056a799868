"""A lower layer never includes a higher one, and what claims to be pure calls nothing but memory, string and assert functions.

Usage: layers.py TOP BUILD; prints each offence, exit 1 if there is one. TOP is the tree, BUILD where it was built.
test_layers.py plants offences and sees that each is found.
"""
import functools
import json
import os
import pathlib
import re
import subprocess
import sys

# Each folder with C files, and what it may include besides itself: folders, or single headers. Public headers are
# include/keel/*.h. The rooms of pm meet in pm/wire; pm/plane.h is the seam to the data half.
STATUS = {"include/keel/status.h"}
BASE = {"runtime/base"} | STATUS
TRANSPORT = BASE | {"runtime/transport"}
PROTOCOL = TRANSPORT | {"runtime/protocol", "include/keel/type.h", "collectives/board.h"}
CHANNEL = PROTOCOL | {"runtime/channel", "include/keel/segment.h"}
PUBLIC = {"include/keel"}
AGENT = CHANNEL | {"runtime/view", "collectives", "runtime/agent"}
CLIENT = CHANNEL | PUBLIC | {"runtime/client", "collectives"}
ALLOWED = {
    "include/keel": set(),
    "runtime/base": BASE,
    "runtime/topo": BASE,
    "runtime/nopsm": set(),  # libraries of their own
    "runtime/transport": TRANSPORT,
    "runtime/protocol": PROTOCOL,
    "runtime/view": PROTOCOL,
    "runtime/channel": CHANNEL,
    "runtime/client": CLIENT,
    "runtime/agent": AGENT,
    "runtime/plane": AGENT | {"detect", "pm/plane.h"},
    "detect": TRANSPORT | {"runtime/topo"},
    "collectives": BASE,
    "pm": BASE,
    "pm/wire": BASE,
    "pm/pmi": BASE | {"pm/wire"},
    "pm/bed": BASE | {"pm/wire"},
    "pm/launch": BASE | {"pm/wire"},
    "pm/run": BASE | {"pm/wire", "pm/bed", "pm/plane.h"},
    "pm/agent": BASE | {"pm/wire", "pm/pmi", "pm/plane.h"},
    "pm/ctl": BASE | {"pm/wire", "pm/bed"},
    "sim/cli": BASE,
    "sim/place": BASE | {"runtime/topo", "sim/cli"},
    "sim/route": BASE | {"runtime/topo", "sim/cli"},
    "scripts/mpi": set(),
    # programs are written against the public headers
    "armci": PUBLIC,
    "armci/graft": PUBLIC,
    "apps/ga": PUBLIC,
    "apps/npb": PUBLIC,
    "apps/scf": PUBLIC,
    "docs/tutorial": PUBLIC,
    "bench": PUBLIC | TRANSPORT,
    "bench/algorithms": CLIENT | {"bench"}, # forces what the library chooses
    # tests of whole jobs, too, but for what lies under them
    "tests/lib": PUBLIC,
    "tests/fault": PUBLIC | {"tests/lib"},
    "tests/fault/pm": PUBLIC | {"pm/wire"},
    "tests/fault/insider": CLIENT | {"pm/wire"},  # what a rank knows, in the hands of somebody else
    "tests/multi": PUBLIC | BASE | {"detect", "tests/lib"},
    "tests/multi/pm": PUBLIC | {"tests/lib"},
    "tests/multi/transport": TRANSPORT | {"tests/unit/transport"},
    "tests/sim": BASE | {"detect"},
    "tests/sim/scale": BASE | {"detect"},
    "tests/sim/coll": BASE | {"collectives"},
    "tests/sim/data": AGENT | CLIENT | {"detect", "tests/lib"},
    # tests of a unit
    "tests/unit/armci": {"armci", "armci/graft"},
    "tests/fuzz": AGENT | {"pm", "detect", "tests/unit/data"},
    "tests/unit/base": BASE,
    "tests/unit/collectives": BASE | {"collectives"},
    "tests/unit/data": AGENT | CLIENT,
    "tests/unit/detect": BASE | {"detect", "tests/sim"},
    "tests/unit/npb": {"apps/npb"},
    "tests/unit/pm": BASE | {"pm"},
    "tests/unit/route": BASE | {"runtime/topo", "sim/route", "tests/lib"},
    "tests/unit/scf": BASE | {"apps/scf"} | PUBLIC,
    "tests/unit/sim": BASE | {"sim/cli"},
    "tests/unit/topo": BASE | {"runtime/topo", "sim/place", "tests/lib"},
    "tests/unit/transport": TRANSPORT,
}

# Folders and sources that are pure; also each whose head comment, or whose header's, says "Pure".
PURE = ["runtime/protocol", "runtime/view", "runtime/topo", "collectives", "runtime/base/rng.c", "runtime/base/words.c"] + [
    f"detect/{name}.c" for name in ("agreement", "contact", "detector", "idset", "join", "ledger", "linkmap", "member", "patience", "quorum", "reports", "round", "status", "topology", "tree", "vote", "watch", "wire")]
PURE_CALLS = re.compile(
    "malloc|calloc|realloc|free|mem(cpy|move|set|cmp|r?chr)|str[a-z]+|v?snprintf|sscanf|sigabbrev_np|to(lower|upper)|qsort(_r)?|bsearch|abs|labs"
    "|__assert_fail|abort|sqrt|pow|log|log2|exp|floor|ceil|round|lround|fabs|hypot"
    # what compilers make of these, and add
    "|__isoc\\d+_(sscanf|strto[a-z]+)|__[a-z]+_chk|__ctype_(b|tolower|toupper)_loc|__stack_chk_fail|__popcountdi2|__cpu_model|__(mul|div)[sdxt]c3|bcmp"
    "|_GLOBAL_OFFSET_TABLE_|__(asan|ubsan|tsan|sanitizer|gcov|llvm)_.*|__start_.*|__stop_.*")
# What else a pure folder or source may call.
ALSO = {
    "pm": re.compile("pm_(alloc|strdup|printf)|bytes_.*"),  # memory; without any the program ends
    "pm/wire/link.c": re.compile("fault_(armed|pass)"),  # a point of the schedule
    "pm/pmi": re.compile("json_.*"),  # tables in memory
    "pm/run/hosts.c": re.compile("inet_pton"),  # text to bytes
    "runtime/transport/sealed_box.c": re.compile("crypto_.*|sodium_.*"),
    "pm/wire/session.c": re.compile("crypto_.*|sodium_.*|randombytes_.*"),  # on the caller's bytes, and their keys
}

INCLUDE = re.compile(r"^\s*#\s*(?:include|include_next|import)\b\s*(.*)$", re.MULTILINE)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


def sources(top):
    """The C files of the tree, as paths from its top; build folders are no part of it, wherever they are."""
    for folder, folders, names in os.walk(top):
        folders[:] = sorted(f for f in folders
                            if f[0] != "." and not os.path.exists(os.path.join(folder, f, "meson-private")))
        for name in sorted(names):
            if name.endswith((".c", ".h", ".cc", ".cpp", ".hpp", ".inc")):
                yield pathlib.Path(folder, name).relative_to(top)


def find(top, includer, text):
    """What an include names, from the top; None: nothing of the tree. Raises ValueError if it cannot be told."""
    kind, name = text[:1], re.split('[">]', text[1:])[0]
    if kind not in ('"', "<"):
        raise ValueError(f"cannot tell what {text} includes")
    beside = [top / includer.parent] if kind == '"' else []
    for folder in [*beside, top, top / "include"]:
        path = pathlib.Path(os.path.normpath(folder / name))
        if path.is_file():
            if top not in path.parents:
                raise ValueError(f"{name} is outside the tree")
            return path.relative_to(top)
    if kind == '"' or ".." in name:
        raise ValueError(f"{name} does not exist")
    return None


def is_in(path, allowed):
    return any(path == a or path.startswith(a + "/") for a in allowed)


def wrong_includes(top):
    bad, seen = [], 0
    for path in sources(top):
        layer = str(path.parent)
        if layer not in ALLOWED:
            bad.append(f"{path}: the folder {layer} is no layer: add it to {__file__}")
            continue
        text = COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), (top / path).read_text())
        text = text.replace("\\\n", "  ")
        for match in INCLUDE.finditer(text):
            where = f"{path}:{text.count(chr(10), 0, match.start(1)) + 1}"
            try:
                found = find(top, path, match.group(1).strip())
            except ValueError as error:
                bad.append(f"{where}: {error}")
                continue
            seen += found is not None
            if found and found.parent != path.parent and not is_in(str(found), ALLOWED[layer]):
                bad.append(f"{where}: {layer} must not include {found}")
    if not seen:
        bad.append("no include found: is this the top of the tree?")
    return bad


def claims_purity(path):
    """Does the comment that opens the file say so?"""
    head = re.match(r"\s*/\*(.*?)\*/", path.read_text(), re.DOTALL) if path.exists() else None
    return bool(head and re.search(r"\bPure\b", head.group(1)))


def pure_sources(top):
    for path in sources(top):
        if path.suffix == ".c" and str(path).startswith(("runtime/", "detect/", "collectives/", "pm/", "sim/")):
            if is_in(str(path), PURE) or claims_purity(top / path) or claims_purity(top / path.with_suffix(".h")):
                yield str(path)


def built_objects(top, build):
    """Each source's object."""
    objects = {}
    for command in json.loads((build / "compile_commands.json").read_text()):
        source = pathlib.Path(os.path.normpath(os.path.join(command["directory"], command["file"])))
        built = pathlib.Path(command["directory"], command["output"])
        if top in source.parents and built.exists():
            objects.setdefault(str(source.relative_to(top)), built)
    return objects


@functools.cache
def symbols(built):
    """What an object defines, and what it needs."""
    lines = subprocess.run(["nm", "--format=posix", str(built)], capture_output=True, text=True, check=True).stdout
    words = [line.split() for line in lines.splitlines()]
    needed = {name.split("@")[0] for name, kind, *_ in words if kind in "Uwv"}
    return {name for name, *_ in words} - needed, needed


def impure_calls(top, objects):
    pure, bad = sorted(pure_sources(top)), []
    if len(pure) < 20:
        bad.append(f"only {len(pure)} pure sources found: is this the top of the tree?")
    bad += [f"{source}: it is pure, and not built" for source in pure if source not in objects]
    pure = [source for source in pure if source in objects]
    defined = set().union(*(symbols(objects[source])[0] for source in pure))
    for source in pure:
        for symbol in sorted(symbols(objects[source])[1] - defined):
            also = any(calls.fullmatch(symbol) for where, calls in ALSO.items() if is_in(source, [where]))
            if not PURE_CALLS.fullmatch(symbol) and not also:
                bad.append(f"{source}: it is pure, and uses {symbol}")
    return bad


def main():
    top, build = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
    bad = wrong_includes(top) + impure_calls(top, built_objects(top, build))
    for offence in bad:
        print(offence)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
