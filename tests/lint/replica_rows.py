"""replica_rows.py TOP: what becomes of each public call where the program has replicas?

Each call of include/keel/api.json has one row in runtime/client/replica/rows.inc, or is named here. What takes or gives
ranks or nodes is not passed on untranslated; what a row says about ranks is done in the call's function; and
docs/replica-checks.md lists the calls that are refused, no others.
"""
import json
import pathlib
import re
import sys

BEYOND = {  # calls that no wrapper sees, and what becomes of their ranks
    "keel_rank": "replica_of in runtime/client/job/questions.c", "keel_size": "ranks of the map, likewise",
    "keel_group_world": "public_groups_are", "keel_group_node": "public_groups_are",
    "keel_failure_fd": "none, in runtime/client/job/notify.c", "keel_restarted": "no rank: none is started again",
    "keel_init": "no rank", "keel_init_over": "no rank: such a job has no replicas",
    "keel_abort": "no rank: its set ends",
    "keel_need_all": "no rank", "keel_survive": "no rank", "keel_survives": "no rank",
    "keel_local_alloc": "no rank", "keel_local_free": "no rank", "keel_status_text": "no rank",
    "keel_status_name": "no rank", "keel_type_size": "no rank", "keel_verdict_name": "no rank"}
NAMES = {"rank", "root", "ranks", "from", "node", "nodes", "a", "b"}
BY_ITS_MEMBER = "members of a group"
TRANSLATES = re.compile(r"replica_native_of|to_ranks|rank_of\(|replica_of\(|native_node")


def rows(top):
    text = (top / "runtime/client/replica/rows.inc").read_text()
    return re.findall(r'^(OWN|PASSED)\((\w+), "([^"]+)"\)$', text, re.M)


def functions(top):
    """Text of each call's function, by its name without keel_; those that macros make are their macro's line."""
    found = {}
    for path in sorted((top / "runtime/client/replica").glob("wrap*.c")):
        text = path.read_text()
        for match in re.finditer(r"^(?:\w[\w ]*[ *])replica_(\w+)\([^;{]*\)\n\{\n(.*?)^\}", text, re.M | re.S):
            found[match[1]] = match[2]
        for match in re.finditer(r"^(GET|REFUSED|CONTRIBUTES\w*|BLOCKS)\((\w+),", text, re.M):
            found[match[2]] = {"GET": "replica_native_of", "REFUSED": "replica_refuses"}.get(match[1], "BELOW")
    return found


def has_ranks(call):
    return any(a["name"] in NAMES and "group" not in a["type"] and "double" not in a["type"]
               for a in call["arguments"])


def wrong(top):
    calls = {c["name"]: c for c in json.loads((top / "include/keel/api.json").read_text())["calls"]}
    listed, bodies = rows(top), functions(top)
    names = ["keel_" + name for _, name, _ in listed]
    bad = [f"{name}: {names.count(name)} rows" for name in calls if names.count(name) + (name in BEYOND) != 1]
    bad += [f"{name}: no such call" for name in [*names, *BEYOND] if name not in calls]
    for how, name, what in listed:
        call = calls.get("keel_" + name)
        if call and how == "PASSED" and has_ranks(call) and "computed from the grid" not in what:
            bad.append(f"keel_{name}: takes ranks, and is passed on")
        if how == "OWN" and name not in bodies:
            bad.append(f"keel_{name}: no function")
        if how == "OWN" and "ranks become" in what and not TRANSLATES.search(bodies.get(name, "")):
            if not re.search(r"replica_(acc|fence_all)\(|lock\(", bodies.get(name, "")):
                bad.append(f"keel_{name}: its ranks stay what they are")
        refuses = re.search(rf"replica_refuses\(CALL_{name}\)|^replica_refuses$", bodies.get(name, ""))
        if ("refused" in what) != bool(refuses):
            bad.append(f"keel_{name}: its row and its function do not agree whether it is refused")
    page = (top / "docs/replica-checks.md").read_text()
    part = page.split("## Calls that are refused")[1].split("\n## ")[0]
    told = set(re.findall(r"`keel_(\w+)`", part))
    refused = {name for _, name, what in listed if "refused" in what}
    bad += [f"docs/replica-checks.md: keel_{name} is refused, and is not there" for name in sorted(refused - told)]
    bad += [f"docs/replica-checks.md: keel_{name} is not refused" for name in sorted(told - refused)]
    return bad


if __name__ == "__main__":
    offences = wrong(pathlib.Path(sys.argv[1]))
    for line in offences:
        print(line)
    sys.exit(bool(offences))
