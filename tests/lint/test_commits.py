"""Does scripts/commits.py find what it is there for? In a repository of its own; 77 where git is not installed.
Usage: test_commits.py TOP"""
import os
import shutil
import subprocess
import sys
import tempfile

SCRIPT = os.path.join(sys.argv[1], "scripts/commits.py")
WHY = "\n\nBecause it was wrong.\n"
BAD = [
    ("x" * 70 + ": y" + WHY, "columns"),
    ("no area here" + WHY, "area"),
    ("area: no body\n", "no body"),
    ("area: trailers only\n\nSigned-off-by: A <a@b>\n", "no body"),
    ("area: text\nat once\n", "no empty line"),
    ("fixup! area: text" + WHY, "put into the commit"),
]
GOOD = ["area: text" + WHY, "pm, client: two areas" + WHY, 'Revert "area: text"' + WHY, "x: " + "y" * 69 + WHY]


def git(top, *arguments, stdin=None):
    environment = dict(os.environ, GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_SYSTEM="/dev/null", GIT_AUTHOR_NAME="a",
                       GIT_AUTHOR_EMAIL="a@b", GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a@b")
    subprocess.run(["git", "-c", "safe.directory=*", *arguments], cwd=top, check=True, capture_output=True, text=True,
                   input=stdin, env=environment)


def commit(top, message):
    git(top, "commit", "--allow-empty", "--cleanup=verbatim", "-F", "-", stdin=message)


def says(top):
    done = subprocess.run([sys.executable, SCRIPT, top], capture_output=True, text=True)
    return done.returncode, done.stdout


def tree(top):
    """As it was before the script came, and then with it."""
    git(top, "init", "-q", ".")
    commit(top, "old commits are left alone\n")
    os.mkdir(os.path.join(top, "scripts"))
    shutil.copy(SCRIPT, os.path.join(top, "scripts"))
    git(top, "add", ".")
    commit(top, "the one that brings it, too\n")


def main():
    failed = []
    for messages, expected in [([m], e) for m, e in BAD] + [(GOOD, None)]:
        with tempfile.TemporaryDirectory() as top:
            tree(top)
            for message in messages:
                commit(top, message)
            code, out = says(top)
            if code != (expected is not None) or (expected and (expected not in out or len(out.splitlines()) != 1)):
                failed.append("%r: %d %s" % (messages, code, out))
    with tempfile.TemporaryDirectory() as top, tempfile.TemporaryDirectory() as clone:
        tree(top)
        commit(top, "area: no body\n")
        git(clone, "clone", "-q", "--depth", "1", "file://" + top, "shallow")
        for place, what in ((os.path.join(clone, "shallow"), "a shallow clone"), (clone, "no repository")):
            code, out = says(place)
            if code != 0:
                failed.append("%s: %s" % (what, out))
    print("\n".join(failed) if failed else "%d commits found, %d left alone" % (len(BAD), len(GOOD)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main() if shutil.which("git") else 77)
