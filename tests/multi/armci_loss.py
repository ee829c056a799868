"""armci_loss.py KEELRUN PROGRAM [PLACE...]: a program of ARMCI that has not called keel_survive, and loses a process,
ends with one line that names the loss and a code other than 0: in every mode of keelrun's, whatever the others are
doing (armci_loss.c). No line says that anybody goes on. In `final` the result stands: who ends by itself there does not
matter."""
import itertools
import os
import subprocess
import sys
import time

MODES = {"default": [], "degrade": ["--on-failure", "degrade"], "substitute": ["--on-failure", "substitute"], "abort": ["--on-failure", "abort"], "copies": ["--on-failure", "copies", "--spares", "1"],
         "a spare": ["--spares", "1"], "a spare, degrade": ["--spares", "1", "--on-failure", "degrade"]}
PLACES = ["start", "init", "sum", "get", "mpi", "compute", "final"]
ENDS = "; the program has not called keel_survive and ends"
GOES_ON = ("goes on", "continue", "started again")

keelrun, program = sys.argv[1:3]
places = sys.argv[3:] or PLACES


def run(place, how, victim, mode):
    start = time.monotonic()
    args = [keelrun, "-n", "4", "--nodes", "2"] + MODES[mode] + ["--timeout", "300", program, place, how, str(victim)]
    done = subprocess.run(args, capture_output=True, text=True, env=dict(os.environ, KEEL_ARMCI_MPI_WAIT_S="1"))
    said = [line for line in done.stderr.splitlines() if line]
    what = (place, how, victim, mode, done.returncode, round(time.monotonic() - start, 1), said, done.stdout)
    print("%s %s %d, %s: %d after %.1f s: %s" % what[:-1], flush=True)
    assert done.returncode not in (0, 124) and "energy" not in done.stdout, what
    assert place in ("start", "init") or not [line for line in said if any(word in line for word in GOES_ON)], what
    lines = [line for line in said if ENDS in line]
    if place in ("start", "init"): # where MPI_Init may find it first, or no process of its node had called keel_init
        assert any(line.startswith("keelrun: ") for line in said) and len(lines) < 2, what
    elif how == "code":
        assert done.returncode == 3 and any("rank %d ended with exit code 3" % victim in line for line in said), what
    elif place == "mpi" and how == "exit": # nothing tells of it but the wait
        assert done.returncode == 1 and any("process %d ended; MPI_Barrier waits for the dead, and the program ends" % victim in line for line in said), what
    elif mode == "abort" and how != "exit":
        assert done.returncode == 137, what
    else:
        assert done.returncode == 1 and len(lines) == 1, what


def test_every_loss_ends_the_program():
    for place, how in itertools.product(places, ("rank", "node", "exit", "code")):
        if how == "exit" and place in ("start", "init"):
            continue # what MPI_Init of the others does then is MPI's
        for i, mode in enumerate(MODES):
            run(place, how, victim=(0, 3, 1)[i % 3], mode=mode)


test_every_loss_ends_the_program()
