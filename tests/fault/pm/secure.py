"""keelrun --secure: somebody on the network who listens reads nothing of the program's data, and who puts bytes into
its connections ends these at most, and is told of."""
import os
import socket
import struct
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../lib"))
import keeltest
from keeltest import Job, processes_with, wait_for
from recorder import Recorder

PROGRAM = os.environ["KEEL_SECURE"]
TEXT = b"attack at dawn"


def rounds(job, n):
    wait_for(lambda: len(job.stdout().splitlines()) >= n, "round %d: %s" % (n, job.stderr()))


def go_on(job):
    job.process.stdin.write(b"go\n")
    job.process.stdin.flush()


def job_of(*options, nodes=3):
    return Job(["-n", str(nodes), "--nodes", str(nodes), *options, PROGRAM])


def test_a_recorded_stream_holds_no_data_with_secure_and_does_without():
    for options in ([], ["--secure"]):
        recorder = Recorder()
        with job_of(*options) as job:
            rounds(job, 1)
            go_on(job)
            rounds(job, 2)
            streams, datagrams = recorder.read()
            recorded = [data for data in streams.values()] + [data for _, _, data in datagrams]
            assert sum(map(len, recorded)) > 4 * 96 * 1024, "the puts passed here"
            seen = sum(data.count(TEXT) for data in recorded)
            assert (seen == 0) if options else (seen > 3000), (options, seen)
            assert job.wait() == 0, job.stderr()


def checksum(data):
    total = sum(struct.unpack(">%dH" % (len(data) // 2), data + b"\0" * (len(data) % 2) if len(data) % 2 == 0 else data[:-1]))
    if len(data) % 2:
        total += data[-1] << 8
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def ports_of(job):
    """TCP ports of the job's processes."""
    sockets = set()
    for pid in processes_with(job.tag):
        try:
            sockets |= {os.readlink("/proc/%d/fd/%s" % (pid, fd)) for fd in os.listdir("/proc/%d/fd" % pid)}
        except OSError:
            pass
    with open("/proc/net/tcp") as f:
        lines = [line.split() for line in f][1:]
    return {int(line[1].split(":")[1], 16) for line in lines if "socket:[%s]" % line[9] in sockets}


class Stranger:
    """Forges TCP segments of a job's connections that it has seen."""

    def __init__(self, recorder, job):
        self.recorder, self.job = recorder, job
        self.raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        self.last = {}  # ends -> (next sequence number, its acknowledgement, last payload)
        self.sealed = set()  # ends of the connections that began with a greeting

    def look(self):
        for protocol, source, destination, data in self.recorder.packets():
            if protocol != 6:
                continue
            ports = struct.unpack(">HH", data[:4])
            sequence, acknowledged = struct.unpack(">II", data[4:12])
            payload = data[(data[12] >> 4) * 4:]
            flags = data[13]
            ends = (source, ports[0]), (destination, ports[1])
            old = self.last.get(ends, (0, 0, b""))[2]
            after = (sequence + len(payload) + (flags & 3 != 0)) & 0xffffffff
            self.last[ends] = (after, acknowledged, payload or old)
            if b"KEELSEAL" in payload:
                self.sealed.add(ends)

    def put_in(self, ends, payload):
        (source, sport), (destination, dport) = ends
        sequence, acknowledged, _ = self.last[ends]
        addresses = socket.inet_aton(source) + socket.inet_aton(destination)
        tcp = struct.pack(">HHIIBBHHH", sport, dport, sequence, acknowledged, 5 << 4, 0x18, 512, 0, 0)
        pseudo = addresses + struct.pack(">BBH", 0, 6, len(tcp) + len(payload))
        tcp = tcp[:16] + struct.pack(">H", checksum(pseudo + tcp + payload)) + tcp[18:]
        ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp) + len(payload), 0, 0, 64, 6, 0) + addresses
        self.raw.sendto(ip + tcp + payload, (destination, 0))


def attacked(forge):
    """Puts what forge makes of the last segment into each connection that was sealed, both ways, while it is idle; four
    times."""
    recorder = Recorder()
    with job_of("--secure") as job:
        stranger = Stranger(recorder, job)
        rounds(job, 1)
        put_in = 0
        for n in range(2, 6):
            stranger.look()
            assert len(stranger.sealed) >= 4, stranger.sealed
            ours = ports_of(job)
            for ends in [e for made in stranger.sealed if made[0][1] in ours for e in (made, made[::-1])]:
                stranger.look()
                payload = forge(stranger.last[ends][2]) if ends in stranger.last else b""
                if len(payload) >= 8:  # less is waited on until more comes, as with a cut cable
                    stranger.put_in(ends, payload)
                    put_in += 1
            go_on(job)
            rounds(job, n)
        code = job.wait()
        assert code == 0 and "WRONG" not in job.stderr(), (code, job.stderr())
        assert not job.events("data_lost"), job.events("data_lost")
        assert put_in >= 8 and "is not what was sent; it ends" in job.stderr(), (put_in, job.stderr(), job.events_text())
        assert not [e for e in job.events("view") if e.get("dead_node", -1) >= 0], job.events("view")


def flip_middle(payload):
    middle = len(payload) // 2
    return payload[:middle] + bytes([payload[middle] ^ 1]) + payload[middle + 1:] if payload else b""


def test_a_recorded_frame_put_into_a_living_connection_ends_it_and_data_stay_right():
    attacked(lambda last: last)


def test_a_frame_with_a_flipped_bit_ends_the_connection_and_data_stay_right():
    attacked(flip_middle)


def test_garbage_put_into_a_connection_leaves_data_right():
    attacked(lambda last: bytes(range(64)) if last else b"")


def test_the_beginning_of_a_frame_put_into_a_connection_does_not_make_it_wait():
    attacked(lambda last: (1000).to_bytes(8, "little") if last else b"")


def test_secure_and_verbs_are_refused_together():
    r = subprocess.run([keeltest.KEELRUN, "-n", "1", "--secure", "--probe", "verbs", "true"], capture_output=True, text=True)
    assert r.returncode == 2 and "--secure cannot be used with --probe verbs" in r.stderr, r


keeltest.main(globals())
