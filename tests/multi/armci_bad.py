"""armci_bad.py KEELRUN PROGRAM END-PROGRAM PARTS-PROGRAM: each wrong call of tests/multi/armci_bad.c ends the job with
its exit code and a line that names call and reason; so does a process that dies, or ends by itself, before or between
ARMCI_Finalize and MPI_Finalize (armci_end.c); so does a put to a dead one's part that is longer than it
(armci_parts.c)."""
import subprocess
import sys

NOT_STARTED = ": called before ARMCI_Init, or after ARMCI_Finalize"
CASES = {
    "rank-put": "ARMCI_Put, process 2: no such process",
    "free-twice": "ARMCI_Free, process %d: not the address of this process's part, or it was freed",
    "mutex-not-held": "ARMCI_Unlock, process %d: the mutex is not held by this process",
    "group-gone-size": "ARMCI_Group_size, process %d: the group does not exist, or was freed, or this process is no member",
    "group-gone-rank": "ARMCI_Group_rank, process %d: the group does not exist, or was freed, or this process is no member",
    "group-gone-uses": "ARMCI_Uses_shm_grp, process %d: the group does not exist, or was freed, or this process is no member",
    "message-long": "armci_msg_rcv, process 0: the message is longer than the buffer",
    "message-of-anybody-long": "armci_msg_rcvany, process 0: the message is longer than the buffer",
    "late-malloc": "ARMCI_Malloc" + NOT_STARTED, "early-reduction": "armci_msg_dgop" + NOT_STARTED,
    "error": "the program says so (3)", "abort": "armci_msg_abort (4)",
}

keelrun, program, end_program, parts_program = sys.argv[1:]
for name, wanted in CASES.items():
    run = subprocess.run([keelrun, "--quiet", "-n", "2", "--nodes", "2", program, name], capture_output=True, text=True)
    lines = [wanted % rank for rank in (0, 1)] if "%d" in wanted else [wanted]
    assert run.returncode == {"error": 3, "abort": 4}.get(name, 1), (name, run.returncode, run.stderr)
    assert any(line in run.stderr for line in lines) and "nothing was said" not in run.stderr, (name, run.stderr)
for how, wanted in {
        "": "process 1 was killed by SIGKILL on node 0", "leave": "process 1 ended without ARMCI_Finalize", "group": "process 1 ended without ARMCI_Finalize", "before": "process 1 ended without ARMCI_Finalize",
        "between": "process 1 ended without MPI_Finalize", "exit": "process 1 ended without MPI_Finalize"}.items():
    run = subprocess.run([keelrun, "-n", "3", "--nodes", "2", end_program, how], capture_output=True, text=True)
    wanted += "; the program has not called keel_survive and ends"
    assert run.returncode == 1 and wanted in run.stderr, (how, run.returncode, run.stderr)
run = subprocess.run([keelrun, "-n", "3", "--nodes", "2", end_program, "bcast"], capture_output=True, text=True)
assert run.returncode == 1 and ": armci_msg_bcast, process 1: " in run.stderr, (run.returncode, run.stderr)
run = subprocess.run([keelrun, "-n", "4", "--nodes", "2", parts_program, "beyond", "1", "2"], capture_output=True, text=True)
assert run.returncode == 1 and "ARMCI_Put, process 2: " in run.stderr, (run.returncode, run.stderr)
print("armci-bad: %d wrong calls told" % len(CASES))
