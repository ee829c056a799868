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
    for (uint32_t i = 0; i < w->addrs.n; i++)
        if (w->addrs.of[i].rail < h->rails && !dgram_set_peer(h->dgram[w->addrs.of[i].rail], node, &w->dgram[i]))
            return false;
    p->known = true;
    p->incarnation = w->incarnation;
    p->addrs = w->addrs;
    p->proved = 0;
    memset(&p->witness, 0, sizeof p->witness);
    p->witness.port = w->witness_port;
    p->witness.prompt = w->witness_prompt;
    memset(&p->datagrams, 0, sizeof p->datagrams);
    memset(&p->hellos, 0, sizeof p->hellos);
    return true;
}

/* Before its addresses, and those of its datagrams on the same rails. */
struct head {
    uint32_t incarnation, rails;
    struct probe_addr verbs;
    uint16_t witness_port;
    uint16_t witness_prompt;
};
_Static_assert(sizeof(struct head) + TP_RAILS_MAX * (sizeof(struct tp_addr) + sizeof(struct dgram_addr)) <=
                   HELPER_BLOB_MAX,
               "fits");

void meet_write(const struct whereabouts *w, struct helper_blob *blob)
{
    struct head head = {.incarnation = w->incarnation,
                        .rails = w->addrs.n,
                        .verbs = w->verbs,
                        .witness_port = w->witness_port,
                        .witness_prompt = w->witness_prompt};
    size_t at = sizeof head;
    memcpy(blob->bytes, &head, sizeof head);
    at += addrs_write(&w->addrs, blob->bytes + at);
    memcpy(blob->bytes + at, w->dgram, w->addrs.n * sizeof w->dgram[0]);
    blob->len = (uint32_t)(at + w->addrs.n * sizeof w->dgram[0]);
}

bool meet_read(const struct helper_blob *blob, struct whereabouts *w)
{
    struct head head;
    *w = (struct whereabouts){0};
    if (blob->len < sizeof head || blob->len > sizeof blob->bytes)
        return false;
    memcpy(&head, blob->bytes, sizeof head);
    if (head.rails > TP_RAILS_MAX || head.witness_prompt > 1 || head.verbs.len > sizeof head.verbs.bytes ||
        blob->len != sizeof head + head.rails * (sizeof w->addrs.of[0] + sizeof w->dgram[0]) ||
        !addrs_read(blob->bytes + sizeof head, head.rails * sizeof w->addrs.of[0], &w->addrs))
        return false;
    memcpy(w->dgram, blob->bytes + sizeof head + head.rails * sizeof w->addrs.of[0], head.rails * sizeof w->dgram[0]);
    for (uint32_t i = 0; i < head.rails; i++)
        if (w->dgram[i].len == 0 || w->dgram[i].len > sizeof w->dgram[i].bytes)
            return false;
    w->incarnation = head.incarnation;
    w->verbs = head.verbs;
    w->witness_port = head.witness_port;
    w->witness_prompt = head.witness_prompt;
    return true;
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
