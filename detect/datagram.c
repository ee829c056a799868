#include "detect/datagram.h"

#include <assert.h>
#include <string.h>

struct cursor {
    uint8_t *p;
    const uint8_t *r, *end;
    bool bad;
};

static void put(struct cursor *c, uint64_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *c->p++ = (uint8_t)(v >> (8 * i));
}

static uint64_t get(struct cursor *c, int bytes)
{
    if (c->end - c->r < bytes) {
        c->bad = true;
        return 0;
    }
    uint64_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint64_t)*c->r++ << (8 * i);
    return v;
}

static int get_id(struct cursor *c, int n)
{
    uint64_t id = get(c, 4);
    if (id >= (uint64_t)n)
        c->bad = true;
    return c->bad ? 0 : (int)id;
}

static void put_batch(struct cursor *c, const struct batch *b)
{
    assert(b->n >= 0 && b->n <= MEMBER_BATCH_MAX);
    put(c, (uint64_t)b->n, 1);
    for (int i = 0; i < b->n; i++) {
        const struct batch_entry *e = &b->e[i];
        put(c, (uint64_t)e->node, 4);
        put(c, e->seq, 4);
        put(c, e->event.type, 4);
        put(c, e->event.a, 4);
        put(c, e->event.b, 4);
        put(c, e->event.c, 4);
        put(c, e->event.d, 8);
    }
}

/* last: of the nodes that it declares, from a on. */
static bool death_ok(const struct view_event *e, int last, int n)
{
    return (uint64_t)e->a + (uint64_t)last < (uint64_t)n && e->b >= MEMBER_REFUSED && e->b <= MEMBER_UNREACHABLE &&
           e->c < (uint32_t)n;
}

static bool event_ok(const struct view_event *e, int last, int n)
{
    switch (e->type) {
    case VIEW_NODE_DEAD:
        return death_ok(e, last, n);
    case VIEW_NODE_BORN:
        return e->a < (uint32_t)n && e->c < (uint32_t)n;
    default:
        return e->type == BATCH_VOID || e->type >= VIEW_EVENT_FIRST;
    }
}

static void get_batch(struct cursor *c, int n, struct batch *b)
{
    b->n = (int)get(c, 1);
    if (b->n > MEMBER_BATCH_MAX)
        c->bad = true;
    if (c->bad)
        b->n = 0;
    int said = 0;
    for (int i = 0; i < b->n; i++) {
        struct batch_entry *e = &b->e[i];
        e->node = get_id(c, n);
        e->seq = (uint32_t)get(c, 4);
        e->event.type = (uint32_t)get(c, 4);
        e->event.a = (uint32_t)get(c, 4);
        e->event.b = (uint32_t)get(c, 4);
        e->event.c = (uint32_t)get(c, 4);
        e->event.d = get(c, 8);
        bool dead = e->event.type == VIEW_NODE_DEAD;
        said += dead ? 1 + __builtin_popcountll(e->event.d) : 1;
        int last = dead && e->event.d ? 64 - __builtin_clzll(e->event.d) : 0;
        if (said > MEMBER_EVENTS_MAX || !event_ok(&e->event, last, n))
            c->bad = true;
    }
    if (c->bad)
        b->n = 0;
}

static int bytes_of(unsigned distance)
{
    int n = 1;
    while (distance >>= 7)
        n++;
    return n;
}

size_t datagram_left_bytes(const int *left, int n)
{
    size_t sum = 0;
    for (int i = 0; i < n; i++)
        sum += (size_t)bytes_of((unsigned)(left[i] - (i ? left[i - 1] : -1)));
    return sum;
}

static void put_left(struct cursor *c, const struct datagram *m)
{
    assert(m->n_left <= DATAGRAM_LEFT_MAX && datagram_left_bytes(m->left, m->n_left) <= DATAGRAM_LEFT_BYTES);
    put(c, (uint64_t)m->n_left, 2);
    for (int i = 0; i < m->n_left; i++) {
        unsigned distance = (unsigned)(m->left[i] - (i ? m->left[i - 1] : -1));
        for (; distance >= 128; distance >>= 7)
            put(c, (distance & 127) | 128, 1);
        put(c, distance, 1);
    }
}

