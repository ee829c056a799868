"""Keel's collectives beside MPICH's, and Open MPI's: collectives.py KEELRUN KEEL-PROGRAM MPI-PROGRAM [--openmpi
PROGRAM] [--roundtrip PROGRAM] [--ranks N] [--nodes N] [--rounds N]

The programs (bench/collectives.c) run all the time and take turns, round by round; who has no turn is stopped
(SIGSTOP), because MPICH's ranks wait by spinning. Keel's ranks are not stopped: they sleep. Each line: median of the
rounds' medians, and of the rounds' ratios. A call takes as long as the rank that took longest.
The others talk through shared memory if --nodes is 1, else over TCP on loopback. Open MPI: its program, compiled with
mpicc.openmpi, is started by mpiexec.openmpi. Barriers between nodes stand beside a message there and back by plain TCP
(bench/roundtrip.c), too."""
import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys

SIZES = [("barrier", 0, 300), ("allreduce", 8, 300), ("allreduce", 65536, 50), ("allreduce", 4 << 20, 5), ("bcast", 8, 300),
         ("bcast", 65536, 50), ("allgather", 8, 300), ("allgather", 4096, 100), ("alltoall", 8, 300), ("alltoall", 4096, 100),
         ("live-barrier", 0, 300), ("live-allreduce", 8, 300), ("live-allreduce", 65536, 50), ("live-bcast", 8, 300),
         ("agree", 0, 300), ("shrink", 0, 100), ("alloc", 4096, 50)]


END_S = 30


class Side:
    begun = []

    def __init__(self, command, ranks, env, spins):
        Side.begun.append(self)
        self.spins = spins
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        self.pids = []
        while len(self.pids) < ranks:
            word, value = self.line().split()
            if word == "process":
                self.pids.append(int(value))
        self.stop()

    def line(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.process.args[0]} ended")
        return line

    def signal(self, number):
        for pid in self.pids if self.spins else []:
            os.kill(pid, number)

    def stop(self):
        self.signal(signal.SIGSTOP)

    def measure(self, operation, size, times):
        """the round's median in microseconds, or None where there is no such call"""
        self.signal(signal.SIGCONT)
        self.process.stdin.write(f"{operation} {size} {times}\n")
        self.process.stdin.flush()
        words = self.line().split()
        while words[0] != "result":
            words = self.line().split()
        self.stop()
        return None if words[3] == "none" else float(words[3])

    def end(self):
        self.signal(signal.SIGCONT)
        try:
            self.process.communicate("end\n", timeout=END_S)
            return self.process.returncode
        except subprocess.TimeoutExpired: # MPICH's, over TCP, about each twentieth time
            print(f"{' '.join(self.process.args)} does not end, and is killed", file=sys.stderr)
            self.kill()
            return 0 if self.spins else 1

    def kill(self):
        """nothing of it is left"""
        if self.process.poll() is not None:
            return
        self.signal(signal.SIGKILL)
        self.process.terminate()
        self.process.wait()


def guarded(main):
    """main's status; whatever ends it, it leaves no process behind"""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        return main()
    finally:
        for side in Side.begun:
            side.kill()


def open_mpi(program, ranks, nodes):
    """the command; it binds nobody, as the others do not"""
    command = ["mpiexec.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]
    if nodes > 1:
        command += ["--mca", "osc", "pt2pt", "--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"]
    return command + [program]


def row(operation, size, got):
    """the medians, and those of the rounds' ratios of Keel's time to each peer's"""
    line = f"{operation:15}{size:9}{statistics.median(r[0] for r in got):10.3f}"
    for peer in range(1, len(got[0])):
        if got[0][peer] is None:
            line += f"{'-':>10}{'-':>8}"
            continue
        line += f"{statistics.median(r[peer] for r in got):10.3f}{statistics.median(r[0] / r[peer] for r in got):8.3f}"
    return line


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("keelrun")
    parser.add_argument("keel")
    parser.add_argument("mpi")
    parser.add_argument("--openmpi")
    parser.add_argument("--roundtrip")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    mpiexec = shutil.which("mpiexec.hydra")
    if not mpiexec:
        print("mpiexec.hydra is not installed")
        return 77
    env = dict(os.environ)
    if args.nodes > 1:
        env.update(MPIR_CVAR_NOLOCAL="1", UCX_TLS="tcp,self", UCX_NET_DEVICES="lo")
    n = str(args.ranks)
    sides = [Side([args.keelrun, "-n", n, "--nodes", str(args.nodes), args.keel], args.ranks, os.environ, False),
             Side([mpiexec, "-n", n, args.mpi], args.ranks, env, True)]
    header = f"{'':15}{'bytes':>9}{'Keel':>10}{'MPICH':>10}{'ratio':>8}"
    if args.openmpi and shutil.which("mpiexec.openmpi"):
        sides.append(Side(open_mpi(args.openmpi, args.ranks, args.nodes), args.ranks, os.environ, True))
        header += f"{'Open MPI':>10}{'ratio':>8}"
    raw = Side([args.roundtrip], 2, os.environ, True) if args.roundtrip and args.nodes > 1 else None
    print(f"{args.ranks} ranks, {args.nodes} nodes, {os.cpu_count()} processors, {args.rounds} rounds; microseconds")
    print(header)
    for operation, size, times in SIZES:
        got, trips = [], []
        for number in range(args.rounds):
            first = number % len(sides)
            turn = {side: side.measure(operation, size, times) for side in sides[first:] + sides[:first]}
            got.append([turn[side] for side in sides])
            if raw and operation.endswith("barrier"):
                trips.append(raw.measure("round-trip", 8, times))
        print(row(operation, size, got), flush=True)
        if trips:
            print(f"{'':15}{statistics.median(r[0] / trip for r, trip in zip(got, trips)):.3f} of a message there and back by plain TCP,"
                  f" {statistics.median(trips):.3f}", flush=True)
    return max([side.end() for side in sides + ([raw] if raw else [])])


if __name__ == "__main__":
    sys.exit(guarded(main))
