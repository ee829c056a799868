"""Nodes on a grid (keelrun --grid): when one dies, lines of ranks that live move by one node, and keel-stencil has the
same bits. Also where a rank or a node dies at each step of a move."""
import functools
import os
import resource
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from keeltest import KEELCTL, Job, main, run, state_of, wait_for
from memory_group import MemoryGroup

STENCIL = os.environ.get("KEEL_STENCIL", "build/apps/stencil/keel-stencil")
FIELD = [STENCIL, "9p", "--cells", "96x96", "--sweeps", "60", "--pause", "40"]
LINE = ["--grid", "5", "--spare-alloc", "1D(1,2)", "--substitution", "1D"]  # 0 1 2 | 3 4
RANK_STEPS = ["rank.move_called", "rank.moving", "rank.let_go", "rank.moved"]
NODE_STEPS = ["procs.held", "procs.releasing", "procs.moved", "procs.joining", "procs.joined"] + RANK_STEPS[1:]
FILL_STEPS = ["push.snapshot_begun", "push.snapshot_block", "push.snapshot_end"]
references = {}


def field(out):
    return out.splitlines()[-1]


@functools.lru_cache(None)
def reference():
    """Of one rank: on any number of ranks the bits are the same."""
    code, out, err = run(["-n", "1"] + FIELD)
    assert code == 0 and err == "", (code, err)
    return field(out)


def began(job):
    """Where each rank begins, in order."""
    at = {e["rank"]: [] for e in job.events("rank_start") if e["rank"] >= 0}
    for e in sorted(job.events("rank_start") + job.events("assigned"), key=lambda e: e["t_ns"]):
        if e["rank"] >= 0:
            at[e["rank"]].append(e["node"])
    return at


def moves(job):
    """(rank, complete) of each move."""
    seen = {(e["epoch"], e["moved_rank"]): e["complete"] for e in job.events("view") if "moved_rank" in e}
    return sorted((rank, complete) for (_, rank), complete in seen.items())


def slid(ranks, options, nodes, faults="", more=()):
    """The job, in which these nodes were killed one after the other, as it ended."""
    job = Job(["-n", str(ranks), "--nodes", str(ranks), "--on-failure", "substitute"] + options + FIELD + list(more),
              env={"KEEL_FAULT": faults, "KEEL_LEAVE_MS": "60000"})
    with job:
        wait_for(lambda: len([e for e in job.events("application") if e["name"] == "stencil_begun"]) == ranks,
                 "all to begin")
        for i, node in enumerate(nodes):
            subprocess.run([KEELCTL, "kill-node", job.id(), str(node)], check=True, capture_output=True, timeout=30)
            if i + 1 < len(nodes):
                wait_for(lambda n=i + 1: len({e["epoch"] for e in job.events("redundancy_restored")}) >= n,
                         "all copies to be there")
        code = job.wait()
        assert code == 0, (options, nodes, faults, code, job.stderr())
        assert field(job.stdout()) == reference(), (options, nodes, faults, job.stdout())
        return began(job), moves(job), job.events("made_to_leave")


def test_a_line_moves_by_one():
    for dies in range(4):
        at, moved, made = slid(3, ["--spares", "2"] + LINE, [dies])
        assert at == {r: [r] if r < dies or dies > 2 else [r, r + 1] for r in range(3)}, (dies, at)
        assert moved == [(r, 1) for r in range(dies + 1, 3)], (dies, moved)
        assert not made


def test_a_second_one_dies():
    at, moved, _ = slid(3, ["--spares", "2"] + LINE, [0, 2])
    assert {r: nodes[-1] for r, nodes in at.items()} == {0: 1, 1: 3, 2: 4}, at
    assert all(complete for _, complete in moved), moved


def test_lines_of_a_grid():
    """0 1 | 4 above 2 3 | 5: a line to the right; then a spare of the other line."""
    grid = ["--spares", "2", "--grid", "3x2", "--spare-alloc", "2D(1,1)", "--substitution", "1D"]
    at, moved, _ = slid(4, grid, [2])
    assert at == {0: [0], 1: [1], 2: [2, 3], 3: [3, 5]} and moved == [(3, 1)], (at, moved)
    at, moved, _ = slid(4, grid, [0, 2])
    assert {r: nodes[-1] for r, nodes in at.items()} == {0: 1, 1: 4, 2: 3, 3: 5}, at


def test_a_rank_dies_at_each_step_of_its_move():
    """It has died, and goes afterwards; but where all that it had to do was to end, it has moved."""
    for step in RANK_STEPS:
        at, moved, _ = slid(3, ["--spares", "2"] + LINE, [1], "%s:1:kill:rank=2" % step)
        assert at[2][-1] == 3 and at[2][0] == 2, (step, at)
        assert moved == [(2, 1)], (step, moved)
        assert len(at[2]) == (2 if step == "rank.moved" else 3), (step, at)


