"""libarmci has every symbol that an archive of Global Arrays asks an ARMCI for. Usage: exports.py LIBARMCI ARCHIVE; exit 77 without the archive."""
import os
import re
import subprocess
import sys

library, archive = sys.argv[1:]
if not os.path.exists(archive):
    sys.exit(77)


def symbols(*arguments):
    said = subprocess.run(["nm", *arguments], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1].split("@")[0] for line in said.splitlines() if re.match(r"^[0-9a-f ]* [A-Zi] [\w@.]+$", line)}


wanted = {name for name in symbols("-u", archive) - symbols("--defined-only", archive) if re.match("armci|ARMCI", name)}
missing = wanted - symbols("-D", "--defined-only", library)
print(f"{len(wanted)} symbols wanted, {len(missing)} missing:", *sorted(missing))
sys.exit(len(wanted) < 70 or bool(missing))
