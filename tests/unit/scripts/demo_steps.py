"""What ./demo demands of a failure's time line: every step that must happen, and none that may."""
import contextlib
import io
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "scripts"))
import demo  # noqa: E402

KILLED = 1_000_000_000
STEPS = {
    "suspect": '{"event":"suspect","t_ns":1001000000,"about":1}',
    "verdict": '{"event":"verdict","t_ns":1002000000,"about":1,"evidence":"refused"}',
    "view": '{"event":"view","t_ns":1003000000,"dead_node":1}',
    "substituted": '{"event":"substituted","t_ns":1005000000}',
    "redundancy_restored": '{"event":"redundancy_restored","t_ns":1014000000}',
}


def judged(without, substitute=True):
    """What time_line says of a log without one of the steps, and what it prints."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as log, contextlib.redirect_stdout(io.StringIO()) as out:
        log.writelines(line + "\n" for name, line in STEPS.items() if name != without)
        log.flush()
        events = demo.Events(log.name)
        events.poll()
        return demo.time_line(events, KILLED, 1, substitute), out.getvalue()


def main():
    good, said = judged(None)
    assert good and "suspected" in said, said
    good, said = judged("suspect")  # proven at once
    assert good and "suspected" not in said and "never" not in said, said
    for step in ("verdict", "view", "substituted"):
        good, said = judged(step)
        assert not good and "never" in said, (step, said)
    good, said = judged("redundancy_restored")
    assert not good and "never" in said, said
    good, said = judged("substituted", substitute=False)
    assert good, said


if __name__ == "__main__":
    main()
