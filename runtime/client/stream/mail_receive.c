/* Users' messages, and those between replicas and partners, as they are wanted (mail.h). */
#include <keel/message.h>

#include <stdlib.h>
#include <string.h>

#include "runtime/client/progress.h"
#include "runtime/client/stream/mail_int.h"

struct wanted {
    struct client *c;
    enum parcel_kind kind;
    int rank;             /* PARCEL_PARTNER: of the program */
    uint64_t life;        /* of whom, 0: of any that the rank has had */
    uint32_t tag, unless; /* not behind one of that tag, if it is another one */
    uint64_t least;       /* how it begins; 0: in any way */
    struct letter_in **at;
    bool hopeless, behind;
};

static bool lives(const struct client *c, int rank, uint64_t life)
{
    uint64_t now = c->coll.life[rank].life;
    return rank == c->rank || (now && (!life || now == life));
}

static void sender(const struct client *c, const void *arg, struct wait_said *out)
{
    const struct wanted *w = arg;
    out->whom = w->kind == PARCEL_REPLICA ? WAIT_FOR_ENTRY : WAIT_FOR_WORD;
    out->rank = w->rank;
    for (int s = 0; w->kind == PARCEL_PARTNER && w->rank >= 0 && s < c->replicas.replicas; s++) {
        out->rank = replica_native(&c->replicas, w->rank, s);
        if (lives(c, out->rank, 0))
            return;
    }
}

/* A rank of the program, by any of its replicas; -1: any but the own one, which sends to itself at once. */
static bool lives_anywhere(const struct client *c, int rank)
{
    int own = replica_of(&c->replicas, c->rank).rank;
    for (int r = 0; r < c->size; r++) {
        int is = replica_of(&c->replicas, r).rank;
        if ((rank < 0 ? is != own : is == rank) && lives(c, r, 0))
            return true;
    }
    return false;
}

/* Nobody is left who could send. */
static bool nobody(const struct client *c, const struct wanted *w)
{
    if (w->kind == PARCEL_PARTNER)
        return !lives_anywhere(c, w->rank);
    return w->rank < 0 ? coll_is_alone(c) : !lives(c, w->rank, w->life);
}

static bool is_from(const struct wanted *w, const struct letter_in *m)
{
    int from = w->kind == PARCEL_PARTNER ? replica_of(&w->c->replicas, m->from).rank : m->from;
    return m->kind == w->kind && (w->rank < 0 || from == w->rank) && (!w->life || m->life == w->life);
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
        bool its = is_from(w, *w->at);
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
    uint64_t taken = p->taken + mail_weight(m->len);
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
    w.life = mail_life(from);
    w.unless = unless;
    return receive(w, data, max, len, NULL, true);
}

keel_status mail_receive_brought(struct client *c, int rank, uint32_t tag, void *data, size_t max, size_t *len,
                                 int *from)
{
    return receive(any_with(c, PARCEL_PARTNER, rank, tag), data, max, len, from, true);
}

keel_status mail_test_brought(struct client *c, int rank, uint32_t tag, size_t *len, int *from)
{
    return receive(any_with(c, PARCEL_PARTNER, rank, tag), NULL, 0, len, from, false);
}

uint64_t mail_deaths(const struct client *c)
{
    return c->mail.deaths;
}

bool mail_has_replica(struct client *c, struct life from, uint32_t tag, uint64_t least)
{
    struct wanted w = any_with(c, PARCEL_REPLICA, from.rank, tag);
    w.life = mail_life(from);
    w.least = least;
    return receive(w, NULL, 0, NULL, NULL, false) == KEEL_OK;
}

keel_status mail_test(struct client *c, int rank, uint32_t tag, size_t *len, int *from)
{
    return receive(any_with(c, PARCEL_MAIL, rank, tag), NULL, 0, len, from, false);
}
