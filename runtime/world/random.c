/* Random bytes: of each process a stream of its own, the same in all sets. Who knows the job's secret can foretell
 * them.
 */
#include "runtime/world/world.h"

#include "runtime/world/stream.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FILE_BYTES = 1 << 20 };

static struct {
    uint32_t number, next; /* next: of the child of a fork */
    _Atomic uint64_t block;
} stream;

static uint32_t pid_now(void)
{
    return (uint32_t)NEXT(syscall)(SYS_getpid);
}

static void is_of(struct world_page *page, uint32_t number)
{
    struct world_child *c = &page->child[number % WORLD_CHILDREN];
    atomic_store(&c->stream, number);
    atomic_store(&c->programs, 0);
    atomic_store(&c->pid, (int32_t)pid_now());
}

static void fork_begins(void)
{
    struct world_page *page = world_page();
    if (page)
        stream.next = atomic_fetch_add(&page->streams, 1);
}

static void child_begins(void)
{
    struct world_page *page = world_page();
    stream.number = stream.next;
    atomic_store(&stream.block, 0);
    if (page)
        is_of(page, stream.number);
    world_clock_forked();
}

/* The number that it got when it was forked, not the next one: of two that run side by side nobody knows which one
 * begins first. */
static uint32_t number_of(struct world_page *page)
{
    int32_t pid = (int32_t)pid_now();
    for (int i = 0; i < WORLD_CHILDREN; i++)
        if (atomic_load(&page->child[i].pid) == pid)
            return atomic_load(&page->child[i].stream) | (atomic_fetch_add(&page->child[i].programs, 1) + 1) << 20;
    uint32_t number = atomic_fetch_add(&page->streams, 1);
    is_of(page, number);
    return number;
}

__attribute__((constructor)) static void stream_begins(void)
{
    struct world_page *page = world_page();
    if (!page)
        return;
    stream.number = number_of(page);
    (void)pthread_atfork(fork_begins, NULL, child_begins);
}

/* So that the child has a number. */
WORLD_API pid_t vfork(void)
{
    return fork();
}

void world_random(struct world_page *page, void *out, size_t len)
{
    uint64_t at = atomic_fetch_add(&stream.block, (len + STREAM_BLOCK - 1) / STREAM_BLOCK);
    stream_fill(page->key, stream.number, at, out, len);
}

uint64_t world_random_block(void)
{
    return atomic_load(&stream.block);
}

void world_random_go_on(uint64_t block)
{
    atomic_store(&stream.block, block);
}

int world_random_file(struct world_page *page, int flags)
{
    int fd = memfd_create("random", (flags & O_CLOEXEC) ? MFD_CLOEXEC : 0);
    void *bytes = fd >= 0 && ftruncate(fd, FILE_BYTES) == 0
                      ? mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                      : MAP_FAILED;
    if (bytes == MAP_FAILED)
        return fd;
    world_random(page, bytes, FILE_BYTES);
    munmap(bytes, FILE_BYTES);
    return fd;
}

WORLD_API ssize_t getrandom(void *out, size_t len, unsigned flags)
{
    struct world_page *page = WORLD_FOR_CALLER();
    if (!page)
        return NEXT(getrandom)(out, len, flags);
    world_random(page, out, len);
    return (ssize_t)len;
}

WORLD_API int getentropy(void *out, size_t len)
{
    struct world_page *page = WORLD_FOR_CALLER();
    if (!page || len > 256)
        return NEXT(getentropy)(out, len);
    world_random(page, out, len);
    return 0;
}

WORLD_API void arc4random_buf(void *out, size_t len)
{
    struct world_page *page = WORLD_FOR_CALLER();
    if (page)
        world_random(page, out, len);
    else
        NEXT(arc4random_buf)(out, len);
}

WORLD_API uint32_t arc4random(void)
{
    struct world_page *page = WORLD_FOR_CALLER();
    uint32_t value;
    if (!page)
        return NEXT(arc4random)();
    world_random(page, &value, sizeof value);
    return value;
}

WORLD_API uint32_t arc4random_uniform(uint32_t bound)
{
    struct world_page *page = WORLD_FOR_CALLER();
    uint64_t value;
    if (!page)
        return NEXT(arc4random_uniform)(bound);
    world_random(page, &value, sizeof value);
    return bound ? (uint32_t)(value % bound) : 0; /* of 64 bits: nobody sees the bias */
}
