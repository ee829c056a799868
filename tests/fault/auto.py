"""The method auto: when a node of a 4x4 grid dies it weighs moving against colliding, by what the program has declared;
keelctl rebalance moves ranks that live when that pays, and keel-stencil has the same bits."""
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from descriptors import lacks_descriptors_for_good
from keeltest import KEELCTL, Job, main, run, wait_for

PLACED = os.environ.get("KEEL_PLACED", "build/tests/fault/placed")
STENCIL = os.environ.get("KEEL_STENCIL", "build/apps/stencil/keel-stencil")
FIVE_POINTS, RING, NOBODY = "1", "5", "0"
GRID = ["-n", "9", "--grid", "4x4", "--substitution", "auto", "--on-failure", "substitute"]
MIDDLE = 5  # its place; slot 4


def kill_place(job, place):
    node = job.events("started")[0]["grid"]["place"].index(place)
    for e in job.events():
        if e["node"] == node and e["event"] in ("start", "rank_start"):
            try:
                os.kill(e["pid"], signal.SIGKILL)
            except ProcessLookupError:
                pass


def said(job, by, pattern):
    """The last figures, once they are these."""
    wait_for(lambda: any(e["by"] == by and e["pattern"] == pattern for e in job.events("figures")), "figures of %s by %s" % (pattern, by))
    return job.events("figures")[-1]


def choices(job, slot):
    """One of each view: the speaker says it, and a death may make another one the speaker."""
    return sorted({e["epoch"]: e for e in job.events("auto") if e["slot"] == slot}.values(), key=lambda e: e["epoch"])


def moved_first(job):
    """The ranks that live and have moved by a choice for a slot, not by one for all slots, later in a quiet moment."""
    until = min((e["epoch"] for e in choices(job, -1) if e["moves"]), default=1 << 62)
    return {e["moved_rank"] for e in job.events("view") if "moved_rank" in e and e["epoch"] < until}


def restored(job, n=1):
    wait_for(lambda: len({e["epoch"] for e in job.events("redundancy_restored")}) >= n, "all copies to be there")


def choice_for(kind, bytes_, pattern):
    with Job(GRID + [PLACED, "600", kind, str(bytes_)]) as job:
        figures = said(job, "declared", pattern)
        assert figures["message_bytes"] == bytes_ and figures["slot_bytes"] > 0, figures
        kill_place(job, MIDDLE)
        wait_for(lambda: choices(job, 4), "a choice for slot 4")
        choice = choices(job, 4)[0]
        assert job.wait() == 0, job.stderr()
        moved = moved_first(job)
        assert len(moved) == choice["moves"] - 1, (choice, moved)
        assert "auto: slot 4 goes by %s, %d move" % (choice["chose"], choice["moves"]) in job.stderr(), job.stderr()
        assert choice["chose"] in choice["prices_s"] and "0D" in choice["prices_s"], choice
        return choice


def test_the_declared_bytes_decide_who_moves():
    little, much = choice_for(FIVE_POINTS, 8, "star"), choice_for(FIVE_POINTS, 1 << 30, "star")
    assert little["moves"] == 1, little
    assert much["moves"] > 1, much


def test_the_declared_pattern_decides_who_moves():
    """A gigabyte to the next rank alone: what meets on a link is less than with all neighbours, and prices say so."""
    def lost(choice):
        return {p.split()[0]: float(p.split("+", 1)[1]) for p in choice["prices_s"].split(", ")}
    star, ring = choice_for(FIVE_POINTS, 100 << 20, "star"), choice_for(RING, 100 << 20, "ring")
    assert lost(ring)["0D"] < lost(star)["0D"], (star, ring)


def test_what_is_not_declared_is_counted():
    """64 KiB to each neighbour every ten milliseconds or less often: some seconds later that is known, and with it chosen."""
    with Job(GRID + [PLACED, "500", NOBODY, str(1 << 16)]) as job:
        figures = said(job, "counted", "star")
        assert 1 << 16 < figures["message_bytes"] < 101 << 16 and figures["steps_per_s"] == 1, figures
        assert figures["slot_bytes"] > 1 << 16, figures
        kill_place(job, MIDDLE)
        wait_for(lambda: choices(job, 4), "a choice for slot 4")
        choice = choices(job, 4)[0]
        assert job.wait() == 0, job.stderr()
        assert "least time" in choice["why"] and "1D" in choice["prices_s"], choice


