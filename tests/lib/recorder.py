"""What passes on the loopback device, as somebody who listens there sees it."""
import ctypes
import functools
import os
import socket
import struct
import subprocess

from keeltest import IS_ROOT, Skip

CLONE_NEWNET = 0x40000000


@functools.cache
def own_network():
    """From now on this process and its jobs have a loopback device of their own: what others send there would fill the
    recorder's buffer, and then ours would be missing."""
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET):
        raise Skip("needs a network namespace: " + os.strerror(ctypes.get_errno()))
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)


class Recorder:
    """What passes on the loopback device while it is open."""

    def __init__(self):
        if not IS_ROOT:
            raise Skip("needs root to listen to the network")
        own_network()
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0800))
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
        self.socket.bind(("lo", 0))
        self.socket.setblocking(False)

    def packets(self):
        """(protocol, source, destination, transport header and data) of each IPv4 packet so far."""
        _, lost = struct.unpack("II", self.socket.getsockopt(263, 6, 8))  # SOL_PACKET, PACKET_STATISTICS
        assert lost == 0, "%d packets found no room" % lost
        while True:
            try:
                data = self.socket.recv(1 << 17)
            except BlockingIOError:
                return
            header = (data[0] & 15) * 4
            yield data[9], socket.inet_ntoa(data[12:16]), socket.inet_ntoa(data[16:20]), data[header:]

    def read(self):
        """({(source, destination): bytes sent} of TCP, [(source, destination, bytes)] of UDP); ends are (address,
        port)."""
        segments, datagrams = {}, []
        for protocol, source, destination, data in self.packets():
            ports = struct.unpack(">HH", data[:4])
            ends = (source, ports[0]), (destination, ports[1])
            if protocol == 17:
                datagrams.append((*ends, data[8:]))
            elif protocol == 6:
                payload = data[(data[12] >> 4) * 4:]
                if payload:
                    segments.setdefault(ends, {})[struct.unpack(">I", data[4:8])[0]] = payload
        return {ends: b"".join(parts[s] for s in sorted(parts)) for ends, parts in segments.items()}, datagrams
