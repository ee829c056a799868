"""Saves (keel_keep_save, keelrun --restore): whoever dies in one, a folder holds the last one that was completed; and
from it a later job goes on to the same number, to the last bit, on as many nodes or others."""
import functools
import hashlib
import itertools
import os
import re
import signal
import stat
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import keeltest
from cluster import QUICK, Cluster
from keeltest import run, state_of

KEPT = os.environ.get("KEEL_KEPT", "build/tests/fault/kept")
LOADED = os.environ.get("KEEL_LOADED", "build/tests/fault/loaded")
RESAVED = os.environ.get("KEEL_RESAVED", "build/tests/fault/resaved")
KEEP = os.environ.get("KEEL_KEEP", "build/tests/multi/keep")
RANKS, STEPS, EVERY = 3, 8, 3
SAVE_POINTS = ["keep.copied", "keep.marked", "keep.met", "save.writing", "save.written", "save.told",
               "rank.barrier_entering",
               "rank.barrier_left"]
NAMING_POINTS = ["save.naming", "save.named"]  # of the one that writes the manifest
FAR = ["--silence", "600s", "--stopped", "never"]


def number(out):
    found = re.findall("^kept: ([0-9a-f]{16})$", out, re.M)
    return found[-1] if found else None


@functools.lru_cache(None)
def undisturbed():
    code, out, err = run(["-n", str(RANKS), "--nodes", str(RANKS), KEPT, str(STEPS)])
    assert code == 0, err
    return number(out)


def begun(out):
    return sorted(int(v) for v in re.findall("begins behind ([0-9]+)$", out, re.M))


def expect_restored(folder, version, nodes=RANKS, env=None, spares=0):
    with Cluster(nodes, [KEPT, str(STEPS)], ranks=RANKS, spares=spares, options=FAR + ["--restore", folder], env=env,
                 on_failure="substitute" if spares else None) as job:
        assert job.wait() == 0, job.stderr()
        assert number(job.stdout()) == undisturbed(), (job.stdout(), job.stderr())
        assert set(begun(job.stdout())[:RANKS]) <= {version} or version is None, job.stdout()
        return begun(job.stdout())


class Folder(tempfile.TemporaryDirectory):
    """Its name, which is not there yet."""

    def __enter__(self):
        return os.path.join(super().__enter__(), "saved")


def manifests(folder):
    """Versions that have one."""
    return sorted(int(name.split(".")[0]) for name in os.listdir(folder) if name.endswith(".manifest"))


def saved(folder, **kw):
    with Cluster(RANKS, [KEPT, str(STEPS), "save", folder], options=FAR, **kw) as job:
        assert job.wait() == 0, job.stderr()
        assert number(job.stdout()) == undisturbed(), (kw, job.stdout(), job.stderr())
        return job.stdout()


def digest(data):
    return hashlib.blake2b(data, digest_size=32).hexdigest()


def job_of(name):
    """VERSION.JOB. of a file's name."""
    return "".join(part + "." for part in name.split(".")[:2])


def contents(folder):
    """Of a save: each rank's bytes, and its version. Its manifest says so much of them, and of itself, and no more is
    in the folder."""
    last = manifests(folder)[-1]
    name = next(name for name in os.listdir(folder) if name.startswith("%d." % last) and name.endswith(".manifest"))
    with open(os.path.join(folder, name), "rb") as f:
        manifest = f.read()
    ranks, lines = [], ["keel-save 1", "ranks %d version %d" % (RANKS, last)]
    for rank in range(RANKS):
        form = "%s[0-9a-f]{16}[.]rank%d" % (job_of(name), rank)
        of_rank = next(n for n in os.listdir(folder) if re.fullmatch(form, n))
        with open(os.path.join(folder, of_rank), "rb") as f:
            ranks.append(f.read())
        lines.append("%s %d %s" % (of_rank, len(ranks[rank]), digest(ranks[rank])))
    text = ("\n".join(lines) + "\n").encode()
    assert manifest == text + b"digest %s\n" % digest(text).encode(), manifest
    assert len(os.listdir(folder)) == RANKS + 1, os.listdir(folder)
    return last, ranks


@functools.lru_cache(None)
def undisturbed_contents():
    """From which a later job goes on (the test below)."""
    with Folder() as folder:
        saved(folder)
        return contents(folder)


