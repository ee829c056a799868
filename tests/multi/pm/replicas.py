"""Programs that run several times side by side (keelrun --replicas): who is who, one output, sets that are retired.
The programs are plain ones, of the shell and of MPI; none of them uses Keel."""
import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../lib"))
import keeltest
from keeltest import HANG_S, KEELCTL, KEELRUN, Job, Skip, run, wait_for

MPI_SUM = os.environ.get("KEEL_MPI_SUM", "")


def lines(err):
    return [line[len("keelrun: "):] for line in err.splitlines() if line.startswith("keelrun: ")]


def refused(options, why):
    code, out, err = run(["-n", "4"] + options + ["echo", "ran"])
    assert (code, out, err) == (2, "", "keelrun: %s\n" % why), (options, code, out, err)


@contextlib.contextmanager
def file_of(text):
    with tempfile.NamedTemporaryFile("w") as f:
        f.write(text)
        f.flush()
        yield f.name


def test_bad_input_is_refused_in_one_line():
    for count in "1", "0", "4", "-1", "two":
        refused(["--replicas", count], "--replicas: %s is not a number from 2 to 3" % count)
    refused(["--replicas", "2", "--nodes", "3"], "--replicas 2: 3 nodes are no multiple of it, so the sets would not be alike")
    refused(["--replicas", "3", "--nodes", "2"], "--replicas 3 on 2 nodes: each replica of a rank needs a node of its own")
    refused(["--replicas", "2", "--nodes", "1"], "--replicas 2 on 1 node: each replica of a rank needs a node of its own")
    refused(["--replicas", "2", "--nodes", "16"], "4 ranks on the 8 nodes of a set: every node needs at least one rank")
    refused(["--replicas", "2", "--nodes", "2", "--ppn", "3"], "4 ranks with 3 on each node need 2 nodes for each set, not 1")
    refused(["--replicas", "2", "--hosts", "a,b,c"], "--replicas 2: 3 nodes are no multiple of it, so the sets would not be alike")
    refused(["--replicas", "2", "--hosts", "a:4,b:1"] + ["--grid", "1x2"], "--replicas cannot be used with --grid")
    refused(["--replicas", "2", "--restore", "/tmp"], "--replicas cannot be used with --restore")
    for mode in "substitute", "degrade", "abort":
        refused(["--replicas", "2", "--on-failure", mode], "--replicas cannot be used with --on-failure but for copies: a set that loses a process ends, and the others go on")
    for option, value in ("--check", "none"), ("--on-mismatch", "stop"), ("--replica-map", "x"):
        refused([option, value], "%s is of use only with --replicas" % option)


def test_bad_maps_are_refused_in_one_line():
    for text, why in (("0 0 0\n0 1 1\n1 2 0\n1 0 1\n", "line 4: native rank 0 is in a line before"),
                      ("0 0 0\n0 1 1\n1 2 0\n2 3 1\n", "line 4: 2 is no rank from 0 to 1"),
                      ("0 0 0\n0 1 1\n1 2 0\n", "replica 1 of rank 1 is in no line"),
                      ("0 0 0\n0 1 1\n1 2 0\n1 3 1\n", "two replicas of rank 0 are on one node"),
                      ("0 0 0\n0 2 1\n1 1 0\n1 3 1\nracks\n", "replicas of a rank are to be in different racks, and nobody says which racks there are; --topology-file or --rack-of does")):
        with file_of(text) as path:
            code, out, err = run(["-n", "2", "--replicas", "2", "--replica-map", path, "echo", "ran"])
            assert (code, out, err) == (2, "", "keelrun: %s: %s\n" % (path, why)), (text, code, out, err)
    uneven = "".join("%d %d %d\n" % line for line in ((0, 0, 0), (1, 1, 0), (2, 2, 0), (3, 3, 0), (0, 4, 1), (2, 5, 1), (1, 6, 1), (3, 7, 1)))
    with file_of(uneven) as path:
        code, _, err = run(["-n", "4", "--nodes", "4", "--replicas", "2", "--replica-map", path, "echo", "ran"])
        assert (code, err) == (2, "keelrun: %s: ranks 0 and 1 share a node in one of the sets 0 and 1, and do not in the other\n" % path), err
    racks = "0 0 0\n0 2 1\n1 1 0\n1 3 1\nracks\n"
    with file_of(racks) as path, file_of("node[0,1] r0\nnode[2,3] r1\n") as apart, file_of("node[0,2] r0\nnode[1,3] r1\n") as together:
        options = ["-n", "2", "--nodes", "4", "--replicas", "2", "--replica-map", path]
        code, _, err = run(options + ["--topology-file", together, "echo", "ran"])
        assert (code, err) == (2, "keelrun: %s: two replicas of rank 0 are in one rack\n" % path), err
        code, out, err = run(options + ["--topology-file", apart, "echo", "ran"])
        assert (code, out, err) == (0, "ran\n" * 2, ""), (code, out, err)