def test_a_node_dies_at_each_step_of_a_move():
    for i, step in enumerate(NODE_STEPS):
        where = "node=3" if step.startswith("procs.join") else "node=2" if step.startswith("procs") else "rank=2"
        at, _, _ = slid(3, ["--spares", "2"] + LINE, [1], "%s:1:node:%s" % (step, where), ["--redundancy", "triple"])
        assert len({nodes[-1] for nodes in at.values()}) == 3 and at[2][-1] >= 3, (step, at)
        assert not {1, 2 if where != "node=3" else 3} & {nodes[-1] for nodes in at.values()}, (step, at)


def test_an_agent_stands_still_while_it_holds_its_rank():
    """Before it has told it where to go: the rank waits for it, and goes when it goes on."""
    with Job(["-n", "3", "--nodes", "3", "--on-failure", "substitute", "--spares", "2"] + LINE + FIELD,
             env={"KEEL_FAULT": "procs.held:1:stop:node=2", "KEEL_LEAVE_MS": "60000"}) as job:
        wait_for(lambda: len([e for e in job.events("application") if e["name"] == "stencil_begun"]) == 3,
                 "all to begin")
        subprocess.run([KEELCTL, "kill-node", job.id(), "1"], check=True, capture_output=True, timeout=30)
        agent = next(e["pid"] for e in job.events("start") if e["node"] == 2)
        wait_for(lambda: state_of(agent) in "Tt", "the agent of node 2 to stand still")
        wait_for(lambda: "node 2" in job.stderr() and "stopped" in job.stderr(), "a line that it is stopped")
        os.kill(agent, signal.SIGCONT)
        code = job.wait()
        assert code == 0 and field(job.stdout()) == reference(), (code, job.stdout(), job.stderr())
        assert 2 in {rank for rank, _ in moves(job)} and not job.events("made_to_leave"), (moves(job), job.stderr())


def test_where_a_slot_goes_the_node_dies_while_it_is_filled():
    """Its ranks, which have not left, go to the next spare."""
    for step in FILL_STEPS:
        at, _, _ = slid(3, ["--spares", "2"] + LINE, [1], step + ":1:kill:node=3", ["--redundancy", "triple"])
        assert sorted(nodes[-1] for nodes in at.values()) == [0, 2, 4] and at[2] == [2, 4], (step, at)


def test_a_method_without_a_way_is_told_of():
    """0 1 | 4 above 2 3 | 5: nodes 4 and 0 die, and 2D moves whole planes: node 5 is of no use to it."""
    grid = ["--spares", "2", "--grid", "3x2", "--spare-alloc", "2D(1,1)", "--substitution", "2D"]
    with Job(["-n", "4", "--nodes", "4", "--on-failure", "substitute"] + grid + ["sleep", "1000"]) as job:
        job.wait_for_ranks(4)
        for node in 4, 0:
            subprocess.run([KEELCTL, "kill-node", job.id(), str(node)], check=True, capture_output=True, timeout=30)
            wait_for(lambda n=node: "node %d died" % n in job.stderr(), "node %d to be dead" % node)
        told = [line for line in job.stderr().splitlines() if "node 0 died" in line]
        assert len(told) == 1, job.stderr()
        assert ("; the job goes on without rank 0: --substitution 2D has no way to the node that is free"
                in told[0]), told


def use_up_descriptors(pid):
    there = {int(fd) for fd in os.listdir("/proc/%d/fd" % pid)}
    soft, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (min(set(range(hard)) - there), hard))
    return lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))


def test_where_a_slot_goes_the_node_has_no_descriptors():
    """It stays, and all goes on."""
    with Job(["-n", "3", "--nodes", "3", "--on-failure", "substitute", "--spares", "2"] + LINE + FIELD +
             ["--redundancy", "triple"], env={"KEEL_LEAVE_MS": "60000"}) as job:
        wait_for(lambda: len([e for e in job.events("application") if e["name"] == "stencil_begun"]) == 3,
                 "all to begin")
        use_up_descriptors([e["pid"] for e in job.events("start") if e["node"] == 3][0])
        subprocess.run([KEELCTL, "kill-node", job.id(), "1"], check=True, capture_output=True, timeout=30)
        code = job.wait()
        given_up = [(e["slot"], e["to"]) for e in job.events("move_given_up")]
        assert code == 0 and field(job.stdout()) == reference(), (code, job.stderr())
        assert given_up == [(2, 3)] and began(job)[2] == [2], (given_up, began(job))




