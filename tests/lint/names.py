"""names.py SOURCE: no two structs of what keeld is made of have one of these names.

Each of them stood for two or three things once, in different folders of one program."""
import os
import re
import sys

PARTS = ["runtime", "collectives", "detect", "pm/keeld", "pm/wire", "pm/pmi"]  # keeld and the ranks' library
NAMES = ["agent", "peer", "conn", "command", "blob", "keeld", "wire", "hello", "datagram", "group", "copyset", "view"]


def main():
    found = {}
    for part in PARTS:
        for at, _, files in os.walk(os.path.join(sys.argv[1], part)):
            for name in sorted(files):
                if name.endswith((".c", ".h")):
                    path = os.path.join(at, name)
                    with open(path, encoding="utf-8") as f:
                        for tag in re.findall(r"^struct (\w+) \{", f.read(), re.M):
                            found.setdefault(tag, []).append(os.path.relpath(path, sys.argv[1]))
    bad = ["struct %s: %s" % (tag, ", ".join(found[tag])) for tag in NAMES if len(found.get(tag, [])) > 1]
    print("\n".join(bad) if bad else "one meaning each: " + ", ".join(NAMES))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