def test_each_set_is_one_run_of_the_program_and_all_see_the_same():
    shell = ["sh", "-c", "echo $KEEL_RANK $KEEL_SIZE $KEEL_NODE $PMI_RANK $PMI_SIZE $MPI_LOCALRANKID $MPI_LOCALNRANKS"]
    for replicas in "2", "3":
        code, out, err = run(["-n", "4", "--nodes", str(2 * int(replicas)), "--replicas", replicas] + shell)
        assert (code, err) == (0, ""), (code, err)
        assert sorted(out.splitlines()) == ["0 4 0 0 4 0 2", "1 4 0 1 4 1 2", "2 4 1 2 4 0 2", "3 4 1 3 4 1 2"], out
    # a difference in one byte of the environment would be one in what is said
    code, out, err = run(["-n", "2", "--replicas", "3", "sh", "-c", "env; echo $0 $@", "a", "b"])
    assert (code, err) == (0, "") and out.count("KEEL_RANK=") == 2, (code, out, err)


def test_program_of_mpi_runs_as_one_world_in_each_set():
    if not MPI_SUM:
        raise Skip("no mpicc")
    for replicas, nodes in ("2", "2"), ("2", "4"), ("3", "3"):
        code, out, err = run(["-n", "4", "--nodes", nodes, "--replicas", replicas, MPI_SUM])
        assert (code, err) == (0, "") and sorted(out.splitlines()) == ["rank %d of 4 sum 6" % r for r in range(4)], (code, out, err)


def test_standard_input_comes_to_each_set_whole():
    text = "".join("%d\n" % i for i in range(200000))
    result = subprocess.run([KEELRUN, "-n", "2", "--replicas", "3", "sh", "-c", "[ $KEEL_RANK = 1 ] || cat"], input=text,
                            capture_output=True, text=True, timeout=HANG_S)
    assert (result.returncode, result.stderr) == (0, "") and result.stdout == text, (result.returncode, result.stderr, len(result.stdout))


def test_label_is_the_programs_rank():
    code, out, err = run(["-n", "2", "--replicas", "2", "--label", "echo", "hi"])
    assert (code, err) == (0, "") and sorted(out.splitlines()) == ["[0] hi", "[1] hi"], (code, out, err)


def test_output_that_differs_is_told_with_rank_stream_and_byte():
    with tempfile.TemporaryDirectory() as folder:
        for stream, name in ("", "standard output"), (">&2", "standard error"):
            script = "echo same $KEEL_RANK; if [ $KEEL_RANK = 1 ]; then mkdir %s/first 2>&- && echo ab1 %s || echo ab2 %s; fi; true" % (folder, stream, stream)
            code, out, err = run(["-n", "2", "--replicas", "2", "--replica-files", "all", "sh", "-c", script])
            os.rmdir(folder + "/first")
            at = len("same 1\n" if not stream else "") + 2
            assert code == 0 and re.search(r"rank 1 has not written the same in all sets: set [01] and another one differ from byte %d of its %s on" % (at, name), err), (code, out, err)
            assert len(re.findall("ab[12]", out + err)) == 1, (out, err)


def test_output_of_a_set_that_failed_is_no_success():
    """One set has written something wrong, noticed it, and ended. It is the one that is shown, or it is not."""
    told = ("keelrun: standard output is not to be relied on: sets differ, and that of set 0 was shown, "
            "which ended with an error")
    shown = hidden = 0
    while not (shown and hidden) and shown + hidden < 30:
        with tempfile.TemporaryDirectory() as folder:
            script = ("if [ $KEEL_RANK = 1 ] && mkdir %s/first 2>&-; then echo wrong; exit 9; fi; "
                      "sleep 0.2; echo right" % folder)
            options = ["-n", "2", "--replicas", "2" if shown + hidden else "3", "--replica-files", "all"]
            code, out, err = run(options + ["sh", "-c", script])
        if "set 0 has lost rank 1 (it ended with exit code 9)" in err:
            shown += 1
            assert code == 1 and told in err.splitlines(), (code, out, err)
        else:
            hidden += 1
            assert (code, out) == (0, "right\nright\n") and "relied" not in err, (code, out, err)
    assert shown, "set 0 was never the first"


