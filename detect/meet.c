/* Nodes that may be born: where they are. All members are told before one begins, and more than one may be meant by the
 * same id, until the view says which it is. What comes from any of them is taken till then, and answered to whoever
 * of them said something last. */
#include <stdlib.h>
#include <string.h>

#include "detect/helper_internal.h"
#include "runtime/base/log.h"

/* From now on this is the node. Its numbers begin anew if it was another. */
bool meet_is(struct helper *h, int node, const struct whereabouts *w)
{
    struct reach *p = &h->peers[node];
    if (p->known && p->incarnation == w->incarnation)
        return true;
    if (!dgram_set_peer(h->dgram, node, &w->dgram))
        return false;
    p->known = true;
    p->incarnation = w->incarnation;
    p->addr = w->addr;
    memset(&p->witness, 0, sizeof p->witness);
    p->witness.port = w->witness_port;
    p->witness.prompt = w->witness_prompt;
    memset(&p->datagrams, 0, sizeof p->datagrams);
    memset(&p->hellos, 0, sizeof p->hellos);
    return true;
}

bool meet_read(const struct helper_blob *blob, struct whereabouts *w)
{
    if (blob->len != sizeof *w)
        return false;
    memcpy(w, blob->bytes, sizeof *w);
    return w->dgram.len <= sizeof w->dgram.bytes && w->addr.len <= sizeof w->addr.bytes;
}

static const struct candidate *find(const struct helper *h, int node, uint32_t incarnation)
{
    for (const struct candidate *c = h->candidates; c; c = c->next)
        if (c->node == node && c->where.incarnation == incarnation)
            return c;
    return NULL;
}

void meet_take(struct helper *h, struct candidate *c)
{
    if (c->node < member_next_id(h->m) || find(h, c->node, c->where.incarnation)) {
        free(c);
        return;
    }
    c->next = h->candidates;
    h->candidates = c;
    if (!meet_is(h, c->node, &c->where))
        log_warn("detect: the address of node %d, which may join, cannot be used", c->node);
}

bool meet_admits(struct helper *h, int node, uint32_t incarnation)
{
    const struct reach *p = &h->peers[node];
    if (p->known && p->incarnation == incarnation)
        return true;
    const struct candidate *c = node >= member_next_id(h->m) ? find(h, node, incarnation) : NULL;
    return c && meet_is(h, node, &c->where);
}

void meet_born(struct helper *h, int node, uint32_t incarnation)
{
    const struct reach *p = &h->peers[node];
    const struct candidate *c = find(h, node, incarnation);
    bool known = p->known && p->incarnation == incarnation; /* who joins was told so at its start */
    if (node != h->config.params.self && !known && (!c || !meet_is(h, node, &c->where)))
        log_error("detect: node %d has joined, and nobody has told this one where it is", node);
    for (struct candidate **at = &h->candidates; *at;) {
        struct candidate *old = *at;
        if (old->node > node) {
            at = &old->next;
            continue;
        }
        *at = old->next;
        free(old);
    }
}

void meet_end(struct helper *h)
{
    while (h->candidates) {
        struct candidate *c = h->candidates;
        h->candidates = c->next;
        free(c);
    }
}
