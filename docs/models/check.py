#!/usr/bin/env python3
"""check.py MODEL [--full]: spin searches every run of the model within bounds; then rules are broken, and it must find
each out.

Prints states and time per search. --full: the bounds named in README.md, minutes and 2 GB instead of seconds."""
from search import check

# members, deaths, false verdicts, messages held back
BOUNDS = [(2, 1, 2, 1), (3, 0, 3, 0), (3, 2, 1, 1), (4, 1, 1, 0), (4, 2, 1, 0)]
FULL = [(3, 2, 2, 1), (4, 1, 1, 1), (4, 2, 1, 1)]
# the rule taken away, and bounds within which that shows
BROKEN = [
    (1, (3, 0, 3, 0), "a decision needs a majority"),
    (2, (2, 0, 2, 0), "of two halves only that with the lowest id decides"),
    (3, (5, 1, 1, 0), "what COLLECT finds accepted is proposed again"),
    (4, (5, 1, 1, 0), "settled is said when the whole view has committed"),
    (5, (5, 1, 1, 0), "a ballot below the promised one is refused"),
    (6, (4, 1, 0, 0), "who is stopped, and not believed dead, must answer"),
]

check(["NODES", "DEATHS", "FALSE", "STRAY"], BOUNDS, FULL, BROKEN,
      lambda *b: "%d members, %d deaths, %d false verdicts, %d late messages" % b, level="-O0", depth=200000)
