"""What a process finds that takes a dead rank's place: signals, messages, groups (keel/signal.h, keel/message.h,
keel/group.h)."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import keeltest
from cluster import Cluster

TAKEOVER = os.environ.get("KEEL_TAKEOVER", "build/tests/fault/takeover")
# who dies is killed, and that is seen; silence is want of a processor
FAR = ["--silence", "600s", "--stopped", "never"]


def test_a_spare_finds_signals_and_no_messages_or_groups():
    with Cluster(2, [TAKEOVER], spares=1, options=FAR) as job:
        assert job.until(lambda c: "ready\n" in c.stdout(), "the first rank to be ready"), job.stderr()
        job.kill_node(1)
        assert job.wait() == 0, job.stderr()


keeltest.main(globals())
