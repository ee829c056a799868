"""A lower layer never includes a higher one, and what claims to be pure calls nothing but memory, string and assert
functions.

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


class Layers:
    """layers.txt: which layer a path is in, and what that may include."""

    def __init__(self, top):
        self.paths, self.seen, self.bad = {}, {}, []
        for number, line in enumerate((top / "layers.txt").read_text().splitlines(), 1):
            words = line.split("#")[0].split()
            if not words:
                continue
            name, where, on = words[0], words[1], [word for word in words[2:] if word != "-"]
            self.bad += [f"layers.txt:{number}: {name} stands on {lower}, which is not above it" for lower in on if lower not in self.seen]
            self.bad += [f"layers.txt:{number}: there are two {name}"] if name in self.seen else []
            for path in [name] if where == "=" else where.split(","):
                self.paths[path] = name
                if not (top / path).exists():
                    self.bad.append(f"layers.txt:{number}: {path} is not there")
            self.seen[name] = {name}.union(*(self.seen.get(lower, set()) for lower in on))

    def of(self, path):
        """The layer of the longest path that this one lies in; None: it lies in none."""
        inside = [p for p in self.paths if path == p or path.startswith(p + "/")]
        return self.paths[max(inside, key=len)] if inside else None


def installed_rows(text):
    """The lines of layers.txt that the documents show."""
    return [line for line in text.split("# Around it")[0].splitlines() if line and line[0] != "#"]


def wrong_picture(top):
    """docs/architecture.md shows the order as it is."""
    shown = (top / "docs/architecture.md").read_text()
    rows = "".join(f"    {line}\n" for line in installed_rows((top / "layers.txt").read_text()))
    return [] if rows in shown else ["docs/architecture.md: its lines of layers are not those of layers.txt"]


# Folders and sources that are pure; also each whose head comment, or whose header's, says "Pure".
PURE = ["runtime/wire", "runtime/hall", "runtime/view", "runtime/topo", "collectives", "sim/place/bound.c", "runtime/base/rng.c", "runtime/base/words.c"] + [
    f"detect/{name}.c" for name in (
        "agreement", "batch", "contact", "datagram", "detector", "events", "idset", "join", "ledger", "linkmap",
        "member", "message", "noticed", "params", "patience", "quorum", "relays", "reports", "rtt",
        "status", "target", "topology", "tree", "verdicts", "vote", "watch", "wave", "wave_root", "wave_send")]
PURE_CALLS = re.compile(
    "malloc|calloc|realloc|free|mem(cpy|move|set|cmp|r?chr)|str[a-z]+|v?snprintf|sscanf|sigabbrev_np|to(lower|upper)|qsort(_r)?|bsearch|abs|labs"
    "|__assert_fail|abort|sqrt|pow|log|log2|exp|floor|ceil|round|lround|fabs|hypot"
    # what compilers make of these, and add
    "|__isoc\\d+_(sscanf|strto[a-z]+)|__[a-z]+_chk|__ctype_(b|tolower|toupper)_loc|__stack_chk_fail|__popcountdi2|__u?divti3|__u?modti3|__cpu_model|__(mul|div)[sdxt]c3|bcmp"
    "|_GLOBAL_OFFSET_TABLE_|__(asan|ubsan|tsan|sanitizer|gcov|llvm)_.*|__start_.*|__stop_.*")
# What else a pure folder or source may call.
ALSO = {
    "pm": re.compile("pm_(alloc|strdup|printf)|bytes_.*"),  # memory; without any the program ends
    "pm/wire/dialogue.c": re.compile("fault_(armed|pass)"),  # a point of the schedule
    "pm/pmi": re.compile("json_.*"),  # tables in memory
    "pm/run/hosts.c": re.compile("inet_pton"),  # text to bytes
    "runtime/net/sealed/sealed_box.c": re.compile("crypto_.*|sodium_.*"),
    "pm/wire/session.c": re.compile("crypto_.*|sodium_.*|randombytes_.*"),  # on the caller's bytes, and their keys
}

INCLUDE = re.compile(r"^\s*(?:#|%:)\s*(?:include|include_next|import)\b\s*(.*)$", re.MULTILINE)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


def sources(top):
    """The C files of the tree, as paths from its top; build folders are no part of it, wherever they are."""
    for folder, folders, names in os.walk(top):
        folders[:] = sorted(f for f in folders
                            if f[0] != "." and not os.path.exists(os.path.join(folder, f, "meson-private")))
        for name in sorted(names):
            if name.endswith((".c", ".h", ".cc", ".cpp", ".hpp", ".inc")):
                yield pathlib.Path(folder, name).relative_to(top)


@functools.lru_cache(None)
def included(path, changed, size):
    """(line, text) of each include of the file, as it was changed last."""
    text = COMMENT.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), path.read_text()).replace("\\\n", "  ")
    return [(text.count("\n", 0, m.start(1)) + 1, m.group(1).strip()) for m in INCLUDE.finditer(text)]


def find(top, there, includer, text):
    """What an include names, from the top; None: nothing of the tree. Raises ValueError if it cannot be told. there:
    files that are known to be in the tree."""
    kind, name = text[:1], re.split('[">]', text[1:])[0]
    if kind not in ('"', "<"):
        raise ValueError(f"cannot tell what {text} includes")
    beside = [os.path.dirname(includer)] if kind == '"' else []
    for folder in [*beside, "", "include"]:
        path = os.path.normpath(os.path.join(folder, name))
        if path in there:
            return path
        if (top / path).is_file():
            if top not in pathlib.Path(os.path.normpath(top / path)).parents:
                raise ValueError(f"{name} is outside the tree")
            return path
    if kind == '"' or ".." in name:
        raise ValueError(f"{name} does not exist")
    return None


def is_in(path, allowed):
    return any(path == a or path.startswith(a + "/") for a in allowed)


def wrong_includes(top):
    layers = Layers(top)
    bad, seen = list(layers.bad), 0
    files = [str(path) for path in sources(top)]
    there = set(files)
    of = functools.lru_cache(None)(layers.of)
    for path in files:
        layer = of(path)
        if not layer:
            bad.append(f"{path}: the folder {os.path.dirname(path)} is no layer: add it to layers.txt")
            continue
        state = os.stat(top / path)
        for line, text in included(top / path, state.st_mtime_ns, state.st_size):
            try:
                found = find(top, there, path, text)
            except ValueError as error:
                bad.append(f"{path}:{line}: {error}")
                continue
            seen += found is not None
            if found and of(found) not in layers.seen[layer]:
                bad.append(f"{path}:{line}: {os.path.dirname(path)} must not include {found}")
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


known = {}


def read_symbols(objects):
    """Asks nm about those that are not known yet, all at once: most of its time is its start."""
    new = [str(built) for built in objects if built not in known]
    if not new:
        return
    said = subprocess.run(["nm", "--format=posix", "-A", *new], capture_output=True, text=True, check=True).stdout
    words = {built: [] for built in new}
    for line in said.splitlines():
        where, rest = line.split(": ", 1)
        words[where].append(rest.split())
    for built, of in words.items():
        needed = {name.split("@")[0] for name, kind, *_ in of if kind in "Uwv"}
        known[pathlib.Path(built)] = {name for name, *_ in of} - needed, needed


def symbols(built):
    """What an object defines, and what it needs."""
    read_symbols([built])
    return known[built]


def impure_calls(top, objects):
    pure, bad = sorted(pure_sources(top)), []
    if len(pure) < 20:
        bad.append(f"only {len(pure)} pure sources found: is this the top of the tree?")
    bad += [f"{source}: it is pure, and not built" for source in pure if source not in objects]
    pure = [source for source in pure if source in objects]
    read_symbols([objects[source] for source in pure])
    defined = set().union(*(symbols(objects[source])[0] for source in pure))
    for source in pure:
        for symbol in sorted(symbols(objects[source])[1] - defined):
            also = any(calls.fullmatch(symbol) for where, calls in ALSO.items() if is_in(source, [where]))
            if not PURE_CALLS.fullmatch(symbol) and not also:
                bad.append(f"{source}: it is pure, and uses {symbol}")
    return bad


def main():
    top, build = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
    bad = wrong_includes(top) + wrong_picture(top) + impure_calls(top, built_objects(top, build))
    for offence in bad:
        print(offence)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
