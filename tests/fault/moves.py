"""A rank that lives goes on in a new process of another node, beside that node's own ranks; nobody says that anything
has failed. Nothing public asks for it: the agent is told over its console, as keelctl would be."""
import json
import os
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from descriptors import lacks_descriptors_for_good
from keeltest import KEELCTL, Job, main, state_of, wait_for

MOVED = os.environ.get("KEEL_MOVED", "build/tests/fault/moved")
MSG_MOVE = 69


def move(job, node, rank, to):
    body = bytes([MSG_MOVE]) + json.dumps({"rank": rank, "node": to}).encode()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as console:
        console.connect("\0keel/%s/%d" % (job.id(), node))
        console.sendall(struct.pack("<I", len(body)) + body)


def status(job):
    return subprocess.run([KEELCTL, "status", job.id()], capture_output=True, text=True, timeout=60).stdout


def begun(job, rank):
    """Nodes on which the rank has begun, in order."""
    return [line.split()[-1] for line in job.stdout().splitlines() if line.startswith("rank %d begins" % rank)]


def wait_until_it_counts(job, ranks):
    wait_for(lambda: all(begun(job, r) for r in range(ranks)), "all ranks to begin")


def wait_begun(job, rank, times):
    def has_begun():
        assert job.process.poll() is None, "the job ended before rank %d moved: %s" % (rank, job.stderr())
        return len(begun(job, rank)) == times
    wait_for(has_begun, "rank %d to begin again" % rank)


def expect_no_failure(job, ranks):
    code = job.wait()
    assert code == 0, (code, job.stderr())
    ends = [line for line in job.stdout().splitlines() if " ends on " in line]
    assert len(ends) == ranks and all(line.endswith(" 0 failures") for line in ends), job.stdout()
    assert job.stderr() == "", job.stderr()
    assert not [e for e in job.events("view") if "dead_rank" in e or "dead_node" in e]


def test_a_rank_goes_on_on_a_node_that_computes():
    """It comes to no point at which it could end, and is ended where it is."""
    with Job(["-n", "3", "--nodes", "3", "--on-failure", "substitute", MOVED, "300"],
             env={"KEEL_LEAVE_MS": "500"}) as job:
        wait_until_it_counts(job, 3)
        move(job, 1, 1, 2)
        wait_begun(job, 1, 2)
        assert begun(job, 1) == ["1", "2"], job.stdout()
        expect_no_failure(job, 3)
        assert [e["moved_rank"] for e in job.events("view") if e["node"] == 0 and "moved_rank" in e] == [1]
        assert [e["rank"] for e in job.events("made_to_leave")] == [1]


def test_a_rank_goes_at_its_next_barrier():
    """By itself, without a change of the program, as long as that takes."""
    with Job(["-n", "3", "--nodes", "3", "--on-failure", "substitute", MOVED, "200", "barriers"],
             env={"KEEL_LEAVE_MS": "60000"}) as job:
        wait_until_it_counts(job, 3)
        for n, to in enumerate([2, 0, 1]):
            move(job, int(begun(job, 1)[-1]), 1, to)
            wait_begun(job, 1, n + 2)
        assert begun(job, 1) == ["1", "2", "0", "1"], job.stdout()
        expect_no_failure(job, 3)
        assert not job.events("made_to_leave")
        assert [e["complete"] for e in job.events("view") if e["node"] == 0 and "moved_rank" in e] == [1, 1, 1]


def chosen(how, steps="200"):
    return Job(["-n", "3", "--nodes", "3", "--on-failure", "substitute", MOVED, steps, how],
               env={"KEEL_LEAVE_MS": "60000"})


def test_a_program_that_chooses_goes_where_it_says():
    with chosen("moves") as job:
        wait_until_it_counts(job, 3)
        for n, to in enumerate([2, 1]):
            move(job, int(begun(job, 1)[-1]), 1, to)
            wait_begun(job, 1, n + 2)
        assert begun(job, 1) == ["1", "2", "1"], job.stdout()
        expect_no_failure(job, 3)
        assert job.stdout().count("rank 1 moves") == 2, job.stdout()  # which nobody had flushed
        assert not job.events("made_to_leave")


def test_a_program_that_chooses_returns_from_main():
    with chosen("returns") as job:
        wait_until_it_counts(job, 3)
        move(job, 1, 1, 2)
        wait_begun(job, 1, 2)
        assert begun(job, 1) == ["1", "2"], job.stdout()
        expect_no_failure(job, 3)
        assert [e["complete"] for e in job.events("view") if e["node"] == 0 and "moved_rank" in e] == [1]
    with chosen("fails") as job:
        wait_until_it_counts(job, 3)
        move(job, 1, 1, 2)
        code = job.wait()
        assert code == 3 and "rank 1 ended with exit code 3" in job.stderr(), (code, job.stderr())


