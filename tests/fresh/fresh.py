"""The front door, as a stranger finds it: a bare Debian 12, the sources, and what README.md and docs/global-arrays.md
say, word for word.

Usage: fresh.py [RESULTS]. As root, with mmdebstrap and a way to Debian's packages. RESULTS receives a result for each
step, of the form that scripts/summarize.py reads. It leaves no process, no mount, and nothing but downloaded packages
(roots.CACHE), however it ends."""
import json
import os
import re
import subprocess
import sys
import time
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(HERE, "../lib"))
import roots  # noqa: E402
from readme_text import Readme  # noqa: E402

README = Readme(TOP)


class Skip(Exception):
    pass


class Results:
    def __init__(self, path):
        self.path, self.seen = path, []

    def write(self, lines):
        if self.path:
            with open(self.path, "w") as f:
                f.writelines(json.dumps({"name": "fresh / " + name, "result": result}) + "\n" for name, result in lines)

    def begin(self):
        """Who is ended in the middle has failed."""
        self.write([("the whole pass", "FAIL")])

    def step(self, name, function, *arguments):
        """True if it passed."""
        start = time.monotonic()
        try:
            function(*arguments)
            result = "OK"
        except Skip as why:
            result = "SKIP"
            print(why)
        except (AssertionError, OSError, subprocess.SubprocessError):
            result = "FAIL"
            traceback.print_exc()
        self.seen.append((name, result))
        print("fresh: %-4s %s (%.0f s)" % (result, name, time.monotonic() - start), flush=True)
        return result != "FAIL"

    def end(self):
        self.write(self.seen)
        return 1 if any(result == "FAIL" for _, result in self.seen) or not self.seen else 0


def packages(*groups):
    with open(TOP + "/packages.txt") as f:
        lines = dict(line.split(": ", 1) for line in f.read().splitlines() if not line.startswith("#"))
    return [name for group in groups for name in lines[group].split()]


def commands(page, heading, first):
    """The lines of the block of commands under this heading whose first line begins so; a backslash joins lines, and
    comments go."""
    with open(os.path.join(TOP, page)) as f:
        section = re.search(r"^#+ %s\n(.*?)(^#|\Z)" % re.escape(heading), f.read(), re.DOTALL | re.MULTILINE).group(1)
    blocks = [re.sub(r"\\\n\s+", "", block) for block in re.findall(r"(?:^    .*\n)+", section, re.MULTILINE)]
    found = [block for block in blocks if block.strip().startswith(first)]
    assert len(found) == 1, (page, heading, first, blocks)
    return [re.sub(r"\s+# .*", "", line.strip()) for line in found[0].splitlines()]


def put_sources(root):
    """The tree's files, without what a build has left."""
    os.mkdir(root.path + "/keel")
    listed = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=TOP, check=True, capture_output=True).stdout
    packed = subprocess.run(["tar", "-c", "--null", "--ignore-failed-read", "-T", "-"], cwd=TOP, check=True, capture_output=True,
                            input=names).stdout
    subprocess.run(["tar", "-x", "--no-same-owner", "-C", root.path + "/keel"], check=True, input=packed)


def expect_printed(out):
    assert sorted(out.splitlines()) == sorted(README.printed), out


# ---- a stranger

def demo(root):
    said = root.do("./demo")
    assert len(re.findall(r"^ok ", said, re.MULTILINE)) == 2 and "*** node 1 killed" in said, said


def demo_stencil(root):
    said = root.do("./demo --stencil --seconds 5")
    assert "\nok   the bits of the field" in said and said.count("*** place ") == 2, said


def demo_replicas(root):
    said = root.do("./demo --replicas 3")
    assert len(re.findall(r"^ok ", said, re.MULTILINE)) == 7 and "BAD" not in said, said


def program(root):
    root.put("/keel/sum.c", README.program)
    root.do(README.build)
    root.do(README.compile)
    expect_printed(root.do(README.run))


def installed(root):
    root.do("meson install -C build")
    for compiled in (README.compile_installed, README.compile_static):
        root.do("rm -f a.out && " + compiled)
        expect_printed(root.do("keelrun %s ./a.out" % " ".join(README.options)))


# ---- Global Arrays

def link_lines(root):
    """Debian's archive of Global Arrays with a program of ours in the place of program.c."""
    lines = commands("docs/global-arrays.md", "Link and run", "cc -c")
    for package in ("libglobalarrays-dev", "libmpich-dev", "liblapack-dev", "gfortran"):
        assert "`%s`" % package in open(TOP + "/docs/global-arrays.md").read(), package
    root.install("libglobalarrays-dev", "libmpich-dev", "liblapack-dev", "gfortran")
    said = root.do("meson setup --reconfigure build && meson install -C build")
    assert re.search(r"ARMCI +: YES", said), said
    root.do("mkdir ga && cp apps/ga/matmul.c ga/program.c")
    out = [root.do(line, "/keel/ga") for line in lines]
    assert "/usr/local/lib" in out[-2], out[-2]
    assert ", 0 wrong elements" in out[-1], out[-1]


