"""Each public header compiles alone, as C89 and C11, as C++98 and C++17; keel.h includes them all, and all are
installed. Results that may say that data are lost warn if they are not looked at, and the programs in the documentation
do.

Usage: headers.py TOP MPI CC [CXX]; MPI is the folder of mpi.h, which armci.h includes, or "" if there is none: ARMCI's
headers are left out then. Exit 77 if there is no C++ compiler.
"""
import pathlib
import re
import subprocess
import sys

top, mpi, compilers = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"]
folder = top / "include" / "keel"
headers, bad = sorted(folder.glob("*.h")), 0
armci = [top / "armci" / name for name in ("armci.h", "message.h")] if mpi else []
if not headers:
    sys.exit("no header found: is this the top of the tree?")
for header in headers + armci:
    for compiler, language, standards in zip(compilers, ("c", "c++"), (("c89", "c11"), ("c++98", "c++17"))):
        for standard in standards:
            command = [compiler, *WARNINGS, "-fsyntax-only", "-I", top / "include", "-std=" + standard, "-x", language, header]
            bad += subprocess.run(command + ["-isystem", mpi] * bool(armci)).returncode != 0
for header in headers:
    if header.name != "keel.h" and f"#include <keel/{header.name}>\n" not in (folder / "keel.h").read_text():
        print(f"keel.h does not include {header.name}")
        bad += 1
    if f"'keel/{header.name}'" not in (top / "include" / "meson.build").read_text():
        print(f"{header.name} is not installed")
        bad += 1


def compiles(program):
    command = [compilers[0], "-std=c11", *WARNINGS, "-I", top / "include", "-S", "-o", "/dev/null", "-x", "c", "-"]
    return subprocess.run(command, input=program, text=True, capture_output=True)


# Their statuses matter to all; that memory is not given back does not.
for name in ("rma.h", "collective.h", "task.h"):
    declared = re.sub(r"/\*.*?\*/", "", (folder / name).read_text(), flags=re.DOTALL)
    for marked, function in re.findall(r"^(KEEL_MUST_CHECK )?keel_status (keel_\w+)\(", declared, re.MULTILINE):
        if not marked and function != "keel_taskpool_free":
            print(f"{name}: the result of {function} may be ignored")
            bad += 1
if "unused-result" not in compiles("#include <keel/keel.h>\nvoid f(void);\nvoid f(void) { keel_fence_all(); }\n").stderr:
    print("an ignored result is no warning")
    bad += 1

# Whole programs: between ```c and ``` in Markdown, between .nf and .fi in manual pages.
programs = [(path, text) for path in sorted([top / "README.md", *(top / "docs").rglob("*.md"), *(top / "docs/man").glob("*.[1-9]")])
            for text in re.findall(r"^```c\n(.*?)^```|^\.nf\n(.*?)^\.fi", path.read_text(), re.DOTALL | re.MULTILINE)]
programs = [(path, "".join(text).replace("\\en", "\\n").replace("\\-", "-")) for path, text in programs
            if "int main(" in "".join(text)]
for path, program in programs:
    if (said := compiles(program)).returncode:
        print(f"the program in {path.relative_to(top)}:\n{said.stderr}")
        bad += 1
if len(programs) < 2:
    sys.exit("the README's program is not found")
print(f"{len(headers)} + {len(armci)} headers, {len(programs)} programs, {len(compilers)} compilers, {bad} complaints")
if bad:
    sys.exit(1)
if len(compilers) < 2:
    print("there is no C++ compiler")
    sys.exit(77)
