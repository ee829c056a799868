"""callers.py finds what is planted. Usage: test_callers.py TOP BUILD COMPILER..."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

import callers
import layers

# What is added to a source of the program, what to a test, and what callers.py says.
PLANTED = [
    ("int planted(void);\nint planted(void) { return 1; }", "", "nobody calls planted"),
    ("int planted(void);\nint planted(void) { return 1; }",
     "int planted(void);\nint test(void);\nint test(void) { return planted(); }", "only tests call planted"),
    ("int planted(int n);\nint planted(int n) { return n ? planted(n - 1) : 1; }", "",
     "nobody else uses planted: it is static"),
]
# And what it does not mind: a test may call what its own file calls, and a table may name it by a macro.
FINE = [
    ("int planted(int n);\nint planted(int n) { return n ? planted(n - 1) : 1; }",
     "int planted(int);\nint test(void);\nint test(void) { return planted(7); }"),
    ("#define ROW(name) plan##name\nint planted(void);\nint planted(void) { return 1; }\n"
     "static int (*const table[])(void) __attribute__((used)) = {ROW(ted)};", ""),
]
PROGRAM, TEST = "runtime/base/planted.c", "tests/unit/base/planted.c"


def main():
    top, build, compiler = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3:]
    objects = layers.built_objects(top, build)
    with tempfile.TemporaryDirectory() as name:
        copy = pathlib.Path(name, "tree").resolve()
        for path in layers.sources(top):
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(top / path, copy / path)
        if found := callers.wrong_callers(copy, objects):
            sys.exit(f"nothing was planted, and found: {found}")
        for number, (program, test, *what) in enumerate(PLANTED + FINE):
            planted = dict(objects)
            for source, text in ((PROGRAM, program), (TEST, test or "typedef int none;")):
                (copy / source).write_text(text + "\n")
                planted[source] = pathlib.Path(name, f"{number}{source.replace('/', '.')}.o")
                subprocess.run([*compiler, "-std=gnu17", "-O1", "-fPIC", "-c", copy / source, "-o", planted[source]],
                               check=True)
            found = callers.wrong_callers(copy, planted)
            if found != [f"{PROGRAM}: {text}" for text in what]:
                sys.exit(f"planted: {program}\nfound: {found}")
        without = {source: built for source, built in objects.items() if source != "runtime/client/client.c"}
        found = callers.wrong_callers(copy, without)
        if found != ["tests/lint/callers.py: there is no client_fini any more"]:
            sys.exit(f"client.c was not built, and found: {found}")
    print(f"{len(PLANTED)} offences planted, all found; {len(FINE)} others left alone")


main()