def with_scalapack(root):
    """The other link line: no stub, and a solver can be called."""
    root.install("libscalapack-mpich-dev")
    root.do("rm a.out", "/keel/ga")
    for line in commands("docs/global-arrays.md", "Link and run", "cc program.o -lga-mpich"):
        root.do(line, "/keel/ga")
    root.do(commands("docs/global-arrays.md", "Link and run", "cc -c")[-1], "/keel/ga")
    assert "libscalapack" in root.do("ldd ./a.out", "/keel/ga")


def ga_recipe():
    return [commands("docs/global-arrays.md", "The release from source", first) for first in ("PREFIX=", "autoreconf")]


def debians_armci_is_noticed(root):
    """The line with ldd lets a library pass that asks for Keel's, and not one that has its ARMCI from elsewhere, here
    in it."""
    prefix, check = ga_recipe()[0][0], [line for line in ga_recipe()[1] if line.startswith("ldd")]
    root.do("mkdir -p trial/.libs && echo 'int ARMCI_Finalize(void); int f(void) { return ARMCI_Finalize(); }' >trial/ga.c && "
            "echo 'int ARMCI_Finalize(void) { return 0; }' >trial/other.c")
    for armci, right in (("other.c", False), ("-L/opt/keel/lib -Wl,-rpath,/opt/keel/lib -larmci", True)):
        root.do("cc -shared -fPIC -o .libs/libga.so ga.c " + armci, "/keel/trial")
        done = root.try_to(prefix + "; " + check[0], "/keel/trial")
        assert (done.returncode == 0) == right and bool(done.stdout) == right, (armci, done)


def keel_for_ga(root):
    prefix, *lines = ga_recipe()[0]
    for line in lines:
        root.do(prefix + "; " + line.replace("apt-get install", "apt-get install -y --no-install-recommends"))
    assert os.path.exists(root.path + "/opt/keel/lib/libarmci.so")


def ga_from_source(root):
    """Where the mirror has it: many have packages only."""
    root.install("dpkg-dev")
    done = root.try_to("sed -i 's/^Types: deb$/Types: deb deb-src/' /etc/apt/sources.list.d/*.sources && apt-get update && apt-get source ga", "/root")
    if done.returncode != 0:
        raise Skip("the sources of Global Arrays are not on this mirror: " + done.stderr.strip().splitlines()[-1])
    prefix, lines = ga_recipe()[0][0], ga_recipe()[1]
    for line in lines:
        root.do(prefix + "; " + line.replace("make", "make -j%d" % os.cpu_count(), 1), "/root/ga-*/")
    root.do("keelrun -n 4 --nodes 2 global/testing/test.x", "/root/ga-*/")


# ---- who has the packages of the group build only

def runtime_only(root):
    root.put("/keel/sum.c", README.program)
    root.do("apt-get update", "/")
    root.install(*packages("build"))
    root.do(README.build)
    root.do(README.compile)
    root.do("meson install -C build")
    root.do(README.compile_installed)


def no_mpich_is_named(root):
    done = root.try_to("keelrun %s ./a.out" % " ".join(README.options))
    assert done.returncode == 1 and re.fullmatch(r"keelrun: .*mpiexec\.hydra.* package mpich\)\n", done.stderr), done


def runs_with_mpich(root):
    root.install(*packages("run"))
    expect_printed(root.do(README.run))
    expect_printed(root.do("keelrun %s ./a.out" % " ".join(README.options)))


def front_door(results):
    made = roots.Roots()
    bare = {}

    def make():
        bare["root"] = made.bare("bare")
        put_sources(bare["root"])
    if not results.step("a bare Debian", make):
        return
    root = made.copy(bare["root"], "stranger").enter()
    steps = [("./demo", demo), ("./demo --stencil", demo_stencil), ("./demo --replicas", demo_replicas),
             ("README's program", program), ("installed", installed), ("Global Arrays: link lines", link_lines),
             ("Global Arrays: Keel for its build", keel_for_ga), ("Global Arrays: Debian's ARMCI is noticed", debians_armci_is_noticed),
             ("Global Arrays: from source", ga_from_source), ("Global Arrays: with ScaLAPACK", with_scalapack)]
    all(results.step(name, function, root) for name, function in steps)
    root.forget()
    root = bare["root"].enter()
    steps = [("the group build alone", runtime_only), ("without MPICH: the package is named", no_mpich_is_named),
             ("the group build, then run", runs_with_mpich)]
    all(results.step(name, function, root) for name, function in steps)


def inside(path):
    results = Results(path)
    results.begin()
    front_door(results)
    return results.end()


def main():
    path = sys.argv[-1] if len(sys.argv) > 1 and sys.argv[-1] != "--inside" else None
    if sys.argv[1:2] == ["--inside"]:
        roots.as_init(lambda: os._exit(inside(path)))
    if os.geteuid() != 0:
        print("fresh.py makes a root of its own: run it as root", file=sys.stderr)
        return 77
    code = roots.alone(os.path.abspath(__file__), "--inside", *([os.path.abspath(path)] if path else []))
    left = os.listdir(roots.CACHE + "/roots")
    if left:
        print("left behind in %s/roots:" % roots.CACHE, *left, file=sys.stderr)
    return code or bool(left)


sys.exit(main())
