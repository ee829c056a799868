"""A limit of memory of a node's own, as a batch system sets it."""
import os

from keeltest import Skip


class MemoryGroup:
    """What its processes take from now on is limited (cgroup, version 1 or 2); more ends one of them."""

    def __init__(self, limit):
        self.folder = None
        for mount, name in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
            folder = "%s/keel-test-%d-%d" % (mount, os.getpid(), limit)
            try:
                os.mkdir(folder)
                self.folder = folder
                with open(os.path.join(folder, name), "w") as f:
                    f.write(str(limit))
                return
            except OSError:
                self.close()
        raise Skip("no memory groups can be made here")

    def add(self, pid):
        with open(os.path.join(self.folder, "cgroup.procs"), "w") as f:
            f.write(str(pid))

    def close(self):
        if self.folder:
            os.rmdir(self.folder)
        self.folder = None
