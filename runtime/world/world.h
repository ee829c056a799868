/* libkeel-world.so, which keeld preloads into the processes of a program with replicas: what the C library says of the
 * world is the same in all replicas of a rank (docs/replicas.md has the table, docs/adr/0187 the reasons).
 *
 *   place.c    the page (base/world_page.h), who calls, the functions of the C library behind ours
 *   clock.c    clocks: one that counts, and is set by what replicas agree on (pace.h)
 *   wait.c     sleeping and waiting, by which it goes on
 *   random.c   random bytes (stream.h)
 *   name.c     the process's number, the host's name
 *   ending.c   ends without exit
 *   files.c    calls with a path, folder.c: what is in a folder; view.c: what a set has in place of that file;
 * copy.c, shadow.h: the files beside it
 *
 * Everything here may be called at any moment, from a signal handler, before main, in the child of a fork. */
#ifndef KEEL_WORLD_WORLD_H
#define KEEL_WORLD_WORLD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "runtime/base/world_hooks.h"
#include "runtime/base/world_page.h"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wnonnull-compare" /* callers pass NULL where they must not, too */
#endif
#define WORLD_API __attribute__((visibility("default")))

/* NULL: this process has none, and everything is as without us. */
struct world_page *world_page(void);
/* The same if clocks, random bytes and names are shared. */
static inline struct world_page *world_of_clocks(void)
{
    struct world_page *page = world_page();
    return page && page->clocks ? page : NULL;
}
/* Is the caller the program, or a library that works for it? What carries messages is not: it has connections and
 * deadlines of its own, and each replica's are others. */
bool world_covers(const void *caller);
/* MPI's library is the program's for its clock alone. */
bool world_covers_clock(const void *caller);
/* An allocator is the program's for its files alone: to ask for what all replicas have takes memory, and it may ask
 * with its lock held. One that is a part of the program is not told from it. */
bool world_covers_files(const void *caller);
/* The function behind ours. */
void *world_next(const char *name, const char *version);

#define WORLD_NEXT_OF(name, version)                                                                                   \
    __extension__({                                                                                                    \
        static _Atomic(void *) at_;                                                                                    \
        void *p_ = atomic_load_explicit(&at_, memory_order_relaxed);                                                   \
        if (!p_) {                                                                                                     \
            p_ = world_next(#name, version);                                                                           \
            atomic_store_explicit(&at_, p_, memory_order_relaxed);                                                     \
        }                                                                                                              \
        (__typeof__(&name))p_;                                                                                         \
    })
#define NEXT(name) WORLD_NEXT_OF(name, NULL)
/* The page, if the caller of the function in which this stands is covered. */
#define WORLD_FOR_CALLER() (world_covers(__builtin_return_address(0)) ? world_of_clocks() : NULL)
#define CLOCK_FOR_CALLER() (world_covers_clock(__builtin_return_address(0)) ? world_of_clocks() : NULL)
#define FILES_FOR_CALLER() (world_covers_files(__builtin_return_address(0)) ? world_page() : NULL)

/* ---- clock.c ---- */

enum { WORLD_MONOTONIC_S = 100000 }; /* what CLOCK_MONOTONIC says at the start */

/* Since the start, as this thread sees it: a little more at each call. */
uint64_t world_elapsed(void);
/* The thread has slept so long, or until then. */
void world_slept(uint64_t ns);
void world_slept_until(uint64_t elapsed_ns);
uint64_t world_host_clock(clockid_t clock);
/* After a fork, in the child. */
void world_clock_forked(void);

static inline uint64_t world_ns(const struct timespec *t)
{
    return (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_nsec;
}
static inline struct timespec world_timespec(uint64_t ns)
{
    return (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
}

/* ---- random.c ---- */

void world_random(struct world_page *page, void *out, size_t len);
/* How far this process has come in them; and it goes on from there. */
uint64_t world_random_block(void);
void world_random_go_on(uint64_t block);
/* A descriptor to read them from; -1. */
int world_random_file(struct world_page *page, int flags);

/* ---- name.c ---- */

int world_pid_out(const struct world_page *page, int pid);
int world_pid_in(const struct world_page *page, int pid);

extern const struct world_hooks *_Atomic world_hooks;
#endif
