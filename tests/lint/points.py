"""points.py SOURCE: does the simulation of the data half aim at each fault point of that half?

Each FAULT_POINT of the runtime stands in a list of tests/sim/data/scenarios*.c, at whose points processes die, freeze
or are cut off; or it is where the simulation does not come, and is named here with the reason. A name in these files
that no fault point has is wrong, too."""
import glob
import os
import re
import sys

BEYOND = {
    "coll.posted": "boards are memory of several processes",
    "join.coming": "processes are joined to the job by the simulation itself",
    "join.placed": "processes are joined to the job by the simulation itself",
    "join.reporting": "processes are joined to the job by the simulation itself",
    "rank.move_called": "programs of the simulation do not choose where they move",
    "replica.fate_known": "sets of the simulation do not begin anew",
    "replica.guest": "sets of the simulation do not begin anew",
    "replica.has_read": "sets of the simulation do not begin anew",
    "replica.hosted": "sets of the simulation do not begin anew",
    "replica.hosting": "sets of the simulation do not begin anew",
    "replica.joined": "sets of the simulation do not begin anew",
    "replica.joining": "sets of the simulation do not begin anew",
    "replica.reading": "sets of the simulation do not begin anew",
    "replica.telling": "sets of the simulation do not begin anew",
    "save.finishing": "programs of the simulation save nothing",
    "save.loaded": "programs of the simulation save nothing",
    "save.loading": "programs of the simulation save nothing",
    "save.named": "programs of the simulation save nothing",
    "save.naming": "programs of the simulation save nothing",
    "save.told": "programs of the simulation save nothing",
    "save.writing": "programs of the simulation save nothing",
    "save.written": "programs of the simulation save nothing",
    "start.lateness": "machines of the simulation are as late as it says",
    "rank.aborting": "programs of the simulation end no job",
    "rank.aborted": "programs of the simulation end no job",
}
FOLDERS = ["runtime", "collectives", "detect"]


def points(source):
    found = set()
    for folder in FOLDERS:
        for at, _, files in os.walk(os.path.join(source, folder)):
            for name in files:
                if name.endswith(".c"):
                    with open(os.path.join(at, name), encoding="utf-8") as f:
                        found |= set(re.findall(r'FAULT_POINT\("([^"]+)"\)', f.read()))
    return found


def aims(source):
    found = set()
    for path in glob.glob(os.path.join(source, "tests/sim/data/scenarios*.c")):
        with open(path, encoding="utf-8") as f:
            found |= set(re.findall(r'"([a-z]+\.[a-z_]+)"', f.read()))
    return found


def main():
    source = sys.argv[1]
    aimed = aims(source)
    declared = points(source)
    bad = ["no scenario aims at " + p for p in sorted(declared - aimed - set(BEYOND))]
    bad += [p + " is aimed at, but no fault point" for p in sorted(aimed - declared)]
    bad += [p + " is said to be beyond the simulation, but is no fault point, or is aimed at"
            for p in sorted(set(BEYOND) - (declared - aimed))]
    print("\n".join(bad) if bad else "%d fault points, %d of them beyond the simulation" % (len(declared), len(BEYOND)))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
