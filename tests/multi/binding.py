"""binding.py API.JSON LIBKEEL: a binding for Python, made of api.json when it is loaded, in a job of two ranks and
more.

Every call that api.json names is there, with its types; some are made. What is no handle of a group is an error. Exit 0
if all is right."""
import ctypes
import json
import re
import sys

SIMPLE = {"int": ctypes.c_int, "bool": ctypes.c_bool, "double": ctypes.c_double, "size_t": ctypes.c_size_t,
          "int64_t": ctypes.c_int64, "uint32_t": ctypes.c_uint32, "uint64_t": ctypes.c_uint64,
          "keel_status": ctypes.c_int}


class Failed(Exception):
    pass


class Keel:
    """The calls without `keel_`. Outputs come back as results; a status that is not KEEL_OK is an exception."""

    def __init__(self, api, library):
        self.api = api
        self.library = ctypes.CDLL(library)
        self.types = {**SIMPLE, **{name: ctypes.c_int for name in api["enums"]}}
        self.status = {s["value"]: s["name"] for s in api["statuses"]}
        vars(self).update({n: v for e in [*api["enums"].values(), api["constants"]] for n, v in e.items()})
        for name, members in api["structs"].items():
            fields = [(m["name"], self.type_of(m["type"])) for m in members]
            self.types[name] = type(name, (ctypes.Structure,), {"_fields_": fields})
        for call in api["calls"]:
            setattr(self, call["name"].removeprefix("keel_"), self.bound(call))

    def type_of(self, text):
        text = re.sub(r"\b(const|struct)\b", "", text).strip()
        array = re.fullmatch(r"(.*)\[(.*)\]", text)
        if array:
            n = sum(self.api["constants"].get(t.strip()) or int(t) for t in array.group(2).split("+"))
            return self.type_of(array.group(1)) * n
        if text == "char *":
            return ctypes.c_char_p
        if text.endswith("*") or "(*)" in text:
            return ctypes.c_void_p
        return None if text == "void" else self.types[text]

    def bound(self, call):
        function = getattr(self.library, call["name"])
        args = call["arguments"]
        function.argtypes = [ctypes.c_void_p if "[" in a["type"] else self.type_of(a["type"]) for a in args]
        function.restype = self.type_of(call["result"])

        def results(arg):
            """Memory for an output that is one value; else the caller's own."""
            inner = arg["type"].removesuffix("*").strip()
            one = arg["direction"] == "out" and inner not in ("void",) and "[" not in inner
            return self.type_of(inner)() if one else None

        def made(*given):
            given, out, passed = list(given), [], []
            for arg in args:
                memory = results(arg) if len(given) < len(args) else None
                if memory is not None:
                    out.append(memory)
                    passed.append(ctypes.addressof(memory))
                else:
                    passed.append(given.pop(0))
            assert not given, call["name"]
            result = function(*passed)
            if call["result"] == "keel_status":
                if result:
                    status = self.status[result]
                    if status not in call["errors"]:
                        sys.exit(f"{call['name']}: {status} is no error of it in api.json")
                    raise Failed(status)
                values = [o.value if hasattr(o, "value") else o for o in out]
                return values[0] if len(values) == 1 else values or None
            return result

        return made


def expect(what, said):
    if not what:
        sys.exit(f"rank {k.rank()}: {said}")


def refused(call, *args):
    try:
        call(*args)
    except Failed as error:
        return str(error)
    return "KEEL_OK"


def main():
    k.init()
    me, size = k.rank(), k.size()
    right = (me + 1) % size
    segment = k.segment_alloc(4096, k.KEEL_REDUNDANCY_SHADOW)
    word, got = ctypes.c_int64(1000 + me), ctypes.c_int64()
    k.put(segment, right, 8, ctypes.addressof(word), 8)
    k.barrier()
    k.get(segment, me, 8, ctypes.addressof(got), 8)
    expect(got.value == 1000 + (me - 1) % size, f"got {got.value}")
    k.get(segment, right, 8, ctypes.addressof(got), 8)
    expect(got.value == 1000 + me, f"got back {got.value}")
    k.barrier()
    k.fetch_add(segment, 0, 64, 1)
    k.barrier()
    k.get(segment, 0, 64, ctypes.addressof(got), 8)
    expect(got.value == size, f"{got.value} added")

    handle = k.types["keel_handle"]()
    k.put_nb(segment, right, 16, ctypes.addressof(word), 8, ctypes.addressof(handle))
    k.wait(ctypes.addressof(handle))

    # a handle is a number like any other
    group = k.group_split(k.group_world(), 0, -me)
    expect(isinstance(group, int) and k.group_size(group) == size, "a group of all")
    expect(k.group_rank(group) == size - 1 - me, "by key")
    k.group_barrier(group)
    mine, total = ctypes.c_int64(me), ctypes.c_int64()
    how = k.types["keel_combine"](type=k.KEEL_INT64, op=k.KEEL_SUM)
    k.group_allreduce(group, ctypes.addressof(mine), ctypes.addressof(total), 1, ctypes.addressof(how))
    expect(total.value == size * (size - 1) // 2, f"sum {total.value}")
    k.group_free(group)
    for wrong in (group, 1, 12345, ctypes.addressof(total), 2**64 - 1):
        expect(refused(k.group_barrier, wrong) == "KEEL_ERR_ARG", f"{wrong:#x} is no group")

    # every error that comes is one of those that are listed
    group = k.group_split(k.group_world(), 0, me)
    other = refused(*((k.group_barrier, group) if me == 0 else (k.group_split, group, 0, 0)))
    expect(other == "KEEL_ERR_MISMATCH", f"a barrier and a split: {other}")
    other = refused(*((k.group_agree, group, k.KEEL_GROUP_OR, 1) if me == 0 else (k.group_shrink, group)))
    expect(other == "KEEL_ERR_MISMATCH", f"agree and shrink: {other}")
    k.group_revoke(group)
    expect(refused(k.group_split, group, 0, 0) == "KEEL_ERR_REVOKED", "a split of a revoked group")
    k.group_free(group)

    pool = k.taskpool_create(3)
    expect(refused(k.group_barrier, pool) == "KEEL_ERR_ARG", "a pool is no group")
    k.taskpool_free(pool)
    k.segment_free(segment)
    k.finalize()
    expect(refused(k.locate, 0, ctypes.addressof(total)) == "KEEL_ERR_STATE", "nowhere after the end")
    expect(refused(k.barrier) == "KEEL_ERR_STATE", "after the end")


with open(sys.argv[1], encoding="utf-8") as f:
    k = Keel(json.load(f), sys.argv[2])
main()
