/* What hosts and guests have in common (renew.h). */
#include "runtime/client/replica/takeover.h"

#include <dlfcn.h>
#include <stdio.h>

#include "runtime/client/client.h"
#include "runtime/client/keep/keep.h"
#include "runtime/client/replica/nap.h"
#include "runtime/client/replica/replica.h"

/* ---- the view ---- */

static const struct page_rank *rank_in(int set)
{
    return page_rank(replica.client->page, replica_native(&replica.client->replicas, replica.rank, set));
}

/* The set's word is shown before the incarnation: who reads one of each view would take an attempt that begins for one
 * that is over. */
struct renew_set takeover_set(int set)
{
    const struct page *page = replica.client->page;
    uint32_t is, again = atomic_load_explicit(&page->set[set], memory_order_acquire), life;
    do {
        is = again;
        life = (uint32_t)atomic_load_explicit(&rank_in(set)->where, memory_order_acquire);
        again = atomic_load_explicit(&page->set[set], memory_order_acquire);
    } while (is != again);
    bool coming = is && is != PAGE_SET_OVER;
    uint32_t home = atomic_load_explicit(&page->sets_at_home, memory_order_acquire);
    return (struct renew_set){
        .whole = !is, .coming = coming, .attempt = coming ? is : life, .at_home = home >> set & 1};
}

struct life takeover_life(int set, uint32_t incarnation)
{
    return life_of(replica_native(&replica.client->replicas, replica.rank, set), incarnation);
}

struct life takeover_life_now(int set)
{
    return takeover_life(set, (uint32_t)atomic_load_explicit(&rank_in(set)->where, memory_order_acquire));
}

/* ---- what there is ---- */

struct keel_segment *takeover_segment(uint64_t i)
{
    for (uint64_t number = 1; number <= replica.segments; number++)
        if (replica_segment(number) && i-- == 0)
            return replica_segment(number);
    return i == 0 ? keep_segment_of(replica.client) : NULL;
}

/* ---- the agent ---- */

/* Of C and of Fortran: what lies in a buffer of the process is not with its agent. */
static void flush_all(void)
{
    void (*fortran)(const int *unit) = (void (*)(const int *))dlsym(RTLD_DEFAULT, "_gfortran_flush_i4");
    (void)fflush(NULL);
    if (fortran)
        fortran(NULL);
}

void takeover_output(uint64_t at[2], int begins)
{
    struct client *c = replica.client;
    struct control r = {.type = CONTROL_OUTPUT, .begins = begins, .a = (int64_t)at[0], .b = (int64_t)at[1]};
    flush_all();
    (void)replica_after(c->env.request(c->env.user, &r, NULL)); /* it fails where the agent does, and this process */
    at[0] = (uint64_t)r.a;
    at[1] = (uint64_t)r.b;
}

void takeover_needs(uint32_t type, int64_t a, int64_t b)
{
    struct client *c = replica.client;
    const struct control r = {.type = type, .a = a, .b = b};
    struct wait wait = {.whom = nap_for_own_agent};
    while (!c->env.tell(c->env.user, &r) && c->fatal == KEEL_OK)
        nap(&wait);
    waits_over(c, &wait);
}
