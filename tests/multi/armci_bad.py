"""armci_bad.py KEELRUN PROGRAM: each wrong call of tests/multi/armci_bad.c ends the job with its exit code and a line that names call and reason."""
import subprocess
import sys

NOT_STARTED = ": called before ARMCI_Init, or after ARMCI_Finalize"
MEMORY = "the remote address is in no memory of that process"
CASES = {
    "rank-put": "ARMCI_Put, process 2: no such process", "rank-get": "ARMCI_Get, process -1: no such process",
    "rank-rmw": "ARMCI_Rmw, process 7: ", "rank-send": "armci_msg_snd, process 2: no such process",
    "rank-bcast": "armci_msg_bcast, process 2: no such process in the group",
    "address-put": MEMORY, "address-end": "ARMCI_Get, process %d: an argument is out of range",
    "address-rmw": "ARMCI_Rmw, process %d: the address is in no memory of that process",
    "size-negative": "ARMCI_Acc, process %d: a negative count or stride", "size-malloc": "ARMCI_Malloc, process %d: negative size",
    "stride-negative": "ARMCI_PutS, process %d: a negative count or stride",
    "stride-far": "ARMCI_PutS, process %d: an argument is out of range", "stride-levels": "ARMCI_GetS, process %d: more stride levels than 8",
    "type-wrong": "ARMCI_Acc, process %d: no such type of accumulate", "type-cut": "ARMCI_Acc, process %d: an argument is out of range",
    "vector-negative": "ARMCI_PutV, process %d: a negative length", "vector-outside": "ARMCI_PutV, process %d: an argument is out of range",
    "free-twice": "ARMCI_Free, process %d: not the address of this process's part, or it was freed",
    "free-other": "ARMCI_Free, process %d: not the address of this process's part, or it was freed",
    "mutex-number": "ARMCI_Lock, process %d: no such mutex", "mutex-not-held": "ARMCI_Unlock, process %d: the mutex is not held by this process",
    "mutex-twice": "ARMCI_Create_mutexes, process %d: a negative count, or there are mutexes already",
    "operation-wrong": "a reduction, process %d: no such operation", "operation-of-type": "a reduction, process %d: no such operation, or not for this type",
    "message-long": "armci_msg_rcv, process 0: the message is longer than the buffer",
    "group-rank": "ARMCI_Group_create, process 2: no member of the parent group",
    "late-put": "ARMCI_Put" + NOT_STARTED, "late-barrier": "armci_msg_barrier" + NOT_STARTED, "late-malloc": "ARMCI_Malloc" + NOT_STARTED,
    "early-put": "ARMCI_Put" + NOT_STARTED, "early-barrier": "ARMCI_AllFence" + NOT_STARTED, "early-reduction": "a reduction" + NOT_STARTED,
    "error": "the program says so (3)",
}

keelrun, program = sys.argv[1:]
for name, wanted in CASES.items():
    run = subprocess.run([keelrun, "--quiet", "-n", "2", "--nodes", "2", program, name], capture_output=True, text=True)
    lines = [wanted % rank for rank in (0, 1)] if "%d" in wanted else [wanted]
    assert run.returncode == (3 if name == "error" else 1), (name, run.returncode, run.stderr)
    assert any(line in run.stderr for line in lines) and "nothing was said" not in run.stderr, (name, run.stderr)
print("armci-bad: %d wrong calls told" % len(CASES))