def test_where_a_slot_goes_the_node_may_have_no_more_memory():
    """Its agent is limited (ulimit -v) to what it has and a little: it says so, the slot stays, and all goes on."""
    large = [STENCIL, "9p", "--cells", "1024x1024", "--sweeps", "40"]
    code, out, err = run(["-n", "1"] + large)
    assert code == 0 and err == "", (code, err)
    with Job(["-n", "3", "--nodes", "3", "--on-failure", "substitute", "--spares", "2"] + LINE + large +
             ["--redundancy", "triple"], env={"KEEL_LEAVE_MS": "60000"}) as job:
        wait_for(lambda: len([e for e in job.events("application") if e["name"] == "stencil_begun"]) == 3,
                 "all to begin")
        agent = [e["pid"] for e in job.events("start") if e["node"] == 3][0]
        with open("/proc/%d/statm" % agent) as f:
            has = int(f.read().split()[0]) * resource.getpagesize()
        resource.prlimit(agent, resource.RLIMIT_AS, (has + (1 << 20), resource.RLIM_INFINITY))
        subprocess.run([KEELCTL, "kill-node", job.id(), "1"], check=True, capture_output=True, timeout=30)
        code = job.wait()
        given_up = {(e["slot"], e["to"]) for e in job.events("move_given_up")}
        assert code == 0 and field(job.stdout()) == field(out), (code, job.stderr())
        assert given_up == {(2, 3)} and began(job)[2] == [2], (given_up, began(job), job.stderr())
        told = [line for line in job.stderr().splitlines() if line.startswith("keeld node 3: ")]
        assert any("no memory for a copy of a segment" in line and "ulimit -v" in line for line in told), told


def test_where_a_slot_goes_the_memory_of_the_node_s_group_ends():
    """Its cgroup has room for a part of what comes: the copy is declined as it is filled, and nobody is killed."""
    large = [STENCIL, "9p", "--cells", "2048x2048", "--sweeps", "40"]
    code, out, err = run(["-n", "1"] + large)
    assert code == 0 and err == "", (code, err)
    group = MemoryGroup(8 << 20)
    try:
        with Job(["-n", "3", "--nodes", "3", "--on-failure", "substitute", "--spares", "2"] + LINE + large +
                 ["--redundancy", "triple"], env={"KEEL_LEAVE_MS": "60000"}) as job:
            wait_for(lambda: len([e for e in job.events("application") if e["name"] == "stencil_begun"]) == 3,
                     "all to begin")
            group.add([e["pid"] for e in job.events("start") if e["node"] == 3][0])
            subprocess.run([KEELCTL, "kill-node", job.id(), "1"], check=True, capture_output=True, timeout=30)
            code = job.wait()
            given_up = {(e["slot"], e["to"]) for e in job.events("move_given_up")}
            assert code == 0 and field(job.stdout()) == field(out), (code, job.stderr())
            assert given_up == {(2, 3)} and began(job)[2] == [2], (given_up, began(job), job.stderr())
            assert {e["dead_node"] for e in job.events("view") if "dead_node" in e} == {1}, job.stderr()
    finally:
        group.close()


def test_where_a_rank_is_to_begin_the_node_has_no_descriptors():
    """It goes to the next spare, and nobody else dies."""
    grids = {"none": [], "line": LINE}
    for name, grid in grids.items():
        with Job(["-n", "3", "--nodes", "3", "--on-failure", "substitute", "--spares", "2"] + grid + FIELD +
                 ["--redundancy", "triple"], env={"KEEL_LEAVE_MS": "60000"}) as job:
            wait_for(lambda: len([e for e in job.events("application") if e["name"] == "stencil_begun"]) == 3,
                     "all to begin")
            wait_for(lambda: len(job.events("rank_start")) == 5, "processes to wait on the spares")
            give_back = use_up_descriptors([e["pid"] for e in job.events("start") if e["node"] == 3][0])
            subprocess.run([KEELCTL, "kill-node", job.id(), "2"], check=True, capture_output=True, timeout=30)
            wait_for(lambda: job.events("not_started"), "node 3 to say that it cannot")
            give_back()  # it is to accept connections
            code = job.wait()
            assert code == 0 and field(job.stdout()) == reference(), (name, code, job.stderr())
            assert began(job)[2] == [2, 4], (name, began(job), job.stderr())
            assert "node 3 could not start rank 2: " in job.stderr(), (name, job.stderr())
            assert "rank 2 continues on node 4" in job.stderr(), (name, job.stderr())


def test_a_node_whose_descriptors_are_gone_for_good_goes_on_with_what_it_has():
    """It takes the connections that a recovery needs with what it has kept back, and starts no process."""
    for name, grid in {"none": [], "line": LINE}.items():
        with Job(["-n", "3", "--nodes", "3", "--on-failure", "substitute", "--spares", "2"] + grid + FIELD +
                 ["--redundancy", "triple"], env={"KEEL_LEAVE_MS": "60000"}) as job:
            wait_for(lambda: len([e for e in job.events("application") if e["name"] == "stencil_begun"]) == 3,
                     "all to begin")
            wait_for(lambda: len(job.events("rank_start")) == 5, "processes to wait on the spares")
            for node in 0, 3:
                use_up_descriptors([e["pid"] for e in job.events("start") if e["node"] == node][0])
            subprocess.run([KEELCTL, "kill-node", job.id(), "2"], check=True, capture_output=True, timeout=30)
            code = job.wait()
            assert code == 0 and field(job.stdout()) == reference(), (name, code, job.stderr())
            assert began(job)[2] == [2, 4], (name, began(job), job.stderr())
            assert {e["dead_node"] for e in job.events("view") if "dead_node" in e} == {2}, (name, job.stderr())
            told = [line for line in job.stderr().splitlines() if "kept back are given up" in line]
            assert told and all("ulimit -n" in line for line in told), (name, job.stderr())


main(globals())
