"""What an installation gives those who build programs: CMake's find_package, and keel-ga-config for programs of Global
Arrays."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../lib"))
import keeltest
from keeltest import BIN, Skip, run

TOP, BUILD = os.environ["KEEL_TOP"], os.path.dirname(BIN)
FAR = ["--silence", "600s", "--stopped", "never"]
HOLDER = tempfile.TemporaryDirectory(prefix="keel-installed-")
ROOT = os.path.join(HOLDER.name, "root")
LISTS = """cmake_minimum_required(VERSION 3.16)
project(uses LANGUAGES C)
find_package(Keel %s)
add_executable(uses uses.c)
target_link_libraries(uses PRIVATE %s)
"""
KEEL = """#include <keel/keel.h>
#include <stdio.h>
int main(void)
{
    if (keel_init() != KEEL_OK)
        return 1;
    printf("rank %d of %d\\n", keel_rank(), keel_size());
    return keel_finalize() != KEEL_OK;
}
"""
ARMCI = """#include <armci.h>
#include <stdio.h>
int main(void)
{
    if (ARMCI_Init() != 0)
        return 1;
    printf("rank %d of %d\\n", armci_msg_me(), armci_msg_nproc());
    return ARMCI_Finalize();
}
"""


def shell(command, directory, code=0, **environment):
    done = subprocess.run(["sh", "-c", command], cwd=directory, capture_output=True, text=True, timeout=keeltest.HANG_S,
                          env=dict(os.environ, **environment))
    assert done.returncode == code, (command, done)
    return done.stdout + done.stderr


def installed(pattern):
    """The one file of the installation whose path ends so."""
    if not os.path.isdir(ROOT):
        shell("meson install --no-rebuild --quiet -C '%s' --destdir '%s'" % (BUILD, ROOT), HOLDER.name)
    found = [path for path in glob.glob(os.path.join(ROOT, "**", pattern), recursive=True) if "bash" not in path]
    assert len(found) == 1, (pattern, found)
    return found[0]


def unless_sanitized():
    symbols = subprocess.run(["nm", "-D", "--undefined-only", os.path.join(BUILD, "runtime/client/libkeel.so")], capture_output=True, text=True)
    if re.search(r"__(asan|tsan|ubsan)_", symbols.stdout):
        raise Skip("a library with sanitizers needs them in the program, too")


def with_cmake(directory, package, target, source, code=0):
    """Builds a program with CMake, which finds Keel in the installation; what it said."""
    if not shutil.which("cmake"):
        raise Skip("no cmake")
    unless_sanitized()
    where = os.path.dirname(installed("KeelConfig.cmake"))
    while not os.path.isdir(os.path.join(where, "include")):
        where = os.path.dirname(where)
    with open(os.path.join(directory, "CMakeLists.txt"), "w") as f:
        f.write(LISTS % (package, target))
    with open(os.path.join(directory, "uses.c"), "w") as f:
        f.write(source)
    return shell("cmake -S . -B build -DCMAKE_PREFIX_PATH='%s' && cmake --build build" % where, directory, code, LD_LIBRARY_PATH="")


def expect_ranks(command, ranks=2):
    code, out, err = run(FAR + ["-n", str(ranks), "--nodes", "2"] + command, program=installed("bin/keelrun"), env={"LD_LIBRARY_PATH": ""})
    assert (code, err) == (0, ""), (code, out, err)
    assert sorted(out.splitlines()) == ["rank %d of %d" % (r, ranks) for r in range(ranks)], out


def test_cmake_finds_keel():
    for package, target, source in ("0.2 REQUIRED", "Keel::keel", KEEL), ("REQUIRED COMPONENTS armci", "Keel::armci", ARMCI):
        with tempfile.TemporaryDirectory(prefix="keel-cmake-") as directory:
            if "armci" in package and not glob.glob(os.path.join(ROOT, "**/libarmci.so"), recursive=True):
                continue
            with_cmake(directory, package, target, source)
            expect_ranks([os.path.join(directory, "build/uses")])


def test_cmake_is_told_what_it_cannot_have():
    for package, words in ("99 REQUIRED", "version"), ("REQUIRED COMPONENTS teapot", "Keel has no teapot here"):
        with tempfile.TemporaryDirectory(prefix="keel-cmake-") as directory:
            assert words in with_cmake(directory, package, "Keel::keel", KEEL, code=1)


def ga_config():
    unless_sanitized()
    try:
        found = installed("bin/keel-ga-config")
    except AssertionError:
        raise Skip("built without ARMCI")
    asked = subprocess.run([found, "--cc"], capture_output=True, text=True)
    if asked.returncode:
        raise Skip(asked.stderr)
    return found


def expect_on_keel(program):
    """It loads the libarmci of the installation, and has none of another in it."""
    loads = shell("ldd '%s'" % program, HOLDER.name, LD_LIBRARY_PATH="")
    assert re.search(r"libarmci\.so\.1 => " + re.escape(ROOT), loads), loads
    assert "PARMCI_" not in shell("nm '%s'" % program, HOLDER.name)
    code, out, err = run(FAR + ["-n", "2", "--nodes", "2", program], program=installed("bin/keelrun"), env={"LD_LIBRARY_PATH": ""})
    assert code == 0, (code, out, err)


def test_ga_config_links_a_program():
    config, program = ga_config(), os.path.join(HOLDER.name, "matmul")
    source = os.path.join(TOP, "apps/ga/matmul.c")
    shell("$('%s' --cc) -D_GNU_SOURCE $('%s' --cppflags --cflags) -o %s %s $('%s' --ldflags --libs --flibs --without-scalapack)" %
          (config, config, program, source, config), HOLDER.name)
    expect_on_keel(program)


def test_ga_config_makes_the_folder_that_nwchem_asks_for():
    """NWChem takes the last folder of --ldflags, -lga and -larmci, and --network_libs."""
    config, folder, program = ga_config(), os.path.join(HOLDER.name, "ga"), os.path.join(HOLDER.name, "as-nwchem")
    shell("'%s' --folder '%s'" % (config, folder), HOLDER.name)
    asked = os.path.join(folder, "bin/ga-config")
    assert shell("'%s' --enable-f77 --use_scalapack" % asked, HOLDER.name) == "yes 1\n"
    last = shell("'%s' --ldflags" % asked, HOLDER.name).split()[-1]
    sources = " ".join(os.path.join(TOP, "apps/ga", name) for name in ("matmul.c", "noscalapack.c"))
    shell("mpicc.mpich -D_GNU_SOURCE $('%s' --cppflags) -o %s %s %s -lga -larmci -llapack -lblas -lgfortran -lm $('%s' --network_ldflags) $('%s' --network_libs)" %
          (asked, program, sources, last, asked, asked), HOLDER.name)
    expect_on_keel(program)


def test_ga_config_says_what_is_wrong():
    config = ga_config()
    said = shell("'%s' --no-such-thing" % config, HOLDER.name, code=2)
    assert re.fullmatch(r"keel-ga-config: --no-such-thing is not an option .*\n", said), said
    said = shell("KEEL_GA_CONFIG=/nowhere/ga-config '%s' --libs" % config, HOLDER.name, code=1)
    assert re.fullmatch(r"keel-ga-config: /nowhere/ga-config is not there; .*libglobalarrays-dev.*\n", said), said
    assert "usage: " in shell("'%s'" % config, HOLDER.name, code=2)


def test_a_program_of_armci_mpi_runs_on_what_is_installed():
    if "KEEL_GRAFT_PROGRAM" not in os.environ:
        raise Skip("built without it")
    unless_sanitized()
    code, out, err = run(FAR + ["-n", "4", "--nodes", "2", installed("bin/keel-armci-run"), os.environ["KEEL_GRAFT_PROGRAM"]],
                         program=installed("bin/keelrun"), env={"LD_LIBRARY_PATH": ""})
    assert (code, out, err) == (0, "nodes 2 wrong 0\n", ""), (code, out, err)


if not shutil.which("cc"):
    sys.exit(77)
keeltest.main(globals())
