/* The preloaded library asks here for one time for all replicas, and says when the process ends without exit.
 * Neither is there for certain: they find each other by names. */
#include <dlfcn.h>
#include <unistd.h>

#include "runtime/base/clock.h"
#include "runtime/base/world_hooks.h"
#include "runtime/client/client.h"
#include "runtime/client/replica/replica.h"

static struct {
    pthread_t thread; /* that makes the calls */
    world_met_fn *met;
    world_place_fn *place;
    world_go_on_fn *go_on;
} world;

/* Our own deadlines are the host's, also where we are a part of the program. */
__attribute__((constructor)) static void clock_begins(void)
{
    world_clock_fn *clock = (world_clock_fn *)dlsym(RTLD_DEFAULT, "keel_world_clock");
    if (clock)
        clock_read_by(clock);
}

static bool is_held(const pthread_mutex_t *lock)
{
    return lock->__data.__owner == gettid();
}

/* Not from a handler of a signal that has come while we were at work. */
static bool may(void)
{
    return pthread_equal(pthread_self(), world.thread) && !replica.ended && getpid() == replica.pid &&
           !is_held(&replica.client->lock) && !is_held(&replica.lock) && !replica_is_answering();
}

static bool agree(uint64_t mine_ns, uint64_t *agreed_ns)
{
    struct replica_answer a;
    if (replica_decides(&a))
        a = replica_tell((struct replica_answer){{(int64_t)mine_ns}});
    *agreed_ns = (uint64_t)a.value[0];
    return true;
}

static void ending(int code)
{
    if (may())
        replica_ends(code);
}

void replica_world_begin(void)
{
    static const struct world_hooks hooks = {may, agree, ending};
    world_join_fn *join = (world_join_fn *)dlsym(RTLD_DEFAULT, "keel_world_join");
    world.thread = pthread_self();
    world.met = (world_met_fn *)dlsym(RTLD_DEFAULT, "keel_world_met");
    world.place = (world_place_fn *)dlsym(RTLD_DEFAULT, "keel_world_place");
    world.go_on = (world_go_on_fn *)dlsym(RTLD_DEFAULT, "keel_world_go_on");
    if (join)
        join(&hooks);
}

bool replica_world_place(struct world_place *out)
{
    if (world.place)
        world.place(out);
    return world.place && world.go_on;
}

void replica_world_go_on(const struct world_place *place)
{
    if (world.go_on)
        world.go_on(place);
}

void replica_world_met(void)
{
    if (world.met)
        world.met();
}
