"""commits.py [TOP]: subjects and bodies of the commits that descend from the one that brought this file.

A subject is "area: text" of at most 72 columns, or git's own "Revert ..."; then come an empty line, and a body that
says why. Merges are left alone. Where there is no history to look at (no git, an archive, a shallow clone) there is
nothing to say.
Prints each offence with its commit, exit 1 if there is one."""
import os
import re
import subprocess
import sys

SUBJECT_MAX = 72
TRAILER = re.compile(r"^[A-Z][\w-]+: \S")


def git(top, *arguments):
    """What git prints; nothing where it cannot."""
    try:
        done = subprocess.run(["git", "-c", "safe.directory=*", "-C", top, *arguments], capture_output=True, text=True,
                              errors="replace")
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""


def offences(message):
    lines = message.rstrip("\n").split("\n")
    subject, body = lines[0], [line for line in lines[1:] if line.strip() and not TRAILER.match(line)]
    if len(subject) > SUBJECT_MAX:
        yield "the subject has %d columns, %d at most" % (len(subject), SUBJECT_MAX)
    if re.match(r"(fixup|squash|amend)!", subject):
        yield "is to be put into the commit that it mends"
    elif not subject.startswith("Revert ") and not re.match(r"^[\w./()+-]+(, [\w./()+-]+)*: \S", subject):
        yield "the subject does not begin with an area and a colon"
    if len(lines) > 1 and lines[1].strip():
        yield "no empty line behind the subject"
    if not body:
        yield "no body that says why"


def main():
    top = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    name = "scripts/commits.py"
    # In a shallow clone its first commit seems to bring every file: then what comes after that one is looked at.
    brought = git(top, "log", "--diff-filter=A", "--format=%H", "--", name).split()
    if not brought:
        print("no history to look at")
        return 0
    commits = git(top, "rev-list", "--no-merges", "--ancestry-path", "%s..HEAD" % brought[-1]).split()
    bad = 0
    for commit in reversed(commits):
        message = git(top, "log", "-1", "--format=%B", commit)
        for what in offences(message):
            bad += 1
            print("%s %s: %s" % (commit[:8], message.split("\n")[0], what))
    if not bad:
        print("%d commits are as CONTRIBUTING.md says" % len(commits))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
