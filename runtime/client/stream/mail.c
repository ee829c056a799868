/* Tagged messages of users, over the streams between ranks. The receiver keeps them until somebody wants them, so the
 * sender has to stop in time: it may be MAIL_AHEAD bytes ahead of what it was told to have been received, so
 * MAIL_BYTES of what was received. */
#include <keel/message.h>

#include <stdlib.h>
#include <string.h>

#include "runtime/base/fault.h"
#include "runtime/client/client.h"
#include "runtime/client/progress.h"
#include "runtime/client/threads.h"
#include "runtime/client/stream/mail.h"

enum { MAIL_BYTES = 1024 * 1024, MAIL_TELL = MAIL_BYTES / 4, MAIL_AHEAD = MAIL_BYTES + MAIL_TELL, MAIL_OVERHEAD = 64 };

struct letter_in {
    struct letter_in *next;
    int from;
    uint64_t life;
    enum parcel_kind kind; /* PARCEL_MAIL, PARCEL_REPLICA */
    uint32_t tag;
    size_t len;
    uint8_t data[];
};

static uint64_t weight(size_t len)
{
    return len + MAIL_OVERHEAD;
}

void mail_starved(struct client *c)
{
    c->mail.starved = true;
}

bool mail_room(struct client *c, size_t len)
{
    struct mail *m = &c->mail;
    if (len > KEEL_MESSAGE_MAX + sizeof(uint32_t) || (m->room && m->room_len >= len))
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

void mail_received(struct client *c, int from, uint32_t kind, const void *data, size_t len)
{
    uint32_t tag;
    uint64_t taken;
    if ((kind == PARCEL_MAIL || kind == PARCEL_REPLICA) && len >= sizeof tag && len <= KEEL_MESSAGE_MAX + sizeof tag) {
        memcpy(&tag, data, sizeof tag);
        keep(c, from, (enum parcel_kind)kind, tag, (const char *)data + sizeof tag, len - sizeof tag);
    } else if (kind == PARCEL_MAIL_TAKEN && len == sizeof taken) {
        memcpy(&taken, data, sizeof taken);
        c->mail.peer[from].known = taken;
    }
}

bool mail_init(struct client *c)
{
    c->mail.tail = &c->mail.head;
    c->mail.peer = calloc((size_t)c->size, sizeof *c->mail.peer);
    return c->mail.peer != NULL;
}

void mail_free(struct client *c)
{
    for (struct letter_in *m = c->mail.head, *next; m; m = next) {
        next = m->next;
        free(m);
    }
    free(c->mail.room);
    free(c->mail.peer);
    c->mail.room = NULL;
    c->mail.head = NULL;
    c->mail.peer = NULL;
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

static void receiver(const struct client *c, const void *arg, struct wait_said *out)
{
    const struct sending *s = arg;
    (void)c;
    out->whom = WAIT_FOR_TAKING;
    out->rank = s->rank;
}

/* As struct known_life has it. */
static uint64_t word_of(struct life life)
{
    return (uint64_t)life.incarnation + 1;
}

/* life: of whom, 0: of who has the rank now. */
static keel_status send_locked(struct client *c, enum parcel_kind kind, int rank, uint64_t life, uint32_t tag,
                               const void *data, size_t len)
{
    struct sending s = {c, rank, life ? life : c->coll.life[rank].life, weight(len)};
    if (rank == c->rank) {
        if (!mail_room(c, len + sizeof tag))
            return KEEL_ERR_NOMEM;
        keep(c, rank, kind, tag, data, len);
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
    struct parcel_tag t = {.kind = kind};
    c->mail.peer[rank].sent += s.weight;
    if (!courier_offer(c, rank, &t, &tag, sizeof tag, data, len)) {
        c->mail.peer[rank].sent -= s.weight;
        return KEEL_ERR_NOMEM;
    }
    counter_add(client_counts(c), COUNTER_messages, 1);
    if (!client_wait(c, has_left, &s, &wait))
        return c->fatal;
    return c->coll.broken;
}

static keel_status send(struct client *c, enum parcel_kind kind, int rank, uint64_t life, uint32_t tag,
                        const void *data, size_t len)
{
    if (!c->ready)
        return KEEL_ERR_STATE;
    if (rank < 0 || rank >= c->size || len > KEEL_MESSAGE_MAX || (len && !data))
        return KEEL_ERR_ARG;
    client_lock(c);
    coll_see_views(c, c->env.now(c->env.user));
    FAULT_POINT("mail.sending");
    keel_status status = c->fatal != KEEL_OK ? c->fatal : send_locked(c, kind, rank, life, tag, data, len);
    pthread_mutex_unlock(&c->lock);
    return status;
}

keel_status mail_send(struct client *c, int rank, uint32_t tag, const void *data, size_t len)
{
    return send(c, PARCEL_MAIL, rank, 0, tag, data, len);
}

keel_status mail_send_replica(struct client *c, struct life to, uint32_t tag, const void *data, size_t len)
{
    return send(c, PARCEL_REPLICA, to.rank, word_of(to), tag, data, len);
}

/* ---- leaving ---- */

/* Whoever has not acknowledged all of our messages is asked to. */
static void ask_to_acknowledge(struct client *c, int r)
{
    struct mail_peer *p = &c->mail.peer[r];
    struct parcel_tag t = {.kind = PARCEL_MAIL_TAKEN, .tell = true};
    p->asked = courier_offer(c, r, &t, &p->taken, sizeof p->taken, NULL, 0);
    p->last = c->coll.stream[r].next;
}

void mail_farewell(struct client *c)
{
    for (int r = 0; r < c->size; r++)
        if (c->mail.peer[r].sent && c->coll.stream[r].head)
            ask_to_acknowledge(c, r);
}

int mail_taken_over_by(const struct client *c)
{
    for (int r = 0; r < c->size; r++)
        if (c->coll.stream[r].acked < c->mail.peer[r].last)
            return r;
    return -1;
}

bool mail_all_taken_over(void *arg)
{
    struct client *c = arg;
    for (int r = 0; r < c->size; r++) {
        if (c->mail.peer[r].last && !c->mail.peer[r].asked) /* there was no memory to */
            ask_to_acknowledge(c, r);
        /* what is sent later, when a view comes, is nothing to wait for: nobody is asked to acknowledge it */
        if (c->coll.stream[r].acked < c->mail.peer[r].last && c->coll.broken == KEEL_OK)
            return false;
    }
    return true;
}

/* ---- receiving ---- */

struct wanted {
    struct client *c;
    enum parcel_kind kind;
    int rank;
    uint64_t life;        /* of whom, 0: of any that the rank has had */
    uint32_t tag, unless; /* not behind one of that tag, if it is another one */
    uint64_t least;       /* how it begins; 0: in any way */
    struct letter_in **at;
    bool hopeless, behind;
};

static void sender(const struct client *c, const void *arg, struct wait_said *out)
{
    const struct wanted *w = arg;
    (void)c;
    out->whom = w->kind == PARCEL_REPLICA ? WAIT_FOR_ENTRY : WAIT_FOR_WORD;
    out->rank = w->rank;
}

/* Nobody is left who could send. */
static bool nobody(const struct client *c, const struct wanted *w)
{
    if (w->rank < 0)
        return coll_is_alone(c);
    uint64_t now = c->coll.life[w->rank].life;
    return w->rank != c->rank && (!now || (w->life && now != w->life));
}

static bool begins_with(const struct letter_in *m, uint64_t least)
{
    uint64_t first = 0;
    memcpy(&first, m->data, m->len < sizeof first ? m->len : sizeof first);
    return first >= least;
}

static bool is_there(void *arg)
{
    struct wanted *w = arg;
    struct client *c = w->c;
    w->behind = false;
    for (w->at = &c->mail.head; *w->at && !w->behind; w->at = &(*w->at)->next) {
        bool its = (*w->at)->kind == w->kind && (w->rank < 0 || (*w->at)->from == w->rank) &&
                   (!w->life || (*w->at)->life == w->life);
        if (its && (*w->at)->tag == w->tag && begins_with(*w->at, w->least))
            return true;
        w->behind = its && (*w->at)->tag == w->unless && w->unless != w->tag;
    }
    w->at = NULL;
    if (w->behind)
        return true;
    w->hopeless = nobody(c, w);
    return w->hopeless || c->mail.starved || c->coll.broken != KEEL_OK;
}

/* False: there is no memory to do so. */
static bool tell_taken(struct client *c, const struct letter_in *m)
{
    struct mail_peer *p = &c->mail.peer[m->from];
    if (m->from == c->rank || m->life != c->coll.life[m->from].life)
        return true;
    uint64_t taken = p->taken + weight(m->len);
    struct parcel_tag t = {.kind = PARCEL_MAIL_TAKEN};
    if (taken - p->told >= MAIL_TELL) {
        if (!courier_offer(c, m->from, &t, &taken, sizeof taken, NULL, 0))
            return false;
        p->told = taken;
    }
    p->taken = taken;
    return true;
}

static keel_status take(struct wanted *w, void *data, size_t max)
{
    struct client *c = w->c;
    struct letter_in *m = *w->at;
    if (m->len > max)
        return KEEL_ERR_LIMIT;
    if (!tell_taken(c, m))
        return KEEL_ERR_NOMEM;
    if (m->len)
        memcpy(data, m->data, m->len);
    *w->at = m->next;
    if (!*w->at)
        c->mail.tail = w->at;
    free(m);
    return KEEL_OK;
}

static keel_status receive(struct wanted w, void *data, size_t max, size_t *len, int *from, bool wait)
{
    struct client *c = w.c;
    enum parcel_kind kind = w.kind;
    if (!c->ready)
        return KEEL_ERR_STATE;
    if (w.rank < KEEL_ANY_RANK || w.rank >= c->size || (wait && max && !data))
        return KEEL_ERR_ARG;
    keel_status status = KEEL_OK;
    client_lock(c);
    if (!wait) {
        client_progress(c);
        status = is_there(&w) || c->fatal != KEEL_OK ? KEEL_OK : KEEL_IN_PROGRESS;
    } else {
        struct wait lasts = {.call = kind == PARCEL_REPLICA ? WAIT_REPLICAS : WAIT_RECEIVE, .whom = sender, .arg = &w};
        (void)client_wait(c, is_there, &w, &lasts);
    }
    if (status == KEEL_OK && w.at) {
        if (len)
            *len = (*w.at)->len;
        if (from)
            *from = (*w.at)->from;
        status = wait ? take(&w, data, max) : KEEL_OK;
    } else if (status == KEEL_OK) {
        status = c->fatal != KEEL_OK         ? c->fatal
                 : c->coll.broken != KEEL_OK ? c->coll.broken
                 : w.behind                  ? KEEL_IN_PROGRESS
                 : w.hopeless                ? KEEL_ERR_RANK_DEAD
                                             : KEEL_ERR_NOMEM; /* asked again, it may be there */
        c->mail.starved = false;
    }
    pthread_mutex_unlock(&c->lock);
    return status;
}

/* Of that tag, whatever has come before it. */
static struct wanted any_with(struct client *c, enum parcel_kind kind, int rank, uint32_t tag)
{
    return (struct wanted){.c = c, .kind = kind, .rank = rank, .tag = tag, .unless = tag};
}

keel_status mail_receive(struct client *c, int rank, uint32_t tag, void *data, size_t max, size_t *len, int *from)
{
    return receive(any_with(c, PARCEL_MAIL, rank, tag), data, max, len, from, true);
}

keel_status mail_receive_replica(struct client *c, struct life from, uint32_t tag, uint32_t unless, void *data,
                                 size_t max, size_t *len)
{
    struct wanted w = any_with(c, PARCEL_REPLICA, from.rank, tag);
    w.life = word_of(from);
    w.unless = unless;
    return receive(w, data, max, len, NULL, true);
}

bool mail_has_replica(struct client *c, struct life from, uint32_t tag, uint64_t least)
{
    struct wanted w = any_with(c, PARCEL_REPLICA, from.rank, tag);
    w.life = word_of(from);
    w.least = least;
    return receive(w, NULL, 0, NULL, NULL, false) == KEEL_OK;
}

keel_status mail_test(struct client *c, int rank, uint32_t tag, size_t *len, int *from)
{
    return receive(any_with(c, PARCEL_MAIL, rank, tag), NULL, 0, len, from, false);
}
