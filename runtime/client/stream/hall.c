#include "runtime/client/stream/hall.h"

#include <string.h>

#include "runtime/base/log.h"
#include "runtime/client/client.h"
#include "runtime/wire/parcel.h"

enum { BATCH = 64 }; /* messages of one sender at a time */

static struct ring *ring_of(void *memory, int n, int from, int to)
{
    return (struct ring *)memory + (size_t)from * (size_t)n + (size_t)to;
}

void hall_attach(struct client *c, void *memory)
{
    struct hall *h = &c->hall;
    uint32_t slot = page_rank(c->page, c->rank)->slot;
    if (c->incarnation > 0 || !memory || !hall_bytes(c->page, slot))
        return;
    for (int r = 0; r < c->size; r++)
        if (page_rank(c->page, r)->slot == slot)
            h->rank[h->n++] = r;
    for (int i = 0; i < h->n; i++)
        if (h->rank[i] == c->rank)
            h->me = i;
    for (int i = 0; i < h->n; i++) {
        h->to[i] = (struct ring_tx){.ring = ring_of(memory, h->n, h->me, i)};
        h->from[i] = (struct ring_rx){.ring = ring_of(memory, h->n, i, h->me)};
    }
    h->boards = (uint8_t *)ring_of(memory, h->n, h->n, 0);
}

void *hall_board(const struct client *c, int which, uint64_t group)
{
    const struct hall *h = &c->hall;
    size_t at = which >= 0 ? (size_t)which : HALL_BOARDS_KEPT + group % (HALL_BOARDS - HALL_BOARDS_KEPT);
    return h->boards ? h->boards + at * board_size(h->n) : NULL;
}

int hall_place(const struct client *c, int rank)
{
    const struct hall *h = &c->hall;
    int place = -1;
    for (int i = 0; i < h->n; i++)
        if (h->rank[i] == rank && i != h->me)
            place = i;
    return place >= 0 && c->coll.life[rank].life == 1 ? place : -1;
}

bool hall_send(struct client *c, int place, const struct wire *w, const void *head, size_t head_len, const void *data,
               size_t len)
{
    struct hall *h = &c->hall;
    uint8_t first[sizeof *w + COURIER_HEAD_MAX];
    bool bell = false;
    memcpy(first, w, sizeof *w);
    if (head_len)
        memcpy(first + sizeof *w, head, head_len);
    enum ring_result put = ring_put(&h->to[place], first, sizeof *w + head_len, data, len, &bell);
    if (bell)
        courier_wake(c, h->rank[place]);
    if (put == RING_BROKEN)
        log_error("rank %d has written nonsense into the hall", h->rank[place]);
    h->blocked = h->blocked || put == RING_NONE;
    return put == RING_OK;
}

bool hall_has(const struct client *c)
{
    const struct hall *h = &c->hall;
    for (int i = 0; i < h->n; i++)
        if (i != h->me && ring_has_record(&h->from[i]))
            return true;
    return false;
}

static void take(struct client *c, int place, uint64_t now)
{
    struct hall *h = &c->hall;
    struct ring_rx *rx = &h->from[place];
    size_t len = 0;
    enum ring_result got = RING_OK;
    int taken = 0;
    for (; taken < BATCH && (got = ring_take(rx, h->buffer, sizeof h->buffer, &len)) == RING_OK; taken++) {
        struct wire w;
        struct msg_parcel p;
        if (len < sizeof w)
            continue;
        memcpy(&w, h->buffer, sizeof w);
        msg_parcel_decode(&w, &p);
        if (life_equal(p.sender, life_of(h->rank[place], 0)))
            courier_receive(c, &w, h->buffer + sizeof w, len - sizeof w, now);
    }
    if (got == RING_BROKEN || (got == RING_NONE && len)) { /* longer than any message here */
        log_error("rank %d has written nonsense into the hall", h->rank[place]);
        coll_break(c, KEEL_ERR_SYSTEM); /* what it has sent cannot be had */
    }
    c->progress.came += (unsigned)taken;
    if (taken && ring_publish(rx))
        courier_wake(c, h->rank[place]); /* it sleeps until there is room */
}

void hall_poll(struct client *c, uint64_t now)
{
    struct hall *h = &c->hall;
    for (int i = 0; i < h->n && c->coll.broken == KEEL_OK; i++)
        if (i != h->me && ring_has_record(&h->from[i]))
            take(c, i, now);
    if (!h->blocked)
        return;
    h->blocked = false;
    for (int i = 0; i < h->n; i++)
        if (i != h->me)
            courier_room(c, h->rank[i], now);
}

bool hall_sleep(struct client *c)
{
    struct hall *h = &c->hall;
    bool idle = true;
    h->asleep = h->n > 0;
    for (int i = 0; i < h->n; i++) {
        if (i == h->me)
            continue;
        idle = ring_sleep(&h->from[i]) && idle;
        if (h->blocked)
            idle = ring_starve(&h->to[i], TP_MSG_MAX) && idle;
    }
    return idle;
}

void hall_awake(struct client *c)
{
    struct hall *h = &c->hall;
    for (int i = 0; h->asleep && i < h->n; i++)
        if (i != h->me) {
            ring_awake(&h->from[i]);
            ring_fed(&h->to[i]);
        }
    h->asleep = false;
}
