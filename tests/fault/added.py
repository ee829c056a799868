"""keelctl add-node: a node that is new joins a job that runs, with keelrun and without, and takes ranks over."""
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import keeltest
from cluster import Cluster
from descriptors import lacks_descriptors_for_good
from keeltest import HANG_S, IS_ROOT, KEELCTL, Job, Skip, run, shut_connections, state_of, wait_for

STENCIL = os.environ.get("KEEL_STENCIL", "build/apps/stencil/keel-stencil")
PLACED = os.environ.get("KEEL_PLACED", "build/tests/fault/placed")
MOVED = os.environ.get("KEEL_MOVED", "build/tests/fault/moved")
SUM = os.environ.get("KEEL_SUM", "build/tests/fault/sum")
ADDED = re.compile(r"node (\d+) is a spare of the job from now on(, on place (\d+) of its grid)?\n")


def start_adding(job, *words, **kw):
    return subprocess.Popen([KEELCTL, "add-node", job.id(), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, **kw)


def ended(adding):
    out, err = adding.communicate(timeout=HANG_S)
    return adding.returncode, out, err


def add(job, *words):
    """The number of the new node, and its place."""
    code, out, err = ended(start_adding(job, *words))
    assert code == 0 and err == "", (code, out, err, job.stderr())
    number, place = ADDED.fullmatch(out).group(1, 3)
    return int(number), None if place is None else int(place)


def refused(job, code, line, *words):
    said = ended(start_adding(job, *words))
    assert said[0] == code and said[1] == "" and said[2].count("\n") == 1 and line in said[2], (said, line)


def stop(job):
    subprocess.run([KEELCTL, "stop", job.id()], check=True, timeout=HANG_S)


FIELD = [STENCIL, "5p", "--cells", "48x48", "--sweeps", "300"]


def stencil(nodes, spares, **kw):
    """For twelve seconds at least."""
    return Cluster(nodes, FIELD + ["--pause", "40"], spares=spares, **kw)


def field(out):
    lines = [line for line in out.splitlines() if line.startswith("field ")]
    assert lines and len(set(lines)) == 1, out
    return lines[0]


def copies_are_there_after(job, node):
    """Who dies next has no only copy: two deaths at once may lose data with shadows."""
    def again():
        died = [e["t_ns"] for e in job.events("view") if e.get("dead_node") == node]
        return died and any(e["t_ns"] > min(died) for e in job.events("redundancy_restored"))
    wait_for(again, "all copies to be there again")


def moves_to(job, node, by):
    """A rank of the node, which dies, goes on there."""
    assert job.until(lambda c: -1 in c.rank_pids.get(by, {}).values(), "its processes to wait"), job.stderr()
    job.kill_node(node)
    assert job.until(lambda c: c.has("assigned", node=by), "a rank to continue there"), job.stderr()


def test_two_nodes_lost_two_added_and_a_rank_moves_to_one():
    # on any number of ranks the bits are the same
    code, out, err = run(["-n", "1"] + FIELD)
    assert code == 0, err
    expected = field(out)
    with stencil(4, 2) as job:
        job.id()
        assert job.started(), job.stderr()
        for node in 1, 2:
            job.kill_node(node)
            copies_are_there_after(job, node)
        assert add(job) == (6, None)
        assert add(job) == (7, None)
        assert "node 6 is new, a spare" in job.stderr(), job.stderr()
        moves_to(job, 0, 6)
        assert job.wait() == 0, job.stderr()
        assert field(job.stdout()) == expected
        assert "continues on node 6" in job.stderr(), job.stderr()


def test_without_keelrun_the_agents_do_it():
    with Cluster(3, [SUM, "40", "40", "6000"], spares=0) as job:
        job.id()
        assert job.started() and job.until(lambda c: c.phase() >= 1, "round 1"), job.stderr()
        job.process.kill()
        job.process.wait()
        assert add(job) == (3, None)
        assert add(job) == (4, None)
        nodes = job.status()["nodes"]
        assert [nodes[n]["spare"] for n in (3, 4)] == [True, True], nodes
        wait_for(lambda: all(len(job.status()["nodes"][n]["ranks"]) == 1 for n in (3, 4)), "their processes to wait")
        subprocess.run([KEELCTL, "kill-node", job.id(), "0"], check=True, capture_output=True, timeout=HANG_S)
        wait_for(lambda: set(job.status()["rank_node"]) & {3, 4}, "rank 0 to go on there")
        watch = subprocess.run([KEELCTL, "attach", job.id()], capture_output=True, timeout=HANG_S, text=True)
        assert watch.returncode == 0, watch.stderr
        assert set(watch.stdout.split("\n")) <= {"sum: %d" % (40 * 40 * 41 * 81 // 6), ""}, watch.stdout
        job.check_leftovers()


def test_two_at_once_have_two_numbers():
    """Asked of one agent, with keelrun and without."""
    with Job(["-n", "2", "--nodes", "2", "sleep", "1000"]) as job:
        job.id()
        both = [start_adding(job), start_adding(job)]
        said = [ended(a) for a in both]
        assert sorted(int(ADDED.fullmatch(s[1]).group(1)) for s in said) == [2, 3], said
        job.process.kill()
        job.process.wait()
        both = [start_adding(job), start_adding(job)]
        said = [ended(a) for a in both]
        assert sorted(int(ADDED.fullmatch(s[1]).group(1)) for s in said) == [4, 5], said
        stop(job)


def raced(*points):
    """Nodes 0 and 1, which know nothing of each other, are at these steps of adding a node each, under one number."""
    fault = {"KEEL_FAULT": ",".join("%s:1:stop:node=%d" % (point, node) for node, point in enumerate(points))}
    with Job(["-n", "3", "--nodes", "3", "sleep", "1000"], env=fault) as job:
        job.id()
        wait_for(lambda: len(job.events("start")) == 3, "all agents to begin")
        agent = {e["node"]: e["pid"] for e in job.events("start")}
        job.process.kill()
        job.process.wait()
        both = []
        for node in 0, 1:
            both.append(start_adding(job))
            wait_for(lambda pid=agent[node]: keeltest.state_of(pid) == "T", "node %d to stand still" % node)
        for node in 0, 1:
            os.kill(agent[node], signal.SIGCONT)
        said = [ended(a) for a in both]
        assert all(s[0] == 0 and s[2] == "" for s in said), (points, said)
        assert sorted(int(ADDED.fullmatch(s[1]).group(1)) for s in said) == [3, 4], (points, said)
        assert [job.status()["nodes"][n]["state"] for n in range(5)] == ["running"] * 5, (points, job.status())
        stop(job)
        job.check_leftovers()


def test_two_agents_add_at_once_without_keelrun():
    for point in HELPER:
        raced(point, "add.configured")


def on_grid(*options):
    return Job(["-n", "9", "--grid", "4x4", *options, PLACED, "1200"])


def kill_place(job, place):
    node = job.events("started")[0]["grid"]["place"].index(place)
    subprocess.run([KEELCTL, "kill-node", job.id(), str(node)], check=True, capture_output=True, timeout=HANG_S)
    wait_for(lambda: [e for e in job.events("view") if e.get("dead_node") == node], "the view")
    return node


def test_on_a_grid_it_takes_the_place_of_a_dead_node():
    with on_grid("--substitution", "0D") as job:
        job.id()
        wait_for(lambda: job.stdout().count(" is ") >= 9, "all ranks to begin")
        refused(job, 2, "no place of the grid 4x4 is free")
        refused(job, 2, "--position 4,0 is no place of the grid 4x4", "--position", "4,0")
        refused(job, 2, "--position 1 is no place", "--position", "1")
        refused(job, 2, "on place 5 of the grid 4x4 is node 4, which lives", "--position", "1,1")
        for place in 3, 7, 11, 12, 13, 14:  # spares
            kill_place(job, place)
        assert add(job, "--position", "3,2") == (16, 11)
        assert add(job) == (17, 3)
        kill_place(job, 15)
        begun = job.stdout().count("rank 2 is")
        kill_place(job, 2)  # beside place 3
        wait_for(lambda: job.stdout().count("rank 2 is") > begun, "rank 2 to begin again")
        assert last_place(job, 2) == "3,0", job.stdout()
        assert job.wait() == 0, job.stderr()


def test_on_a_grid_a_place_that_was_dead_at_the_start_gets_a_node():
    with on_grid("--dead", "15", "--substitution", "0D") as job:
        job.id()
        wait_for(lambda: job.stdout().count(" is ") >= 9, "all ranks to begin")
        assert add(job) == (15, 15)
        refused(job, 2, "no place of the grid 4x4 is free")
        stop(job)
        assert job.wait() == 143


def last_place(job, rank):
    return [line.split()[-1] for line in job.stdout().splitlines() if line.startswith("rank %d is" % rank)][-1]


def comes_back(job, place):
    """Its node stands still until the others have gone on without it."""
    return node_comes_back(job, job.events("started")[0]["grid"]["place"].index(place))


def node_comes_back(job, node):
    said = subprocess.run([KEELCTL, "kill-node", "--signal", "19", job.id(), str(node)], check=True,
                          capture_output=True, timeout=HANG_S)
    wait_for(lambda: [e for e in job.events("view") if e.get("dead_node") == node], "the view")
    for pid in json.loads(said.stdout)["pids"]:
        with contextlib.suppress(ProcessLookupError):  # the agent, which goes on first, has ended its processes
            os.kill(pid, signal.SIGCONT)
    return node


def test_on_a_grid_who_comes_back_has_its_place():
    """A spare's; and one that computed, whose line moves meanwhile."""
    with on_grid("--substitution", "0D", "--silence", "1s", "--stopped", "1") as job:
        job.id()
        wait_for(lambda: job.stdout().count(" is ") >= 9, "all ranks to begin")
        node = comes_back(job, 3)
        wait_for(lambda: [e for e in job.events("returned") if e["was"] == node], "it to come back")
        refused(job, 2, "no place of the grid 4x4 is free")
        begun = job.stdout().count("rank 2 is")
        kill_place(job, 2)
        wait_for(lambda: job.stdout().count("rank 2 is") > begun, "rank 2 to begin again")
        assert last_place(job, 2) == "3,0", job.stdout()
        assert job.wait() == 0, job.stderr()
    with on_grid("--substitution", "hybrid(all)", "--silence", "1s", "--stopped", "1") as job:
        job.id()
        wait_for(lambda: job.stdout().count(" is ") >= 9, "all ranks to begin")
        node = comes_back(job, 5)
        wait_for(lambda: [e for e in job.events("returned") if e["was"] == node], "it to come back")
        refused(job, 2, "no place of the grid 4x4 is free")
        assert job.wait() == 0, job.stderr()


def waits_its_turn(job, *words):
    """Asked while another node is to have its number and its place. keelrun has heard of it, and goes on."""
    adding = start_adding(job, *words)
    wait_for(lambda: state_of(job.process.pid) == "T", "keelrun to be asked for a number")
    os.kill(job.process.pid, signal.SIGCONT)
    return adding


def stopped(job, pids):
    return wait_for(lambda: [pid for pid in pids() if state_of(pid) == "T"], "an agent to stand still")[0]


def test_on_a_grid_two_agents_that_add_at_once_give_two_places():
    """The second one has been asked, and has chosen, before the first new node is born."""
    with Job(["-n", "9", "--grid", "4x4", "--substitution", "0D", PLACED, "1200"],
             env={"KEEL_FAULT": "add.launching:1:stop:node=0,run.add_asked:2:stop"}) as job:
        job.id()
        wait_for(lambda: job.stdout().count(" is ") >= 9, "all ranks to begin")
        for place in 3, 7:
            kill_place(job, place)
        first = start_adding(job)
        agents = [e["pid"] for e in job.events("start")]
        by = stopped(job, lambda: agents)
        second = waits_its_turn(job)
        os.kill(by, signal.SIGCONT)
        said = [ended(a) for a in (first, second)]
        assert all(s[0] == 0 and s[2] == "" for s in said), said
        assert [ADDED.fullmatch(s[1]).group(1, 3) for s in said] == [("16", "3"), ("17", "7")], said
        stop(job)
        assert job.wait() == 143


def test_on_a_grid_who_comes_back_meanwhile_keeps_its_place():
    """It has its number, and is not born yet, when the place is chosen: the only one, or the one that is asked for."""
    for words, line in ((), "no place of the grid 4x4 is free"), (("--position", "1,1"), "node 16, which lives"):
        with Job(["-n", "9", "--grid", "4x4", "--substitution", "hybrid(all)", "--silence", "1s", "--stopped", "1",
                  PLACED, "1200"], env={"KEEL_FAULT": "start.told:1:stop:life=1,run.add_asked:1:stop"}) as job:
            job.id()
            wait_for(lambda: job.stdout().count(" is ") >= 9, "all ranks to begin")
            comes_back(job, 5)
            back = stopped(job, lambda: keeltest.processes_with(job.tag))
            adding = waits_its_turn(job, *words)
            os.kill(back, signal.SIGCONT)
            code, out, err = ended(adding)
            assert (code, out) == (2, "") and line in err, (code, out, err)
            wait_for(lambda: [e for e in job.events("returned") if e["about"] == 16], "it to come back")
            stop(job)
            assert job.wait() == 143


def test_a_node_without_descriptors_hears_of_the_new_one():
    """It is told over a connection, and takes that with a descriptor that it has kept back."""
    with Cluster(3, [SUM, "40", "40", "6000"], spares=0) as job:
        assert job.started() and job.until(lambda c: c.phase() >= 1, "round 1"), job.stderr()
        lacks_descriptors_for_good(job.agents[2])
        assert add(job) == (3, None)
        moves_to(job, 1, 3)
        assert job.wait() == 0, job.stderr()
        assert "that were kept back are given up for connections" in job.stderr(), job.stderr()


def test_what_cannot_be_is_one_line():
    with Job(["-n", "2", "--nodes", "2", "--room", "0", "sleep", "1000"]) as job:
        job.id()
        refused(job, 2, "no room for nodes that come later (keelrun --room)")
        stop(job)
    with Job(["-n", "2", "--nodes", "2", "--room", "1", "sleep", "1000"]) as job:
        refused(job, 2, "it takes no HOST", "elsewhere")
        refused(job, 2, "--position is of use only in a job on a grid", "--position", "0,0")
        assert add(job) == (2, None)
        refused(job, 2, "there is no room for one more node (--room 1)")
        name = job.id()
        subprocess.run([KEELCTL, "stop", name], check=True, timeout=HANG_S)
        assert job.wait() == 143
        code = subprocess.run([KEELCTL, "add-node", name], capture_output=True, text=True, timeout=HANG_S)
        assert code.returncode == 1 and "no job " + name in code.stderr, code


def test_in_a_job_without_spares_it_takes_copies_only():
    cases = ([], "goes on without rank 0"), (["--on-failure", "substitute"], "rank 0 continues on node 2")
    for options, line in cases:
        with Job(["-n", "2", "--nodes", "2", *options, MOVED, "3000"]) as job:
            job.wait_for_ranks(2)
            assert add(job) == (2, None)
            subprocess.run([KEELCTL, "kill-node", job.id(), "0"], check=True, capture_output=True, timeout=HANG_S)
            wait_for(lambda said=line: said in job.stderr(), line)
            stop(job)


def test_another_user_adds_nothing():
    if not IS_ROOT:
        raise Skip("needs root")

    def nobody():
        os.setgroups([])
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
    with Job(["-n", "2", "--nodes", "2", "sleep", "1000"]) as job:
        code, out, err = ended(start_adding(job, preexec_fn=nobody))
        assert code == 1 and out == "" and "no job" in err, (code, out, err)
        assert len(job.status()["nodes"]) == 2
        stop(job)


def test_a_host_is_reached_by_the_job_s_launcher():
    ssh = '#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift; done\nhost=$1; shift\n' \
          '[ "$host" = nowhere ] && { echo "ssh: Could not resolve hostname nowhere" >&2; exit 255; }\n' \
          '[ "$host" = slow ] && exec sleep 1000\n' \
          'echo "$host" >>"$0.log"\neval "exec $*"\n'
    with tempfile.TemporaryDirectory(prefix="keel-test-") as directory:
        path = os.path.join(directory, "ssh")
        with open(path, "w") as f:
            f.write(ssh)
        os.chmod(path, 0o755)
        with Job(["--launcher", "ssh", "--launcher-exec", path, "-n", "2", "--hosts", "127.0.1.1,127.0.1.2",
                  "sleep", "1000"]) as job:
            assert add(job, "127.0.1.9") == (2, None)
            with open(path + ".log") as f:
                assert "127.0.1.9\n" in f.readlines()
            assert "node 2 (127.0.1.9) is new, a spare" in job.stderr(), job.stderr()
            refused(job, 1, "no agent comes from nowhere: ssh: Could not resolve hostname nowhere", "nowhere")
            refused(job, 2, "is no host", "")
            assert add(job) == (3, None)  # here
            ranks = [r["pid"] for node in job.status()["nodes"].values() for r in node["ranks"]]
            adding = start_adding(job, "slow")
            wait_for(lambda: any(keeltest.command_of(pid) == "sleep 1000"
                                 for pid in keeltest.processes_with(job.tag) if pid not in ranks), "its launcher")
            stop(job)
            code, out, err = ended(adding)
            assert (code, out, err.count("\n")) == (1, "", 1) and "the job ends" in err, (code, out, err)


HELPER = ["add.launching", "add.come", "add.configured", "add.ready", "add.meeting", "add.starting", "add.started",
          "add.added"]
NEWCOMER = ["start.connected", "start.greeted", "start.configured", "start.ready", "start.told", "added.told",
            "start.plane_begun", "added.born"]


def survives(job, node):
    """Where it was the agent that adds, the next one is asked, and adds one."""
    if node < 3:
        wait_for(lambda: job.status()["nodes"].get(node, {}).get("state") == "dead", "the verdict")
        number, _ = add(job)
        wait_for(lambda: job.status()["nodes"].get(number, {}).get("state") == "running", "it to run")
    living = [n for n in range(3) if n != node]
    assert all(job.status()["nodes"][n]["state"] == "running" for n in living), job.status()
    stop(job)


def struck(point, node, keelrun):
    """Somebody ends while node 3 is added, at a step of his."""
    fault = {"KEEL_FAULT": "%s:1:kill:node=%d" % (point, node)}
    with Job(["-n", "3", "--nodes", "3", "sleep", "1000"], env=fault) as job:
        job.id()
        wait_for(lambda: len(job.status()["nodes"]) == 3, "the job")
        if not keelrun:
            job.process.kill()
            job.process.wait()
        code, out, err = ended(start_adding(job))
        late = point in ("added.born", "add.added")
        assert (code, out) == (1, "") or (late and code in (0, 1)), (point, code, out, err)
        assert err.count("\n") == (code != 0), (point, err)
        survives(job, node)
        if keelrun:
            assert job.wait() == 143, (point, job.stderr())
        job.check_leftovers()


def test_a_new_one_that_comes_before_keelrun_has_heard_of_it_comes_again():
    """The agent that adds it has no connection to keelrun when it would say so, and stands still while the new one
    comes, and a view of it."""
    with Job(["-n", "2", "--nodes", "2", "--room", "1", "--on-failure", "substitute", MOVED, "600", "barriers"],
             env={"KEEL_FAULT": "add.ready:1:stop"}) as job:
        job.wait_for_ranks(2)
        adding = start_adding(job)
        agents = {e["node"]: e["pid"] for e in job.events("start")}
        by = wait_for(lambda: [pid for pid in agents.values() if state_of(pid) == "T"], "an agent to add it")[0]
        os.kill(job.process.pid, signal.SIGSTOP)
        wait_for(lambda: state_of(job.process.pid) == "T", "keelrun to stand still")
        assert shut_connections(job.process.pid) >= 2
        os.kill(by, signal.SIGCONT)
        code, _, err = ended(adding)
        assert code == 0, err
        os.kill(by, signal.SIGSTOP)
        wait_for(lambda: state_of(by) == "T", "the agent to stand still")
        os.kill(job.process.pid, signal.SIGCONT)
        wait_for(lambda: [e for e in job.events("came_early") + job.events("console_resumed") if e["about"] == 2]
                 or "never here" in job.stderr(), "the new one to come")
        os.kill(by, signal.SIGCONT)
        code = job.wait()
        assert code == 0 and "the job is over" not in job.stderr(), (code, job.stderr())


def test_the_agent_that_adds_dies_before_keelrun_has_heard_where_the_new_one_is():
    """Who comes back later is told where the new one is, which says it itself."""
    with Job(["-n", "3", "--nodes", "3", "--spares", "1", "--room", "2", "--on-failure", "substitute", "--silence",
              "1s", "--stopped", "1", MOVED, "900", "barriers"], env={"KEEL_FAULT": "add.ready:1:stop"}) as job:
        job.wait_for_ranks(3)
        wait_for(lambda: len(job.events("start")) == 4, "all agents to begin")
        agents = {e["pid"]: e["node"] for e in job.events("start")}
        adding = start_adding(job)
        by = wait_for(lambda: [pid for pid in agents if state_of(pid) == "T"], "an agent to add it")[0]
        os.kill(job.process.pid, signal.SIGSTOP)
        wait_for(lambda: state_of(job.process.pid) == "T", "keelrun to stand still")
        assert shut_connections(job.process.pid) >= 2
        os.kill(by, signal.SIGCONT)
        assert ended(adding)[0] == 0
        subprocess.run([KEELCTL, "kill-node", job.id(), str(agents[by])], check=True, capture_output=True,
                       timeout=HANG_S)
        os.kill(job.process.pid, signal.SIGCONT)
        wait_for(lambda: [e for e in job.events("console_resumed") if e["about"] == 4], "the new one to come")
        wait_for(lambda: job.events("substituted") + job.events("respawned"), "its rank to go on")
        copies_are_there_after(job, agents[by])
        node = [n for n in agents.values() if n != agents[by] and n < 3][-1]
        node_comes_back(job, node)
        back = wait_for(lambda: job.events("returned"), "it to come back")
        assert (back[0]["about"], back[0]["was"]) == (5, node), back
        wait_for(lambda: job.status()["nodes"].get(5, {}).get("state") == "running", "it to run")
        code = job.wait()
        assert code == 0 and not job.events("link_broken"), (code, job.stderr())


def test_the_agent_that_adds_is_dead_before_the_new_one_is_born():
    """It stands still for so long, and the new one finds another member: keelrun, which has taken its number back,
    takes it in, and what its rank writes comes."""
    with Job(["-n", "3", "--nodes", "3", "--spares", "1", "--room", "3", "--on-failure", "substitute", "--silence",
              "1s", "--stopped", "1", MOVED, "900", "barriers"],
             env={"KEEL_FAULT": "add.started:1:stop,added.told:1:stop"}) as job:
        job.wait_for_ranks(3)
        wait_for(lambda: len(job.events("start")) == 4, "all agents to begin")
        adding = start_adding(job)
        agents = {e["pid"]: e["node"] for e in job.events("start")}
        by = wait_for(lambda: [pid for pid in agents if state_of(pid) == "T"], "an agent to add it")[0]
        new = wait_for(lambda: [pid for pid in keeltest.processes_with(job.tag)
                                if pid not in agents and state_of(pid) == "T"], "the new one to stand still")[0]
        wait_for(lambda: job.events("not_added"), "keelrun to take its number back")
        os.kill(new, signal.SIGCONT)
        wait_for(lambda: [e for e in job.events("console_resumed") if e["about"] == 4], "the new one to come")
        copies_are_there_after(job, agents[by])
        node = [n for n in agents.values() if n != agents[by] and n < 3][-1]
        subprocess.run([KEELCTL, "kill-node", job.id(), str(node)], check=True, capture_output=True, timeout=HANG_S)
        wait_for(lambda: "continues on node 4" in job.stderr(), "a rank to go on there")
        os.kill(by, signal.SIGKILL)
        assert ended(adding)[0] == 1
        code = job.wait()
        assert code == 0 and "never here" not in job.stderr(), (code, job.stderr())


def test_the_agent_that_adds_dies_at_each_step():
    for i, point in enumerate(HELPER):
        struck(point, 0, i % 2 == 0)
    struck("add.numbered", 0, True)


def test_the_new_one_dies_at_each_step():
    for i, point in enumerate(NEWCOMER):
        struck(point, 3, i % 2 == 0)


keeltest.main(globals())
