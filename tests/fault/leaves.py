"""Ranks that live and are to go to another node (keelrun --grid) and end in a way of their own meanwhile: it counts."""
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from keeltest import KEELCTL, Job, main, state_of, wait_for

LEAVES = os.environ.get("KEEL_LEAVES", "build/tests/fault/leaves")
LINE = ["-n", "3", "--nodes", "3", "--spares", "2", "--grid", "5", "--spare-alloc", "1D(1,2)", "--substitution", "1D",
        "--on-failure", "substitute"]  # nodes 0 1 2 | 3 4
STEPS = 60


def leaves(how, leave_ms):
    return Job(LINE + [LEAVES, how], env={"KEEL_LEAVE_MS": str(leave_ms)})


def kill_node(job, node):
    subprocess.run([KEELCTL, "kill-node", job.id(), str(node)], check=True, capture_output=True, timeout=30)


def wait_said(job, name, count=1):
    def said():
        assert job.process.poll() is None, "the job ended: " + job.stderr()
        return len([e for e in job.events("application") if e["name"] == name]) >= count
    wait_for(said, "%d ranks to say %s" % (count, name))


def begun(job, rank):
    """How often the rank began."""
    return len([e for e in job.events("application") if e["name"] == "begun" and e["rank"] == rank])


def test_who_was_told_to_go_and_ends_when_it_may_stay_begins_again():
    with leaves("ask", 60000) as job:
        wait_said(job, "begun", 3)
        kill_node(job, 0)
        wait_said(job, "asked")
        kill_node(job, 4)
        kill_node(job, 3)
        code = job.wait()
        assert code == 0, (code, job.stderr())
        assert [e["rank"] for e in job.events("stays")].count(2) == 1, job.events("stays")
        assert job.stdout() == "all have counted to %d\n" % (3 * STEPS), job.stdout()
        assert begun(job, 2) == 2 and not job.events("made_to_leave")


def test_who_has_finalized_to_go_may_write_before_it_ends():
    with leaves("tells", 1000) as job:
        wait_said(job, "begun", 3)
        kill_node(job, 0)
        code = job.wait()
        assert code == 0, (code, job.stderr())
        assert job.stdout().count("rank 2 line ") == 30, job.stdout()
        assert job.stdout().endswith("all have counted to %d\n" % (3 * STEPS)), job.stdout()
        # Rank 1, asked in the barrier in which it waits for the next process of rank 2, may be ended meanwhile.
        assert begun(job, 2) == 2 and 2 not in [e["rank"] for e in job.events("made_to_leave")]
        assert [e["rank"] for e in job.events("still_ends")] == [2], job.events("still_ends")
        assert "keelrun: rank 2 is to go to another node: it has called keel_finalize, and its program has not ended" \
            in job.stderr(), job.stderr()


def test_who_has_finalized_to_go_and_does_not_end_is_told_before_its_time_is_over():
    with leaves("stays", 3600000) as job:
        wait_said(job, "begun", 3)
        kill_node(job, 0)
        wait_for(lambda: "rank 2 is to go to another node: it has called keel_finalize" in job.stderr(), "the line")
        os.kill([e["pid"] for e in job.events("rank_start") if e["rank"] == 2][0], signal.SIGUSR2)
        code = job.wait()
        assert code == 0, (code, job.stderr())
        assert [e["rank"] for e in job.events("still_ends")] == [2] and begun(job, 2) == 2, job.events("still_ends")


def test_crash_of_who_has_finalized_to_go_is_told_and_its_rank_goes_on():
    with leaves("falls", 60000) as job:
        wait_said(job, "begun", 3)
        kill_node(job, 0)
        code = job.wait()
        assert code == 0, (code, job.stderr())
        assert job.stdout() == "all have counted to %d\n" % (3 * STEPS), job.stdout()
        assert begun(job, 2) == 2 and "node 2) was killed by SIGSEGV; it continues on node 3" in job.stderr(), \
            job.stderr()


def test_crash_of_its_next_process_counts():
    with leaves("trips", 60000) as job:
        wait_said(job, "begun", 3)
        kill_node(job, 0)
        code = job.wait()
        assert code == 128 + signal.SIGSEGV and "rank 2 was killed by SIGSEGV" in job.stderr(), (code, job.stderr())


def test_who_has_finalized_has_left():
    with leaves("late", 1000) as job:
        wait_said(job, "done", 3)
        kill_node(job, 0)
        code = job.wait()
        assert code == 0, (code, job.stderr())
        assert {e["rank"] for e in job.events("leaving")} >= {1, 2}, job.events("leaving")
        for rank in range(3):
            assert job.stdout().count("rank %d line " % rank) == 30, (rank, job.stdout())
        assert begun(job, 1) == 1 and begun(job, 2) == 1 and not job.events("made_to_leave")


def ended_by(number):
    """Rank 2, asked to go, while its agent stands still for longer than it waits."""
    with leaves("ends", 1000) as job:
        wait_said(job, "begun", 3)
        kill_node(job, 0)
        wait_said(job, "asked")
        wait_for(lambda: 2 in [e["rank"] for e in job.events("leaving")], "its agent to wait for it")
        agent = [e["pid"] for e in job.events("start") if e["node"] == 2][0]
        rank = [e["pid"] for e in job.events("rank_start") if e["rank"] == 2][0]
        os.kill(agent, signal.SIGSTOP)
        wait_for(lambda: state_of(agent) == "T", "its agent to stand still")
        os.kill(rank, number)
        time.sleep(2)
        os.kill(agent, signal.SIGCONT)
        code = job.wait()
        ends = [(e["code"], e["signal"]) for e in job.events("exit") if e["rank"] == 2 and e["pid"] == rank]
        return code, job.stdout(), job.stderr(), ends, begun(job, 2)


def test_exit_code_of_who_was_to_go_counts():
    code, _, err, ends, _ = ended_by(signal.SIGUSR1)
    assert ends == [(5, 0)] and code == 5 and "rank 2 ended with exit code 5" in err, (code, err, ends)


def test_crash_of_who_was_to_go_counts():
    code, out, err, ends, _ = ended_by(signal.SIGSEGV)
    assert ends == [(0, signal.SIGSEGV)] and code == 0, (code, err, ends)
    assert out == "all have counted to %d\n" % (3 * STEPS), out
    assert "node 2) was killed by SIGSEGV; started again" in err, err


def test_who_was_to_go_and_ended_with_0_has_ended():
    code, _, err, ends, times = ended_by(signal.SIGUSR2)
    assert ends == [(0, 0)] and code == 0 and times == 1, (code, err, ends, times)


main(globals())
