"""What README.md tells a newcomer, word for word: the program, the commands, the lines that are printed."""
import re


class Readme:
    def __init__(self, top):
        with open(top + "/README.md") as readme:
            self.text = readme.read()
        self.program = self._one(r"^```c\n(.*?)^```", re.MULTILINE | re.DOTALL)
        self.compile = self._one(r"^    (cc sum\.c -o sum .*)$")
        self.build = self._one(r"^    (meson setup build && ninja -C build)$")
        self.run = self._one(r"^    (build/pm/keelrun -n .* \./sum)$")
        self.options = self.run.split()[1:-1]
        self.compile_installed = self._one(r"After `meson install` it is `(cc sum\.c \$\(pkg-config [^`]*)` and `keelrun`")
        self.compile_static = self._one(r"^`(cc sum\.c \$\(pkg-config --static [^`]*)` puts Keel into the program")
        self.printed = re.findall(r"^    (rank \d of 4 .*)$", self.text, re.MULTILINE)
        assert len(self.printed) == 4, self.printed

    def _one(self, pattern, flags=re.MULTILINE):
        found = re.findall(pattern, self.text, flags)
        assert len(found) == 1, (pattern, found)
        return found[0]

    def write_program(self, directory):
        with open(directory + "/sum.c", "w") as f:
            f.write(self.program)