def test_without_figures_balance_chooses():
    with Job(GRID + [PLACED, "400", NOBODY, "0"]) as job:
        job.wait_for_ranks(9)
        kill_place(job, MIDDLE)
        wait_for(lambda: choices(job, 4), "a choice for slot 4")
        choice = choices(job, 4)[0]
        assert choice["chose"] == "balance" and choice["prices_s"] == "" and "nobody knows" in choice["why"], choice
        assert job.wait() == 0, job.stderr()
        moved = moved_first(job)
        assert choice["moves"] == len(moved) + 1, (choice, moved)
        line = "auto: slot 4 goes by balance, %d move" % choice["moves"]
        assert line in job.stderr(), job.stderr()


def test_who_stood_still_for_a_young_job_moves_by_itself_in_a_quiet_moment():
    """A step a second, of which each message that meets another loses 50 ms, and 0.3 s for a rank that moves: at first
    that is too much. Nobody asks."""
    with Job(GRID + [PLACED, "1800", FIVE_POINTS, str(5 << 20)]) as job:
        said(job, "declared", "star")
        kill_place(job, MIDDLE)
        wait_for(lambda: choices(job, 4), "a choice for slot 4")
        assert choices(job, 4)[0]["moves"] == 1, choices(job, 4)
        wait_for(lambda: any(e["moves"] for e in choices(job, -1)), "slots that live to move")
        choice = next(e for e in choices(job, -1) if e["moves"])
        horizon = max(e["horizon_s"] for e in job.events("figures") if e["epoch"] < choice["epoch"])
        price = {p.split()[0]: [float(s) for s in p.split()[1].split("+")] for p in choice["prices_s"].split(", ")}
        assert sum(price[choice["chose"]]) < price["stay"][1] and horizon >= 4, (choice, horizon)
        assert choice["why"] == "in a quiet moment, whether another map pays", choice
        assert job.wait() == 0, job.stderr()
        after = [e["moved_rank"] for e in job.events("view") if "moved_rank" in e and e["epoch"] > choice["epoch"]]
        assert len(set(after)) >= 2, (choice, after)
        line = "slots that live go elsewhere, as by %s: %s (seconds: stay " % (choice["chose"], choice["why"])
        assert line in job.stderr(), job.stderr()


def rebalance(job, *options):
    done = subprocess.run([KEELCTL, "rebalance", "--json", *options, job.id()], capture_output=True, text=True, timeout=90)
    return done.returncode, json.loads(done.stdout) if done.stdout else None


def test_rebalance_moves_ranks_of_the_stencil_when_that_pays():
    field = [STENCIL, "5p", "--cells", "96x96", "--sweeps", "150", "--pause", "40"]
    code, out, err = run(["-n", "1"] + field)  # on any number of ranks the bits are the same
    assert code == 0, err
    with Job(GRID + field) as job:
        assert said(job, "declared", "star")["message_bytes"] > 0
        kill_place(job, MIDDLE)
        wait_for(lambda: choices(job, 4), "a choice for slot 4")
        assert choices(job, 4)[0]["moves"] == 1, choices(job, 4)
        restored(job)
        code, short = rebalance(job, "--time", "1")
        assert code == 0 and short["result"] == "stays" and short["chose"] == "stay" and short["horizon_s"] == 1, short
        code, long = rebalance(job, "--time", "10000000")
        assert code == 0 and long["result"] == "moves" and long["moves"] > 1, long
        assert long["moving_s"] + long["lost_s"] < long["lost_staying_s"], long
        assert job.wait() == 0, job.stderr()
        assert job.stdout().splitlines()[-1] == out.splitlines()[-1], (job.stdout(), out)
        moved = {e["moved_rank"] for e in job.events("view") if "moved_rank" in e}
        assert len(moved) >= 2, (long, moved)
        assert not job.events("made_to_leave")
        assert any("as by %s" % long["chose"] in line for line in job.stderr().splitlines()), job.stderr()


