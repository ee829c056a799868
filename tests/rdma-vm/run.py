#!/usr/bin/env python3
"""run.py CACHE TEST PROGRAM...: boots Debian's kernel in qemu, with four RDMA devices (Soft-RoCE) joined by a bridge,
and runs TEST there.

The kernel comes from Debian's package, unpacked into CACHE, not installed. No root, no KVM needed.
Exit 77: something that is needed is not here, said in one line."""
import fcntl
import lzma
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MODULES = ["sch_netem", "sch_ingress", "cls_u32", "act_gact", "crc32_pclmul", "crc32c_intel", "rdma_rxe", "rdma_ucm", "veth", "bridge"]
TOOLS = ["qemu-system-x86_64", "busybox", "modprobe", "depmod", "rdma", "ip", "tc", "setpriv", "ldd", "apt-get", "dpkg"]
LIB = "/usr/lib/x86_64-linux-gnu"


def skip(why):
    print("SKIP:", why)
    sys.exit(77)


def kernel(cache):
    """(unpacked package, version, uncompressed image); fetched once."""
    root, image = os.path.join(cache, "k"), os.path.join(cache, "vmlinux")
    modules = os.path.join(root, "lib/modules")
    if not os.path.exists(image):
        os.makedirs(cache, exist_ok=True)
        names = subprocess.run(["apt-cache", "depends", "linux-image-amd64"], capture_output=True, text=True).stdout
        name = re.search(r"Depends: (linux-image-\S+)", names)
        if not name:
            skip("apt knows no kernel package")
        with tempfile.TemporaryDirectory(dir=cache) as where:
            got = subprocess.run(["apt-get", "-q", "download", name.group(1)], cwd=where, capture_output=True)
            debs = [f for f in os.listdir(where) if f.endswith(".deb")]
            if got.returncode or not debs:
                skip(f"apt-get download {name.group(1)} failed")
            subprocess.run(["dpkg", "-x", os.path.join(where, debs[0]), root], check=True)
        version = os.listdir(modules)[0]
        subprocess.run(["depmod", "-b", root, version], check=True)
        packed = open(os.path.join(root, "boot", "vmlinuz-" + version), "rb").read()
        at = packed.find(b"\xfd7zXZ\0")
        if at < 0:
            skip("the kernel image is not packed with xz")
        with open(image + ".new", "wb") as out:
            out.write(lzma.LZMADecompressor().decompress(packed[at:]))
        os.rename(image + ".new", image)
    version = os.listdir(modules)[0]
    if not os.path.exists(os.path.join(modules, version, "kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko")):
        skip(f"kernel {version} has no Soft-RoCE")
    return root, version, image


class Archive:
    """An initramfs in cpio's newc form."""

    def __init__(self):
        self.data, self.count, self.have = bytearray(), 0, set()

    def add(self, path, mode, content=b""):
        path = path.lstrip("/")
        if path in self.have:
            return
        self.have.add(path)
        parent = os.path.dirname(path)
        if parent:
            self.add(parent, stat.S_IFDIR | 0o755)
            if parent not in self.have:
                raise AssertionError(parent)
        self._entry(path, mode, content)

    def _entry(self, path, mode, content):
        self.count += 1
        name = path.encode() + b"\0"
        fields = [self.count, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name), 0]
        self._padded(b"070701" + b"".join(b"%08x" % f for f in fields) + name)
        self._padded(content)

    def _padded(self, data):
        self.data += data + b"\0" * (-(len(self.data) + len(data)) % 4)

    def file(self, path, source, mode=0o755):
        with open(source, "rb") as f:
            self.add(path, stat.S_IFREG | mode, f.read())

    def finish(self):
        self._entry("TRAILER!!!", 0, b"")
        return bytes(self.data)


def libraries(program):
    out = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    return set(re.findall(r"(?:=> )?(/\S+) \(0x", out))


