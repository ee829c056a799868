"""frames.py SOURCE: each frame between keelrun, keelctl and agents (pm/wire/message.h) has its word in
docs/protocols/launch.md."""
import os
import re
import sys


def main():
    top = sys.argv[1]
    with open(os.path.join(top, "pm/wire/message.h"), encoding="utf-8") as f:
        frames = re.findall(r"^\s+MSG_(\w+)\s*=", f.read(), re.M)
    with open(os.path.join(top, "docs/protocols/launch.md"), encoding="utf-8") as f:
        words = set(re.findall(r"\b[A-Z][A-Z_]+\b", f.read()))
    bad = ["docs/protocols/launch.md: says nothing of " + name for name in frames if name not in words]
    if len(frames) < 40:
        bad.append("pm/wire/message.h: only %d frames are found; what does this test look for?" % len(frames))
    print("\n".join(bad) if bad else "%d frames" % len(frames))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