def test_exit_code_of_a_program_is_the_jobs():
    code, out, err = run(["-n", "2", "--replicas", "2", "sh", "-c", "exit 3"])
    assert (code, out) == (3, "") and re.search(r"set ([01]) has lost rank \d \(it ended with exit code 3\), and no set is left", err), (code, err)
    if MPI_SUM:
        code, _, err = run(["-n", "4", "--nodes", "2", "--replicas", "2", MPI_SUM, "abort"])
        assert code == 7 and "rank 1 (it ended with exit code 7), and no set is left" in err, (code, err)


# ---- deaths

COUNT = "i=0; while [ $i -lt 60 ]; do echo $KEEL_RANK line $i; i=$((i+1)); sleep 0.02; done"


def shown_once(out, ranks=4):
    """Each rank's lines, in order, without a gap and none twice."""
    for r in range(ranks):
        said = [line for line in out.splitlines() if line.startswith("%d " % r)]
        assert said == ["%d line %d" % (r, i) for i in range(60)], (r, said)
    assert len(out.splitlines()) == ranks * 60, out


def pids_of(job, set_):
    """{rank: (pid, node)} of the processes of a set."""
    status = job.status()
    return {rank["as_rank"]: (rank["pid"], node["node"]) for node in status["nodes"].values() for rank in node.get("ranks", []) if rank["set"] == set_}


def test_status_names_ranks_and_sets():
    with Job(["-n", "4", "--nodes", "4", "--replicas", "2", "sh", "-c", COUNT + "; sleep 10000"]) as job:
        wait_for(lambda: len(job.stdout().splitlines()) == 240, "the lines")
        text = subprocess.run([KEELCTL, "status", job.id()], capture_output=True, text=True, timeout=HANG_S).stdout
        assert re.findall(r"^    (rank \d of set \d) +pid", text, re.M) == ["rank %d of set %d" % (r, s) for s in (0, 1) for r in range(4)], text
        status = job.status()["replicas"]
        assert (status["sets"], status["native"], status["lost"]) == (2, list(range(8)), [None, None]), status
        pid, node = pids_of(job, 1)[2]
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: job.status()["replicas"]["lost"][1], "the loss of set 1")
        assert job.status()["replicas"]["lost"] == [None, {"rank": 6, "node": node, "signal": 9, "code": 0}]
        wait_for(lambda: all(rank["state"] == "killed" for n in job.status()["nodes"].values() for rank in n["ranks"] if rank["set"] == 1), "the others of the set to end")
        assert [(e["set"], e["rank"], e["signal"]) for e in job.events("set_retired")] == [(1, 6, 9)]
        assert job.events("started")[0]["replicas"] == {"sets": 2, "native": list(range(8))}
        assert lines(job.stderr()) == ["set 1 has lost rank 2 (it was killed by SIGKILL) and is retired; set 0 goes on"], job.stderr()
        subprocess.run([KEELCTL, "stop", job.id()], timeout=HANG_S)
        assert job.wait() == 143


def test_killed_rank_or_node_of_a_set_is_not_felt():
    """Of the set whose output is shown, and of the other one; rank 0's node, which is also the first agent's."""
    seed = os.environ.get("KEEL_TEST_SEED", str(time.time_ns() % 1000000))
    print("KEEL_TEST_SEED=" + seed)
    rng = random.Random(int(seed))
    for what in "rank", "node":
        for set_, rank in (0, 0), (0, 3), (1, 0), (1, 2):
            moment = rng.random()
            print("# %s of rank %d of set %d after %.3f s" % (what, rank, set_, moment))
            with Job(["-n", "4", "--nodes", "4", "--replicas", "2", "sh", "-c", COUNT]) as job:
                job.wait_ranks(8)
                pid, node = pids_of(job, set_)[rank]
                time.sleep(moment)
                if what == "rank":
                    os.kill(pid, signal.SIGKILL)
                else:
                    subprocess.run([KEELCTL, "kill-node", job.id(), str(node)], stdout=subprocess.DEVNULL, check=True, timeout=HANG_S)
                assert job.wait() == 0, job.stderr()
                shown_once(job.stdout())
                told = lines(job.stderr())
                why = r"set %d has lost rank \d \((%s)\) and is retired; set %d goes on" % (set_, "it was killed by SIGKILL" if what == "rank" else "node %d died" % node, 1 - set_)
                assert [line for line in told if re.fullmatch(why, line)], told
                assert len(told) == (2 if what == "rank" else 3), told


