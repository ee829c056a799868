"""System calls of newer kernels are made in one place, which does without them where they are not there:
runtime/base/kernel.c. Elsewhere none is made by its number, but by who can do without it as a whole.

Usage: calls.py TOP"""
import pathlib
import re
import sys

top = pathlib.Path(sys.argv[1])
WITHOUT = {
    "runtime/base/kernel.c": None,  # any
    "runtime/base/slice.c": {"sched_getattr", "sched_setattr"},  # it has the time that it had
    # the start is slower
    "runtime/net/ofi/ofi_init.c": {"landlock_add_rule", "landlock_create_ruleset", "landlock_restrict_self"},
    "detect/witness.c": {"gettid"},  # not new
    # past its own calls, or passed on as it comes
    "runtime/world/clock.c": {"getpid", "gettid"},
    "runtime/world/copy.c": {"getcwd", "getpid", "newfstatat", "openat", "readlinkat", "renameat", "unlinkat"},
    "runtime/world/files.c": {"mkdirat", "renameat", "renameat2", "truncate", "unlinkat", "statx"},
    "runtime/world/name.c": {"getpid", "getppid", "getrandom", "gettid", "kill", "tgkill", "tkill"},
    "runtime/world/place.c": {"getpid", "getppid", "getsid", "openat"},
    "runtime/world/random.c": {"getpid"},
    "runtime/world/view.c": {"linkat", "mkdirat", "unlinkat"},
}
NEWER = re.compile(r"\b(close_range|pidfd_open|pidfd_send_signal|pidfd_getfd|clone3|openat2|statx|faccessat2|epoll_pwait2|membarrier|userfaultfd|"
                   r"process_vm_readv|process_vm_writev|io_uring_\w+|renameat2|mseal|futex_waitv|memfd_secret|copy_file_range|preadv2|pwritev2)\s*\(")
bad = calls = 0
for folder in ("runtime", "detect", "collectives", "pm", "armci", "sim"):
    for path in sorted((top / folder).rglob("*.[ch]")):
        name = str(path.relative_to(top))
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(), flags=re.DOTALL)
        allowed = WITHOUT.get(name, set())
        found = re.findall(r"\bSYS_(\w+)", text) + NEWER.findall(text)
        calls += len(found)
        for call in found:
            if allowed is not None and call not in allowed:
                print(f"{name}: {call} may not be there: see runtime/base/kernel.h")
                bad += 1
print(f"{calls} calls")
sys.exit(bad > 0 or calls < 5)
