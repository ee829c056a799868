"""An agent without memory ends, and it is said why (docs/fault-model.md, Known faults)."""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import keeltest
from keeltest import KEELCTL, Job, wait_for

STARVE = os.environ["KEEL_STARVE"]


def test_agent_that_has_no_memory_says_so_and_ends():
    with tempfile.TemporaryDirectory() as folder:
        path = folder + "/who"
        with Job(["-n", "2", "--nodes", "2", "sleep", "600"],
                 env={"LD_PRELOAD": STARVE, "KEEL_TEST_STARVE": path}) as job:
            agent = job.wait_ranks(2)["nodes"][1]["agent_pid"]
            with open(path + ".new", "w", encoding="ascii") as f:
                f.write(str(agent))
            os.rename(path + ".new", path)
            subprocess.run([KEELCTL, "status", job.id()], capture_output=True, timeout=60)
            wait_for(lambda: job.process.poll() is not None, "the job to end", 60)
            job.wait()
            assert "keelrun: error: " in job.stderr() and "node 1: out of memory" in job.stderr(), job.stderr()


if __name__ == "__main__":
    keeltest.main(globals())