def test_a_rank_that_slides_before_its_neighbour_stores_when_its_part_has_come():
    """Two ranks a node; the slot follows when the second one has left, too."""
    with Job(["-n", "6", "--nodes", "3", "--grid", "3x2", "--spare-alloc", "2D(1,1):y", "--substitution", "2D", MOVED,
              "200", "stores"]) as job:
        wait_until_it_counts(job, 6)
        subprocess.run([KEELCTL, "kill-node", job.id(), "1"], check=True, capture_output=True, timeout=60)
        code = job.wait()
        assert code == 0 and job.stdout().count("failures") == 6, (code, job.stdout(), job.stderr())
        moved = [rank for rank in (0, 1, 4, 5) if len(begun(job, rank)) > 1]
        assert moved and len(moved) % 2 == 0, job.stdout()


def waits_for_its_part(how, call, late_ms, faults, why):
    """Rank 3 takes its time on its way out; rank 2, which has begun on the next node, waits for the memory of both."""
    with Job(["-n", "6", "--nodes", "3", "--grid", "5", "--spare-alloc", "1D(1,2)", "--substitution", "1D",
              "--on-failure", "substitute", MOVED, "200", how, str(late_ms)],
             env={"KEEL_FAULT": faults, "KEEL_LEAVE_MS": "600000"}) as job:
        wait_until_it_counts(job, 6)
        pid = rank_pids(job, 3)[0]
        subprocess.run([KEELCTL, "kill-node", job.id(), "0"], check=True, capture_output=True, timeout=60)
        said = r"for rank 3 \(node 1\), which %s" % why
        shown = r"rank 2 +pid .*\n +has waited [\d.]+ s in %s %s" % (call, said)
        wait_for(lambda: re.search(shown, status(job)), "keelctl status to say that rank 2 waits for its part")
        # with all who wait for the same, where that is a process that stands still
        line = r"keelrun: ranks? .*2.* waited \d+ s in .*" + said
        wait_for(lambda: re.search(line, job.stderr()), "the terminal to say it")
        if faults:
            assert state_of(pid) == "T"
            os.kill(pid, signal.SIGCONT)
        code = job.wait()
        assert code == 0, (code, job.stdout(), job.stderr())
        assert not job.events("made_to_leave"), job.events("made_to_leave")
        return job.stdout()


STANDS_STILL = "rank.move_called:1:stop:rank=3"


def test_who_waits_for_its_part_is_told():
    call = "keel_update_begin or keel_segment_track"
    waits_for_its_part("stores", call, 300, STANDS_STILL, "is stopped by a signal or a debugger")
    waits_for_its_part("stores", call, 9000, "", "has not left that node")


def test_an_address_waits_for_a_part_without_further_copies():
    call = "keel_address or keel_update_begin"
    out = waits_for_its_part("addresses", call, 300, STANDS_STILL, "is stopped by a signal or a debugger")
    assert all("rank %d finds its part" % rank in out for rank in (2, 3, 4, 5)), out
    out = waits_for_its_part("addresses", call, 9000, "", "has not left that node")
    assert all("rank %d finds its part" % rank in out for rank in (2, 3, 4, 5)), out


def test_ranks_of_a_node_slide_behind_the_same_collective():
    """One has left a barrier and not come to its end when both are asked to go; the other one is in the next. Who goes
    where the other did not would wait for its part, and that one for it, until it is ended."""
    with Job(["-n", "6", "--nodes", "3", "--grid", "5", "--spare-alloc", "1D(1,2)", "--substitution", "1D",
              "--on-failure", "substitute", MOVED, "100", "tracks"],
             env={"KEEL_FAULT": "rank.barrier_left:20:stop:rank=5"}) as job:
        wait_for(lambda: rank_pids(job, 5) and state_of(rank_pids(job, 5)[0]) == "T", "rank 5 to be behind a barrier")
        subprocess.run([KEELCTL, "kill-node", job.id(), "0"], check=True, capture_output=True, timeout=60)
        wait_for(lambda: {e["rank"] for e in job.events("leaving")} >= {4, 5}, "ranks 4 and 5 to be asked to go")
        os.kill(rank_pids(job, 5)[0], signal.SIGCONT)
        code = job.wait()
        assert code == 0, (code, job.stdout(), job.stderr())
        assert not job.events("made_to_leave"), job.events("made_to_leave")
        assert [len(begun(job, rank)) for rank in range(6)] == [2] * 6, job.stdout()


def test_a_rank_goes_to_a_spare_and_back():
    with Job(["-n", "2", "--nodes", "2", "--spares", "1", "--on-failure", "substitute", MOVED, "500"],
             env={"KEEL_LEAVE_MS": "500"}) as job:
        wait_until_it_counts(job, 2)
        for n, (at, to) in enumerate([(1, 2), (2, 1)]):
            move(job, at, 1, to)
            wait_begun(job, 1, n + 2)
        assert begun(job, 1) == ["1", "2", "1"], job.stdout()
        expect_no_failure(job, 2)