def expect_saved(folder):
    """Byte for byte what was saved where nobody died; who restores the one restores the other."""
    assert contents(folder) == undisturbed_contents(), os.listdir(folder)


def test_a_later_job_goes_on_on_as_many_nodes_or_others():
    with Folder() as folder:
        out = saved(folder)
        expect_saved(folder)
        assert re.findall("^version ([0-9]+): KEEL_OK$", out, re.M) == ["3", "6"], out
        names = sorted(os.listdir(folder))
        assert len(names) == RANKS + 1 and len(manifests(folder)) == 1, names  # the save before is gone
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
        for name in names:
            assert stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode) == 0o600, name
        for nodes in 1, 2, 3:
            expect_restored(folder, 6, nodes)


def test_all_nodes_die_and_a_later_job_goes_on():
    for fault, version in ("keep.opened:8", 6), ("save.writing:4", 3), ("save.naming:2", 3), ("save.named:2", 6):
        with Folder() as folder:
            with Cluster(RANKS, [KEPT, str(STEPS), "save", folder], options=FAR,
                         env={"KEEL_FAULT": fault + ":stop:rank=0"}) as job:
                assert job.until(lambda c: c.stopped(), "a rank to come to " + fault), fault
                job.kill_all()
                assert job.wait() != 0
            expect_restored(folder, version, 2)


def test_whoever_dies_in_a_save_it_is_completed():
    for point, rank, action in itertools.product(SAVE_POINTS, (0, 1), ("kill", "node")):
        with Folder() as folder:
            nth = 6 if point.startswith("keep") else 9 if point.startswith("rank") else 2
            saved(folder, spares=1, env={"KEEL_FAULT": "%s:%d:%s:rank=%d" % (point, nth, action, rank)})
            expect_saved(folder)


def test_whoever_dies_while_the_manifest_is_written_it_is_completed():
    for point, nth, action in itertools.product(NAMING_POINTS, (1, 2), ("kill", "node")):
        with Folder() as folder:
            saved(folder, spares=1, env={"KEEL_FAULT": "%s:%d:%s:rank=0" % (point, nth, action)})
            expect_saved(folder)


def test_who_stands_still_before_it_names_a_manifest_overwrites_no_later_one():
    """Its node falls silent, its rank is taken over, and all go on to later saves; then its process goes on, and not its
    agent, which would end it."""
    with Folder() as folder:
        with Cluster(RANKS, [KEPT, "100000", "save", folder], spares=1, options=QUICK,
                     env={"KEEL_FAULT": "save.finishing:2:stop:rank=0,save.named:1:stop:rank=0"}) as job:
            assert job.until(lambda c: c.stopped(), "rank 0 to stand still"), job.stderr()
            node, pid = job.stopped()
            job.signal_node(node, signal.SIGSTOP)
            assert job.until(lambda c: os.path.isdir(folder) and any(v > 3 for v in manifests(folder)),
                             "a later save"), job.stderr()
            job.signal_pid(pid, signal.SIGCONT)
            assert job.until(lambda c: state_of(pid) == "T", "the first save's manifest to be named"), job.stderr()
            job.kill_all()
            assert job.wait() != 0
        last = manifests(folder)[-1]
        code, out, err = run(["-n", str(RANKS), "--restore", folder, KEPT, str(last + 1)])
        assert code == 0 and last > 3 and begun(out) == [last] * RANKS, (last, code, out, err)


def test_whoever_dies_while_what_was_saved_is_read():
    with Folder() as folder:
        saved(folder)
        for point, action in itertools.product(("save.loading", "save.loaded", "keep.restoring", "keep.opened"),
                                               ("kill", "node")):
            began = expect_restored(folder, None, env={"KEEL_FAULT": "%s:1:%s:rank=1" % (point, action)}, spares=1)
            assert set(began) == {6}, (point, action, began)


LOADERS = 4


def save_words(folder):
    code, out, err = run(["-n", str(LOADERS), "--nodes", str(LOADERS), LOADED, "save", folder])
    assert code == 0, (out, err)


