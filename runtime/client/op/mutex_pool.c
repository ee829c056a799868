/* A set of mutexes: made, freed, and whose turn it is among the threads of this process. */
#include "runtime/client/op/mutex_int.h"

#include <stdlib.h>

#include "runtime/client/op/mutex.h"
#include "runtime/client/segment/segment.h"
#include "runtime/client/threads.h"

struct busy *mutex_find(const keel_mutexes *m, int home, int number)
{
    struct busy *b = m->busy;
    while (b && (b->home != home || b->number != number))
        b = b->next;
    return b;
}

static void own_thread(const struct client *c, const void *arg, struct wait_said *out)
{
    (void)arg;
    out->whom = WAIT_FOR_HOLDER;
    out->rank = c->rank;
}

keel_status mutex_turn_begin(keel_mutexes *m, int home, int number, bool waits)
{
    struct busy *b = malloc(sizeof *b);
    if (!b)
        return KEEL_ERR_NOMEM;
    struct wait wait = {.call = WAIT_LOCK, .whom = own_thread};
    pthread_mutex_lock(&m->lock);
    if (waits && mutex_find(m, home, number))
        waits_begin(m->client, &wait, m->client->env.now(m->client->env.user));
    while (waits && mutex_find(m, home, number))
        pthread_cond_wait(&m->left, &m->lock);
    waits_over(m->client, &wait);
    bool mine = !mutex_find(m, home, number);
    if (mine) {
        atomic_fetch_add(&m->client->mutexes_taken, 1);
        *b = (struct busy){m->busy, home, number, false};
        m->busy = b;
    } else {
        free(b);
    }
    pthread_mutex_unlock(&m->lock);
    return mine ? KEEL_OK : KEEL_IN_PROGRESS;
}

void mutex_turn_end(keel_mutexes *m, int home, int number)
{
    pthread_mutex_lock(&m->lock);
    struct busy **link = &m->busy;
    while ((*link)->home != home || (*link)->number != number)
        link = &(*link)->next;
    struct busy *b = *link;
    *link = b->next;
    atomic_fetch_sub(&m->client->mutexes_taken, 1);
    pthread_cond_broadcast(&m->left);
    pthread_mutex_unlock(&m->lock);
    free(b);
}

static size_t bytes_for(const struct client *c, int per_rank)
{
    return per_rank < 0 ? 0 : (size_t)per_rank * 8 * (2 + (size_t)c->size);
}

void mutexes_attach(keel_mutexes *m, struct client *c, keel_segment *segment, int per_rank)
{
    *m = (keel_mutexes){.client = c, .segment = segment, .per_rank = per_rank};
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->left, NULL);
}

void mutexes_detach(keel_mutexes *m)
{
    pthread_mutex_destroy(&m->lock);
    pthread_cond_destroy(&m->left);
    free(m);
}

keel_status mutexes_create(struct client *c, keel_status able, int per_rank, keel_mutexes **out)
{
    if (out)
        *out = NULL;
    if (!c->ready)
        return KEEL_ERR_STATE;
    keel_mutexes *m = segment_zeroed(c, 1, sizeof *m);
    keel_segment *segment;
    able = !out || per_rank < 0 ? KEEL_ERR_ARG : m ? able : KEEL_ERR_NOMEM;
    keel_status status = segment_alloc_for(c, able, SEGMENT_OF_MUTEXES, bytes_for(c, per_rank), &segment);
    if (status != KEEL_OK || !m || !out) {
        free(m);
        return status;
    }
    mutexes_attach(m, c, segment, per_rank);
    *out = m;
    return KEEL_OK;
}

keel_status mutexes_free(struct client *c, keel_mutexes *m, bool *gone)
{
    *gone = false;
    if (!c->ready)
        return KEEL_ERR_STATE;
    if (!m)
        return KEEL_OK;
    pthread_mutex_lock(&m->lock);
    bool busy = m->busy;
    pthread_mutex_unlock(&m->lock);
    if (busy || c->coll.split)
        return KEEL_ERR_STATE;
    if (c->segments.unfinished.under_way && c->segments.unfinished.segment != m->segment)
        return KEEL_ERR_STATE;
    keel_status status = segment_free(c, m->segment);
    if (c->segments.unfinished.under_way || status == KEEL_ERR_MISMATCH) /* it ended by its time-out; it is not freed */
        return status;
    mutexes_detach(m);
    *gone = true;
    return status;
}
