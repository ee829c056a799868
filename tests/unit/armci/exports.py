"""libarmci has every symbol that Debian's archives want. Usage: exports.py asked|given LIBARMCI ARCHIVE; exit 77
without the archive.

asked   an archive of Global Arrays: what it asks an ARMCI for
given   an archive of ARMCI-MPI: what it gives programs, but for what is left out on purpose"""
import os
import re
import subprocess
import sys

LEFT_OUT = {
    r"PARMCI_\w+|parmci_\w+": "second names, for profilers that put themselves before the first",
    r"ARMCI_Init_thread|ARMCI_Init_thread_comm": "a level of threads is asked for; the calls of libarmci are for one thread at a time",
    r"ARMCIX_\w+": "ARMCI-MPI's additions to ARMCI: mutexes in handles, groups of groups, progress by hand",
    r"ARMCII_\w+|gmr_\w+|ctree_\w+|CTREE_EMPTY|DEBUG_CATS_ENABLED": "its inside",
    r"ARMCI_GROUP_WORLD|ARMCI_GROUP_DEFAULT|ARMCI_MPI_\w+_OP|ARMCI_Progress_thread|progress_active": "its inside, in no header for programs",
}


def symbols(*arguments):
    said = subprocess.run(["nm", *arguments], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1].split("@")[0] for line in said.splitlines() if re.match(r"^[0-9a-f ]* [A-Zi] [\w@.]+$", line)}


how, library, archive = sys.argv[1:]
if not os.path.exists(archive):
    sys.exit(77)
given = symbols("--defined-only", archive)
stale = []
if how == "asked":
    least, wanted = 70, {name for name in symbols("-u", archive) - given if re.match("armci|ARMCI", name)}
else:
    least, wanted = 100, {name for name in given if not any(re.fullmatch(names, name) for names in LEFT_OUT)}
    stale = [name for names in LEFT_OUT for name in names.split("|") if not any(re.fullmatch(name, one) for one in given)]
missing = wanted - symbols("-D", "--defined-only", library)
print(f"{len(wanted)} symbols wanted, {len(missing)} missing:", *sorted(missing))
print(f"{len(stale)} left out that are not there:", *stale)
sys.exit(len(wanted) < least or bool(missing) or bool(stale))
