#!/usr/bin/env python3
"""check_board.py MODEL [--full]: spin searches every run of board.pml within bounds; then rules are broken, and it must
find each out."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from search import check

# members, turns, deaths
BOUNDS = [(2, 3, 1), (3, 1, 1)]
FULL = [(3, 2, 1), (3, 3, 1), (3, 1, 2)]
BROKEN = [
    (1, (3, 1, 1), "who leaves closes the meeting"),
    (2, (3, 1, 1), "it is closed before the posts are read"),
    (3, (3, 1, 1), "who has seen all posts looks whether it was closed"),
    (4, (3, 1, 1), "posts of another view do not count"),
]

check(["MEMBERS", "TURNS", "DEATHS"], BOUNDS, FULL, BROKEN,
      lambda *b: "%d members, %d turns, %d deaths" % b)
