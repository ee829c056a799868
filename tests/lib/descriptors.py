"""An agent's limit of descriptors, while it runs."""
import os
import resource


def of_process(pid):
    return {int(fd): os.readlink("/proc/%d/fd/%s" % (pid, fd)) for fd in os.listdir("/proc/%d/fd" % pid)}


def lacks_descriptors_for_good(pid):
    """Those that it has opened last have higher numbers than the limit allows: whichever of them it closes, it opens
    none for that. Those that it keeps back are below."""
    there = of_process(pid)
    last = 1 + max(fd for fd, what in there.items() if what == "/dev/null")
    hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (min(set(range(last)) - set(there) | {last}), hard))
