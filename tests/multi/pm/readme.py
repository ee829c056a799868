"""README.md taken at its word: its program built as it says, from the build folder and after an installation, and
./check's packages."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../lib"))
import keeltest
from keeltest import BIN, Skip, run
from readme_text import Readme

TOP, BUILD = os.environ["KEEL_TOP"], os.path.dirname(BIN)
README = Readme(TOP)


def unless_sanitized():
    symbols = subprocess.run(["nm", "-D", "--undefined-only", os.path.join(BUILD, "runtime/client/libkeel.so")], capture_output=True, text=True)
    if re.search(r"__(asan|tsan|ubsan)_", symbols.stdout):
        raise Skip("a library with sanitizers needs them in the program, too")


def shell(command, directory, **environment):
    done = subprocess.run(["sh", "-c", command], cwd=directory, capture_output=True, text=True, timeout=100, env=dict(os.environ, **environment))
    assert done.returncode == 0, (command, done)
    return done.stdout


def expect_printed(out):
    assert sorted(out.splitlines()) == sorted(README.printed), out


def test_program_runs_from_the_build_folder_as_the_readme_says():
    unless_sanitized()
    with tempfile.TemporaryDirectory() as directory:
        README.write_program(directory)
        os.symlink(BUILD, os.path.join(directory, "build"))
        os.symlink(os.path.join(TOP, "include"), os.path.join(directory, "include"))
        shell(README.compile, directory)
        code, out, err = run(README.options + [os.path.join(directory, "sum")])
        assert (code, err) == (0, ""), (code, err)
        expect_printed(out)


def installed(directory):
    """An installation below this folder: (keelrun, the environment for pkg-config)."""
    root = os.path.join(directory, "root")
    shell("meson install --no-rebuild --quiet -C '%s' --destdir '%s'" % (BUILD, root), directory)
    found = [os.path.join(where, name) for where, _, names in os.walk(root) for name in names if name.startswith("keel") and name.endswith(".pc")]
    assert sorted(os.path.basename(path) for path in found) == ["keel-static.pc", "keel.pc"], found
    for path in found:
        with open(path) as f:
            text = f.read()
        with open(path, "w") as f:  # where it would be, had the prefix been this folder
            f.write(re.sub(r"^prefix=", "prefix=" + root, text, flags=re.MULTILINE))
    keelrun = [os.path.join(where, "keelrun") for where, _, names in os.walk(root) if "keelrun" in names and "bash" not in where]
    return keelrun[0], {"PKG_CONFIG_PATH": os.path.dirname(found[0]), "LD_LIBRARY_PATH": ""}


def runs_installed(command, libraries):
    """The program compiled so against an installation runs; how many of libkeel's shared libraries it asks for."""
    unless_sanitized()
    with tempfile.TemporaryDirectory() as directory:
        keelrun, clean = installed(directory)
        README.write_program(directory)
        shell(command.replace("cc sum.c", "cc sum.c -o sum"), directory, **clean)
        assert shell("readelf -d sum", directory).count("[libkeel.so") == libraries
        code, out, err = run(["-n", "4", "--nodes", "2", os.path.join(directory, "sum")], program=keelrun, env={"LD_LIBRARY_PATH": ""})
        assert (code, err) == (0, ""), (code, err)
        expect_printed(out)


def test_program_is_compiled_and_run_after_an_installation():
    runs_installed(README.compile_installed, 1)


def test_program_is_compiled_with_the_archive_and_run():
    runs_installed(README.compile_static, 0)


def test_archive_gives_programs_the_names_of_the_shared_library_and_no_others():
    def names(*arguments):
        said = subprocess.run(["nm", "--defined-only", *arguments], cwd=os.path.join(BUILD, "runtime/client"), check=True, capture_output=True, text=True)
        return {line.split()[2].split("@")[0] for line in said.stdout.splitlines() if re.match(r"[0-9a-f]+ [^A] ", line)}
    shared, archive = names("-D", "libkeel.so"), names("--extern-only", "libkeel.a")
    assert len(shared) > 100 and shared == archive, (shared ^ archive)


def packages(directory, uid, missing):
    """need_packages of scripts/common.sh where this package is missing, for this user; what apt-get was asked for."""
    fakes = {"dpkg-query": 'for last; do :; done; [ "$last" = "%s" ] || echo install ok installed' % missing,
             "id": "echo %d" % uid, "apt-get": 'echo "$@" >>"%s/asked"' % directory}
    for name, text in fakes.items():
        path = os.path.join(directory, name)
        with open(path, "w") as f:
            f.write("#!/bin/sh\n" + text + "\n")
        os.chmod(path, 0o755)
    return subprocess.run(["bash", "-c", ". scripts/common.sh; need_packages build apps run"], cwd=TOP, capture_output=True, text=True, timeout=50,
                          env=dict(os.environ, PATH=directory + ":" + os.environ["PATH"]))


def test_missing_packages_are_installed_by_root_and_named_to_others():
    for script in ("check", "demo"):
        with open(os.path.join(TOP, script)) as f:
            assert re.search(r"^need_packages build apps run", f.read(), re.MULTILINE), script
    with tempfile.TemporaryDirectory() as directory:
        asked = os.path.join(directory, "asked")
        done = packages(directory, 1000, "mpich")
        assert done.returncode == 2 and "mpich" in done.stderr and "meson" not in done.stderr and not os.path.exists(asked), done
        done = packages(directory, 0, "mpich")
        with open(asked) as f:
            assert done.returncode == 0 and re.search(r"\binstall\b.* mpich$", f.read()), done
        os.unlink(asked)
        done = packages(directory, 0, "none of them")
        assert done.returncode == 0 and not os.path.exists(asked), done


if not shutil.which("cc") or not shutil.which("pkg-config"):
    sys.exit(77)
keeltest.main(globals())
