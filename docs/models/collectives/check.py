#!/usr/bin/env python3
"""check.py MODEL [--full]: spin searches every run of the model within bounds; then rules are broken, and it must find
each out.

Prints states and time of each search. --full: the bounds that README.md names, minutes and some GB instead of
seconds."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from search import check

KINDS = ["barrier and creation of a group", "agreement"]
# kind, members, deaths
BOUNDS = [(0, 3, 2), (1, 3, 1)]
FULL = [(1, 3, 2), (0, 4, 1), (1, 4, 1), (0, 4, 2), (0, 5, 1)]
# the rule taken away, and bounds within which that shows
BROKEN = [
    (1, (1, 3, 1), "an agreement meets twice"),
    (2, (0, 3, 1), "who has decided answers with the decision"),
    (3, (0, 3, 2), "a letter counts only in the view it was sent in"),
]

check(["KIND", "MEMBERS", "DEATHS"], BOUNDS, FULL, BROKEN,
      lambda kind, *b: "%s, %d members, %d deaths" % (KINDS[kind], *b), level="-O1")
