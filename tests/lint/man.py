"""Every public function is named in a manual page and every result code in keel_status.3; groff has nothing to say
about any page. Usage: man.py TOP; prints what is missing, exit 1 if something is. The groff check is left out where
groff is not installed."""
import pathlib
import re
import shutil
import subprocess
import sys

top = pathlib.Path(sys.argv[1])
pages = sorted((top / "docs/man").glob("*.[1-9]"))
headers = {path.name: re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)
           for path in (top / "include/keel").glob("*.h")}
names = set(re.findall(r"\b(keel_[a-z_]+)\(", re.sub(r"#.*", "", "\n".join(headers.values()))))
codes = re.findall(r"X\((KEEL_[A-Z_]+), (-?\d+),", headers["status.h"])
if len(names) < 20 or not codes or not pages:
    sys.exit("no public functions, codes or pages found: is this the top of the tree?")

bad = []
calls = {page.name: page.read_text().replace("\\-", "-") for page in pages if page.suffix == ".3"}
for name in sorted(names):
    if not any(re.search(r"[ *]%s\(" % name, text) for text in calls.values()):
        bad.append("%s: in no manual page's synopsis" % name)
for code, value in codes:
    if not re.search(r"^%s\t%s\t" % (code, value), calls["keel_status.3"], re.M):
        bad.append("keel_status.3: %s (%s) is missing" % (code, value))
documented = {name for text in calls.values() for name in re.findall(r"[ *](keel_[a-z_]+)\(", text)}
bad += ["%s: documented, but no public function" % name for name in sorted(documented - names)]
if shutil.which("groff"):
    for page in pages:
        said = subprocess.run(["groff", "-t", "-man", "-Tutf8", "-ww", "-z", str(page)], capture_output=True, text=True)
        bad += [line for line in said.stderr.splitlines() if line]
else:
    print("groff is not installed: layout not checked")
print("\n".join(bad))
sys.exit(1 if bad else 0)
