"""pauses.py [--periods P] [--seed S]: whom do rules of silence declare dead that only stood still, and how long do they
wait for who is dead?

Nodes are read every 60 ms; each has pauses of four kinds, drawn as below, and everybody waits for everybody all the
time (the worst case of a stopped agent). A pause that outlasts the rule's limit is a false death. Only pauses are
drawn, not each read: a read without a pause before it is late by a millisecond or so and changes nothing but phi's
history, which is filled so. The limits of the rules are those of detect/patience.c for more than half of the view
heard, without and with another whole copy."""
import argparse
import math
import random

PERIOD_S, WINDOW, QUIET_S = 0.060, 1000, 0.003  # phi: intervals it remembers; their usual deviation
# who stands still: all of the machine; the agent, as its witness says; the agent, in a wait for a disk
HOST, AGENT_STOPPED, AGENT_WAITS = range(3)


def log_uniform(r, low, high):
    return math.exp(r.uniform(math.log(low), math.log(high)))


KINDS = {  # name: (an hour and node, who, length in seconds)
    "migration of a virtual machine, 0.1 to 8 s": (1, HOST, lambda r: log_uniform(r, 0.1, 8)),
    "hypervisor, 20 ms to 1 s": (30, HOST, lambda r: log_uniform(r, 0.02, 1)),
    "NFS, 1 to 30 s": (1, AGENT_WAITS, lambda r: log_uniform(r, 1, 30)),
    "suspended and resumed, skew 0 to 2 s": (1, AGENT_STOPPED, lambda r: r.uniform(0, 2)),
}


def phi_limit(threshold, past):
    """Silence at which phi reaches the threshold: intervals taken for normal, some of them were pauses."""
    n = WINDOW - len(past)
    mean = (n * PERIOD_S + sum(PERIOD_S + p for p in past)) / WINDOW
    var = (n * (QUIET_S ** 2 + (mean - PERIOD_S) ** 2) + sum((PERIOD_S + p - mean) ** 2 for p in past)) / WINDOW
    p, z = 10 ** -threshold, 0.0
    while 0.5 * math.erfc(z / math.sqrt(2)) > p:
        z += 0.01
    return mean + z * math.sqrt(var)


def old(who, _late, _past):
    return 0.78 if who == AGENT_WAITS else 0.25


def new(times):
    def rule(who, late, _past):
        return 30.0 if who != HOST else 3.0 * times + min(3.0, 4 * late)
    return rule


RULES = {"old: 0.25 s, and 0.78 s if the host answers": old}
RULES.update({"fixed %g s" % s: (lambda s: lambda who, late, past: s)(s) for s in (1, 3, 10, 30)})
RULES.update({"phi %d" % t: (lambda t: lambda who, late, past: phi_limit(t, past))(t) for t in (8, 16)})
RULES["new, another whole copy"] = new(1)
RULES["new, the only copy"] = new(4)


def run(rate, who, draw, hours, rule, seed):
    """(pauses, false deaths)."""
    r, t, pauses, deaths, past = random.Random(seed), 0.0, 0, 0, []
    while True:
        t += r.expovariate(rate / 3600)
        if t > hours * 3600:
            return pauses, deaths
        length = draw(r)
        past = [(at, p) for at, p in past if t - at < WINDOW * PERIOD_S]
        late = max([p / 2 ** int((t - at) / 8) for at, p in past], default=0)  # as the node itself says
        pauses += 1
        deaths += length > rule(who, late, [p for _, p in past])
        past.append((t, length))
        t += length


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--periods", type=float, default=1e8)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    hours = options.periods * PERIOD_S / 3600
    print("%.3g node-periods a column (%.0f node-hours): false deaths; wait for a host that is off, and for an agent that hangs" % (options.periods, hours))
    print("| rule | " + " | ".join(KINDS) + " | host off | agent hangs |\n|---" * 1 + "|---" * (len(KINDS) + 2) + "|")
    for name, rule in RULES.items():
        cells = []
        for rate, who, draw in KINDS.values():
            pauses, deaths = run(rate, who, draw, hours, rule, options.seed)
            cells.append("%d of %d" % (deaths, pauses))
        print("| %s | %s | %.2g s | %.2g s |" % (name, " | ".join(cells), rule(HOST, 0, []), rule(AGENT_WAITS, 0, [])))


main()