def expect_words(folder, faults, dead=(), nodes=(), on_failure="degrade", spares=0):
    """A job begins with what was saved. Everybody who lives reads what was saved of all; but for single copies that went with
    their nodes."""
    with Cluster(LOADERS, [LOADED, "load", folder], on_failure=on_failure, spares=spares,
                 options=FAR + ["--restore", folder], env={"KEEL_FAULT": faults}) as job:
        code = job.wait()
        out = job.stdout()
        assert code == 0, (faults, code, out, job.stderr())
        for reader, rank in itertools.product(sorted(set(range(LOADERS)) - set(dead)), range(LOADERS)):
            said = "rank %d reads the part of %d: KEEL_OK, 0 wrong\n" % (reader, rank)
            kept = "rank %d reads what %d kept: KEEL_OK, right, version 1\n" % (reader, rank)
            single = "KEEL_ERR_DATA_LOST" if rank in nodes else "KEEL_OK"
            assert said in out and kept in out, (faults, said, kept, out, job.stderr())
            assert "rank %d reads the single part of %d: %s, 0 wrong\n" % (reader, rank, single) in out, (faults, out)


# a rank's part is loaded in three blocks, the single one and what is kept in one more each
BEFORE_ITS_PART = ["segment.made:1", "save.loading:1", "save.loading:3", "save.loading:5", "save.loaded:1"]


def single_gone(fault):
    """The single part goes with the node if it was there."""
    return () if fault == "segment.made:1" else (2,)


def test_who_dies_for_good_before_its_part_is_loaded_leaves_that_to_others():
    with Folder() as folder:
        save_words(folder)
        for fault, on_failure in itertools.product(BEFORE_ITS_PART, ("degrade", None)):
            expect_words(folder, fault + ":kill:rank=2", (2,), on_failure=on_failure)
        for fault in BEFORE_ITS_PART:
            expect_words(folder, fault + ":node:rank=2", (2,), single_gone(fault))


def test_who_loads_for_the_dead_dies_in_the_middle():
    with Folder() as folder:
        save_words(folder)
        for fault in ["save.loading:%d" % n for n in (6, 8, 10)] + ["save.loaded:2"]:
            expect_words(folder, "save.loading:1:kill:rank=2,%s:kill:rank=0" % fault, (0, 2))
        expect_words(folder, "save.loading:1:kill:rank=2,save.loading:7:node:rank=0", (0, 2), (0,))
        expect_words(folder, "save.loading:1:kill:rank=0,save.loading:7:kill:rank=1,save.loading:8:kill:rank=2", (0, 1, 2))


def test_a_rank_is_begun_again_while_others_load():
    with Folder() as folder:
        save_words(folder)
        for fault in BEFORE_ITS_PART:
            expect_words(folder, fault + ":kill:rank=2", on_failure="substitute", spares=1)
            expect_words(folder, fault + ":node:rank=2", (), single_gone(fault), on_failure="substitute", spares=1)


def test_a_file_that_is_gone_when_others_load_it_is_an_error_on_all():
    with Folder() as folder:
        save_words(folder)
        with Cluster(LOADERS, [LOADED, "load", folder], on_failure="degrade", options=FAR + ["--restore", folder],
                     env={"KEEL_FAULT": "segment.made:1:kill:rank=2,segment.made:1:stop:rank=0"}) as job:
            assert job.until(lambda c: c.stopped(), "rank 0 to stand still")
            gone = [n for n in os.listdir(folder) if n.endswith(".rank2")]
            os.unlink(os.path.join(folder, gone[0]))
            os.kill(job.stopped()[1], signal.SIGCONT)
            assert job.wait() != 0
            assert " reads " not in job.stdout(), job.stdout()
            assert "keel_keep_restore: read %s/%s: No such file" % (folder, gone[0]) in job.stderr(), job.stderr()
            for rank in 1, 3:
                assert "rank %d has not restored: KEEL_ERR_" % rank in job.stderr(), job.stderr()


def test_a_save_for_a_rank_that_nobody_runs():
    for fault, said in ("save.writing:1", "KEEL_OK"), ("keep.copied:3", "KEEL_ERR_RANK_DEAD"):
        with Folder() as folder, Cluster(RANKS, [KEPT, "3", "save", folder], on_failure="degrade", options=FAR,
                                         env={"KEEL_FAULT": fault + ":node:rank=2"}) as job:
            assert job.wait() == 0, job.stderr()
            assert "version 3: %s\n" % said in job.stdout(), (fault, job.stdout(), job.stderr())
            assert len(manifests(folder)) == (said == "KEEL_OK")


