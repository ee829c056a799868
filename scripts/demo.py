"""The demonstration behind ./demo: run keel-scf under keelrun, kill a whole node in the second iteration, show what
happens."""
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
import threading
import time

NODES = 4
KILL_IN_ITERATION = 2
DEADLINE_S = 600
TRIES = 5
FREEZES_S, STOPPED_S = (2, 10), 5  # of a whole node; after so long one that is waited for is declared dead

# Total energies in Hartree of the shipped molecules, computed with NWChem 7.0.2 (cartesian d functions).
REFERENCE = {
    ("water", "sto-3g"): -74.963146766239,
    ("water", "6-31g"): -75.983831121446,
    ("water", "6-31gs"): -76.010481566212,
    ("methane", "sto-3g"): -39.726715315264,
    ("methane", "6-31gs"): -40.195072523976,
    ("ammonia", "6-31gs"): -56.183839982884,
    ("benzene", "sto-3g"): -227.890525566419,
}
ENERGY = re.compile(r"^Total energy:\s+(-?[0-9.]+)")


def say(text=""):
    print(text, flush=True)


class Events:
    """The growing event log of a job, read line by line."""

    def __init__(self, path):
        self.file = open(path)
        self.rest = ""
        self.seen = []

    def poll(self):
        self.rest += self.file.read()
        *lines, self.rest = self.rest.split("\n")
        new = [json.loads(line) for line in lines]
        self.seen += new
        return new

    def first(self, after, *names, **fields):
        times = [e["t_ns"] for e in self.seen
                 if e["event"] in names and e["t_ns"] >= after and all(e.get(k) == v for k, v in fields.items())]
        return min(times) if times else None


def parent(pid):
    stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
    return int(stat.rsplit(")", 1)[1].split()[1])


def node_pids(events, node):
    """Everything that dies with the node: its agent, its ranks, and what Hydra runs for it there (stub and proxy)."""
    agent = next(e["pid"] for e in events.seen if e["event"] == "start" and e["node"] == node)
    ranks = [e["pid"] for e in events.seen if e["event"] == "rank_start" and e["node"] == node]
    above = []
    pid = parent(agent)
    # At the very end of a job they are gone, and keelrun has adopted the agent: neither keelrun nor we belong to the
    # node.
    while len(above) < 2 and pathlib.Path(f"/proc/{pid}/comm").read_text().strip() != "keelrun" and pid != 1:
        above.append(pid)
        pid = parent(pid)
    return [agent, *ranks, *above]


def kill_node(events, node):
    """SIGKILL to all processes of the node at once. The time and the processes, or None if they had already ended."""
    try:
        pids = node_pids(events, node)
        killed = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        os.kill(pids[0], signal.SIGKILL)
    except (StopIteration, FileNotFoundError, ProcessLookupError):
        return None
    for pid in pids[1:]:
        with contextlib.suppress(ProcessLookupError):  # the agent's death may have taken it along
            os.kill(pid, signal.SIGKILL)
    say(f"  *** node {node} killed: processes {' '.join(map(str, pids))}")
    return killed


def freeze_node(events, node, seconds):
    """SIGSTOP to the agent and the ranks of the node, and SIGCONT after that time. The time, or None if they had
    already ended."""
    agent = next(e["pid"] for e in events.seen if e["event"] == "start" and e["node"] == node)
    pids = [agent] + [e["pid"] for e in events.seen if e["event"] == "rank_start" and e["node"] == node]
    frozen = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    try:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
    except ProcessLookupError:
        return None
    say(f"  *** node {node} frozen for {seconds} s: processes {' '.join(map(str, pids))}")

    def thaw():
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        say(f"  *** node {node} goes on")

    threading.Timer(seconds, thaw).start()
    return frozen


def run(options, kill, freeze_s=0):
    """One run; returns (exit code, energy or None, time of the blow or None, events)."""
    tools = pathlib.Path(options.build) / "pm"
    program = pathlib.Path(options.build) / "apps" / "scf" / "keel-scf"
    with tempfile.TemporaryDirectory(prefix="keel-demo-") as folder:
        log = pathlib.Path(folder) / "events.jsonl"
        log.touch()
        nodes = str(options.nodes)
        command = [str(tools / "keelrun"), "-n", nodes, "--nodes", nodes, "--spares", "1", "--bed", options.bed,
                   "--on-failure", options.on_failure, "--event-log", str(log),
                   *(["--stopped", str(STOPPED_S)] if freeze_s else []), str(program), options.molecule,
                   "--basis", options.basis]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        energy = []

        def show():
            for line in child.stdout:
                match = ENERGY.match(line)
                if match:
                    energy.append(float(match.group(1)))
                say("  " + line.rstrip("\n"))

        reader = threading.Thread(target=show)
        reader.start()
        events, deadline, killed = Events(log), time.monotonic() + DEADLINE_S, None
        try:
            while child.poll() is None:
                if time.monotonic() > deadline:
                    child.send_signal(signal.SIGINT)
                    raise SystemExit("demo: the run does not end")
                for e in events.poll():
                    if kill is not None and killed is None and e.get("name") == "scf_half" and \
                            e["number"] == KILL_IN_ITERATION:
                        killed = freeze_node(events, kill, freeze_s) if freeze_s else kill_node(events, kill)
                time.sleep(0.0005)
        except KeyboardInterrupt:
            child.send_signal(signal.SIGINT)
            child.wait(30)
            raise
        reader.join(30)
        events.poll()
        return child.returncode, energy[-1] if energy else None, killed, events


