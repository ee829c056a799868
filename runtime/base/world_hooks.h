/* Between libkeel and the preloaded libkeel-world.so (runtime/world): found by name, as neither is there for
 * certain. */
#ifndef KEEL_BASE_WORLD_HOOKS_H
#define KEEL_BASE_WORLD_HOOKS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct world_hooks {
    /* May this thread talk to the other replicas now? The same answer in each. Async-signal-safe. */
    bool (*may)(void);
    /* One time for all replicas of the rank; mine: this one's. False: there is none. blocks   until the leading
     * replica has come here. */
    bool (*agree)(uint64_t mine_ns, uint64_t *agreed_ns);
    /* The process ends at once with that code. */
    void (*ending)(int code);
};

/* Where a process is in what it sees of the world: who goes on from there in another process sees the same. */
struct world_place {
    uint64_t elapsed_ns, agreed_ns; /* the rank's clock, and what was agreed on last */
    uint64_t true_ns;               /* of the host, since the page was made */
    uint64_t block;                 /* of its random bytes */
    uint32_t stride, left;          /* readings of the clock from one agreement to the next, and until then */
    uint32_t streams;               /* of random bytes that processes have taken */
    uint32_t shared, written;       /* does each set have files of its own? has the process written any? */
};

/* keel_world_join: hooks stay the caller's. keel_world_met: replicas have met, so that the next clock is agreed on.
 * keel_world_clock: the host's clock. keel_world_place: where this process is; keel_world_go_on: it goes on there, by
 * the thread that agrees. */
typedef void world_join_fn(const struct world_hooks *hooks);
typedef void world_met_fn(void);
typedef void world_place_fn(struct world_place *out);
typedef void world_go_on_fn(const struct world_place *place);
typedef int world_clock_fn(clockid_t clock, struct timespec *now);
#endif