static void get_left(struct cursor *c, int n, struct datagram *m, int *left)
{
    m->n_left = (int)get(c, 2);
    m->left = left;
    if (m->n_left > DATAGRAM_LEFT_MAX)
        c->bad = true;
    int64_t id = -1;
    for (int i = 0; i < m->n_left && !c->bad; i++) {
        uint64_t distance = 0, byte = 128;
        for (int shift = 0; byte & 128 && !c->bad; shift += 7) {
            byte = get(c, 1);
            distance |= (byte & 127) << shift;
            if (shift > 21)
                c->bad = true;
        }
        id += (int64_t)distance;
        if (distance == 0 || id >= n)
            c->bad = true;
        left[i] = c->bad ? 0 : (int)id;
    }
    if (c->bad)
        m->n_left = 0;
}

static void put_deaths(struct cursor *c, const struct datagram *m)
{
    put(c, (uint64_t)m->n_deaths, 1);
    for (int i = 0; i < m->n_deaths; i++) {
        put(c, (uint64_t)m->deaths[i].node, 4);
        put(c, (uint64_t)m->deaths[i].finder, 4);
        put(c, m->deaths[i].evidence, 1);
    }
}

static void get_deaths(struct cursor *c, int n, struct datagram *m)
{
    m->n_deaths = (int)get(c, 1);
    if (m->n_deaths > MEMBER_BATCH_MAX)
        c->bad = true;
    for (int i = 0; i < m->n_deaths && !c->bad; i++) {
        m->deaths[i].node = get_id(c, n);
        m->deaths[i].finder = get_id(c, n);
        uint64_t evidence = get(c, 1);
        if (evidence < MEMBER_REFUSED || evidence > MEMBER_UNREACHABLE)
            c->bad = true;
        m->deaths[i].evidence = (enum member_evidence)evidence;
    }
}

static void put_wave(struct cursor *c, const struct datagram *m)
{
    put(c, m->phase, 1);
    put(c, (uint64_t)m->root, 4);
    put(c, m->ballot, 8);
    put(c, m->index, 8);
    put(c, m->value, 8);
    put(c, m->nonce, 8);
    put(c, (uint64_t)m->end, 4);
    if (m->type == DATAGRAM_WAVE)
        put_left(c, m);
    else
        put(c, m->accepted_ballot, 8);
    put_batch(c, &m->batch);
}

static void put_head(struct cursor *c, const struct datagram *m)
{
    put(c, m->type, 1);
    put(c, m->flags, 1);
    put(c, (uint64_t)m->hops, 1);
    put(c, m->late, 1);
    put(c, (uint64_t)m->src, 4);
    put(c, (uint64_t)m->dst, 4);
    put(c, m->epoch, 8);
    put(c, m->settled, 8);
}

size_t datagram_encode(const struct datagram *m, uint8_t out[MEMBER_DATAGRAM_MAX])
{
    struct cursor c = {.p = out};
    put_head(&c, m);
    switch (m->type) {
    case DATAGRAM_PING:
    case DATAGRAM_PONG:
        put(&c, m->nonce, 8);
        break;
    case DATAGRAM_VOTE_ASK:
        put(&c, (uint64_t)m->node, 4);
        break;
    case DATAGRAM_VOTE:
        put(&c, (uint64_t)m->node, 4);
        put(&c, m->vote, 1);
        put(&c, m->age_us, 4);
        break;
    case DATAGRAM_WAVE:
    case DATAGRAM_ACK:
        put_wave(&c, m);
        break;
    case DATAGRAM_NACK:
        put(&c, m->ballot, 8);
        break;
    case DATAGRAM_REPORT:
        put(&c, m->nonce, 8);
        put_deaths(&c, m);
        put_batch(&c, &m->batch);
        break;
    case DATAGRAM_FETCH:
        put(&c, m->index, 8);
        break;
    case DATAGRAM_LOG:
        put(&c, m->index, 8);
        put(&c, m->value, 8);
        put_batch(&c, &m->batch);
        break;
    case DATAGRAM_LINK:
        put(&c, (uint64_t)m->node, 4);
        put(&c, (uint64_t)m->root, 4);
        put(&c, m->index, 8);
        put(&c, m->value, 8);
        break;
    case DATAGRAM_JOIN:
        put(&c, m->nonce, 8);
        put(&c, m->value, 4);
        put(&c, (uint64_t)m->root, 4);
        put(&c, m->index, 4);
        break;
    case DATAGRAM_DEAD:
    case DATAGRAM_TYPES:
        break;
    }
    assert(c.p - out <= MEMBER_DATAGRAM_MAX);
    return (size_t)(c.p - out);
}

