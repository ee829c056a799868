"""Print 'N passed, N failed, N skipped' for meson test logs (JSON lines); exit 1 if one failed or none passed."""
import json
import sys

counts = {"passed": 0, "failed": 0, "skipped": 0}
for path in sys.argv[1:]:
    with open(path) as log:
        for line in log:
            result = json.loads(line)["result"]
            key = "passed" if result in ("OK", "EXPECTEDFAIL") else "skipped" if result == "SKIP" else "failed"
            counts[key] += 1
print(", ".join(f"{n} {word}" for word, n in counts.items()))
sys.exit(0 if counts["passed"] and not counts["failed"] else 1)
