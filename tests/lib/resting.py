"""tests/fault/audit.c: a program that rests, so that its copies may be looked at, and ends when it is told."""
import os

PROGRAM = os.environ.get("KEEL_AUDIT", "build/tests/fault/audit")
PART = 600000


def at_rest(job):
    assert job.started(), job.stderr()
    assert job.until(lambda c: c.has("application", name="rest"), "the program to rest"), job.stderr()


def ends_well(job):
    code = job.wait()
    assert code == 0, (code, job.stderr())