def run_and_kill(options, kill, freeze_s=0):
    """A small molecule may be done before the signal of its second iteration has been read: then once more."""
    for _ in range(TRIES):
        code, energy, killed, events = run(options, kill, freeze_s)
        if killed is not None or code != 0:
            break
        say("  (that run was over before the node could be killed: again)")
    return code, energy, killed, events


def time_line(events, killed, node, substitute):
    """Print it; true if everything that must happen did. A death that is proven before anybody misses a heartbeat is
    not suspected first."""
    view = events.first(killed, "view", dead_node=node)
    suspected = events.first(killed, "suspect", about=node)
    steps = [("killed", killed),
             ("confirmed", events.first(killed, "verdict", about=node)),
             ("view changed", view)]
    if suspected:
        steps.insert(1, ("suspected", suspected))
    if substitute:
        steps.append(("spare in", events.first(killed, "substituted")))
    steps.append(("redundancy restored", events.first(view or killed, "redundancy_restored")))
    say("time line of the failure, in milliseconds since the kill:")
    for name, at in steps:
        say(f"  {name:<20} {(at - killed) / 1e6:10.3f}" if at is not None else f"  {name:<20}      never")
    return all(at is not None for _, at in steps)


def compare(name, difference, limit):
    good = abs(difference) <= limit
    say(f"{'ok  ' if good else 'BAD '} {name}: {difference:+.2e} Hartree (limit {limit:.0e})")
    return good


def shipped(parser, options):
    """Its molecule is a file, or one of those that are shipped. Returns options."""
    if not os.path.exists(options.molecule):
        file = pathlib.Path(options.top) / "apps" / "scf" / "molecules" / options.molecule
        if not file.exists():
            parser.error(f"no such file: {options.molecule}")
        options.molecule = str(file)
    return options


def arguments():
    parser = argparse.ArgumentParser(prog="./demo", description="A Hartree-Fock run on four emulated nodes and a spare; "
                                     "a whole node is killed in the second iteration, and the energy is right all the same. "
                                     "./demo --stencil: a heat plate on a grid of nodes, whose ranks slide. "
                                     "./demo --replicas 2|3: flipped bits, without replicas and with them.")
    parser.add_argument("molecule", nargs="?", default="benzene.xyz", help="XYZ file, or one of the shipped ones (default benzene.xyz)")
    parser.add_argument("--basis", choices=["sto-3g", "6-31g", "6-31gs"], default="sto-3g")
    parser.add_argument("--kill", type=int, default=1, metavar="NODE", choices=range(NODES), help="the node to kill (default 1)")
    parser.add_argument("--freeze", action="store_true", help="freeze the node instead, for two seconds and for ten")
    parser.add_argument("--no-kill", action="store_true", help="kill nothing")
    parser.add_argument("--on-failure", choices=["substitute", "degrade"], default="substitute",
                        help="go on with the spare (default), or with three nodes")
    parser.add_argument("--bed", choices=["loopback", "netns"], default="loopback", help="how nodes are emulated")
    parser.set_defaults(nodes=NODES)
    parser.add_argument("--build", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--top", required=True, help=argparse.SUPPRESS)
    return shipped(parser, parser.parse_args())


def freezes(options, quiet):
    """Two seconds cost nobody, ten a node: it is waited for, and --stopped says for how long."""
    good = True
    for seconds in FREEZES_S:
        dies = seconds > STOPPED_S
        say()
        say(f"the same with --stopped {STOPPED_S} (30 by default), and node {options.kill} stands still for {seconds} s in iteration "
            f"{KILL_IN_ITERATION}:")
        code, energy, frozen, events = run_and_kill(options, options.kill, seconds)
        say()
        if frozen is None or code != 0 or energy is None:
            say(f"BAD  the run ended with code {code}" if frozen else "demo: the run ended before the node could be frozen")
            return False
        died = events.first(frozen, "view", dead_node=options.kill)
        found = f"declared dead after {(died - frozen) / 1e9:.1f} s" if died else "not declared dead"
        good &= (died is not None) == dies
        say(f"{'ok  ' if (died is not None) == dies else 'BAD '} a freeze of {seconds} s: {found}")
        good &= compare("energy with the freeze - undisturbed", energy - quiet, 1e-8)
    return good


def main():
    options = arguments()
    molecule = pathlib.Path(options.molecule).stem
    say(f"{molecule} in {options.basis} on {NODES} nodes and a spare, undisturbed:")
    code, quiet, _, _ = run(options, None)
    if code != 0 or quiet is None:
        return code or 1
    good = True
    reference = REFERENCE.get((molecule, options.basis))
    if options.freeze:
        good = freezes(options, quiet)
    elif not options.no_kill:
        say()
        say(f"the same, and node {options.kill} is killed in iteration {KILL_IN_ITERATION}:")
        code, energy, killed, events = run_and_kill(options, options.kill)
        say()
        if killed is None:
            say("demo: the run ended before the node could be killed")
            return 1
        good = time_line(events, killed, options.kill, options.on_failure == "substitute")
        if code != 0 or energy is None:
            say(f"BAD  the run ended with code {code}")
            return code or 1
        say()
        good &= compare("energy with the failure - undisturbed", energy - quiet, 1e-8)
        if reference is not None:
            good &= compare("energy with the failure - reference", energy - reference, 1e-6)
    elif reference is not None:
        good &= compare("energy - reference", quiet - reference, 1e-6)
    return 0 if good else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
