"""keel-scf's --redundancy: the same energy with any number of copies, and a line for what is none. scf_copies.py
KEELRUN KEEL-SCF"""
import re
import subprocess
import sys

keelrun, keel_scf = sys.argv[1:]


def run(redundancy):
    return subprocess.run([keelrun, "-n", "3", "--nodes", "3", keel_scf, "water.xyz", "--redundancy", redundancy], capture_output=True, text=True)


for name in ["none", "shadow", "triple"]:
    done = run(name)
    found = re.search(r"^Total energy: (\S+)", done.stdout, re.M)
    if done.returncode or not found or abs(float(found[1]) + 74.963146766) > 1e-8:
        sys.exit(f"{name}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
done = run("two")
if done.returncode != 2 or done.stderr.count("--redundancy two: there are none, shadow and triple") != 1:
    sys.exit(f"two: exit code {done.returncode}\n{done.stderr}")
