"""The C files are formatted as .clang-format says. Usage: format.py TOP; prints what clang-format-14 would change, exit 1 if anything."""
import os
import shutil
import subprocess
import sys

if not shutil.which("clang-format-14"):
    print("clang-format-14 is not installed")
    sys.exit(77)

files = []
for folder, folders, names in os.walk(sys.argv[1]):
    # build folders are no part of the tree, wherever they are
    folders[:] = [f for f in folders if f[0] != "." and not os.path.exists(os.path.join(folder, f, "meson-private"))]
    files += [os.path.join(folder, name) for name in names if name.endswith((".c", ".h"))]
if len(files) < 20:
    sys.exit("hardly any C files found: is this the top of the tree?")
sys.exit(subprocess.run(["clang-format-14", "--dry-run", "-Werror", *sorted(files)]).returncode)
