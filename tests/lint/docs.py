"""What the pages name exists: files, options, variables, verbs, limits; links lead somewhere; each decision has its row
in the index, and each number that somebody names has its page; words of the code are in the code, and where a page
says that they are; docs/architecture.md has each folder and each file that starts a thread;
the index of rules has each rule of tests/sim/mutate.
Usage: docs.py TOP; prints each offence, exit 1 if there is one. test_docs.py plants offences and sees that each is
found."""
import fnmatch
import functools
import os
import re
import sys

CODE = (".c", ".h", ".py", ".sh", ".build", ".in", ".F", ".pml", ".map", ".txt", ".options", "")
SPAN = re.compile(r"`((?:[^`\n]|\n(?!\n))+)`")  # between backticks, also over lines of a paragraph
LINKED = re.compile(r"\]\([^)]*\)")  # where a link leads
FILE = re.compile(r"^[\w.+*/-]+\.(c|h|py|sh|F|pml|map|build|md|svg|txt)$")
# Not ours: files that a reader writes, or that other projects have.
FOREIGN_FILES = {"program.c", "sum.c", "nbtest.F", "armci/testing"}
# Options that pages name and other programs have.
FOREIGN_OPTIONS = {"--mpi", "--no-kill", "--input", "--argv", "--cc", "--cflags", "--cppflags", "--flibs", "--ldflags",
                   "--libs", "--static", "--without-scalapack", "--vex-iropt-register-updates", "--enable-i8"}
# Pages about programs of others, whose words are not in our code; such words in other pages.
FOREIGN_WORDS = ("docs/global-arrays.md", "docs/global-arrays-runs.md", "docs/nwchem.md")
# Folders whose C files run in a job: each has its line in docs/architecture.md, and so has each of their files that
# starts a thread.
JOB = ("include", "runtime", "collectives", "detect", "pm", "armci", "sim", "apps")
# Numbers that stand in a page and in the code: page, text, file, name, unit.
PUT, REPAIR = "docs/protocols/replication/put.md", "docs/protocols/replication/repair.md"
LIMITS = "runtime/wire/limits.h"
# Pages, a word of ranks, the word of copies.
MEANINGS = [(("docs/protocols/replication", "docs/adr/0002", "docs/adr/0005", "docs/adr/0007"), "group", "copyset")]
NUMBERS = [
    (PUT, r"names\s+one\s+of\s+(\d+)\s+notes", LIMITS, "NOTES_MAX", 1),
    (PUT, r"keeps\s+up\s+to\s+(\d+)\s+notes\s+itself", "runtime/wire/note.h", "INTENT_MAX", 1),
    (PUT, r"at\s+most\s+(\d+)\s+such\s+puts", LIMITS, "LARGE_MAX", 1),
    (PUT, r"chunks\s+of\s+up\s+to\s+(\d+)\s+KiB", "runtime/wire/stripe.h", "STRIPE_CHUNK_MAX", 1024),
    (PUT, r"up\s+to\s+(\d+)\s+KiB\s+it\s+sends\s+messages", "runtime/client/op/plan.h", "PLAN_WHOLE_MAX", 1024),
    (PUT, r"none\s+here,\s+up\s+to\s+(\d+)\s+KiB", LIMITS, "WIRE_BULK_MAX", 1024),
    ("docs/protocols/replication/accumulate.md", r"each\s+of\s+its\s+(\d+)\s+lanes", LIMITS, "LANES_MAX", 1),
    (REPAIR, r"blocks\s+of\s+(\d+)\s+KiB", "runtime/agent/repair_fill.c", "BLOCK", 1024),
]


texts = {}  # of files that were read
planted = {}  # page or source: text in its place (test_docs.py)


def read(top, path):
    if path in planted:
        return planted[path]
    if path not in texts:
        with open(os.path.join(top, path), encoding="utf-8", errors="replace") as f:
            texts[path] = f.read()
    return texts[path]


