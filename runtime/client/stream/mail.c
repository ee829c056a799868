/* Tagged messages of users, over the streams between ranks. The receiver keeps them until somebody wants them, so the
 * sender has to stop in time: it may be MAIL_AHEAD bytes ahead of what it was told to have been received, so
 * MAIL_BYTES of what was received. */
#include <keel/message.h>

#include <stdlib.h>
#include <string.h>

#include "runtime/base/fault.h"
#include "runtime/client/progress.h"
#include "runtime/client/threads.h"
#include "runtime/client/stream/mail_int.h"

/* What a message of partners begins with; others have the tag alone. */
struct head {
    uint32_t tag, unused;
    struct mail_mark mark;
};

static size_t head_of(enum parcel_kind kind)
{
    return kind == PARCEL_PARTNER ? sizeof(struct head) : sizeof(uint32_t);
}

bool mail_has(uint32_t kind)
{
    return kind == PARCEL_MAIL || kind == PARCEL_REPLICA || kind == PARCEL_PARTNER;
}

void mail_starved(struct client *c)
{
    c->mail.starved = true;
}

bool mail_room(struct client *c, size_t len)
{
    struct mail *m = &c->mail;
    if (len > KEEL_MESSAGE_MAX + sizeof(struct head) || (m->room && m->room_len >= len))
        return true; /* one that long is none of ours */
    free(m->room);
    m->room = malloc(sizeof *m->room + len);
    m->room_len = len;
    m->starved = m->starved || !m->room;
    return m->room;
}

/* There is room. */
static void keep(struct client *c, int from, enum parcel_kind kind, uint32_t tag, const void *data, size_t len)
{
    struct letter_in *m = c->mail.room;
    c->mail.room = NULL;
    *m = (struct letter_in){.from = from, .life = c->coll.life[from].life, .kind = kind, .tag = tag, .len = len};
    if (len)
        memcpy(m->data, data, len);
    *c->mail.tail = m;
    c->mail.tail = &m->next;
    c->mail.starved = false;
}

/* Whichever replica has brought it first. Who brings it again has its room back. */
static void brought(struct client *c, int from, const struct head *h, const void *data, size_t len)
{
    struct mail *m = &c->mail;
    uint64_t *last = &m->brought[replica_of(&c->replicas, from).rank];
    m->deaths = h->mark.deaths > m->deaths ? h->mark.deaths : m->deaths;
    if (h->mark.number <= *last) {
        m->peer[from].taken += mail_weight(len);
        return;
    }
    *last = h->mark.number;
    keep(c, from, PARCEL_PARTNER, h->tag, data, len);
}

void mail_received(struct client *c, int from, uint32_t kind, const void *data, size_t len)
{
    size_t before = head_of((enum parcel_kind)kind);
    struct head h = {.tag = 0};
    uint64_t taken;
    if (mail_has(kind) && len >= before && len <= KEEL_MESSAGE_MAX + before) {
        memcpy(&h, data, before);
        data = (const char *)data + before;
        if (kind == PARCEL_PARTNER)
            brought(c, from, &h, data, len - before);
        else
            keep(c, from, (enum parcel_kind)kind, h.tag, data, len - before);
    } else if (kind == PARCEL_MAIL_TAKEN && len == sizeof taken) {
        memcpy(&taken, data, sizeof taken);
        c->mail.peer[from].known = taken;
    }
}

bool mail_init(struct client *c)
{
    c->mail.tail = &c->mail.head;
    c->mail.peer = calloc((size_t)c->size, sizeof *c->mail.peer);
    c->mail.brought = calloc((size_t)c->size, sizeof *c->mail.brought);
    return c->mail.peer && c->mail.brought;
}

void mail_free(struct client *c)
{
    for (struct letter_in *m = c->mail.head, *next; m; m = next) {
        next = m->next;
        free(m);
    }
    free(c->mail.room);
    free(c->mail.peer);
    free(c->mail.brought);
    c->mail.room = NULL;
    c->mail.head = NULL;
    c->mail.peer = NULL;
    c->mail.brought = NULL;
}

/* The rank's life is over: counting starts again with the next one. */
void mail_reset(struct client *c, int rank)
{
    if (c->mail.peer)
        c->mail.peer[rank] = (struct mail_peer){0};
}

/* ---- sending ---- */

struct sending {
    struct client *c;
    int rank;
    uint64_t life, weight;
    uint64_t last; /* its piece of the stream */
};

