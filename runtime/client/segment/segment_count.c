/* When an allocation or a free counts: the agents know of it, and say so in the intent page. */
#include "runtime/base/fault.h"
#include "runtime/client/group/collective.h"
#include "runtime/client/segment/segment_int.h"

static bool is_known(const struct client *c, uint64_t what)
{
    return atomic_load_explicit(&c->intents->known, memory_order_acquire) >= what;
}

static struct control end_of(const struct client *c, const struct uncounted *u)
{
    return (struct control){
        .type = CONTROL_SEG_FREE, .seg = u->seg, .a = (int64_t)u->agreed, .b = (int64_t)c->segments.instance + 1};
}

void segment_tell_end(struct client *c, uint32_t seg, keel_status agreed)
{
    c->segments.uncounted = (struct uncounted){.any = true, .seg = seg, .agreed = agreed};
    struct control r = end_of(c, &c->segments.uncounted);
    if (!c->env.tell(c->env.user, &r))
        (void)segment_count_last(c); /* what cannot be told now is asked for; lost with the agent, if at all */
    FAULT_POINT("segment.told");
}

keel_status segment_count_last(struct client *c)
{
    struct control r;
    keel_status status = KEEL_OK;
    if (!c->segments.uncounted.any)
        return KEEL_OK;
    if (!is_known(c, KNOWN_ENDED(c->segments.instance + 1)))
        do { /* as long as a node neither answers nor is dead */
            r = end_of(c, &c->segments.uncounted);
            status = c->env.request(c->env.user, &r, NULL);
        } while (status == KEEL_ERR_TIMEOUT);
    if (status != KEEL_OK)
        return status;
    c->segments.uncounted.any = false;
    collective_decided(c);
    FAULT_POINT("segment.counted");
    return KEEL_OK;
}

keel_status segment_await_made(const struct client *c, const struct control *r)
{
    struct control again;
    keel_status status = KEEL_OK;
    if (is_known(c, KNOWN_MADE(c->segments.instance + 1)))
        return KEEL_OK;
    do {
        if (status == KEEL_ERR_NOMEM) /* for the question */
            c->env.sleep(c->env.user, MEMORY_AGAIN_MS);
        again = *r;
        again.a = 0;
        status = c->env.request(c->env.user, &again, NULL);
    } while (status == KEEL_ERR_TIMEOUT || status == KEEL_ERR_NOMEM);
    return status;
}
