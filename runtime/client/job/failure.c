/* Questions about nodes and ranks, and the list of who died. All that is known is on the view page; a question makes
 * the agent look again (CONTROL_STATUS), and what comes of it appears there with the time of the question
 * (agent/health.h). */
#include <stdlib.h>
#include <string.h>

#include "runtime/base/clock.h"
#include "runtime/client/job/failure.h"
#include "runtime/client/progress.h"
#include "runtime/client/threads.h"

enum { ASK_EVERY_MS = 20, SURE_MS = 60, STUCK_MS = 100, SLEEP_MS = 1 };

/* ---- deaths ---- */

static int by_epoch(const void *a, const void *b)
{
    const keel_failure *x = a, *y = b;
    if (x->epoch != y->epoch)
        return x->epoch < y->epoch ? -1 : 1;
    return x->rank != y->rank ? x->rank - y->rank : x->node - y->node; /* nodes first: their rank is -1 */
}

static bool rank_failure(const struct page *page, int rank, keel_failure *out)
{
    const struct page_rank *k = page_rank(page, rank);
    uint64_t died = atomic_load_explicit(&k->died, memory_order_acquire);
    *out = (keel_failure){.epoch = died,
                          .rank = rank,
                          .node = atomic_load_explicit(&k->died_on, memory_order_relaxed),
                          .signal = atomic_load_explicit(&k->signal, memory_order_relaxed),
                          .deaths = (int)atomic_load_explicit(&k->deaths, memory_order_relaxed),
                          .verdict = KEEL_RANK_DEAD};
    atomic_thread_fence(memory_order_acquire);
    /* it dies once more at this moment: that is for the next list */
    return atomic_load_explicit(&k->died, memory_order_relaxed) == died;
}

/* Up to which epoch the page is complete is read before the deaths: later ones may be there in part. */
static size_t list(const struct page *page, uint64_t since, uint64_t until, keel_failure *out)
{
    size_t n = 0;
    for (int m = 0; m < (int)page->members; m++) {
        uint64_t died = atomic_load_explicit(&page_node(page, m)->died, memory_order_acquire);
        if (died <= since || died > until)
            continue;
        if (out)
            out[n] = (keel_failure){.epoch = died, .rank = -1, .node = m, .verdict = KEEL_NODE_DEAD};
        n++;
    }
    for (int r = 0; r < (int)page->ranks; r++) {
        keel_failure f;
        if (!rank_failure(page, r, &f) || f.epoch <= since || f.epoch > until)
            continue;
        if (out)
            out[n] = f;
        n++;
    }
    return n;
}

keel_status failure_list(const struct client *c, uint64_t since, keel_failure *out, size_t max, size_t *count,
                         uint64_t *epoch)
{
    if (!count || (max && !out))
        return KEEL_ERR_ARG;
    uint64_t until = atomic_load_explicit(&c->page->epoch, memory_order_acquire);
    *count = list(c->page, since, until, NULL);
    if (*count > max)
        return KEEL_ERR_LIMIT;
    if (*count) {
        *count = list(c->page, since, until, out); /* not more than before: who dies now is above `until` */
        qsort(out, *count, sizeof *out, by_epoch);
    }
    if (epoch)
        *epoch = until;
    return KEEL_OK;
}

/* ---- links ---- */

keel_status failure_links(const struct client *c, keel_link *out, size_t max, size_t *count)
{
    const struct page_links *p = page_links(c->page);
    keel_link all[PAGE_LINKS_MAX];
    uint64_t version;
    uint32_t n;
    if (!count || (max && !out))
        return KEEL_ERR_ARG;
    do {
        version = atomic_load_explicit(&p->version, memory_order_acquire);
        n = atomic_load_explicit(&p->n, memory_order_relaxed);
        for (uint32_t i = 0; i < n && i < PAGE_LINKS_MAX; i++)
            all[i] = (keel_link){.a = atomic_load_explicit(&p->link[i].a, memory_order_relaxed),
                                 .b = atomic_load_explicit(&p->link[i].b, memory_order_relaxed),
                                 .since_ns = atomic_load_explicit(&p->link[i].since_ns, memory_order_relaxed)};
        atomic_thread_fence(memory_order_acquire);
    } while (version % 2 || version != atomic_load_explicit(&p->version, memory_order_relaxed));
    *count = n;
    if (n > max)
        return KEEL_ERR_LIMIT;
    if (n)
        memcpy(out, all, n * sizeof *out);
    return KEEL_OK;
}

/* ---- questions ---- */

struct question {
    struct client *c;
    int node, rank; /* rank -1: of the node only */
    uint64_t begin; /* what was asked later counts */
    uint64_t next_ask;
    bool waits; /* its process was seen in a wait that no signal ends, first at `waits_at`, with these ticks */
    uint64_t waits_at, ticks;
};

/* True: that is the answer. `known`: what follows if no better one comes. */
static bool node_verdict(const struct question *q, uint64_t now, keel_verdict *verdict, keel_verdict *known)
{
    const struct page_node *n = page_node(q->c->page, q->node);
    uint32_t doubts = atomic_load_explicit(&n->doubts, memory_order_acquire);
    bool alive = atomic_load_explicit(&n->alive, memory_order_acquire);
    *known = !alive                      ? KEEL_NODE_DEAD
             : doubts & PAGE_DOUBT_LINK  ? KEEL_LINK_BROKEN
             : doubts & PAGE_DOUBT_AGENT ? KEEL_AGENT_HUNG
                                         : KEEL_UNDECIDED;
    *verdict = *known;
    if (!alive)
        return true;
    if (q->node == q->c->node && atomic_load_explicit(&q->c->page->cut_off, memory_order_acquire) % 2) {
        *verdict = KEEL_CUT_OFF;
        return true;
    }
    if (q->node == q->c->node || atomic_load_explicit(&n->answered, memory_order_acquire) >= q->begin) {
        *verdict = KEEL_ALIVE;
        return true;
    }
    return *known != KEEL_UNDECIDED && now - q->begin >= SURE_MS * KEEL_NS_PER_MS; /* it may just have come back */
}

