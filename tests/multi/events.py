"""What keel_event writes is in the event log, whatever bytes it was given: each line is JSON, and none is missing."""
import json
import os
import subprocess
import sys
import tempfile

LIMIT = 256 # CONTROL_TEXT_MAX: name and text with a zero behind each


def logged(events):
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "log")
        words = [w for name, text in events for w in (name.hex(), "-" if text is None else text.hex())]
        subprocess.run([sys.argv[1], "--event-log", path, "-n", "1", sys.argv[2], *words], check=True)
        with open(path, encoding="utf-8", errors="strict") as log:
            return [e for e in map(json.loads, log) if e["event"] == "application"]


def expected(name, text):
    as_text = lambda b: b.decode() if is_utf8(b) else "".join(chr(c) if c < 0x80 else "?" for c in b)
    event = {"name": as_text(name)}
    if text:
        room = LIMIT - len(name) - 2
        cut = text[:room]
        while len(text) > room and not is_utf8(cut) and len(cut) > room - 3:
            cut = cut[:-1]
        event["text"] = as_text(cut)
    return event


def is_utf8(b):
    try:
        b.decode()
        return True
    except UnicodeDecodeError:
        return False


events = [(b"plain", None), (b"plain", b"a text"), (b"n", b"x" * 5000), (b"n" * 64, b"y" * 300), (b"quotes", b'"\\ and \n')]
events += [(b"a" * k, "€".encode() * 400) for k in range(1, 8)]
events += [(b"control", bytes([1]) * 254), (b"control", bytes(range(1, 128))), (b"latin", b"caf\xe9"), (b"n\xffame", b"text"), ("naïve".encode(), None)]
refused = [(b"", None), (b"m" * 65, None)]
got = logged(events + refused)
assert len(got) == len(events), [e["name"] for e in got]
for i, ((name, text), event) in enumerate(zip(events, got)):
    assert event["number"] == 2 * i + 1 and event["rank"] == 0, event
    assert {k: event[k] for k in ("name", "text") if k in event} == expected(name, text), (event, expected(name, text))