static bool may_send(void *arg)
{
    const struct sending *s = arg;
    const struct mail_peer *p = &s->c->mail.peer[s->rank];
    return s->c->coll.life[s->rank].life != s->life || s->c->coll.broken != KEEL_OK ||
           p->sent + s->weight - p->known <= MAIL_AHEAD;
}

/* On its way, or waiting for the receiver and nothing else: who has sent may make no further call for long. */
static bool has_left(void *arg)
{
    const struct sending *s = arg;
    return s->c->coll.life[s->rank].life != s->life || s->c->coll.broken != KEEL_OK ||
           !courier_lacks_connection(s->c, s->rank);
}

/* The process has it, or is gone. */
static bool has_come(void *arg)
{
    const struct sending *s = arg;
    return s->c->coll.life[s->rank].life != s->life || s->c->coll.broken != KEEL_OK ||
           s->c->coll.stream[s->rank].acked >= s->last;
}

static void receiver(const struct client *c, const void *arg, struct wait_said *out)
{
    const struct sending *s = arg;
    (void)c;
    out->whom = WAIT_FOR_TAKING;
    out->rank = s->rank;
}

static keel_status offer(struct sending *s, enum parcel_kind kind, const struct head *head, const void *data,
                         size_t len)
{
    struct client *c = s->c;
    struct mail_peer *p = &c->mail.peer[s->rank];
    struct parcel_tag t = {.kind = kind, .tell = kind == PARCEL_PARTNER};
    p->sent += s->weight;
    if (!courier_offer(c, s->rank, &t, head, head_of(kind), data, len)) {
        p->sent -= s->weight;
        return KEEL_ERR_NOMEM;
    }
    s->last = c->coll.stream[s->rank].next;
    counter_add(client_counts(c), COUNTER_messages, 1);
    return KEEL_OK;
}

/* life: of whom, 0: of who has the rank now. */
static keel_status send_locked(struct client *c, enum parcel_kind kind, int rank, uint64_t life,
                               const struct head *head, const void *data, size_t len)
{
    struct sending s = {c, rank, life ? life : c->coll.life[rank].life, mail_weight(len), 0};
    if (rank == c->rank) {
        if (!mail_room(c, len + head_of(kind)))
            return KEEL_ERR_NOMEM;
        keep(c, rank, kind, head->tag, data, len);
        return c->coll.broken;
    }
    if (!s.life || s.life != c->coll.life[rank].life)
        return KEEL_ERR_RANK_DEAD;
    struct wait wait = {.call = WAIT_SEND, .whom = receiver, .arg = &s};
    if (!client_wait(c, may_send, &s, &wait))
        return c->fatal;
    if (c->coll.broken != KEEL_OK)
        return c->coll.broken;
    if (c->coll.life[rank].life != s.life)
        return KEEL_ERR_RANK_DEAD;
    keel_status status = offer(&s, kind, head, data, len);
    if (status != KEEL_OK)
        return status;
    if (!client_wait(c, kind == PARCEL_PARTNER ? has_come : has_left, &s, &wait))
        return c->fatal;
    bool is_gone = kind == PARCEL_PARTNER && c->coll.life[rank].life != s.life;
    return c->coll.broken == KEEL_OK && is_gone ? KEEL_ERR_RANK_DEAD : c->coll.broken;
}

static keel_status send(struct client *c, enum parcel_kind kind, int rank, uint64_t life, const struct head *head,
                        const void *data, size_t len)
{
    if (!c->ready)
        return KEEL_ERR_STATE;
    if (rank < 0 || rank >= c->size || len > KEEL_MESSAGE_MAX || (len && !data))
        return KEEL_ERR_ARG;
    client_lock(c);
    coll_see_views(c, c->env.now(c->env.user));
    FAULT_POINT("mail.sending");
    keel_status status = c->fatal != KEEL_OK ? c->fatal : send_locked(c, kind, rank, life, head, data, len);
    pthread_mutex_unlock(&c->lock);
    return status;
}

keel_status mail_send(struct client *c, int rank, uint32_t tag, const void *data, size_t len)
{
    return send(c, PARCEL_MAIL, rank, 0, &(struct head){.tag = tag}, data, len);
}

keel_status mail_send_replica(struct client *c, struct life to, uint32_t tag, const void *data, size_t len)
{
    return send(c, PARCEL_REPLICA, to.rank, mail_life(to), &(struct head){.tag = tag}, data, len);
}

keel_status mail_bring(struct client *c, int native, uint32_t tag, const struct mail_mark *mark, const void *data,
                       size_t len)
{
    return send(c, PARCEL_PARTNER, native, 0, &(struct head){.tag = tag, .mark = *mark}, data, len);
}