def resaved(folder, *mode, **kw):
    """What each version came to, on all who say so: (status, that of the same call again, files in the folder)."""
    with Cluster(LOADERS, [RESAVED, folder] + list(mode), options=FAR, **kw) as job:
        assert job.wait() == 0, job.stderr()
        said = re.findall("^rank [0-9]+ version ([0-9]+): ([A-Z_]+), again: ([A-Z_]+), ([0-9]+) files$", job.stdout(), re.M)
        came = [sorted({w[1:] for w in said if w[0] == v}) for v in "1234"]
        assert all(len(c) == 1 for c in came), (came, job.stdout(), job.stderr())
        return [c[0] for c in came], job.stderr()


SAVED = ("KEEL_OK", "KEEL_OK", str(LOADERS + 1))


def test_a_save_that_failed_leaves_no_files():
    with Folder() as folder:
        came, err = resaved(folder, "full")
        assert came == [SAVED, ("KEEL_ERR_SYSTEM", "KEEL_ERR_ARG", SAVED[2]), SAVED, SAVED], (came, err)
        assert re.search("keel_keep_save: write .*rank1.*: File too large \\(ulimit -f is 4 KiB\\)", err), err
    for fault in "save.naming:2:kill:rank=0", "save.naming:2:node:rank=0":  # nobody takes its place
        with Folder() as folder:
            came, err = resaved(folder, on_failure="degrade", env={"KEEL_FAULT": fault})
            assert came == [SAVED] + 3 * [("KEEL_ERR_RANK_DEAD", "KEEL_ERR_ARG", SAVED[2])], (came, err)
            assert run(["-n", str(LOADERS), "--restore", folder, RESAVED, folder])[0] == 0


def test_what_a_dead_rank_has_left_of_a_save_is_taken_away():
    """By the next one: others may still write of the same version until then."""
    with Folder() as folder:
        came, err = resaved(folder, on_failure="degrade", env={"KEEL_FAULT": "save.writing:5:kill:rank=2"})
        left = SAVED[:2] + (str(int(SAVED[2]) + 1),)
        assert came == [SAVED, left] + 2 * [("KEEL_ERR_RANK_DEAD", "KEEL_ERR_ARG", SAVED[2])], (came, err)
        assert not [n for n in os.listdir(folder) if "part" in n], os.listdir(folder)
        assert "keel_keep_save: rank 2 died before it had made version 3" in err, err
        expect_named(2, "the rank is dead", err)


def expect_named(rank, how, err):
    """What is said of a save names the rank that it is of; whoever does not say so first says it of that one, too."""
    lines = [line.split("keel_keep_save: ")[1] for line in err.splitlines() if "keel_keep_save: " in line]
    assert lines and all(re.match("rank %d[ :]" % rank, line) for line in lines), err
    assert "rank %d: %s" % (rank, how) in lines, err


def test_who_has_left_has_not_died():
    """And nobody can save any more: what it had made is of another version."""
    with Folder() as folder:
        came, err = resaved(folder, "leave")
        assert came == [SAVED] + 3 * [("KEEL_ERR_RANK_DEAD", "KEEL_ERR_ARG", SAVED[2])], (came, err)
        assert "keel_keep_save: rank 1 has left (keel_finalize) before it had made version 2" in err, err
        expect_named(1, "it has left", err)


def test_who_takes_a_rank_over_in_a_save_that_fails_is_told_the_same():
    for point, rank in itertools.product(("save.told:2", "save.naming:1", "rank.barrier_left:4", "rank.barrier_left:5",
                                          "rank.barrier_left:6", "rank.barrier_left:7"), (0, 1, 3)):
        with Folder() as folder:
            came, err = resaved(folder, "full", spares=1, env={"KEEL_FAULT": "%s:kill:rank=%d" % (point, rank)})
            assert came[2:] == [SAVED, SAVED] and came[0] == SAVED, (point, rank, came, err)


def test_a_part_that_is_lost_cannot_be_saved_until_its_segment_is_freed():
    with Folder() as folder:
        came, err = resaved(folder, "free", spares=1, env={"KEEL_FAULT": "keep.opened:2:node:rank=2"})
        lost = ("KEEL_ERR_DATA_LOST", "KEEL_ERR_ARG", SAVED[2])
        assert came == [SAVED, lost, lost, SAVED], (came, err)
        assert "keel_keep_save: rank 2's part of segment 2 (as keelctl verify counts) is lost" in err, err


