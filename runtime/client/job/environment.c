#include "runtime/client/job/environment.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/address_range.h"
#include "runtime/base/clock.h"
#include "runtime/base/env.h"
#include "runtime/base/refusal.h"
#include "runtime/base/words.h"
#include "runtime/client/job/channel.h"
#include "runtime/client/job/moving.h"
#include "runtime/client/segment/track.h"

static int epoll_fd = -1;

keel_status environment_open(void)
{
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    return epoll_fd < 0 ? refusal_note(errno) : KEEL_OK;
}

keel_status environment_watch(struct tp *tp)
{
    struct epoll_event ev = {.events = EPOLLIN};
    return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, tp->table->wait_fd(tp), &ev) == 0 ? KEEL_OK : refusal_note(errno);
}

void environment_close(void)
{
    if (epoll_fd >= 0)
        close(epoll_fd);
    epoll_fd = -1;
}

/* Addresses for segments: kept free of everything else by a mapping that nothing is behind. Far from where programs,
 * their libraries, heaps and address sanitizers are; or, where a thread sanitizer has that, low. */
static const struct {
    uint64_t base, bytes;
} ranges[] = {{0x200000000000, 0x200000000000}, {0x1000000000, 0x6000000000}};

static bool range_keep(uint64_t base, size_t bytes, int how)
{
    void *at = (void *)(uintptr_t)base; // NOLINT(performance-no-int-to-ptr)
    void *m = mmap(at, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | how, -1, 0);
    if (m != MAP_FAILED && m != at)
        munmap(m, bytes);
    return m == at;
}

static void unmap(void *user, void *memory, size_t bytes)
{
    (void)user;
    if ((uintptr_t)memory - environment.range >= environment.range_bytes ||
        !range_keep((uintptr_t)memory, bytes, MAP_FIXED))
        munmap(memory, bytes);
}

bool environment_find_range(const struct control_welcome *w)
{
    environment.range = w->range_base;
    environment.range_bytes = w->range_bytes;
    if (w->range_bytes) {
        bool kept = range_keep(w->range_base, (size_t)w->range_bytes, MAP_FIXED_NOREPLACE);
        if (!kept)
            fprintf(stderr,
                    "keel_init: rank %d cannot keep the addresses 0x%llx to 0x%llx free for the job's segments (%s)\n",
                    w->rank, (unsigned long long)w->range_base, (unsigned long long)(w->range_base + w->range_bytes),
                    ADDRESS_RANGE_ENV);
        return kept;
    }
    if (env_is_valgrind()) { /* reserving so much takes it minutes, and more memory than there is */
        fprintf(stderr,
                "keel_init: rank %d is run by valgrind, which cannot hold the %d TiB of addresses that this job keeps "
                "for segments: start the "
                "job with %s=small in keelrun's environment\n",
                w->rank, (int)(ranges[0].bytes >> 40), ADDRESS_RANGE_ENV);
        return false;
    }
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0] && !environment.range_bytes; i++)
        if (range_keep(ranges[i].base, (size_t)ranges[i].bytes, MAP_FIXED_NOREPLACE)) {
            environment.range = ranges[i].base;
            environment.range_bytes = ranges[i].bytes;
        }
    return true;
}

static uint64_t now(void *user)
{
    (void)user;
    return clock_now_ns();
}

static void sleep_for(void *user, int ms)
{
    (void)user;
    struct epoll_event ev[3];
    epoll_wait(epoll_fd, ev, 3, ms);
}

static void yield(void *user)
{
    (void)user;
    sched_yield();
}

static uint32_t processor(void *user)
{
    (void)user;
    return (uint32_t)(sched_getcpu() + 1);
}

/* Left to itself the kernel parts two that share a processor only after many milliseconds. */
static void move(void *user)
{
    (void)user;
    cpu_set_t mine, others;
    int here = sched_getcpu();
    if (here < 0 || sched_getaffinity(0, sizeof mine, &mine) != 0)
        return;
    others = mine;
    CPU_CLR(here, &others);
    if (CPU_COUNT(&others) > 0 && sched_setaffinity(0, sizeof others, &others) == 0)
        (void)sched_setaffinity(0, sizeof mine, &mine);
}

static void copy(void *user, void *dst, const void *src, size_t len)
{
    (void)user;
    words_store(dst, src, len);
}

struct client_env environment = {.now = now,
                                 .sleep = sleep_for,
                                 .yield = yield,
                                 .request = channel_request,
                                 .unmap = unmap,
                                 .tell = channel_tell,
                                 .agent_is_gone = channel_is_gone,
                                 .copy = copy,
                                 .processor = processor,
                                 .move = move,
                                 .leaving = track_forget,
                                 .moves = moving_go};
