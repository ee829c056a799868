"""The demonstration behind ./demo --stencil: a heat plate on a 4x4 grid of nodes, nine of them with a rank and seven
spares on two sides. Two nodes are killed, one after the other; pictures of the grid show who moved where, and the bits
of the result are those of a run in which nothing dies."""
import argparse
import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time

SIDE, RANKS = 4, 9
VICTIMS = (5, 1)  # places whose nodes die: inside, and then on the upper side
DEADLINE_S = 600
FIELD = re.compile(r"^field ([0-9a-f]+)$", re.M)
FIRST_ROUNDS, SHARES = 400, (0.15, 0.3)
QUIET_NS = 1_000_000_000


def say(text=""):
    print(text, flush=True)


class Job:
    """A run, and what its event log has said so far."""

    def __init__(self, options, sweeps, folder):
        build = pathlib.Path(options.build)
        self.log = pathlib.Path(folder) / "events.jsonl"
        self.log.write_text("")  # not what an earlier run has left
        command = [str(build / "pm/keelrun"), "-n", str(RANKS), "--grid", f"{SIDE}x{SIDE}", "--spare-alloc", "2D(2,1)",
                   "--substitution", options.substitution, "--event-log", str(self.log), "--quiet",
                   str(build / "apps/stencil/keel-stencil"), "5p", "--cells", options.cells, "--sweeps", str(sweeps),
                   "--tolerance", "0"]
        self.child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.begun = time.monotonic()
        self.file, self.rest, self.events = open(self.log), "", []

    def poll(self):
        self.rest += self.file.read()
        *lines, self.rest = self.rest.split("\n")
        self.events += [json.loads(line) for line in lines]
        if time.monotonic() > self.begun + DEADLINE_S:
            self.child.send_signal(signal.SIGINT)
            raise SystemExit("demo: the run does not end")
        return self.child.poll() is None

    def named(self, name, **fields):
        return [e for e in self.events if e["event"] == name and all(e.get(k) == v for k, v in fields.items())]

    def wait(self, condition):
        """False: the job ended before."""
        while self.poll():
            if condition():
                return True
            time.sleep(0.002)
        return bool(condition())

    def places(self):
        return self.named("started")[0]["grid"]["place"]

    def beginnings(self):
        """Of ranks' processes: new ones, and those that waited for a rank (which have none, -1, until then)."""
        both = self.named("rank_start") + self.named("substituted")
        return sorted((e for e in both if e["rank"] >= 0), key=lambda e: e["t_ns"])

    def where(self):
        """{place: the rank whose process began there last}"""
        node = {e["rank"]: e["node"] for e in self.beginnings()}
        return {self.places()[n]: rank for rank, n in node.items()}

    def kill(self, place):
        node = self.places().index(place)
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        for e in self.named("start", node=node) + self.named("rank_start", node=node):
            with contextlib.suppress(ProcessLookupError):
                os.kill(e["pid"], signal.SIGKILL)
        return node, now


def picture(job, dead, before=None):
    """A cell for each place: its rank, . a spare, X a dead node; > is in front of a rank that was elsewhere before."""
    where, moved = job.where(), []
    for rank, place in sorted((rank, place) for place, rank in where.items()):
        if before is not None and before.get(place) != rank:
            moved.append(f"rank {rank} {next((p for p, r in before.items() if r == rank), '?')}->{place}")
    for y in range(SIDE):
        cells = []
        for x in range(SIDE):
            place = y * SIDE + x
            rank = where.get(place)
            if place in dead:
                cells.append(" X ")
            elif rank is None:
                cells.append(" . ")
            else:
                cells.append(f"{'>' if before is not None and before.get(place) != rank else ' '}{rank} ")
        say("    " + " ".join(cells))
    if moved:
        say("    moved, by places: " + ", ".join(moved))
    return where


def settled(job, node, since):
    """All has its copies again, and no rank has moved for a while: the time of the last that did, or None."""
    views = [e["t_ns"] for e in job.named("view", dead_node=node) if e["t_ns"] >= since]
    last = [e["t_ns"] for e in job.named("redundancy_restored") + job.beginnings() if views and e["t_ns"] >= views[0]]
    quiet = time.clock_gettime_ns(time.CLOCK_MONOTONIC) - QUIET_NS
    return max(last) if len(last) > 1 and max(last) < quiet else None


def finish(job):
    out = job.child.stdout.read()
    job.child.wait(DEADLINE_S)
    job.poll()
    found = FIELD.search(out)
    return job.child.returncode, found and found[1], time.monotonic() - job.begun, out.splitlines()


def killed_run(options, sweeps, quiet_s, folder):
    job, dead, where = Job(options, sweeps, folder), set(), None
    try:
        if not job.wait(lambda: len(job.beginnings()) >= RANKS):
            raise SystemExit("demo: the ranks did not begin")
        say("  at the start, x first, spares on two sides:")
        where = picture(job, dead)
        for share, place in zip(SHARES, VICTIMS):
            job.wait(lambda share=share: time.monotonic() - job.begun > share * quiet_s)
            node, at = job.kill(place)
            dead.add(place)
            say(f"  *** place {place} (node {node}, rank {where[place]}) killed")
            if not job.wait(lambda node=node, at=at: settled(job, node, at)):
                say("  (the job ended before all had its copies again)")
                break
            say(f"  {(settled(job, node, at) - at) / 1e9:.2f} s later all has its copies again, and nobody moves any more:")
            where = picture(job, dead, where)
        return (*finish(job), dead)
    except KeyboardInterrupt:
        job.child.send_signal(signal.SIGINT)
        job.child.wait(30)
        raise


def arguments():
    parser = argparse.ArgumentParser(prog="./demo --stencil", description=__doc__)
    parser.add_argument("--substitution", default="hybrid(all)", metavar="METHOD",
                        help="who moves where (default hybrid(all)); see keelrun(1)")
    parser.add_argument("--cells", default="240x240", help="cells of the plate (default 240x240)")
    parser.add_argument("--seconds", type=float, default=20, help="how long the undisturbed run is to be (default 20)")
    parser.add_argument("--build", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--top", required=True, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    options = arguments()
    with tempfile.TemporaryDirectory(prefix="keel-demo-") as folder:
        code, _, seconds, _ = finish(Job(options, FIRST_ROUNDS, folder))
        if code != 0:
            return code
        sweeps = max(FIRST_ROUNDS, int(FIRST_ROUNDS * options.seconds / seconds))
        say(f"a heat plate of {options.cells} cells, {sweeps} sweeps, on {RANKS} of {SIDE}x{SIDE} nodes, undisturbed:")
        code, quiet, quiet_s, lines = finish(Job(options, sweeps, folder))
        say("\n".join("  " + line for line in lines))
        if code != 0:
            return code
        say()
        say(f"the same with --substitution {options.substitution}, and two nodes are killed:")
        code, field, seconds, lines, dead = killed_run(options, sweeps, quiet_s, folder)
        say("\n".join("  " + line for line in lines))
        say()
        if code != 0 or len(dead) < len(VICTIMS):
            say(f"BAD  the run ended with code {code} after {len(dead)} kills")
            return code or 1
        say(f"{'ok  ' if field == quiet else 'BAD '} the bits of the field: {field} and, undisturbed, {quiet}")
        say(f"     {seconds:.1f} s instead of {quiet_s:.1f} s: {seconds / quiet_s:.2f} times, detection and moves included")
        return 0 if field == quiet else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
