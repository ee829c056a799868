"""test_api.py SOURCE: scripts/api.py --check finds changes to the headers, to api.json, to calls.inc and to keel(3)."""
import pathlib
import shutil
import subprocess
import sys
import tempfile

CHANGES = [  # file, what stands there, what is put in its place, what must be said
    ("include/keel/rma.h", "keel_status keel_fence_all(void);",
     "keel_status keel_fence_all(void);\nkeel_status keel_fence_some(int n);", "keel_fence_some: only in the headers"),
    ("include/keel/rma.h", "keel_status keel_fence(int rank);", "keel_status keel_fence(long rank);",
     "keel_fence: arguments"),
    ("include/keel/rma.h", "keel_status keel_fence(int rank);", "", "keel_fence: only in api.json"),
    ("include/keel/message.h", " * blocks    until there is one.\n", "", "keel_message_receive does not say: blocking"),
    ("include/keel/shape.h", " * threads   any.\n", "", "keel_put_strided does not say: threads"),
    ("include/keel/job.h", " * errors    KEEL_ERR_STATE. */", " */", "keel_resume does not say: errors"),
    ("include/keel/message.h", "KEEL_MESSAGE_MAX = 65536", "KEEL_MESSAGE_MAX = 65537", "constants differ"),
    ("include/keel/failure.h", "    int deaths;", "    int times;", "structs differ"),
    ("include/keel/status.h", "X(KEEL_ERR_LIMIT, -4,", "X(KEEL_ERR_LIMIT, -14,", "statuses differ"),
    ("include/keel/api.json", '"direction": "inout"', '"direction": "in"', "arguments"),
    ("runtime/client/api/calls.inc", "STATUS_CALL(sync,", "STATUS_CALL(synch,", "calls.inc is not as"),
    ("runtime/client/api/public_rma.c", "return call_acc(", "return keel_acc(", "keel_acc is called inside the library"),
    ("docs/man/keel.3", "keel_signal(3)\t", "", "keel_signal.3 is not in its table"),
    ("docs/man/keel_signal.3", "keel_wait_until", "keel_wait_till", "keel_wait_until does not say: page"),
]


def check(top):
    command = [sys.executable, str(top / "scripts/api.py"), "--check"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def main():
    source = pathlib.Path(sys.argv[1])
    bad = []
    with tempfile.TemporaryDirectory() as folder:
        top = pathlib.Path(folder)
        for part in ["include/keel", "docs/man", "runtime/client"]:
            shutil.copytree(source / part, top / part)
        (top / "scripts").mkdir()
        shutil.copy(source / "scripts/api.py", top / "scripts/api.py")
        if check(top).returncode:
            bad.append("unchanged, it is not right: " + check(top).stdout)
        for name, old, new, said in CHANGES:
            path = top / name
            text = path.read_text()
            if old not in text:
                bad.append(f"{name} has no {old!r} any more")
                continue
            path.write_text(text.replace(old, new, 1 if name.endswith(".json") else -1))
            result = check(top)
            if result.returncode == 0 or said not in result.stdout:
                bad.append(f"{name} with {new!r} for {old!r}: not said: {said}\n{result.stdout}{result.stderr}")
            path.write_text(text)
    print("\n".join(bad) if bad else f"{len(CHANGES)} changes found")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
