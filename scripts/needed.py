"""needed.py BUILD SUITE...: the targets of ninja that the tests of these suites need, one a line: what they depend on
or name in their arguments and environment, and all that is installed, as some tests install it."""
import json
import os
import subprocess
import sys


def introspect(build, what):
    return json.loads(subprocess.run(["meson", "introspect", build, what], check=True, stdout=subprocess.PIPE).stdout)


def main():
    build, suites = os.path.realpath(sys.argv[1]), set(sys.argv[2:])
    needed, named = set(), set()
    for test in introspect(build, "--tests"):
        if suites & {suite.split(":")[-1] for suite in test["suite"]}:
            needed.update(test["depends"])
            named.update(test["cmd"], test["env"].values())
    for target in introspect(build, "--targets"):
        if target["installed"] or target["id"] in needed or named & set(target["filename"]):
            for path in target["filename"]:
                print(os.path.relpath(path, build))


main()
