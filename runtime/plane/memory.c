#include "runtime/plane/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "runtime/base/log.h"
#include "runtime/base/refusal.h"
#include "runtime/base/reserve.h"
#include "runtime/base/room.h"

enum {
    LARGE = 16 * 1024 * 1024, /* copies below are made without a look at what the machine has */
    REASONS_MAX = 8,
    SPARE = 16 * 1024 * 1024,      /* stays free for the processes of the node */
    SHARE = 16,                    /* of what is free then: others may be taking from it as well */
    CREDIT_MIN = 256 * 1024,       /* so that looking costs little beside writing */
    CREDIT_MAX = 64 * 1024 * 1024, /* and not too late */
};

/* A copy takes memory as it is written to: where there can never be so much, whoever writes would be killed long
 * after an allocation that went well. */
static bool can_ever_be(size_t bytes)
{
    static const double GB = 1e9;
    uint64_t ever = bytes >= LARGE ? room_ever("") : UINT64_MAX;
    struct rlimit limit;
    if (bytes > ever) {
        log_warn(
            "a copy of a segment would be of %.1f GB, and this machine has %.1f GB of memory and swap: refused (with "
            "vm.overcommit_memory=1 it is made, and the job ends when it writes to more than there is)",
            (double)bytes / GB, (double)ever / GB);
        return false;
    }
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && bytes > limit.rlim_cur) { /* and a signal would end us */
        log_warn("a copy of a segment would be of %.1f GB, and files may have %.1f GB: refused (ulimit -f)",
                 (double)bytes / GB, (double)limit.rlim_cur / GB);
        return false;
    }
    return true;
}

/* Once for each reason: who wants memory asks again and again. */
static void say_refused(const char *what, size_t bytes, int error)
{
    static int said[REASONS_MAX];
    for (int i = 0; i < REASONS_MAX; i++)
        if (said[i] == error)
            return;
        else if (!said[i]) {
            said[i] = error;
            break;
        }
    log_warn("no memory for a copy of a segment, %zu bytes: %s: %s%s", bytes, what, strerror(error),
             error == EMFILE   ? " (ulimit -n)"
             : error == ENFILE ? " (fs.file-max)"
             : error == ENOMEM ? " (ulimit -v, vm.max_map_count, vm.overcommit_memory)"
                               : "");
}

/* A copy is a memfd: its handle is the descriptor. */
keel_status memory_make(void *user, size_t bytes, void **base, int64_t *handle)
{
    (void)user;
    if (!can_ever_be(bytes))
        return KEEL_ERR_NOMEM;
    errno = EMFILE; /* what is kept back is for connections */
    int fd = reserve_is_whole() ? memfd_create("keel-segment", MFD_CLOEXEC) : -1;
    if (fd < 0) { /* no descriptor is left: as when there is no memory, others may have some */
        int error = errno;
        say_refused("memfd_create", bytes, error);
        return error == EMFILE || error == ENFILE || error == ENOMEM ? KEEL_ERR_NOMEM : refusal_note(error);
    }
    bool sized = ftruncate(fd, (off_t)bytes) == 0;
    void *m = sized ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (m == MAP_FAILED) {
        say_refused(sized ? "mmap" : "ftruncate", bytes, errno);
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

/* Through the file: the kernel does not clear a page first of which every byte is written, and takes no fault for it;
 * and what it refuses it says, where a store would end the process. */
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

void memory_empty(void *user, void *base, int64_t handle, size_t offset, size_t bytes)
{
    (void)user;
    if (fallocate((int)handle, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset, (off_t)bytes) != 0)
        memset((char *)base + offset, 0, bytes); /* a kernel that cannot: it is kept, and is as empty */
}

bool memory_used(void *user, int64_t handle, size_t offset, size_t bytes)
{
    (void)user;
    off_t at = lseek((int)handle, (off_t)offset, SEEK_DATA); /* nobody reads by its position */
    return at >= 0 ? (size_t)at < offset + bytes : errno != ENXIO;
}