static bool get_wave(struct cursor *c, int n, struct datagram *m, int *left)
{
    m->phase = (enum wave_phase)get(c, 1);
    m->root = get_id(c, n);
    m->ballot = get(c, 8);
    m->index = get(c, 8);
    m->value = get(c, 8);
    m->nonce = get(c, 8);
    uint64_t end = get(c, 4);
    if (end > (uint64_t)n)
        c->bad = true;
    m->end = c->bad ? 0 : (int)end;
    if (m->type == DATAGRAM_WAVE)
        get_left(c, n, m, left);
    else
        m->accepted_ballot = get(c, 8);
    get_batch(c, n, &m->batch);
    return m->phase > PHASE_NONE && m->phase <= PHASE_SETTLE && (int)(m->ballot & ((1u << BALLOT_BITS) - 1)) < n;
}

static bool get_head(struct cursor *c, int n, struct datagram *m)
{
    uint64_t type = get(c, 1);
    m->flags = (unsigned)get(c, 1);
    m->hops = (int)get(c, 1);
    m->late = (unsigned)get(c, 1);
    m->src = get_id(c, n);
    m->dst = get_id(c, n);
    m->epoch = get(c, 8);
    m->settled = get(c, 8);
    if (c->bad || type < DATAGRAM_PING || type >= DATAGRAM_TYPES || m->hops > 1)
        return false;
    m->type = (enum datagram_type)type;
    return true;
}

static bool get_vote(struct cursor *c, int n, struct datagram *m)
{
    m->node = get_id(c, n);
    if (m->type == DATAGRAM_VOTE_ASK)
        return true;
    m->vote = (enum vote_kind)get(c, 1);
    m->age_us = (uint32_t)get(c, 4);
    return m->vote <= VOTE_KERNEL;
}

bool datagram_decode(const void *data, size_t len, int n, struct datagram *m, int left[DATAGRAM_LEFT_MAX])
{
    struct cursor c = {.r = data, .end = (const uint8_t *)data + len};
    memset(m, 0, offsetof(struct datagram, batch));
    m->batch.n = m->n_deaths = m->n_left = 0;
    if (!get_head(&c, n, m))
        return false;
    bool ok = true;
    switch (m->type) {
    case DATAGRAM_PING:
    case DATAGRAM_PONG:
        m->nonce = get(&c, 8);
        break;
    case DATAGRAM_VOTE:
    case DATAGRAM_VOTE_ASK:
        ok = get_vote(&c, n, m);
        break;
    case DATAGRAM_WAVE:
    case DATAGRAM_ACK:
        ok = get_wave(&c, n, m, left);
        break;
    case DATAGRAM_NACK:
        m->ballot = get(&c, 8);
        ok = (int)(m->ballot & ((1u << BALLOT_BITS) - 1)) < n;
        break;
    case DATAGRAM_REPORT:
        m->nonce = get(&c, 8);
        get_deaths(&c, n, m);
        get_batch(&c, n, &m->batch);
        break;
    case DATAGRAM_FETCH:
        m->index = get(&c, 8);
        break;
    case DATAGRAM_LOG:
        m->index = get(&c, 8);
        m->value = get(&c, 8);
        get_batch(&c, n, &m->batch);
        break;
    case DATAGRAM_LINK:
        m->node = get_id(&c, n);
        m->root = get_id(&c, n);
        m->index = get(&c, 8);
        m->value = get(&c, 8);
        break;
    case DATAGRAM_JOIN:
        m->nonce = get(&c, 8);
        m->value = get(&c, 4);
        m->root = get_id(&c, n);
        m->index = get(&c, 4);
        break;
    case DATAGRAM_DEAD:
    case DATAGRAM_TYPES:
        break;
    }
    return ok && !c.bad && c.r == c.end;
}
