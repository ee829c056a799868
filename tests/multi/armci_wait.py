"""armci_wait.py KEELRUN PROGRAM: who waits in MPI for a dead process is told of, and ended; who computes, or waits for
a living one, is not (armci_wait.c)."""
import os
import re
import subprocess
import sys
import time

keelrun, program = sys.argv[1:]
WAIT_S = 1


def run(how, wait_s=WAIT_S):
    start = time.monotonic()
    env = dict(os.environ, KEEL_ARMCI_MPI_WAIT_S=str(wait_s))
    done = subprocess.run([keelrun, "--quiet", "--timeout", "300", "-n", "4", "--nodes", "2", program, how], capture_output=True, text=True, env=env)
    print("%s: %d after %.1f s: %s %s" % (how, done.returncode, time.monotonic() - start, done.stdout.strip(), done.stderr.strip()), flush=True)
    return done, time.monotonic() - start


def is_ended(how, call, who="process 0", became="died", waits="waits", times=2):
    done, seconds = run(how)
    line = r"rank \d: %s has not been in Keel for \d+ s since process 3 %s; %s %s for the dead, and the program ends" % (who, became, call, waits)
    assert done.returncode == 1 and len(re.findall(line, done.stderr)) == 1 and "back" not in done.stdout, (how, done)
    assert seconds > times * WAIT_S, (how, seconds)
    return done


done = is_ended("barrier", "MPI_Barrier")
assert "process 0 has not been in Keel for 1 s since process 3 died; MPI_Barrier waits for the dead (it is ended after 2 s)" in done.stderr, done
is_ended("create", "MPI_Comm_create")
is_ended("dup", "MPI_Comm_dup", who="process 2")
is_ended("recv", "MPI_Recv")
is_ended("in", "MPI_Barrier")
is_ended("wait", "MPI_Wait", waits="may wait", times=10)
is_ended("mortal", "MPI_Barrier", became="ended")
for how in "compute", "living":
    done, seconds = run(how)
    assert done.returncode == 0 and done.stdout == "back\n" and "and the program ends" not in done.stderr, (how, done)
    assert seconds > 3 * WAIT_S, seconds
done, _ = run("compute", "soon")
assert done.returncode == 1 and "KEEL_ARMCI_MPI_WAIT_S is not a number of seconds" in done.stderr, done
