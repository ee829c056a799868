"""run_tests of scripts/common.sh, with a meson that only writes logs: what failed is run once more, what hung is not
and has failed."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parents[3]
# Writes the log of that base: of the first run the results it is given, of the second OK for each test that is named.
MESON = """#!%s
import json, os, sys
arguments = sys.argv[1:]
base = arguments[arguments.index("--logbase") + 1] if "--logbase" in arguments else "testlog"
results = json.loads(os.environ["RESULTS"])
if base == "testlog-again":
    results = {name: "OK" for name in results if name in arguments}
os.makedirs("logs/meson-logs", exist_ok=True)
with open("logs/meson-logs/%%s.json" %% base, "w") as log:
    log.writelines(json.dumps({"name": "keel:unit / " + name, "result": r}) + "\\n" for name, r in results.items())
sys.exit(any(r not in ("OK", "SKIP") for r in results.values()))
""" % sys.executable


def run(place, results):
    """Exit code of run_tests, what it says, and what was run once more."""
    again = pathlib.Path(place, "logs/meson-logs/testlog-again.json")
    again.unlink(missing_ok=True)
    environment = dict(os.environ, PATH="%s:%s" % (place, os.environ["PATH"]), RESULTS=json.dumps(results))
    done = subprocess.run(["bash", "-c", ". scripts/common.sh; run_tests logs"], cwd=place, env=environment,
                          capture_output=True, text=True)
    assert not done.stderr, done.stderr
    lines = again.read_text().splitlines() if again.exists() else []
    return done.returncode, done.stdout, [json.loads(line)["name"].split(" / ")[1] for line in lines]


def main():
    with tempfile.TemporaryDirectory() as place:
        os.symlink(TOP / "scripts", os.path.join(place, "scripts"))
        meson = pathlib.Path(place, "meson")
        meson.write_text(MESON)
        meson.chmod(0o755)
        assert run(place, {"a": "OK", "b": "SKIP"}) == (0, "", [])
        code, said, again = run(place, {"a": "OK", "b": "FAIL", "c": "FAIL"})
        assert code == 0 and again == ["b", "c"] and "hung" not in said, (code, said, again)
        code, said, again = run(place, {"a": "TIMEOUT", "b": "FAIL", "c": "OK", "d": "ERROR"})
        assert code == 1 and again == ["b"] and "not run once more: a d\n" in said, (code, said, again)
        code, said, again = run(place, {"a": "TIMEOUT", "b": "OK"})
        assert code == 1 and again == [] and "not run once more: a\n" in said, (code, said, again)


if __name__ == "__main__":
    main()
