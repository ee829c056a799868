"""armci_ended.py KEELRUN PROGRAM: who waits to be ended says for whom, after a second, and once."""
import subprocess
import sys

keelrun, program = sys.argv[1:3]
# Whose agent is stopped is not taken for dead.
done = subprocess.run([keelrun, "-n", "2", "--nodes", "2", "--silence", "600s", "--dark", "600000", program],
                      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100)
said = done.stdout.splitlines()
print("\n".join(said))
line = "rank 0: process 1 died on node 1; waiting for the agent of node 0 to end the program"
assert said.count(line) == 1, said
assert done.returncode == 1, done.returncode