def told(job):
    done = subprocess.run([KEELCTL, "rebalance", job.id()], capture_output=True, text=True, timeout=90)
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done
    return done.stderr


def test_rebalance_names_who_is_on_its_way():
    """Ranks stand still as they begin to move: nobody moves anew before they have gone."""
    with Job(GRID + [PLACED, "800", FIVE_POINTS, str(1 << 30)],
             env={"KEEL_FAULT": "rank.moving:1:stop", "KEEL_LEAVE_MS": "8000"}) as job:
        said(job, "declared", "star")
        kill_place(job, MIDDLE)
        wait_for(lambda: job.events("leaving"), "ranks to be asked to go")
        moving = {e["rank"]: (e["node"], e["to"]) for e in job.events("released")}
        line = told(job)
        rank = min(moving)
        assert "slot %d (rank %d) is on its way from node %d to node %d; ask again when it is there" % (
            rank, rank, *moving[rank]) in line, (line, moving)
        assert job.wait() == 0, job.stderr()


def test_rebalance_names_the_slot_that_no_node_was_found_for():
    with Job(["-n", "3", "--grid", "4", "--spare-alloc", "1D(1,1)", "--substitution", "auto", "--on-failure",
              "substitute", PLACED, "400", FIVE_POINTS, "8"]) as job:
        said(job, "declared", "star")
        kill_place(job, 3)
        wait_for(lambda: [e for e in job.events("view") if e.get("dead_node") == 3], "a view without the spare")
        kill_place(job, 1)
        wait_for(lambda: [e for e in job.events("view") if e.get("dead_node") == 1], "a view without node 1")
        line = told(job)
        assert "nobody moves: slot 1 (rank 1) was lost when no node was free for it, and gets none" in line, line
        assert "goes by none" not in job.stderr(), job.stderr()


def test_rebalance_names_the_slot_whose_node_can_start_no_process():
    """The other rank of the slot lives there, and no node is free."""
    with Job(["-n", "6", "--grid", "4", "--spare-alloc", "1D(1,1)", "--substitution", "auto", "--on-failure",
              "substitute", PLACED, "400", FIVE_POINTS, "8"]) as job:
        said(job, "declared", "star")
        kill_place(job, 3)
        wait_for(lambda: [e for e in job.events("view") if e.get("dead_node") == 3], "a view without the spare")
        lacks_descriptors_for_good([e["pid"] for e in job.events("start") if e["node"] == 1][0])
        os.kill([e["pid"] for e in job.events("rank_start") if e["rank"] == 3][0], signal.SIGKILL)
        wait_for(lambda: job.events("not_started"), "node 1 to say that it cannot")
        line = wait_for(lambda: [line for line in [told(job)] if "is on its way" not in line], "a view of that")[0]
        assert ("nobody moves: slot 1 (ranks 2 and 3) is on node 1, which can start no process, and no other node "
                "is free for it") in line, line
        assert "goes by none" not in job.stderr(), job.stderr()


def test_rebalance_is_for_jobs_that_weigh():
    with Job(["-n", "2", "--grid", "3", "--spare-alloc", "1D(1,1)", "--substitution", "1D", PLACED, "200"]) as job:
        job.wait_for_ranks(2)
        done = subprocess.run([KEELCTL, "rebalance", job.id()], capture_output=True, text=True, timeout=90)
        assert done.returncode == 1 and "the job has no grid with --substitution auto" in done.stderr, done
        assert job.wait() == 0, job.stderr()
    with Job(GRID + [PLACED, "300", NOBODY, "0"]) as job:
        job.wait_for_ranks(9)
        done = subprocess.run([KEELCTL, "rebalance", job.id()], capture_output=True, text=True, timeout=90)
        assert done.returncode == 1 and "nobody knows yet what the program sends" in done.stderr, done
        assert job.wait() == 0, job.stderr()


main(globals())