def agent_pid(job, node):
    return [e["pid"] for e in job.events("start") if e["node"] == node][0]


def has_no_descriptor(job, node):
    agent = agent_pid(job, node)
    soft, hard = resource.prlimit(agent, resource.RLIMIT_NOFILE)
    resource.prlimit(agent, resource.RLIMIT_NOFILE, (3, hard))
    return lambda: resource.prlimit(agent, resource.RLIMIT_NOFILE, (soft, hard))


def rank_pids(job, rank):
    return [e["pid"] for e in job.events("rank_start") if e["rank"] == rank]


def rank_pid(job, rank):
    return rank_pids(job, rank)[-1]


NO_DESCRIPTORS = "no descriptors for a process: Too many open files"


def test_a_rank_that_its_node_cannot_start_goes_to_a_spare():
    """The node has no descriptors, or the program's file is gone, of which a spare has processes that wait. Who lives
    on the node lives on."""
    with tempfile.TemporaryDirectory(prefix="keel-test-") as folder:
        program = os.path.join(folder, "moved")
        for what, why in (has_no_descriptor, NO_DESCRIPTORS), (lambda *_: os.unlink(program), "cannot run " + program):
            if not os.path.lexists(program):
                os.symlink(os.path.abspath(MOVED), program)
            with Job(["-n", "4", "--nodes", "2", "--spares", "1", "--on-failure", "substitute", program, "500",
                      "barriers"], env={"KEEL_FAULT": "rank.barrier_left:3:stop:rank=3"}) as job:
                wait_until_it_counts(job, 4)
                wait_for(lambda: len([e for e in job.events("rank_start") if e["node"] == 2]) == 2, "the spare's")
                pid = rank_pid(job, 3)
                wait_for(lambda: state_of(pid) == "T", "rank 3 to have counted")
                has_it_again = what(job, 1)
                os.kill(pid, signal.SIGKILL)
                wait_for(lambda: job.events("not_started"), "node 1 to say that it cannot")
                if has_it_again:
                    has_it_again()  # it is to accept connections
                code = job.wait()
                assert code == 0 and begun(job, 3) == ["1", "2"], (why, code, job.stdout(), job.stderr())
                assert all(len(begun(job, r)) == 1 for r in range(3)), (why, job.stdout())
                told = job.stderr().splitlines()
                at = [i for i, line in enumerate(told) if "node 1 could not start rank 3: " + why in line]
                assert len(at) == 1 and "continues on node 2" in job.stderr(), (why, told)
                assert not [e for e in job.events("view") if "dead_node" in e], (why, told)


def test_a_rank_that_moves_to_a_node_that_cannot_start_it_comes_back():
    with Job(["-n", "3", "--nodes", "3", "--on-failure", "substitute", MOVED, "500", "barriers"]) as job:
        wait_until_it_counts(job, 3)
        has_them_again = has_no_descriptor(job, 2)
        move(job, 1, 1, 2)
        wait_for(lambda: job.events("not_started"), "node 2 to say that it cannot")
        has_them_again()  # it is to accept connections
        code = job.wait()
        assert code == 0 and begun(job, 1) == ["1", "1"], (code, job.stdout(), job.stderr())
        assert "node 2 could not start rank 1: " + NO_DESCRIPTORS in job.stderr(), job.stderr()
        assert "rank 1 continues on node 1" in job.stderr(), job.stderr()


def test_a_node_without_descriptors_takes_connections_with_those_that_it_kept_back():
    """The rank's next process is where it was, and reaches the agent that could not start it."""
    with Job(["-n", "3", "--nodes", "3", "--on-failure", "substitute", MOVED, "500", "barriers"]) as job:
        wait_until_it_counts(job, 3)
        lacks_descriptors_for_good(agent_pid(job, 2))
        move(job, 1, 1, 2)
        code = job.wait()
        assert code == 0 and begun(job, 1) == ["1", "1"], (code, job.stdout(), job.stderr())
        assert "node 2 could not start rank 1: " + NO_DESCRIPTORS in job.stderr(), job.stderr()
        assert "that were kept back are given up for connections" in job.stderr(), job.stderr()
        assert not [e for e in job.events("view") if "dead_node" in e], job.stderr()


def test_a_rank_that_nobody_can_start_stays_dead():
    with Job(["-n", "3", "--nodes", "3", "--on-failure", "substitute", MOVED, "500", "barriers"]) as job:
        wait_until_it_counts(job, 3)
        has_no_descriptor(job, 1)
        os.kill(rank_pid(job, 1), signal.SIGKILL)
        code = job.wait()
        assert begun(job, 1) == ["1"], (code, job.stdout(), job.stderr())
        assert "node 1 could not start rank 1: " + NO_DESCRIPTORS in job.stderr(), job.stderr()
        assert "the job goes on without" in job.stderr(), job.stderr()
        assert code == 1 and ": at == steps: false" in job.stderr(), job.stderr()  # of those that went on


main(globals())
