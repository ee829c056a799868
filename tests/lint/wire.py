"""wire.py SOURCE: who looks at the members of a message's header whose meaning depends on its type?

Those are struct wire's raw: encode and decode of the messages in runtime/wire turn them into what they mean. Nobody
else in the program names them."""
import os
import re
import sys

RAW = re.compile(r"(->|\.)raw\b")


def main():
    top, bad, seen = sys.argv[1], [], 0
    for folder, _, files in os.walk(os.path.join(top, "runtime")):
        for name in files:
            path = os.path.relpath(os.path.join(folder, name), top)
            if not name.endswith((".c", ".h")):
                continue
            lines = open(os.path.join(top, path), encoding="utf-8").read().splitlines()
            found = [n for n, line in enumerate(lines, 1) if RAW.search(line)]
            if path.startswith("runtime/wire/"):
                seen += len(found)
            else:
                bad += ["%s:%d: reads or writes a raw member of a header" % (path, n) for n in found]
    if not seen:
        bad.append("runtime/wire: no encode or decode names raw members any more; what does this test look for?")
    print("\n".join(bad) if bad else "%d places, all in runtime/wire" % seen)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
