"""clang-tidy-14, with the checks of .clang-tidy, over what a build folder compiles.

Usage: tidy.py BUILD [FILE...]   only the sources whose path ends with one of FILE, else all
The static analyzer, which takes nine tenths of the time, looks at what is installed and shown: tests are run with
sanitizers. Over all sources it goes on to STATES states of a function, and to clang's own number, 225,000, where files
are named: that takes 2.3 times as long. Prints each finding once; exit 1 if there is one. BUILD/meson-logs/tidy.json
receives one result, of the form that scripts/summarize.py reads.
A source of several targets is looked at once for each way in which it is compiled, not for each target.
"""
import concurrent.futures
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time


TESTS = os.path.abspath(os.path.join(os.path.dirname(__file__), "../tests")) + "/"
STATES = 60000


def way(command):
    """How it is compiled: what says where the results go, and a target's own folder, left out."""
    words, rest = shlex.split(command["command"]), []
    while words:
        word = words.pop(0)
        if word in ("-o", "-MF", "-MQ"):
            words.pop(0)
        elif not (word.startswith("-I") and word.endswith(".p")):
            rest.append(word)
    return source_of(command), tuple(rest)


def source_of(command):
    return os.path.normpath(os.path.join(command["directory"], command["file"]))


def tidy(build, source, deep):
    options = []
    if os.path.abspath(source).startswith(TESTS):
        options = ["--checks=-clang-analyzer-*"]
    elif not deep:
        options = ["--extra-arg=" + word for word in ("-Xclang", "-analyzer-config", "-Xclang", f"max-nodes={STATES}")]
    run = subprocess.run(["clang-tidy-14", "-p", build, "--quiet", *options, source], capture_output=True, text=True)
    return run.returncode, run.stdout if run.stdout or not run.returncode else run.stderr


def main():
    build, wanted = sys.argv[1], tuple(sys.argv[2:])
    result = os.path.join(build, "meson-logs", "tidy.json")
    if not shutil.which("clang-tidy-14"):
        print("clang-tidy-14 is not installed", file=sys.stderr)
        return 2
    try:
        commands = open(os.path.join(build, "compile_commands.json"))
        open(result, "w").close()
    except OSError as error:
        print(f"not a build folder: {error}", file=sys.stderr)
        return 2
    with commands as f:
        ways = {way(c): c for c in json.load(f) if c["file"].endswith(".c")}
    sources = sorted({s for s, _ in ways if not wanted or s.endswith(wanted)})
    if not sources:
        print("no such source", file=sys.stderr)
        return 2
    start, bad, seen = time.monotonic(), 0, set()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool, tempfile.TemporaryDirectory() as once:
        with open(os.path.join(once, "compile_commands.json"), "w") as f:
            json.dump(list(ways.values()), f)
        for code, text in pool.map(lambda source: tidy(once, source, bool(wanted)), sources):
            bad += code != 0
            # A finding in a header comes with every file that includes it.
            for finding in re.split(r"^(?=\S+:\d+:\d+: (?:warning|error): )", text, flags=re.M):
                if finding.strip() and finding not in seen:
                    seen.add(finding)
                    print(finding, end="", flush=True)
    print(f"clang-tidy: {len(sources)} files, {bad} with findings, {time.monotonic() - start:.0f} s")
    with open(result, "w") as f:
        print(json.dumps({"name": "clang-tidy", "result": "FAIL" if bad else "OK"}), file=f)
    return 1 if bad else 0


sys.exit(main())
