#!/usr/bin/env python3
"""What include/keel offers, for programs that read it: include/keel/api.json, made of the headers.

    python3 scripts/api.py             writes it, and runtime/client/api/calls.inc, the list of what can be wrapped
    python3 scripts/api.py --check     says how it differs, and which call does not say what it should (lint)

Of each call: its header and manual page, its arguments with type and direction, its result, its errors, whether it
blocks, and in which threads it may be called. Directions follow from the types, but for a few that stand below. The
other three follow from comments: the paragraphs that begin with `threads`, `blocks` and `errors`, and two spaces, of
the call's own comment (the one above it, with no blank line in between), else of its section (a comment that begins
with ----), else of the header's head. Errors are all of these together, with those of the calls and headers that the
paragraph names.
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FORMAT = 1

# Handles: what a program holds by a pointer that it never follows.
NUMBERS = ["keel_group", "keel_mutexes", "keel_taskpool", "keel_request", "keel_covered"]
POINTERS = ["keel_segment"]

# Where the type does not tell.
DIRECTIONS = {
    ("keel_bcast", "buffer"): "inout",
    ("keel_group_bcast", "data"): "inout", ("keel_group_bcast_begin", "data"): "inout",
    ("keel_keep", "address"): "inout", ("keel_on_failure", "arg"): "in", ("keel_local_free", "memory"): "in",
}
# Not in the table of calls (runtime/client/api/calls.h): the start and the end of the process, what is the same
# whenever it is asked, and what needs no job.
NOT_WRAPPED = (r"keel_(init|init_over|abort|rank|size|restarted|group_world|group_node|need_all|survive|survives"
               r"|failure_fd|type_size|local_\w+|(status|verdict)_\w*(text|name))")
NEAR = ["keel_put", "keel_put_nb", "keel_get", "keel_get_nb"]  # exported by public_rma.c, which is faster
ASKS = r"_(test|try)$"  # who may be told KEEL_IN_PROGRESS
KEYS = r"(threads|blocks|errors|source|order|memory|timeout_ms|out, max|\*\w+|bytes|from|returns)"
SAYS = ("threads", "blocks", "errors")


def pieces(text):
    """Comments, lines of the preprocessor, blank lines and declarations, in their order."""
    at = 0
    while at < len(text):
        if text.startswith("/*", at):
            end = text.index("*/", at) + 2
            kind = "comment"
        elif text[at] == "#":
            end = at
            while True:
                end = text.find("\n", end)
                if text[end - 1] != "\\":
                    break
                end += 1
            kind = "#"
        elif text[at].isspace():
            end = at
            while end < len(text) and text[end].isspace():
                end += 1
            kind = "blank" if text.count("\n", at, end) > 1 else "space"
        elif text.startswith('extern "C" {', at):
            end = at + len('extern "C" {')
            kind = "#"
        elif text[at] == "}":
            end = at + 1
            kind = "#"
        else:
            depth, end = 0, at
            while depth or text[end] != ";":
                depth += {"{": 1, "}": -1}.get(text[end], 0)
                end += 1
            end += 1
            kind = "code"
        yield kind, text[at:end]
        at = end


def lines_of(comment):
    body = comment[2:-2].split("\n")
    return [body[0]] + [re.sub(r"^ ?\*", "", line) for line in body[1:]]


def says(comment):
    """The paragraphs `key  text` of a comment. A paragraph goes on while lines are indented further than its key."""
    found, key, indent = {}, None, 0
    for line in lines_of(comment):
        at = 0
        starts = [m for m in re.finditer(r"(?:^\s*|\s{2,})" + KEYS + r"\s{2,}(?=\S)", line)]
        lead = len(line) - len(line.lstrip())
        if key and lead <= indent and not (starts and starts[0].start() == 0):
            key = None
        for k, m in enumerate(starts):
            if key and m.start() > at:
                found[key] += " " + line[at:m.start()].strip()
            key = m.group(1)
            if k == 0 and not line[:m.start(1)].strip():
                indent = lead
            found.setdefault(key, "")
            at = m.end()
        if key:
            found[key] += " " + line[at:].strip()
    return {k: re.sub(r"\s+", " ", v).strip() for k, v in found.items() if k in SAYS}


def declarator(text):
    """(type, name) of one argument or member."""
    text = " ".join(text.replace("__extension__", "").split())
    m = re.fullmatch(r"(.*)\(\*(\w+)\)(\(.*\))", text)
    if m:
        return f"{m.group(1).strip()} (*){m.group(3)}", m.group(2)
    m = re.fullmatch(r"(.*?[\s*])(\w+)((?:\[[^\]]*\])*)", text)
    return m.group(1).strip() + m.group(3), m.group(2)


def arguments_of(text):
    if text.strip() == "void":
        return []
    out, depth, part = [], 0, ""
    for c in text + ",":
        depth += {"(": 1, ")": -1}.get(c, 0)
        if c == "," and not depth:
            out.append(declarator(part))
            part = ""
        else:
            part += c
    return out


def direction(call, type_, name):
    if (call, name) in DIRECTIONS:
        return DIRECTIONS[(call, name)]
    if "(*)" in type_ or not re.search(r"[*\]]", type_):
        return "in"
    base = re.sub(r"\b(const|struct)\b", "", type_).replace("*", "").split("[")[0].strip()
    if base in NUMBERS + POINTERS and type_.count("*") == 1:
        return "in"
    if base == "keel_handle":
        return "inout"
    return "in" if type_.startswith("const ") else "out"


def number_of(text, known):
    text = text.strip("() ")
    return known[text] if text in known else int(text, 0)


def enum_of(body, known):
    values, following = {}, 0
    for part in re.sub(r"/\*.*?\*/", "", body, flags=re.S).split(","):
        if not part.strip():
            continue
        name, _, value = (x.strip() for x in part.partition("="))
        following = number_of(value, known) if value else following
        values[name] = known[name] = following
        following += 1
    return values


def members_of(body):
    out = []
    for part in re.sub(r"/\*.*?\*/", "", body, flags=re.S).split(";"):
        if not part.strip():
            continue
        first, *more = part.split(",") if "(" not in part else [part]
        type_, name = declarator(first)
        out.append({"name": name, "type": type_})
        out += [{"name": m.strip(), "type": type_} for m in more]
    return out


def page_names(root):
    pages = {}
    for page in sorted((root / "docs/man").glob("*.3")):
        section = re.search(r"^\.SH NAME\n(.*?)^\.SH", page.read_text(), re.M | re.S)
        for name in re.findall(r"\bkeel_\w+", section.group(1).replace("\\", "")):
            pages[name] = page.name
    return pages


def read_header(path, api, known):
    head, section, comment = "", "", ""
    text = path.read_text()
    for kind, piece in pieces(text):
        if kind == "comment":
            if not head:
                head = piece
            elif re.match(r"/\*\s*----", piece):
                section, comment = piece, ""
            else:
                comment = piece
        elif kind == "blank":
            comment = ""
        elif kind == "#":
            m = re.match(r"#define KEEL_STATUS_TABLE", piece)
            for name, value, text in re.findall(r'X\((KEEL_\w+), (-?\d+), "([^"]*)"\)', piece) if m else []:
                api["statuses"].append({"name": name, "value": int(value), "text": text})
        elif kind == "code":
            read_code(path.name, piece, (head, section, comment), api, known)
    api["headers"][path.name] = head


def read_code(header, code, comments, api, known):
    plain = " ".join(re.sub(r"/\*.*?\*/", "", code, flags=re.S).split())
    m = re.fullmatch(r"(?:typedef )?enum ?(\w*) ?\{(.*)\} ?(\w*);", plain)
    if m:
        if "KEEL_STATUS_TABLE" in plain:
            return
        values = enum_of(m.group(2), known)
        if m.group(3):
            api["enums"][m.group(3)] = values
        else:
            api["constants"].update(values)
        return
    m = re.fullmatch(r"(?:typedef )?struct (\w+) \{(.*)\} ?\w*;", plain)
    if m:
        api["structs"][m.group(1)] = members_of(m.group(2))
        return
    if plain.startswith("typedef"):
        return
    plain = re.sub(r"__extension__|KEEL_MUST_CHECK|__attribute__\(\(\w+\)\)", "", plain).strip()
    m = re.fullmatch(r"(.*?[\s*])(keel_\w+)\((.*)\);", plain)
    if not m:
        raise SystemExit(f"{header}: neither a type nor a call: {plain}")
    name = m.group(2)
    api["calls"].append({
        "name": name, "header": header, "result": m.group(1).strip(), "must_check": "KEEL_MUST_CHECK" in code,
        "arguments": [{"name": n, "type": t, "direction": direction(name, t, n)} for t, n in arguments_of(m.group(3))],
        "comments": comments})


def part_of(text, call):
    """What a paragraph says of this call, if it has parts as in `begin: no. test: no. else: until it is complete.`"""
    parts = re.findall(r"(?:^|\. )(\w+): (.*?)(?=\.(?: \w+:|$))", text)
    for name, part in parts:
        if call.endswith("_" + name) or name == "else":
            return part
    return text or None


def blocks(call, by_name, seen=()):
    text = call["blocking"] or ""
    other = re.match(r"as (keel_\w+)", text)
    if other and other.group(1) not in seen:
        return blocks(by_name[other.group(1)], by_name, (*seen, call["name"]))
    return not re.match(r"no\b", text)


def finish(api, root):
    """Errors, blocking and threads from the comments, once all calls are known."""
    pages = page_names(root)
    names = {s["name"] for s in api["statuses"]} - {"KEEL_OK"}
    by_name = {c["name"]: c for c in api["calls"]}
    heads = {h: says(c).get("errors", "") for h, c in api["headers"].items()}

    def statuses(text, seen):
        found = {n for n in re.findall(r"KEEL_\w+", text) if n in names}
        found |= {n for short in re.findall(r"(?<=, )_(\w+)", text) for n in ["KEEL_ERR_" + short] if n in names}
        for h in re.findall(r"keel/(\w+\.h)", text):
            if h in heads and h not in seen:
                found |= statuses(heads[h], seen | {h})
        for other in re.findall(r"\b(?:as (?:in )?|those of |what )(keel_\w+)", text):
            if other in by_name and other not in seen:
                found |= errors(by_name[other], seen | {other})
        return found

    def errors(call, seen):
        head, section, own = call["comments"]
        named = " ".join(n for n in re.findall(r"KEEL_\w+", own))
        lines = [says(c).get("errors", "") for c in call["comments"]]
        table = " ".join(re.findall(r"^ \*\s+(KEEL_\w+)  ", section, re.M))
        return statuses(" ".join(lines + [named, table]), seen | {call["name"], call["header"]})

    for call in api["calls"]:
        call["page"] = pages.get(call["name"])
        order = [says(c) for c in reversed(call["comments"])]
        listed = errors(call, set()) if call["result"] == "keel_status" else set()
        if not re.search(ASKS, call["name"]):
            listed.discard("KEEL_IN_PROGRESS")
        call["errors"] = [s["name"] for s in api["statuses"] if s["name"] in listed]
        call["blocking"] = part_of(next((s["blocks"] for s in order if "blocks" in s), ""), call["name"])
        call["threads"] = next((s["threads"] for s in order if "threads" in s), None)
    for call in api["calls"]:
        call["blocks"] = blocks(call, by_name)
        del call["comments"]


def read(root=ROOT):
    api = {"format": FORMAT, "statuses": [], "enums": {}, "constants": {}, "structs": {},
           "handles": {**{n: "number" for n in NUMBERS}, **{n: "pointer" for n in POINTERS}}, "headers": {}, "calls": []}
    known = {}
    order = re.findall(r"#include <keel/(\w+\.h)>", (root / "include/keel/keel.h").read_text())
    for name in order:
        read_header(root / "include/keel" / name, api, known)
    finish(api, root)
    api["headers"] = order
    return api


def text_of(api):
    def row(value):
        return json.dumps(value, ensure_ascii=False)
    out = ["{"]
    for key, value in api.items():
        if isinstance(value, list) and key != "headers":
            rows = ",\n".join("    " + row(v) for v in value)
            out.append(f' "{key}": [\n{rows}\n ],')
        elif isinstance(value, dict):
            rows = ",\n".join(f"    {row(k)}: {row(v)}" for k, v in value.items())
            out.append(f' "{key}": {{\n{rows}\n }},')
        else:
            out.append(f' "{key}": {row(value)},')
    return "\n".join(out).rstrip(",") + "\n}\n"


def declared(argument):
    type_, name = argument["type"], argument["name"]
    if "(*)" in type_:
        return type_.replace("(*)", f"(*{name})")
    base, array = re.fullmatch(r"([^\[]*)(.*)", type_).groups()
    return f"{base}{'' if base.endswith('*') else ' '}{name}{array}"


def calls_of(api):
    yield "/* Made by scripts/api.py of include/keel/api.json. See calls.h. */"
    for call in api["calls"]:
        if re.fullmatch(NOT_WRAPPED, call["name"]):
            continue
        status = "NEAR_CALL(" if call["name"] in NEAR else "STATUS_CALL("
        kind = {"keel_status": status, "void": "VOID_CALL("}.get(call["result"], f"VALUE_CALL({call['result']}, ")
        parameters = ", ".join(declared(a) for a in call["arguments"]) or "void"
        arguments = ", ".join(a["name"] for a in call["arguments"])
        yield f"{kind}{call['name'].removeprefix('keel_')}, ({parameters}), ({arguments}))"


def unsaid(api):
    for call in api["calls"]:
        for key in ("page", "blocking", "threads"):
            if not call[key]:
                yield f"include/keel/{call['header']}: {call['name']} does not say: {key}"
        if call["result"] == "keel_status" and not call["errors"]:
            yield f"include/keel/{call['header']}: {call['name']} does not say: errors"


def inner_calls(api):
    """What the library calls by a public name passes a wrapper a second time."""
    names = {c["name"] for c in api["calls"] if not re.fullmatch(NOT_WRAPPED, c["name"])}
    for path in sorted((ROOT / "runtime/client").rglob("*.c")):
        text = re.sub(r"/\*.*?\*/|//[^\n]*|\"[^\"\n]*\"", "", path.read_text(), flags=re.S)
        for line in text.splitlines():
            for name in re.findall(r"\b(keel_\w+)\(", line):
                if name in names and not line.startswith("KEEL_EXPORT "):
                    yield f"{path.relative_to(ROOT)}: {name} is called inside the library: call_{name[5:]}"


def index_lacks(api):
    """The table and the list of headers of keel(3)."""
    index = (ROOT / "docs/man/keel.3").read_text().replace("\\", "")
    for page in sorted({c["page"] for c in api["calls"] if c["page"]} - {"keel.3"}):
        if not re.search(r"^%s\(3\)\t" % re.escape(page[:-2]), index, re.M):
            yield f"docs/man/keel.3: {page} is not in its table"
    for header in api["headers"]:
        if f"keel/{header}" not in index:
            yield f"docs/man/keel.3: keel/{header} is not in its list"


def differences(api, stored):
    ours, theirs = ({c["name"]: c for c in a["calls"]} for a in (api, stored))
    for name in sorted(ours.keys() | theirs.keys()):
        if name not in theirs or name not in ours:
            yield f"{name}: only in {'the headers' if name in ours else 'api.json'}"
            continue
        for key in ours[name]:
            if ours[name][key] != theirs[name].get(key):
                yield f"{name}: {key} is {ours[name][key]!r} in the headers, {theirs[name].get(key)!r} in api.json"
    for key in api:
        if key != "calls" and api[key] != stored.get(key):
            yield f"{key} differ"


def main():
    api = read()
    path = ROOT / "include/keel/api.json"
    calls, list_of_calls = "\n".join(calls_of(api)) + "\n", ROOT / "runtime/client/api/calls.inc"
    if sys.argv[1:] != ["--check"]:
        path.write_text(text_of(api))
        list_of_calls.write_text(calls)
    wrong = [*unsaid(api), *index_lacks(api), *inner_calls(api)]
    wrong += [f"include/keel/api.json: {d}" for d in differences(api, json.loads(path.read_text()))]
    if not wrong and path.read_text() != text_of(api):
        wrong.append("include/keel/api.json is not as scripts/api.py writes it")
    if list_of_calls.read_text() != calls:
        wrong.append("runtime/client/api/calls.inc is not as scripts/api.py writes it")
    for line in wrong:
        print(line)
    if wrong:
        raise SystemExit("python3 scripts/api.py writes both files anew; what a call does not say is for its header")


if __name__ == "__main__":
    main()