static bool process_verdict(struct question *q, uint64_t now, keel_verdict *verdict)
{
    const struct page_rank *k = page_rank(q->c->page, q->rank);
    if (q->rank == q->c->rank) {
        *verdict = KEEL_ALIVE;
        return true;
    }
    if (atomic_load_explicit(&k->looked, memory_order_acquire) < q->begin)
        return false;
    uint64_t ticks = atomic_load_explicit(&k->ticks, memory_order_relaxed);
    switch (atomic_load_explicit(&k->process, memory_order_relaxed)) {
    case PAGE_PROCESS_RUNS:
        *verdict = KEEL_ALIVE;
        return true;
    case PAGE_PROCESS_STOPPED:
        *verdict = KEEL_RANK_HUNG;
        return true;
    case PAGE_PROCESS_WAITS: /* for a disk, mostly: for how long? */
        if (!q->waits || ticks != q->ticks) {
            q->waits = true;
            q->waits_at = now;
            q->ticks = ticks;
        }
        *verdict = KEEL_RANK_HUNG;
        return now - q->waits_at >= STUCK_MS * KEEL_NS_PER_MS;
    default:
        return false;
    }
}

static bool look(struct question *q, uint64_t now, keel_verdict *verdict, keel_verdict *known)
{
    if (q->rank < 0)
        return node_verdict(q, now, verdict, known);
    const struct page_rank *k = page_rank(q->c->page, q->rank);
    int node = (int)(int32_t)(atomic_load_explicit(&k->where, memory_order_acquire) >> 32);
    if (node < 0) {
        *verdict = atomic_load_explicit(&k->done, memory_order_acquire) ? KEEL_RANK_ENDED : KEEL_RANK_DEAD;
        return true;
    }
    q->node = node;
    if (process_verdict(q, now, verdict))
        return true;
    return node_verdict(q, now, verdict, known) && *verdict != KEEL_ALIVE && *verdict != KEEL_NODE_DEAD &&
           *verdict != KEEL_CUT_OFF;
}

static void ask(struct question *q, uint64_t now)
{
    struct control r = {.type = CONTROL_STATUS, .node = q->node, .a = q->rank, .b = (int64_t)now};
    q->next_ask = now + (q->c->env.tell(q->c->env.user, &r) ? ASK_EVERY_MS * KEEL_NS_PER_MS : 0);
}

static keel_status job_lost(struct client *c)
{
    client_lock(c);
    client_progress(c);
    keel_status status = c->fatal;
    pthread_mutex_unlock(&c->lock);
    return status;
}

static keel_status answer(struct question *q, int timeout_ms, keel_verdict *verdict)
{
    struct client *c = q->c;
    keel_verdict known = KEEL_UNDECIDED;
    q->begin = c->env.now(c->env.user);
    for (uint64_t now = q->begin;; now = c->env.now(c->env.user)) {
        keel_status status = job_lost(c);
        if (status != KEEL_OK)
            return status;
        if (look(q, now, verdict, &known))
            return KEEL_OK;
        if (now - q->begin >= (uint64_t)timeout_ms * KEEL_NS_PER_MS) {
            const struct page_node *n = page_node(c->page, q->node);
            bool well = timeout_ms == 0 && atomic_load_explicit(&n->doubts, memory_order_acquire) == 0;
            *verdict = well ? KEEL_ALIVE : known;
            return KEEL_OK;
        }
        if (now >= q->next_ask)
            ask(q, now);
        c->env.sleep(c->env.user, SLEEP_MS);
    }
}

keel_status failure_node_status(struct client *c, int node, int timeout_ms, keel_verdict *verdict)
{
    int nodes = (int)atomic_load_explicit(&c->page->next_id, memory_order_acquire);
    if (node < 0 || node >= nodes || timeout_ms < 0 || !verdict)
        return KEEL_ERR_ARG;
    struct question q = {.c = c, .node = node, .rank = -1};
    return answer(&q, timeout_ms, verdict);
}

keel_status failure_rank_status(struct client *c, int rank, int timeout_ms, keel_verdict *verdict)
{
    if (rank < 0 || rank >= c->size || timeout_ms < 0 || !verdict)
        return KEEL_ERR_ARG;
    struct question q = {.c = c, .node = c->node, .rank = rank};
    return answer(&q, timeout_ms, verdict);
}

const char *failure_verdict_name(keel_verdict verdict)
{
    static const char *const names[] = {[KEEL_ALIVE] = "KEEL_ALIVE",
                                        [KEEL_UNDECIDED] = "KEEL_UNDECIDED",
                                        [KEEL_LINK_BROKEN] = "KEEL_LINK_BROKEN",
                                        [KEEL_RANK_HUNG] = "KEEL_RANK_HUNG",
                                        [KEEL_RANK_ENDED] = "KEEL_RANK_ENDED",
                                        [KEEL_RANK_DEAD] = "KEEL_RANK_DEAD",
                                        [KEEL_AGENT_HUNG] = "KEEL_AGENT_HUNG",
                                        [KEEL_NODE_DEAD] = "KEEL_NODE_DEAD",
                                        [KEEL_CUT_OFF] = "KEEL_CUT_OFF"};
    return (unsigned)verdict < sizeof names / sizeof *names ? names[verdict] : "KEEL_VERDICT_UNKNOWN";
}