def tree(top):
    """The files of the tree, without what is built or hidden."""
    found = []
    for at, folders, names in os.walk(top):
        folders[:] = sorted(f for f in folders
                            if f[0] != "." and not os.path.exists(os.path.join(at, f, "meson-private")))
        found += [os.path.relpath(os.path.join(at, name), top) for name in sorted(names)]
    return found + [path for path in (".ci/run",) if os.path.exists(os.path.join(top, path))]


def pages_of(files):
    """Pages that say how things are, and those of decisions, which say how they were."""
    page = re.compile(r"(README|CONTRIBUTING)\.md$|docs/[^/]+\.md$|docs/protocols/.*\.md$")
    return [f for f in files if page.match(f)], [f for f in files if re.match(r"docs/adr/.*\.md$", f)]


def slugs(text):
    """The anchors of a page's headings, as GitHub makes them."""
    found = set()
    for heading in re.findall(r"^#+ +(.*)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).lower()
        found.add(re.sub(r"[^\w\- ]", "", words).strip().replace(" ", "-"))
    return found


def links(top, page, text):
    for target in re.findall(r"\]\(([^)\s]+)\)", SPAN.sub("", text)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if not os.path.exists(os.path.join(top, there)):
            yield "no such file: link to " + target
        elif anchor and there.endswith(".md") and anchor not in slugs(read(top, there)):
            yield "no such heading: link to " + target


def spans(text):
    """What stands between backticks, and the lines of blocks of commands."""
    blocks = re.findall(r"^    (\S.*)$", text, re.M)
    return SPAN.findall(re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)), blocks


def is_path(name, tops):
    if name.startswith(("/", "~", "-", "@", "build", "http")) or re.search(r"[<>$:|=(){}\[\]]|NNNN|NAME|\.\.\.", name):
        return False
    return bool(FILE.match(name) or ("/" in name and name.split("/")[0] in tops and re.match(r"^[\w./*-]+$", name)))


def is_program(top, name, files):
    """Built there, of a source of its name or of others."""
    folder, _, program = name.rpartition("/")
    built = folder + "/meson.build"
    return name + ".c" in files or (built in files and "'%s'" % program in read(top, built))


def exists(top, name, files, folders):
    name = name.rstrip("/")
    if name in FOREIGN_FILES or name in folders:
        return True
    if "*" in name:
        return any(fnmatch.fnmatch(f, name) or fnmatch.fnmatch(f, "*/" + name) for f in files)
    if name in files or any(f.endswith("/" + name) for f in files) or any(f.endswith("/" + name) for f in folders):
        return True
    return is_program(top, name, files)


def option_names(top, path):
    return set(re.findall(r'^\s*\{"([a-z][a-z-]*)", ', read(top, path), re.M))


def keelrun_options(line):
    """Those of keelrun in a command: what stands before the program."""
    words = line.split()
    while words and words[0] != "keelrun" and not words[0].endswith("/keelrun"):
        words.pop(0)
    takes = False
    for word in words[1:]:
        if word.startswith("--"):
            yield word.split("=")[0]
            takes = "=" not in word
        elif word.startswith("-"):
            takes = True
        elif not takes:
            return
        else:
            takes = False


def number(text, name):
    """The value of an enumerator that is a product of numbers."""
    found = re.search(r"\b%s = ([\d* ]+)[,;} ]" % name, text)
    value = 1
    for factor in found.group(1).split("*") if found else []:
        value *= int(factor)
    return value if found else None


@functools.lru_cache(maxsize=None)
def outer_names(text):
    """What users of a source may see: its variables of the environment, and options, also those in tables."""
    tables = re.findall(r'\{"([a-z][a-z0-9-]*)", ', text)
    return (frozenset(re.findall(r"\bKEEL_[A-Z0-9_]+", text)),
            frozenset(re.findall(r"--[a-z][a-z0-9-]*", text)) | {"--" + name for name in tables})


@functools.lru_cache(maxsize=None)
def starts_thread(text):
    return bool(re.search(r"\bpthread_create\(", text))


def check_names(top, files, pages):
    folders = {os.path.dirname(f) for f in files}
    folders |= {f[: f.index("/", i)] for f in folders for i in range(len(f)) if "/" in f[i:]}
    tops = {f.split("/")[0] for f in files if "/" in f}
    source = {f: read(top, f) for f in files if os.path.splitext(f)[1] in CODE and f != "tests/lint/test_docs.py"}
    words = set().union(*(outer_names(text)[0] for text in source.values()))
    of_keelrun = {"--" + name for name in option_names(top, "pm/run/options.c")}
    known = FOREIGN_OPTIONS.union(*(outer_names(text)[1] for text in source.values()))
    verbs = set(re.findall(r'\{"([a-z-]+)", "[^"]*", "', source.get("pm/ctl/keelctl.c", "")))
    for page in pages:
        text = read(top, page)
        names, blocks = spans(text)
        for name in names:
            for word in name.split():
                if is_path(word.rstrip(",;:"), tops) and not exists(top, word.rstrip(",;:"), files, folders):
                    yield "%s: no such file: %s" % (page, word)
            for option in re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", name):
                if option not in known:
                    yield "%s: no program has this option: %s" % (page, option)
        for line in names + blocks:
            for option in keelrun_options(line):
                if option not in of_keelrun:
                    yield "%s: keelrun has no option %s" % (page, option)
            for verb in re.findall(r"\bkeelctl ([a-z][a-z|-]*)", line):
                for one in verb.split("|"):
                    if one not in verbs:
                        yield "%s: keelctl has no verb %s" % (page, one)
        for name in sorted(set(re.findall(r"\bKEEL_[A-Z0-9_]+", text)) - words):
            yield "%s: nothing in the code is called %s" % (page, name)


@functools.lru_cache(maxsize=None)
def code_words(text):
    """Words of a source, and the structs that it has."""
    return (frozenset(re.findall(r"\w+", text)),
            frozenset(re.findall(r"\b((?:struct|enum|union) \w+) \{", text)))


@functools.lru_cache(maxsize=None)
def decisions_named(text):
    return frozenset(re.findall(r"\b(?:ADR\s+\[?|adr/)(\d{4})\b", text))


def words_of(text):
    """The code's words between backticks: names with an underscore that are no part of a path, and structs."""
    for name in spans(text)[0]:
        for token in name.split():
            if "/" not in token and not FILE.match(token.strip("(),;:")):
                yield from re.findall(r"(?<![\w.-])[a-z][a-z0-9]*(?:_[a-z0-9]+)+(?![\w*<.-])", token)


def check_words(top, files, pages):
    """Names that code had once, and names that are in another file than the page says: `name` (`file`), or
    `file` (`name`)."""
    source = {f: read(top, f) for f in files if os.path.splitext(f)[1] in CODE and f != "tests/lint/test_docs.py"}
    words = set().union(*(code_words(text)[0] for text in source.values()))
    kinds = set().union(*(code_words(text)[1] for text in source.values()))
    for page in pages:
        text = read(top, page)
        if page not in FOREIGN_WORDS:
            for word in sorted(set(words_of(text)) - words):
                yield "%s: nothing in the code is called %s" % (page, word)
        for kind in sorted(set(re.findall(r"`((?:struct|enum|union) [a-z]\w+)`", text)) - kinds):
            yield "%s: the code has no %s" % (page, kind)
        pairs = re.findall(r"`((?:struct |enum )?\w+)`\s+\(`([\w./-]+\.[ch])`", text)
        pairs += [pair[::-1] for pair in re.findall(r"`([\w./-]+\.[ch])`\s+\(`((?:struct |enum )?\w+)`", text)]
        for name, path in pairs:
            there = [source[f] for f in source if f == path or f.endswith("/" + path)]
            if there and not any(re.search(r"\b%s\b" % name, one) for one in there):
                yield "%s: %s is not in %s" % (page, name, path)


def check_numbers(top):
    for page, pattern, path, name, unit in NUMBERS:
        said = re.search(pattern, read(top, page))
        value = number(read(top, path), name)
        if not said or value is None:
            yield "%s: the sentence of %s (%s) is not found" % (page, name, path)
        elif int(said.group(1)) * unit != value:
            yield "%s: says %s where %s is %d (%s)" % (page, said.group(1), name, value, path)


def check_architecture(top, files):
    text = read(top, "docs/architecture.md")
    named = set(SPAN.findall(text))
    c = [f for f in files if f.endswith((".c", ".h")) and f.split("/")[0] in JOB]
    for folder in sorted({os.path.dirname(f) for f in c}):
        if folder not in named:
            yield "docs/architecture.md: has no line for the folder " + folder
    for f in c:
        if f not in named and starts_thread(read(top, f)):
            yield "docs/architecture.md: does not say that %s starts a thread" % f


def check_meanings(top, pages):
    """A word that the glossary gives to something else is not used for what a page is about."""
    for start, word, better in MEANINGS:
        for page in pages:
            if page.startswith(start) and re.search(r"\b%ss?\b" % word, LINKED.sub("", read(top, page)), re.I):
                yield "%s: says %s where the glossary's word is %s" % (page, word, better)


def check_rules(top):
    """Each rule that can be taken out (tests/sim/mutate) is in the index of rules, and the other way round."""
    taken = set(re.findall(r'rule\("([RV]\d+)"', read(top, "tests/sim/mutate/rules.py")))
    said = set(re.findall(r"^\| ([RV]\d+) \|", read(top, "docs/protocols/replication.md"), re.M))
    for rule in sorted(taken - said):
        yield "docs/protocols/replication.md: has no row for " + rule
    for rule in sorted(said - taken - {"V4"}):  # V4 follows from the others
        yield "tests/sim/mutate/rules.py: takes nothing of %s out" % rule


def check_decisions(top, decisions):
    index = read(top, "docs/adr/README.md")
    for page in decisions:
        name = os.path.basename(page)
        if name != "README.md" and "(%s)" % name not in index:
            yield "docs/adr/README.md: has no row for " + name
    for row in re.findall(r"^\| ([\d, ]+) \| \[", index, re.M):
        for taken in row.split(", "):
            if any(os.path.basename(page).startswith(taken) for page in decisions):
                yield "docs/adr/README.md: %s is said to be taken in, and is there" % taken


def check_decision_numbers(top, files, decisions):
    """Whoever names a decision by ADR or docs/adr and its number means a page that is there."""
    there = {os.path.basename(page)[:4] for page in decisions}
    for f in files:
        if f in ("CHANGELOG.md", "docs/adr/README.md", "tests/lint/test_docs.py"):
            continue
        if os.path.splitext(f)[1] in CODE + (".md",):
            for number in sorted(decisions_named(read(top, f)) - there):
                yield "%s: there is no decision %s" % (f, number)


def offences(top):
    files = tree(top)
    files += [path for path in planted if path not in files]
    pages, decisions = pages_of(files)
    bad = ["%s: %s" % (page, what) for page in pages + decisions for what in links(top, page, read(top, page))]
    bad += list(check_names(top, files, pages)) + list(check_numbers(top)) + list(check_architecture(top, files))
    bad += list(check_rules(top)) + list(check_words(top, files, pages)) + list(check_meanings(top, pages + decisions))
    bad += list(check_decision_numbers(top, files, decisions))
    return bad + list(check_decisions(top, decisions)), len(pages), len(decisions)


def main():
    bad, pages, decisions = offences(sys.argv[1])
    print("\n".join(bad) if bad else "%d pages and %d decisions name what is there" % (pages, decisions))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
