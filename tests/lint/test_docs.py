"""Does docs.py find what it is there for? Each offence is planted by itself, in the text of a page or source, and must
be found.
Usage: test_docs.py TOP"""
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, sys.path[0])
import docs

TOP = sys.argv[1]
TUTORIAL, README, INDEX = "docs/tutorial.md", "README.md", "docs/adr/README.md"
PUT, RULES = "docs/protocols/replication/put.md", "docs/protocols/replication.md"


def behind(page, text):
    return {page: docs.read(TOP, page) + "\n" + text + "\n"}


def instead(page, old, new):
    text = docs.read(TOP, page)
    assert text.count(old) >= 1, (page, old)
    return {page: text.replace(old, new)}


PLANTED = [
    ("a file that is gone", behind(TUTORIAL, "See `runtime/client/gone.c`."), "no such file: runtime/client/gone.c"),
    ("a name of a file alone", behind(README, "See `gone_for_good.h`."), "no such file: gone_for_good.h"),
    ("a file behind code that goes over a line", behind(README, "`one\ntwo` and `runtime/client/gone.c`"),
     "no such file: runtime/client/gone.c"),
    ("a folder", behind("docs/protocols/launch.md", "In `pm/gone`."), "no such file: pm/gone"),
    ("a pattern that fits nothing", behind(TUTORIAL, "`runtime/agent/gone_*.c`"),
     "no such file: runtime/agent/gone_*.c"),
    ("a link", behind(TUTORIAL, "[there](gone.md)"), "no such file: link to gone.md"),
    ("a link over two lines", behind(TUTORIAL, "[over\nthere](gone.md)"), "no such file: link to gone.md"),
    ("a link in a decision", behind("docs/adr/0001-c-meson-and-libraries.md", "[x](0000-gone.md)"),
     "no such file: link to 0000-gone.md"),
    ("a heading", behind(TUTORIAL, "[there](fault-model.md#gone)"), "no such heading: link to fault-model.md#gone"),
    ("an option of keelrun", behind(README, "`keelrun -n 4 --gone 3 ./program`"), "keelrun has no option --gone"),
    ("the same in a block", behind(README, "    keelrun --gone ./program"), "keelrun has no option --gone"),
    ("an option", behind(TUTORIAL, "`--gone-for-good`"), "no program has this option: --gone-for-good"),
    ("a verb", behind(README, "`keelctl list|gone`"), "keelctl has no verb gone"),
    ("a variable", behind(TUTORIAL, "`KEEL_GONE_MS=3`"), "nothing in the code is called KEEL_GONE_MS"),
    ("a word of the code", behind(TUTORIAL, "It calls `gone_for_good`."), "nothing in the code is called gone_for_good"),
    ("a struct", behind(TUTORIAL, "In `struct goner`."), "the code has no struct goner"),
    ("a word that is in another file", behind(TUTORIAL, "`view_apply` (`runtime/view/plan.c`)"),
     "view_apply is not in runtime/view/plan.c"),
    ("the same the other way round", behind(TUTORIAL, "`runtime/view/plan.c` (`view_apply`)"),
     "view_apply is not in runtime/view/plan.c"),
    ("a decision that is no page", behind(TUTORIAL, "See ADR 0033."), "there is no decision 0033"),
    ("the same in code", {"detect/gone.c": "/* docs/adr/0033 */\n"}, "there is no decision 0033"),
    ("a number", instead(PUT, "one of 128 notes", "one of 64 notes"), "says 64 where NOTES_MAX is 128"),
    ("a number without its sentence", instead(PUT, "one of 128 notes", "some notes"), "the sentence of NOTES_MAX"),
    ("a decision without a row", {"docs/adr/9999-new.md": "# 9999\n"}, "has no row for 9999-new.md"),
    ("a decision that was taken in", behind(INDEX, "| 0001 | [0002](0002-puts-and-gets.md) | x |"),
     "0001 is said to be taken in"),
    ("a word that means something else", behind(PUT, "Each group has copies."), "says group where the glossary's word"),
    ("a rule without a row", instead(RULES, "| R7 |", "| rule |"), "has no row for R7"),
    ("a rule that nothing takes out", behind(RULES, "| R99 | x | x |"), "takes nothing of R99 out"),
    ("a thread", {"runtime/view/gone.c": "int rc = pthread_create(&t, NULL, run, NULL);\n"},
     "does not say that runtime/view/gone.c starts"),
    ("a folder without a line", {"runtime/gone/gone.c": "int gone;\n"}, "no line for the folder runtime/gone"),
]
FINE = [
    ("a program's own option", behind(README, "`keelrun -n 4 ./program --basis x`")),
    ("a placeholder", behind(TUTORIAL, "`runtime/net/NAME.c`, `docs/adr/NNNN-title.md`, `/proc/self/fd`")),
]


def found(plant):
    docs.planted.clear()
    docs.planted.update(plant)
    bad = docs.offences(TOP)[0]
    docs.planted.clear()
    return bad


before = found({})
failed = ["the tree has offences: " + before[0]] if before else []
for name, plant, says in PLANTED:
    bad = found(plant)
    if len(bad) != 1 or says not in bad[0]:
        failed.append("%s: %s" % (name, bad or "not found"))
for name, plant in FINE:
    failed += ["%s: %s" % (name, bad) for bad in found(plant)]
print("\n".join(failed) if failed else "%d offences found, %d texts left alone" % (len(PLANTED), len(FINE)))
sys.exit(1 if failed else 0)
