"""layers.py finds what is planted. Usage: test_layers.py TOP BUILD COMPILER...

Each violation is planted in a copy of the tree, where layers.py must name it, and nothing else.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

import layers

# What is written where, and what layers.py says of it.
PLANTED = [
    ("runtime/view/view.c", '#include "../agent/agent.h"', "runtime/view must not include runtime/agent/agent.h"),
    ("runtime/base/log.c", "#include <runtime/client/client.h>", "runtime/base must not include runtime/client/client.h"),
    ("runtime/news/news.c", "int news;", "the folder runtime/news is no layer"),
    ("runtime/loose.c", "int loose;", "the folder runtime is no layer"),
    ("apps/scf/main.c", '#include "runtime/base/log.h"', "apps/scf must not include runtime/base/log.h"),
    ("tests/multi/rma.c", '#include "runtime/agent/store.h"', "tests/multi must not include runtime/agent/store.h"),
    ("runtime/wire/wire.h", '#include "runtime/view/view.h"', "runtime/wire must not include runtime/view/view.h"),
    ("runtime/wire/page.h", '#include "collectives/board.h"', "runtime/wire must not include collectives/board.h"),
    ("runtime/client/api/public_rma.c", '#include "runtime/agent/store.h"', "runtime/client/api must not include runtime/agent/store.h"),
    ("runtime/base/env.c", "#include <keel/segment.h>", "runtime/base must not include include/keel/segment.h"),
    ("runtime/net/ofi/ofi.c", '#include "runtime/wire/wire.h"', "runtime/net/ofi must not include runtime/wire/wire.h"),
    ("layers.txt", "tests = tests/late", "tests stands on tests/late, which is not above it"),
    ("pm/run/job.c", "# /* quietly */ include \\\n  \"pm/keeld/keeld.h\"", "pm/run must not include pm/keeld/keeld.h"),
    ("runtime/base/clock.c", '%:include "runtime/topo/place.h"', "runtime/base must not include runtime/topo/place.h"),
    ("runtime/agent/store.c", '#include "runtime/agent/shop.h"', "runtime/agent/shop.h does not exist"),
    ("detect/member.c", "#define WHAT \"runtime/agent/agent.h\"\n#include WHAT", "cannot tell what WHAT includes"),
    ("detect/quorum.c", '#include "../../../outside.h"', "outside"),
]
# What is added to a pure source, and the call that is found.
IMPURE = [
    ("runtime/view/policy.c", "#include <time.h>\nlong planted(void);\nlong planted(void) { return time(0); }", "time"),
    ("runtime/agent/dedup.c", "#include <unistd.h>\nlong planted(void);\nlong planted(void) { return write(2, \"\", 0); }", "write"),
    ("runtime/client/op/plan.c", "#include <stdlib.h>\nint planted(void);\nint planted(void) { return rand(); }", "rand"),
    ("runtime/wire/stripe.c", "#include \"runtime/base/clock.h\"\nlong planted(void);\n"
     "long planted(void) { return (long)clock_now_ns(); }", "clock_now_ns"),
]


def copy_of(top, folder):
    for path in layers.sources(top):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(top / path, folder / path)
    for name in ("layers.txt", "docs/architecture.md"):
        shutil.copyfile(top / name, folder / name)


def expect(complaints, where, what):
    if len(complaints) != 1 or not complaints[0].startswith(where) or what not in complaints[0]:
        sys.exit(f"planted in {where}: {what}\nfound: {complaints}")


def main():
    top, build, compiler = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3:]
    with tempfile.TemporaryDirectory() as name:
        copy = pathlib.Path(name, "tree").resolve()
        copy_of(top, copy)
        pathlib.Path(name, "outside.h").touch()
        if found := layers.wrong_includes(copy):
            sys.exit(f"nothing was planted, and found: {found}")
        for where, text, what in PLANTED:
            before = (copy / where).read_text() if (copy / where).exists() else None
            (copy / where).parent.mkdir(exist_ok=True)
            (copy / where).write_text((before or "") + "\n" + text + "\n")
            expect(layers.wrong_includes(copy), where, what)
            if before is None:
                (copy / where).unlink()
            else:
                (copy / where).write_text(before)
        if layers.wrong_picture(copy):
            sys.exit("docs/architecture.md shows the layers, and is said not to")
        (copy / "layers.txt").write_text((top / "layers.txt").read_text().replace("\nview ", "\nsight ").replace(" view ", " sight "))
        expect(layers.wrong_picture(copy), "docs/architecture.md", "not those of layers.txt")
        objects = layers.built_objects(top, build)
        for number, (where, text, what) in enumerate(IMPURE):
            (copy / where).write_text((top / where).read_text() + "\n" + text + "\n")
            planted = pathlib.Path(name, f"planted{number}.o")
            subprocess.run([*compiler, "-std=gnu17", "-D_GNU_SOURCE", "-O1", "-I", copy, "-I", copy / "include", "-c",
                            copy / where, "-o", planted], check=True)
            expect(layers.impure_calls(top, objects | {where: planted}), where, f"uses {what}")
        expect(layers.impure_calls(top, {s: o for s, o in objects.items() if s != "collectives/group.c"}),
               "collectives/group.c", "not built")
    print(f"{len(PLANTED)} includes and {len(IMPURE) + 1} impure objects planted, all found")


main()
