"""A lower layer never includes a higher one. Usage: layers.py TOP; prints each offending include, exit 1 if there is one."""
import pathlib
import re
import sys

# Each layer and what it may include besides itself. The rooms of pm meet in pm/wire; pm/plane.h is the seam to the data half.
BASE = {"runtime/base"}
TOPO = BASE | {"runtime/topo"}
TRANSPORT = BASE | {"runtime/transport"}
CORE = TRANSPORT | TOPO | {"runtime/core"}
ALLOWED = {
    "runtime/base": BASE,
    "runtime/topo": TOPO,
    "runtime/transport": TRANSPORT,
    "detect": TRANSPORT | TOPO | {"detect"},
    "runtime/core": CORE,
    "runtime/redundancy": CORE | {"runtime/redundancy"},
    "collectives": BASE | {"collectives"},
    "runtime/recovery": CORE | {"runtime/redundancy", "runtime/recovery", "collectives"},
    "runtime/init": CORE | {"runtime/redundancy", "runtime/recovery", "runtime/init", "collectives", "detect", "pm/plane.h"},
    "runtime/compat": {"runtime/compat"},
    "pm/wire": BASE | {"pm/wire"},
    "pm/pmi": BASE | {"pm/wire", "pm/pmi"},
    "pm/bed": BASE | {"pm/wire", "pm/bed"},
    "pm/run": BASE | {"pm/wire", "pm/bed", "pm/run", "pm/plane.h"},
    "pm/agent": BASE | {"pm/wire", "pm/pmi", "pm/agent", "pm/plane.h"},
    "pm/ctl": BASE | {"pm/wire", "pm/bed", "pm/ctl"},
    "apps": {"apps"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')

top = pathlib.Path(sys.argv[1])
bad = seen = 0
for layer, allowed in ALLOWED.items():
    for path in sorted((top / layer).rglob("*.[ch]")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if not match or not (top / match.group(1)).exists():
                continue  # a header beside the file
            seen += 1
            if not any(match.group(1) == a or match.group(1).startswith(a + "/") for a in allowed):
                print(f"{path.relative_to(top)}:{number}: {layer} must not include {match.group(1)}")
                bad += 1
if not seen:
    sys.exit("no include found: is this the top of the tree?")
sys.exit(1 if bad else 0)