def test_what_cannot_be_written_is_an_error_and_the_work_goes_on():
    with Folder() as folder:
        out = saved(os.path.join(folder, "deeper"))
        assert re.findall("^version ([0-9]+): KEEL_ERR_SYSTEM$", out, re.M) == ["3", "6"], out
    code, out, err = run(["-n", "1", KEPT, str(STEPS), "save", "/dev/null"])
    assert code == 0 and out.count("KEEL_ERR_SYSTEM") == 2, (code, out, err)
    assert err.count("keel_keep_save: write /dev/null: it is no folder\n") == 2, err


def test_a_folder_that_everybody_may_change_is_refused():
    with Folder() as folder:
        saved(folder)
        os.chmod(folder, 0o777)
        expect_refused(folder, "everybody may write to this folder")
        out = saved(folder)
        assert re.findall("^version ([0-9]+): KEEL_ERR_SYSTEM$", out, re.M) == ["3", "6"], out
        os.chmod(folder, 0o1777)
        expect_restored(folder, 6)


def plant(path):
    """As another user does."""
    os.makedirs(path, exist_ok=True)
    if os.geteuid() == 0:
        os.chown(path, 65534, 65534)


def test_names_that_are_taken_before_the_files_are_there_stop_no_save():
    """In a folder in which everybody may take some. Whoever does has seen the save before."""
    with Folder() as folder:
        os.mkdir(folder)
        os.chmod(folder, 0o1777)
        with Cluster(RANKS, [KEPT, str(STEPS), "save", folder], options=FAR,
                     env={"KEEL_FAULT": "save.named:1:stop:rank=0"}) as job:
            assert job.until(lambda c: c.stopped(), "rank 0 to stand still"), job.stderr()
            for name in os.listdir(folder):
                part = name.split(".")
                for marks in part[2:-1], []:
                    for kind in ["rank%d" % rank for rank in range(RANKS)] + ["manifest"] * (os.geteuid() == 0):
                        plant(os.path.join(folder, ".".join(["6", part[1], *marks, kind])))
            os.kill(job.stopped()[1], signal.SIGCONT)
            assert job.wait() == 0, job.stderr()
            made = re.findall("^version ([0-9]+): KEEL_OK$", job.stdout(), re.M)
            assert made == ["3", "6"], (job.stdout(), job.stderr())
        expect_restored(folder, 6)


def expect_refused(folder, words, ranks=RANKS):
    code, out, err = run(["-n", str(ranks), "--restore", folder, KEPT, str(STEPS)])
    assert code == 2 and out == "" and err.count("\n") == 1 and re.search(words, err), (code, out, err)


def test_what_is_not_what_was_saved_is_refused_before_anything_starts():
    with Folder() as folder:
        expect_refused(folder, "No such file")
        saved(folder)
        expect_refused(folder, "saved by 3 ranks, and this job has 4", 4)
        for name in os.listdir(folder):
            path = os.path.join(folder, name)
            with open(path, "rb") as f:
                whole = f.read()
            for at in sorted({0, 20, len(whole) // 2, len(whole) - 2, len(whole) - 1}):
                for bit in 0, 7:
                    with open(path, "r+b") as f:
                        f.seek(at)
                        f.write(bytes([whole[at] ^ 1 << bit]))
                    expect_refused(folder, "digest|manifest")
                    with open(path, "r+b") as f:
                        f.write(whole)
            for length in 0, 1, len(whole) // 2, len(whole) - 1:
                os.truncate(path, length)
                expect_refused(folder, "cut off|manifest")
                with open(path, "r+b") as f:
                    f.write(whole)
            with open(path, "ab") as f:
                f.write(b"x")
            expect_refused(folder, "length|digest")
            os.truncate(path, len(whole))
            os.rename(path, path + "x")
            expect_refused(folder, "No such file|no manifest")
            os.rename(path + "x", path)
        expect_restored(folder, 6)


def test_another_program_is_told_what_differs():
    with Folder() as folder:
        saved(folder)
        code, out, err = run(["-n", str(RANKS), "--restore", folder, KEEP])
        assert code == 1 and "1 segments were saved, and 0 have been allocated" in err, (code, out, err)


keeltest.main(globals())
