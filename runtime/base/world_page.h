/* What a process of a set knows of the world that all replicas of its rank share (runtime/world): a page in a memfd
 * that keeld hands on by a descriptor with the same number in each of them, so that their environments are the
 * same. All processes that a rank starts map it, too. */
#ifndef KEEL_BASE_WORLD_PAGE_H
#define KEEL_BASE_WORLD_PAGE_H

#include <stdatomic.h>
#include <stdint.h>

enum { WORLD_FD = 5, WORLD_MAGIC = 0x6b776c64, WORLD_KEY = 32 };
enum { WORLD_PID = 4194305 }; /* rank 0's; above what Linux gives to any process */

enum { WORLD_CHILDREN = 256, WORLD_WRITTEN = 1 << 20 };

/* Which stream of random bytes a process has: a program that it becomes is the same process. */
struct world_child {
    _Atomic int32_t pid;
    _Atomic uint32_t stream, programs;
};

struct world_page {
    uint32_t magic;
    int32_t rank, set, node; /* node: as the program counts nodes */
    uint32_t clocks, files;  /* what is shared: clocks, random bytes and names; files */
    uint64_t job;
    int64_t began_ns;                         /* CLOCK_REALTIME, of the job: the same in all sets */
    int64_t true_ns;                          /* CLOCK_MONOTONIC of this host when the page was made */
    uint8_t key[WORLD_KEY];                   /* of the rank's random bytes, from the job's secret */
    _Atomic int32_t pid;                      /* the rank's; 0: none has come yet. Written by the first process */
    _Atomic uint32_t streams;                 /* of random bytes that processes have taken */
    _Atomic uint64_t elapsed_ns;              /* the rank's clock since began_ns */
    struct world_child child[WORLD_CHILDREN]; /* by stream */
    _Atomic uint32_t written_lock;            /* pid of who adds to what follows; 0: nobody */
    _Atomic uint32_t written_len;
    char written[WORLD_WRITTEN]; /* [written_len] paths of files that it has written, each with its 0 */
};
#endif
