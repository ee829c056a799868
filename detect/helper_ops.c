/* What the core wants done (struct member_ops): by the probes, the transport, the runtime above. */
#include "detect/helper_internal.h"

#include <string.h>

static void on_send(void *user, int to, const void *data, size_t len)
{
    struct helper *h = user;
    uint8_t bytes[MEMBER_DATAGRAM_MAX + SEAL_OVERHEAD];
    size_t sealed = seal_close(&h->seal, SEAL_DATAGRAM, to, ++h->peers[to].datagrams_sent, data, len, bytes);
    for (int i = 0; i < h->n_probes; i++)
        if (h->probes[i]->table->send(h->probes[i], to, bytes, sealed)) {
            h->count.verbs_sent += h->probes[i] == h->verbs;
            break;
        }
    h->count.sent++;
}

static void on_read(void *user, int node)
{
    struct helper *h = user;
    reach_keep(h, node);
    ask_learn(h, node);
    for (int i = 0; i < h->n_probes; i++)
        if (h->probes[i]->table->read(h->probes[i], node, h->now)) {
            h->count.verbs_reads += h->probes[i] == h->verbs;
            break;
        }
}

static void on_watch(void *user, int node, bool on)
{
    struct helper *h = user;
    for (int i = 0; i < h->n_probes; i++)
        h->probes[i]->table->watch(h->probes[i], node, on, h->now);
}

static void on_probe(void *user, int node)
{
    reach_probe(user, node);
    knock_start(user, node);
    ask_start(user, node);
}

static void fence(struct helper *h, const struct view_event *events, int n)
{
    for (int i = 0; i < n; i++)
        if (events[i].type == VIEW_NODE_DEAD) {
            knock_end(h, (int)events[i].a);
            for (int k = 0; k < h->n_probes; k++)
                h->probes[k]->table->fence(h->probes[k], (int)events[i].a);
        }
}

static void on_prepare(void *user, uint64_t epoch, uint64_t proposal, const struct view_event *events, int n)
{
    struct helper *h = user;
    fence(h, events, n);
    h->callbacks.prepare(h->callbacks.user, epoch, proposal, events, n);
}

static void on_commit(void *user, uint64_t epoch, const struct view_event *events, int n, uint64_t max_value)
{
    struct helper *h = user;
    fence(h, events, n);
    h->callbacks.commit(h->callbacks.user, epoch, events, n, max_value);
}

static void on_settled(void *user, uint64_t epoch)
{
    struct helper *h = user;
    h->callbacks.settled(h->callbacks.user, epoch);
}

static void on_born(void *user, int node, uint32_t incarnation)
{
    meet_born(user, node, incarnation);
}

static void on_halt(void *user, const char *reason)
{
    struct helper *h = user;
    h->callbacks.halt(h->callbacks.user, reason);
}

static void note_said(struct helper *h, const struct member_report *report)
{
    pthread_mutex_lock(&h->commands.lock);
    struct helper_status *s = &h->told.status;
    if (s->n_said == HELPER_SAID_MAX)
        memmove(&s->said[0], &s->said[1], (size_t)--s->n_said * sizeof s->said[0]);
    s->said[s->n_said++] = *report;
    pthread_mutex_unlock(&h->commands.lock);
}

static void note_links(struct helper *h)
{
    pthread_mutex_lock(&h->commands.lock);
    h->told.n_links = member_links(h->m, h->told.links, MEMBER_LINKS_MAX);
    pthread_mutex_unlock(&h->commands.lock);
}

static void on_report(void *user, const struct member_report *report)
{
    struct helper *h = user;
    if (report->kind <= MEMBER_REPORT_LINK_OK)
        note_said(h, report);
    else if (report->kind == MEMBER_REPORT_LINKS)
        note_links(h);
    if (h->callbacks.report)
        h->callbacks.report(h->callbacks.user, report);
}

const struct member_ops helper_ops = {.send = on_send,
                                      .read = on_read,
                                      .watch = on_watch,
                                      .probe = on_probe,
                                      .prepare = on_prepare,
                                      .commit = on_commit,
                                      .settled = on_settled,
                                      .halt = on_halt,
                                      .report = on_report,
                                      .born = on_born};
