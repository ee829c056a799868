#!/usr/bin/env python3
"""phi.py [--hours H] [--seed S]: one limit against phi accrual (Hayashibara et al. 2004: normal distribution of the
last 200 intervals), on the same made-up heartbeats: read every 60 ms, each late by what a machine makes it. For each
method and setting: false suspicions an hour, and the time from a crash at a random moment to the suspicion (mean, and
the longest of 2,000 crashes)."""
import argparse
import collections
import math
import random

PERIOD = 60.0
WINDOW = 200
MACHINES = {  # name: lateness of one read in ms, r = random.Random, t = time in ms
    "quiet": lambda r, t: r.expovariate(1 / 1.0),
    "busy": lambda r, t: r.expovariate(1 / 10.0),
    "bursts": lambda r, t: r.expovariate(1 / (15.0 if t // 20000 % 3 == 2 else 1.0)),  # 20 s in every minute
    "stalls": lambda r, t: r.uniform(50, 140) if r.random() < 0.002 else r.expovariate(1 / 1.0),
}


def arrivals(machine, r, hours):
    t, last = 0.0, 0.0
    while t < hours * 3.6e6:
        t += PERIOD
        last = max(last, t + MACHINES[machine](r, t))
        yield last


def deadlines(method, value, times):
    """For each arrival: how long after it a suspicion comes if no other does."""
    if method == "limit":
        for _ in times:
            yield value
        return
    window, total, squares, last = collections.deque(), 0.0, 0.0, None
    # phi = -log10(P(later)); the quantile of the normal distribution at which it is `value`
    lo, hi = 0.0, 40.0
    for _ in range(60):
        mid = (lo + hi) / 2
        if -math.log10(max(math.erfc(mid / math.sqrt(2)) / 2, 1e-300)) < value:
            lo = mid
        else:
            hi = mid
    for t in times:
        if last is not None:
            window.append(t - last)
            total += t - last
            squares += (t - last) ** 2
            if len(window) > WINDOW:
                old = window.popleft()
                total -= old
                squares -= old * old
        last = t
        n = len(window)
        mean = total / n if n else PERIOD
        deviation = math.sqrt(max(squares / n - mean * mean, 0)) if n > 1 else PERIOD / 4
        yield mean + lo * max(deviation, 2.0)


def judge(method, value, times, r, hours):
    limits = list(deadlines(method, value, times))
    false = sum(b - a > limit for a, b, limit in zip(times, times[1:], limits))
    took = []
    for _ in range(2000):
        k = r.randrange(WINDOW, len(times) - 1)
        crash = r.uniform(times[k], times[k + 1]) if times[k + 1] > times[k] else times[k]
        took.append(max(times[k] + limits[k] - crash, 0))
    return false / hours, sum(took) / len(took), max(took)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hours", type=float, default=3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print("machine  method       false/hour  mean ms  longest ms")
    for machine in MACHINES:
        times = list(arrivals(machine, random.Random(options.seed), options.hours))
        for method, values in (("limit", (90, 120, 150, 180)), ("phi", (3, 5, 8, 12, 16))):
            for value in values:
                false, mean, most = judge(method, value, times, random.Random(2), options.hours)
                print("%-8s %-5s %-6g %10.1f %8.1f %10.1f" % (machine, method, value, false, mean, most), flush=True)


main()
