"""Bytes of copies that change by themselves: in the memory of an agent, from outside."""
import os

from keeltest import Skip


def copy_of(job, node, size):
    """The memory of the node's first copy that is so large, or a bit larger (whole pages)."""
    folder = "/proc/%d/fd" % job.agents[node]
    try:
        for name in sorted(os.listdir(folder), key=int):
            path = os.path.join(folder, name)
            if os.readlink(path).startswith("/memfd:keel-segment") and size <= os.stat(path).st_size < size + 8192:
                return os.open(path, os.O_RDWR)
    except PermissionError:
        raise Skip("another process's memory cannot be written here")
    raise AssertionError("node %d holds no such copy" % node)


def flip(fd, offset):
    """Another byte there; returns the old one and the new one."""
    old = os.pread(fd, 1, offset)[0]
    os.pwrite(fd, bytes([old ^ 0xff]), offset)
    return old, old ^ 0xff
