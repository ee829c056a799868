/* The last rank has no address space for the memory that the ranks of a node share: its keel_init says so, and the
 * others go on without it. They would put messages there that it never reads. */
#include <keel/keel.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include "../lib/expect.h"

enum { LARGE = 4 << 20, SHARED = 1 }; /* more than all else that is mapped from what the agent gives; MAP_SHARED */

static bool poor;

/* In the place of the C library's, also for libkeel. */
__attribute__((visibility("default"))) void *mmap64(void *at, size_t len, int protection, int flags, int fd,
                                                    off_t from);

__attribute__((visibility("default"))) void *mmap64(void *at, size_t len, int protection, int flags, int fd, off_t from)
{
    if (poor && (flags & SHARED) && fd >= 0 && len >= LARGE) {
        errno = ENOMEM;
        return (void *)-1; // NOLINT(performance-no-int-to-ptr): MAP_FAILED
    }
    return (void *)syscall(SYS_mmap, at, len, protection, flags, fd, from); // NOLINT(performance-no-int-to-ptr)
}

int main(void)
{
    const char *rank = getenv("KEEL_RANK");
    poor = rank && atoi(rank) == 2;
    keel_status status = keel_init();
    if (poor) {
        EXPECT(status == KEEL_ERR_NOMEM);
        return 0;
    }
    CHECK(status);
    CHECK(keel_barrier());
    return keel_finalize() != KEEL_OK;
}
