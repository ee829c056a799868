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

/* keel_world_join: hooks stay the caller's. keel_world_met: replicas have met, so that the next clock is agreed on.
 * keel_world_clock: the host's clock. */
typedef void world_join_fn(const struct world_hooks *hooks);
typedef void world_met_fn(void);
typedef int world_clock_fn(clockid_t clock, struct timespec *now);
#endif