def initramfs(root, version, test, programs):
    a = Archive()
    for folder in ["bin", "usr/bin", "proc", "sys", "dev", "tmp", "etc", "run", "modules"]:
        a.add(folder, stat.S_IFDIR | 0o755)
    a.file("bin/busybox", shutil.which("busybox"))
    order = []
    for module in MODULES:
        out = subprocess.run(["modprobe", "-d", root, "-S", version, "--show-depends", module], capture_output=True,
                             text=True, check=True).stdout
        for path in re.findall(r"^insmod (\S+)", out, re.M):
            if os.path.basename(path) not in order:
                order.append(os.path.basename(path))
                a.file("modules/" + order[-1], path)
    a.add("modules/order", stat.S_IFREG | 0o644, "\n".join(order).encode())
    drivers = [os.path.join(LIB, "libibverbs", f) for f in os.listdir(os.path.join(LIB, "libibverbs")) if "rxe" in f]
    needed = set()
    for program in [shutil.which(t) for t in ("rdma", "ip", "tc", "setpriv")] + programs:
        a.file("usr/bin/" + os.path.basename(program), os.path.realpath(program))
        needed |= libraries(program)
    loaded = [os.path.join(LIB, "libfabric.so.1")] # by name, when they are needed
    for library in drivers + loaded:
        a.file(library, os.path.realpath(library))
        needed |= libraries(library)
    for library in sorted(needed):
        system = library.startswith(("/lib", "/usr/lib"))
        a.file(library if system else os.path.join(LIB, os.path.basename(library)), os.path.realpath(library))
    a.file("etc/libibverbs.d/rxe.driver", "/etc/libibverbs.d/rxe.driver")
    a.add("etc/passwd", stat.S_IFREG | 0o644, b"root:x:0:0::/:/bin/sh\n")
    a.file("init", os.path.join(HERE, "init"))
    a.file("test", test)
    return a.finish()


def main():
    os.environ["PATH"] += ":/sbin:/usr/sbin"
    cache, test, programs = os.path.abspath(sys.argv[1]), sys.argv[2], sys.argv[3:]
    missing = [t for t in TOOLS if not shutil.which(t)]
    if missing:
        skip("not installed: " + " ".join(missing))
    if not os.path.exists("/etc/libibverbs.d/rxe.driver"):
        skip("not installed: ibverbs-providers")
    os.makedirs(cache, exist_ok=True)
    with open(os.path.join(cache, "lock"), "w") as lock:  # two tests at once fetch it once
        fcntl.flock(lock, fcntl.LOCK_EX)
        root, version, image = kernel(cache)
    with tempfile.TemporaryDirectory() as where:
        initrd = os.path.join(where, "initrd")
        with open(initrd, "wb") as f:
            f.write(initramfs(root, version, test, programs))
        # -accel tcg by name: nested KVM hangs on some hosts;
        # and its clock counts instructions (2^2 ns each): a busy host does not make the guest's
        # nodes late, and what it idles through takes no time
        command = ["qemu-system-x86_64", "-accel", "tcg,thread=single,tb-size=128", "-icount", "shift=2,sleep=off",
                   "-cpu", "max", "-smp", "1", "-m", "512",
                   "-display", "none", "-vga", "none", "-monitor", "none", "-serial", "stdio", "-no-reboot", "-nodefaults",
                   "-kernel", image, "-initrd", initrd, "-append",
                   "console=ttyS0 quiet panic=-1 nokaslr mitigations=off clocksource=acpi_pm notsc nowatchdog "
                   "no_timer_check random.trust_cpu=on"]
        guest = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace")
        said = ""
        try:
            for line in guest.stdout:
                print(line.rstrip(), flush=True)
                said += line
            guest.wait()
        finally:
            guest.kill()
            guest.wait()
    code = re.search(r"^RC=(\d+)", said, re.M)
    if not code:
        print("the virtual machine ended without a verdict")
        return 1
    return int(code.group(1))


if __name__ == "__main__":
    sys.exit(main())