def test_set_after_set_may_break_until_the_last_one_does():
    with Job(["-n", "2", "--replicas", "3", "--nodes", "6", "sh", "-c", "echo here; sleep 10000"]) as job:
        wait_for(lambda: job.stdout() == "here\nhere\n", "the ranks")
        for set_, rest in (1, "sets 0 and 2 go on"), (0, "set 2 goes on"):
            os.kill(pids_of(job, set_)[1][0], signal.SIGKILL)
            wait_for(lambda s=set_, r=rest: "set %d has lost rank 1 (it was killed by SIGKILL) and is retired; %s" % (s, r) in job.stderr(), "the line")
        os.kill(pids_of(job, 2)[0][0], signal.SIGKILL)
        assert job.wait() == 137, job.stderr()
        assert lines(job.stderr())[2:] == ["set 2 has lost rank 0 (it was killed by SIGKILL), and no set is left",
                                           "the job ended with exit code 137 after the loss of 3 sets"], job.stderr()


def test_one_of_two_nodes_may_die():
    for node in "0", "1":
        with Job(["-n", "2", "--replicas", "2", "sh", "-c", COUNT]) as job:
            job.wait_ranks(4)
            subprocess.run([KEELCTL, "kill-node", job.id(), node], stdout=subprocess.DEVNULL, check=True, timeout=HANG_S)
            assert job.wait() == 0, job.stderr()
            shown_once(job.stdout(), 2)


def test_node_that_all_sets_need_ends_the_job():
    with file_of("0 0 0\n1 2 0\n2 4 0\n0 3 1\n1 5 1\n2 1 1\n") as path:
        with Job(["-n", "3", "--nodes", "3", "--replicas", "2", "--replica-map", path, "sleep", "10000"]) as job:
            job.wait_ranks(6)
            subprocess.run([KEELCTL, "kill-node", job.id(), "1"], stdout=subprocess.DEVNULL, check=True, timeout=HANG_S)
            assert job.wait() == 137, job.stderr()
            assert lines(job.stderr())[1] == "set 1 has lost rank 0 (node 1 died), and no set is left", job.stderr()


def test_sets_go_on_without_keelrun():
    with tempfile.TemporaryDirectory() as folder:
        script = "while [ ! -e %s/go ]; do sleep 0.05; done; echo x >> %s/$KEEL_RANK" % (folder, folder)
        with Job(["-n", "2", "--replicas", "2", "--nodes", "4", "sh", "-c", script]) as job:
            first = job.wait_ranks(4)["nodes"][0]["ranks"][0]["pid"]
            os.kill(job.process.pid, signal.SIGKILL)
            job.process.wait()
            os.kill(first, signal.SIGKILL)
            wait_for(lambda: job.status()["replicas"]["lost"][0], "the loss of set 0")
            open(folder + "/go", "w").close()
            wait_for(lambda: not keeltest.processes_with(job.tag), "the end of the job")
            for r in "0", "1":
                with open(folder + "/" + r) as f:
                    assert f.read() == "x\n"


def test_mpi_program_goes_on_where_a_set_has_lost_a_rank():
    if not MPI_SUM:
        raise Skip("no mpicc")
    with tempfile.TemporaryDirectory() as folder:
        for set_, rank in (0, 0), (1, 3):
            with Job(["-n", "4", "--nodes", "4", "--replicas", "2", "env", "DIR=" + folder, MPI_SUM, "wait"]) as job:
                wait_for(lambda: sorted(job.stdout().splitlines()) == ["begin %d" % r for r in range(4)], "MPI_Init")
                os.kill(pids_of(job, set_)[rank][0], signal.SIGKILL)
                wait_for(lambda s=set_: "set %d has lost rank" % s in job.stderr(), "the loss")
                open(folder + "/go", "w").close()
                assert job.wait() == 0, job.stderr()
                assert sorted(job.stdout().splitlines()[4:]) == ["rank %d of 4 sum 6" % r for r in range(4)], job.stdout()
            os.remove(folder + "/go")


def test_spares_take_no_rank_and_copies_only():
    with Job(["-n", "2", "--replicas", "2", "--nodes", "2", "--spares", "1", "sh", "-c", COUNT]) as job:
        job.wait_ranks(4)
        os.kill(pids_of(job, 1)[0][0], signal.SIGKILL)
        assert job.wait() == 0, job.stderr()
        shown_once(job.stdout(), 2)
        assert not job.events("assigned") and [e["node"] for e in job.events("retired")] == [1], job.events("retired")


keeltest.main(globals())
