"""models.py SOURCE: do the models name functions that there are?

At the top of each model, below "Which step mirrors what (folder):", stands a table: step, functions, files. Each
function is defined in one of the files of its line; _take after ledger_send is ledger_take."""
import os
import re
import sys

MODELS = ["docs/models", "docs/models/collectives"]


def tables(text):
    """(functions, files) of each line."""
    table = re.search(r"Which step mirrors what(?: \((\S+)\))?:\n((?: \*   .*\n)+)", text)
    for line in table.group(2).splitlines() if table else []:
        words = re.findall(r"[\w/]+(?:\.c\b)?", re.split(r" {2,}", line[2:].strip(), maxsplit=1)[1])
        names, before = [], ""
        for word in words:
            if not word.endswith(".c") and word not in ("and", "in"):
                names.append(before.split("_")[0] + word if word.startswith("_") else word)
                before = names[-1]
        yield names, [os.path.join(table.group(1) or "", word) for word in words if word.endswith(".c")]


def defines(source, path, name):
    path = os.path.join(source, path)
    if not os.path.isfile(path):
        return False
    with open(path, encoding="utf-8") as f:
        return re.search(r"^[a-z][^\n;=]*\b%s\([^;{]*\)\s*\{" % re.escape(name), f.read(), re.M) is not None


def main():
    source, bad, count = sys.argv[1], [], 0
    for folder in MODELS:
        for model in sorted(name for name in os.listdir(os.path.join(source, folder)) if name.endswith(".pml")):
            with open(os.path.join(source, folder, model), encoding="utf-8") as f:
                rows = list(tables(f.read()))
            count += sum(len(names) for names, _ in rows)
            bad += ["%s: no function %s in %s" % (model, name, " or ".join(files)) for names, files in rows for name in names
                    if not any(defines(source, path, name) for path in files)]
            if not rows:
                bad.append("%s does not say what it mirrors" % model)
    print("\n".join(bad) if bad else "%d functions that models mirror" % count)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
