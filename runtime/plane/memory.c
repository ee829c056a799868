#include "runtime/plane/memory.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/room.h"

enum {
    SPARE = 16 * 1024 * 1024,      /* stays free for the processes of the node */
    SHARE = 16,                    /* of what is free then: others may be taking from it as well */
    CREDIT_MIN = 256 * 1024,       /* so that looking costs little beside writing */
    CREDIT_MAX = 64 * 1024 * 1024, /* and not too late */
};

/* A copy is a memfd: its handle is the descriptor. */
keel_status memory_make(void *user, size_t bytes, void **base, int64_t *handle)
{
    (void)user;
    int fd = memfd_create("keel-segment", MFD_CLOEXEC);
    if (fd < 0) /* no descriptor is left: as when there is no memory, others may have some */
        return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? KEEL_ERR_NOMEM : KEEL_ERR_SYSTEM;
    void *m =
        ftruncate(fd, (off_t)bytes) == 0 ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (m == MAP_FAILED) {
        close(fd);
        return KEEL_ERR_NOMEM;
    }
    *base = m;
    *handle = fd;
    return KEEL_OK;
}

void memory_free(void *user, void *base, size_t bytes, int64_t handle)
{
    (void)user;
    munmap(base, bytes);
    close((int)handle);
}

static bool has_room(struct memory_credit *credit, size_t bytes)
{
    if (credit->bytes < bytes) {
        uint64_t room = room_bytes("");
        if (room < SPARE || room - SPARE < bytes)
            return false;
        uint64_t share = (room - SPARE) / SHARE;
        share = share > CREDIT_MAX ? CREDIT_MAX : share < CREDIT_MIN ? CREDIT_MIN : share;
        credit->bytes = share < bytes ? bytes : share;
    }
    credit->bytes -= bytes;
    return true;
}

/* Through the file: the kernel does not clear a page first of which every byte is written, and takes no fault for it; and what it
 * refuses it says, where a store would end the process. */
keel_status memory_fill(struct memory_credit *credit, int64_t handle, size_t offset, const void *from, size_t bytes)
{
    if (!has_room(credit, bytes))
        return KEEL_ERR_NOMEM;
    while (bytes > 0) {
        ssize_t n = pwrite((int)handle, from, bytes, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return KEEL_ERR_NOMEM;
        from = (const char *)from + n;
        offset += (size_t)n;
        bytes -= (size_t)n;
    }
    return KEEL_OK;
}
