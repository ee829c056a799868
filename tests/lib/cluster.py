"""A job whose nodes and ranks a test kills or freezes at the right moment: keeltest.Job, and its event log read as it
grows."""
import json
import os
import signal
import subprocess
import tempfile
import time

from keeltest import HANG_S, KEELCTL, Job, alive, rest_after, threads_stand_still, wait_for


QUICK = ["--silence", "0.5s", "--stopped", "1"]  # for nodes that are to be found dead though nobody says so


class Cluster(Job):
    def __init__(self, nodes, program, ranks=None, spares=0, on_failure="substitute", options=(), rests=False, **kw):
        self.nodes, self.spares, self.size = nodes, spares, ranks or nodes
        self.offset, self.rest, self.seen = 0, b"", []
        self.agents, self.rank_pids = {}, {}  # node -> pid; node -> {pid: rank}
        self.killed = []  # (t_ns, what): node deaths that this test caused
        self.process_deaths = 0
        self.struck = 0  # when this test killed or froze something last
        self.shot = set()  # pids of ranks that this test killed
        self.rests = None
        if rests:
            self.rests = tempfile.TemporaryDirectory(prefix="keel-rest-")
            kw["env"] = dict(kw.get("env") or {}, KEEL_REST=self.rests.name)
        args = ["-n", str(self.size), "--nodes", str(nodes)]
        if on_failure:  # else the default, which is not the same as degrade, asked for
            args += ["--on-failure", on_failure]
        if spares:
            args += ["--spares", str(spares)]
        super().__init__(args + list(options) + program, **kw)

    # ---- events

    def poll(self):
        """New events since the last call; keeps track of the processes."""
        try:
            with open(self.log, "rb") as f:
                f.seek(self.offset)
                data = f.read()
        except OSError:
            return []
        self.offset += len(data)
        lines = (self.rest + data).split(b"\n")
        self.rest = lines.pop()
        new = [json.loads(line) for line in lines]
        for e in new:
            if e["event"] == "start":
                self.agents[e["node"]] = e["pid"]
            elif e["event"] == "rank_start":
                self.rank_pids.setdefault(e["node"], {})[e["pid"]] = e.get("rank", -1)
            elif e["event"] == "assigned":
                self.rank_pids.setdefault(e["node"], {})[e["pid"]] = e["rank"]
            elif e["event"] == "exit":
                self.rank_pids.get(e["node"], {}).pop(e.get("pid"), None)
        self.seen += new
        return new

    def until(self, condition, what, seconds=HANG_S):
        """Poll until condition(self) or the end of the job; false if the job ended first."""
        end = time.monotonic() + seconds
        while True:
            begun = time.monotonic()
            self.poll()
            if condition(self):
                return True
            if self.process.poll() is not None:
                self.poll()
                return bool(condition(self))
            if begun > end:
                raise AssertionError("timed out: " + what)
            rest_after(begun, 0.002)

    def has(self, event, **fields):
        return [e for e in self.seen if e["event"] == event and all(e.get(k) == v for k, v in fields.items())]

    def started(self):
        return self.until(lambda c: len(c.agents) == c.nodes + c.spares and
                          sum(r >= 0 for p in c.rank_pids.values() for r in p.values()) >= c.size, "the job to start")

    def phase(self):
        return max([e["number"] for e in self.has("application", name="phase")], default=0)

    def redundant(self):
        """Every node death that this test caused is in a view, and redundancy was restored after it, as far as there
        are nodes."""
        last = self.killed[-1][0] if self.killed else 0
        said = self.has("redundancy_restored") + self.has("redundancy_reduced")
        return not self.killed or any(e["t_ns"] > last for e in said)

    # ---- moments of rest (tests/fault/rest.h), of a cluster with rests=True

    def rest_file(self, name):
        return os.path.join(self.rests.name, name)

    def want_rest(self, name="want"):
        open(self.rest_file(name), "w").close()

    def resting_at(self):
        """The step at which the program rests or is about to, or None."""
        for name in os.listdir(self.rests.name):
            step = name[5:] if name.startswith("step.") else ""
            if step and not os.path.exists(self.rest_file("go." + step)):
                with open(self.rest_file(name)) as f:
                    if f.read() == "rest":
                        return int(step)
        return None

    def all_rest(self):
        """Every rank that lives has said that it rests, since it is this process."""
        step, said = self.resting_at(), {}
        if step is None:
            return False
        for e in self.seen:
            if e["event"] in ("rank_start", "assigned") and e.get("rank", -1) >= 0:
                said[e["rank"]] = False
            elif e["event"] == "application" and e["name"] == "rest" and e["number"] == step:
                said[e["rank"]] = True
        declared = {e["dead_node"] for e in self.has("view") if "dead_node" in e}
        living = [r for node in set(self.live_nodes()) - declared for r in self.rank_pids.get(node, {}).values() if r >= 0]
        return bool(living) and all(said.get(r) for r in living)

    def compare(self, seconds):
        """keelctl verify, until the groups whose repair goes on are comparable: equal, and nothing else."""
        end = time.monotonic() + seconds
        while True:
            verdict = self.verify(0, 4)
            if verdict["result"] != "busy" or time.monotonic() > end:
                break
        assert verdict["result"] == "equal", verdict

    def verify_at_rest(self, last=False, seconds=HANG_S):
        """At the next moment of rest (last: that of the last step, which the program was told of before), when
        redundancy is restored: all copies are equal. False: the job ended before."""
        if not last:
            self.want_rest()
        if not self.until(lambda c: c.resting_at() is not None, "the program to come to rest", seconds):
            return False
        if not last:
            os.unlink(self.rest_file("want"))
        if not self.until(lambda c: c.all_rest() and c.restored(), "all to rest, with redundancy restored", seconds):
            return False
        self.compare(seconds)
        self.want_rest("go.%d" % self.resting_at())
        return True

    def close(self):
        super().close()
        if self.rests:
            self.rests.cleanup()

    def restored(self):
        """All copies are there again, or as many as can be, since the last blow. A node that is alone has nothing to
        say."""
        said = self.has("redundancy_restored") + self.has("redundancy_reduced")
        return not self.struck or len(self.live_nodes()) < 2 or any(e["t_ns"] > self.struck for e in said)

    # ---- faults

    def node_pids(self, node):
        return [self.agents[node]] + list(self.rank_pids.get(node, {}))

    def signal_node(self, node, number):
        """Who is stopped stands still when this returns: a thread that runs goes on for a moment after the signal."""
        self.poll()
        pids = list(self.node_pids(node))
        for pid in pids:
            try:
                os.kill(pid, number)
            except ProcessLookupError:
                pass
        for pid in pids if number == signal.SIGSTOP else ():
            wait_for(lambda: threads_stand_still(pid), "process %d to stand still" % pid)

    def signal_pid(self, pid, number):
        try:
            os.kill(pid, number)
        except ProcessLookupError:  # the job was faster: it ended between the look and the blow
            pass

    def kill_node(self, node):
        """Agent and ranks, all at once."""
        self.poll()
        self.killed.append((time.monotonic_ns(), "node %d" % node))
        self.struck = time.monotonic_ns()
        self.process_deaths += len(self.rank_pids.get(node, {}))
        self.signal_node(node, signal.SIGKILL)

    def kill_pid(self, pid):
        self.process_deaths += 1
        self.struck = time.monotonic_ns()
        self.shot.add(pid)
        self.signal_pid(pid, signal.SIGKILL)

    def stopped(self):
        """(node, pid) of a process that stands still at a fault point (action stop), or None."""
        for node, agent in self.agents.items():
            for pid in [agent] + list(self.rank_pids.get(node, {})):
                try:
                    with open("/proc/%d/stat" % pid) as f:
                        if f.read().rsplit(")", 1)[1].split()[0] == "T":
                            return node, pid
                except OSError:
                    pass
        return None

    def over(self):
        return self.process.poll() is not None

    def link(self, node, what):
        """On a netns bed: "cut" a node off silently, "heal" it. A job that is ending has no links any more."""
        done = subprocess.run([KEELCTL, "bed", what, self.id(), str(node)], capture_output=True, timeout=HANG_S)
        if done.returncode != 0:
            wait_for(self.over, "the job to end, because its link could not be touched: " + done.stderr.decode())

    def live_nodes(self):
        return [n for n, pid in self.agents.items() if alive(pid)]

    def live_ranks(self, node):
        """pids of ranks (not standbys) that this test has not killed."""
        return [p for p, r in self.rank_pids.get(node, {}).items() if r >= 0 and p not in self.shot and alive(p)]

    def touched(self):
        """Nodes that this test killed or froze."""
        return {int(what.split()[1]) for _, what in self.killed}

    def false_deaths(self):
        """Nodes declared dead that this test has not touched: the machine was too busy for them."""
        self.poll()
        return sorted({e["dead_node"] for e in self.has("view") if "dead_node" in e} - self.touched() |
                      {e["about"] for e in self.has("verdict", evidence="silent")} - self.touched())
