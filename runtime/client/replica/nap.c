#include "runtime/client/replica/nap.h"

#include <time.h>

#include "runtime/base/log.h"
#include "runtime/client/client.h"
#include "runtime/client/progress.h"
#include "runtime/client/replica/replica.h"
#include "runtime/client/threads.h"

enum { NAP_MS = 1 };

/* ---- a set that has lost a member ---- */

static bool is_broken(void)
{
    const struct page *page = replica.client->page;
    uint64_t epoch = atomic_load_explicit(&page->epoch, memory_order_acquire);
    if (page_set_is_over(page, replica.set, replica.client->incarnation))
        return true; /* also where its rank has ended by itself, with another code than 0 */
    if (replica.partners)
        return false; /* it goes on without a member */
    if (epoch == replica.epoch_seen)
        return false;
    for (int r = 0; r < replica.size; r++) {
        const struct page_rank *k = page_rank(page, replica_native_of(r));
        bool runs = (int32_t)(atomic_load_explicit(&k->where, memory_order_acquire) >> 32) >= 0;
        if (!runs && !atomic_load_explicit(&k->done, memory_order_acquire))
            return true;
    }
    replica.epoch_seen = epoch;
    return false;
}

/* The agent ends this process, as soon as its node has the view; the program is not to see what a set without a member
 * looks like. */
static void wait_for_the_end(void)
{
    enum { LOOK_MS = 20, SAID_MS = 10000 };
    const struct timespec nap = {.tv_nsec = LOOK_MS * 1000000};
    for (int ms = 0;; ms += LOOK_MS) {
        nanosleep(&nap, NULL);
        if (ms == SAID_MS)
            log_warn("set %d has lost a member and is retired: this process waits for its agent to end it",
                     replica.set);
    }
}

/* A partner sees no such thing: it was the library's call. */
static bool is_of_a_death(keel_status status)
{
    return status == KEEL_ERR_RANK_DEAD || status == KEEL_ERR_DATA_LOST;
}

keel_status replica_after(keel_status status)
{
    if (replica.partners && is_of_a_death(status))
        replica_binds();
    if (status != KEEL_IN_PROGRESS && is_broken()) /* also of what was complete without the dead */
        wait_for_the_end();
    return status;
}

/* ---- waits ---- */

void nap(struct wait *w)
{
    struct client *c = replica.client;
    w->call = w->call ? w->call : WAIT_REPLICAS;
    w->keeps = true;
    (void)replica_after(KEEL_OK); /* the own set may be retired */
    client_lock(c);
    client_progress(c);
    uint64_t now = c->env.now(c->env.user);
    waits_last(c, w, now, now);
    pthread_mutex_unlock(&c->lock);
    c->env.sleep(c->env.user, NAP_MS);
}

void nap_for_process(const struct client *c, const void *native, struct wait_said *out)
{
    (void)c;
    out->whom = WAIT_FOR_ENTRY;
    out->rank = *(const int *)native;
}

void nap_for_own_agent(const struct client *c, const void *arg, struct wait_said *out)
{
    (void)arg;
    out->whom = WAIT_FOR_NODE;
    out->node = c->node;
}

bool nap_for_memory(keel_status status, struct wait *w)
{
    if (status != KEEL_ERR_NOMEM) {
        waits_over(replica.client, w);
        return false;
    }
    w->whom = waits_for_memory;
    nap(w);
    return true;
}
