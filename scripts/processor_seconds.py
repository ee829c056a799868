#!/usr/bin/env python3
"""meson test -C build --wrapper "$PWD/scripts/processor_seconds.py" ...: what each test takes of the processors.

Each runs in a control group of its own (version 2, root): what detaches from it is counted, too. Adds a line to
$KEEL_SECONDS (processor-seconds.tsv): seconds of processors, of these in the kernel, seconds of the clock, exit code,
command. `sort -rn` has the dearest first."""
import os
import signal
import sys
import time


def mounted():
    with open("/proc/mounts") as f:
        places = [line.split()[1] for line in f if line.split()[2] == "cgroup2"]
    return places[0] if places else sys.exit("processor_seconds.py: no control groups of version 2 are mounted")


def used(group):
    with open(group + "/cpu.stat") as f:
        stat = dict(line.split() for line in f)
    return int(stat["usage_usec"]) / 1e6, int(stat["system_usec"]) / 1e6


def main():
    group = "%s/keel-test-%d" % (mounted(), os.getpid())
    os.mkdir(group)
    begun = time.monotonic()
    child = os.fork()
    if child == 0:
        with open(group + "/cgroup.procs", "w") as f:
            f.write(str(os.getpid()))
        os.execvp(sys.argv[1], sys.argv[1:])
    for number in signal.SIGTERM, signal.SIGINT:  # they are for the test, which has its group's
        signal.signal(number, signal.SIG_IGN)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    command = " ".join(os.path.basename(word) for word in sys.argv[1:])
    with open(os.environ.get("KEEL_SECONDS", "processor-seconds.tsv"), "a") as f:
        f.write("%.2f\t%.2f\t%.1f\t%d\t%s\n" % (*used(group), time.monotonic() - begun, code, command))
    try:
        os.rmdir(group)
    except OSError:  # something is left in it, which the test has to say
        pass
    sys.exit(code if code >= 0 else 128 - code)


main()
