"""moments.py PROGRAM LIBRARY BEGINNINGS LEAST: the program (moments.c, armci_calls.c) tries every call that the library
exports, at least so many."""
import re
import subprocess
import sys

program, library, beginnings, least = sys.argv[1:]
said = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
exported = set(re.findall(r" [TW] ((?:%s)\w+)" % beginnings, said))
tried = set(subprocess.run([program, "list"], check=True, capture_output=True, text=True).stdout.split())
missing = exported - tried
print(f"{len(exported)} calls, {len(missing)} not tried:", *sorted(missing))
sys.exit(len(exported) < int(least) or bool(missing))
