#include "runtime/agent/health.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/agent/agent.h"
#include "runtime/wire/rank_ask.h"
#include "runtime/wire/system.h"

bool stakes_init(struct stakes *s, int members)
{
    *s = (struct stakes){.told = calloc((size_t)members, sizeof *s->told), .epoch = UINT64_MAX};
    return s->told != NULL;
}

void stakes_fini(struct stakes *s)
{
    free(s->told);
    *s = (struct stakes){0};
}

static struct proc *process_of(const struct agent *a, struct life life)
{
    for (struct proc *p = a->ranks.procs; p; p = p->next)
        if (life_equal(p->life, life) && !p->exited)
            return p;
    return NULL;
}

/* asked 0: nobody has. */
static void show(struct agent *a, int rank, unsigned process, uint64_t ticks, uint64_t asked)
{
    struct page_rank *k = page_rank(a->page, rank);
    if (!asked)
        atomic_store_explicit(&k->process, process, memory_order_relaxed);
    if (asked <= atomic_load_explicit(&k->looked, memory_order_relaxed))
        return; /* an older question */
    atomic_store_explicit(&k->process, process, memory_order_relaxed);
    atomic_store_explicit(&k->ticks, ticks, memory_order_relaxed);
    atomic_store_explicit(&k->looked, asked, memory_order_release);
}

/* Whoever waits for others that wait for it is to know whom to ask about. */
static void tell_stopped(struct agent *a, struct life life)
{
    for (int m = 0; m < a->members; m++) {
        struct wire w;
        msg_rank_says_encode(&(struct msg_rank_says){.life = life, .process = PAGE_PROCESS_STOPPED}, &w);
        if (m != a->self && a->view.alive[m])
            agent_tell(a, m, &w, NULL);
    }
    show(a, life.rank, PAGE_PROCESS_STOPPED, 0, 0);
}

static unsigned look(struct agent *a, struct life life, uint64_t *ticks)
{
    struct proc *proc = process_of(a, life);
    *ticks = 0;
    if (!proc)
        return PAGE_PROCESS_NONE;
    unsigned process = a->ops.look_at(a->ops.user, proc, ticks);
    bool stopped = process == PAGE_PROCESS_STOPPED;
    if (stopped && !proc->told_stopped)
        tell_stopped(a, life);
    proc->told_stopped = stopped;
    return process;
}

bool health_is_stopped(const struct agent *a, int rank)
{
    uint64_t ticks;
    const struct proc *proc = process_of(a, view_life(&a->view, rank));
    return proc && a->ops.look_at(a->ops.user, proc, &ticks) == PAGE_PROCESS_STOPPED;
}

static void ask_about_rank(struct agent *a, int rank, uint64_t asked)
{
    const struct view_rank *k = &a->view.rank[rank];
    uint64_t ticks;
    if (k->node < 0)
        return;
    if (k->node == a->self) {
        unsigned process = look(a, view_life(&a->view, rank), &ticks);
        show(a, rank, process, ticks, asked);
        return;
    }
    struct wire w;
    msg_rank_ask_encode(&(struct msg_rank_ask){.life = view_life(&a->view, rank), .asked = asked}, &w);
    agent_tell(a, k->node, &w, NULL);
}

void health_ask(struct agent *a, const struct control *r)
{
    if (r->node >= 0 && r->node < a->members && r->node != a->self)
        a->ops.check(a->ops.user, r->node);
    if (r->a >= 0 && r->a < a->view.ranks)
        ask_about_rank(a, (int)r->a, (uint64_t)r->b);
}

/* Several may leave one after the other: the last call of any of them counts. */
static void note_behind(const struct agent *a, struct life life, const struct behind_told *t)
{
    const struct proc *p = process_of(a, life);
    struct intent_page *i = p ? p->intents : NULL;
    uint32_t n = i ? atomic_load_explicit(&i->behinds, memory_order_relaxed) : 0, k = 0;
    n = n < BEHIND_MAX ? n : BEHIND_MAX; /* it is the rank's memory, too */
    while (k < n && atomic_load_explicit(&i->behind[k].group, memory_order_relaxed) != t->group)
        k++;
    if (i && k < BEHIND_MAX) {
        struct behind *b = &i->behind[k];
        uint64_t returned = k < n ? atomic_load_explicit(&b->returned, memory_order_relaxed) : 0,
                 begun = k < n ? atomic_load_explicit(&b->begun, memory_order_relaxed) : 0;
        atomic_store_explicit(&b->group, t->group, memory_order_relaxed);
        atomic_store_explicit(&b->returned, returned > t->returned ? returned : t->returned, memory_order_relaxed);
        atomic_store_explicit(&b->begun, begun > t->begun ? begun : t->begun, memory_order_relaxed);
    }
    if (i && k == n)
        atomic_store_explicit(&i->behinds, k + 1, memory_order_release);
}

void health_left_behind(struct agent *a, const struct control *r)
{
    struct behind_told t;
    if (r->rank < 0 || r->rank >= a->view.ranks)
        return;
    const struct view_rank *k = &a->view.rank[r->rank];
    memcpy(&t, r->text, sizeof t);
    if (k->node == a->self) {
        note_behind(a, view_life(&a->view, r->rank), &t);
        ask_about_rank(a, r->rank, (uint64_t)r->b);
    } else if (k->node >= 0) {
        struct wire w;
        msg_rank_ask_encode(&(struct msg_rank_ask){.life = view_life(&a->view, r->rank),
                                                   .asked = (uint64_t)r->b,
                                                   .behind = true,
                                                   .group = t.group,
                                                   .returned = t.returned,
                                                   .begun = t.begun},
                            &w);
        agent_tell(a, k->node, &w, NULL);
    }
}

static bool is_of_the_job(const struct agent *a, struct life life)
{
    return !life_is_none(life) && life.rank < a->view.ranks;
}

void health_asked(struct agent *a, int from, const struct wire *w)
{
    struct msg_rank_ask ask;
    struct wire answer;
    msg_rank_ask_decode(w, &ask);
    if (!is_of_the_job(a, ask.life))
        return;
    if (ask.behind)
        note_behind(a, ask.life, &(struct behind_told){ask.group, ask.returned, ask.begun});
    struct msg_rank_says says = {.life = ask.life, .asked = ask.asked};
    says.process = look(a, ask.life, &says.ticks);
    msg_rank_says_encode(&says, &answer);
    agent_tell(a, from, &answer, NULL);
}

void health_told(struct agent *a, int from, const struct wire *w)
{
    struct msg_rank_says says;
    (void)from;
    msg_rank_says_decode(w, &says);
    if (is_of_the_job(a, says.life) && life_equal(view_life(&a->view, says.life.rank), says.life))
        show(a, says.life.rank, says.process, says.ticks, says.asked);
}

void health_doubt(struct agent *a, int node, unsigned bits, bool set)
{
    if (node < 0 || node >= a->members)
        return;
    _Atomic uint32_t *doubts = &page_node(a->page, node)->doubts;
    if (set)
        atomic_fetch_or(doubts, bits);
    else
        atomic_fetch_and(doubts, ~bits);
}

void health_suspect(struct agent *a, int node, bool suspected)
{
    counter_add(&a->counts, COUNTER_suspicions, suspected);
    health_doubt(a, node, suspected ? PAGE_DOUBT_SUSPECT : PAGE_DOUBT_SUSPECT | PAGE_DOUBT_AGENT, suspected);
}

void health_answered(struct agent *a, int node, uint64_t asked)
{
    if (node < 0 || node >= a->members)
        return;
    _Atomic uint64_t *answered = &page_node(a->page, node)->answered;
    if (asked > atomic_load_explicit(answered, memory_order_relaxed))
        atomic_store_explicit(answered, asked, memory_order_release);
}

void health_links(struct agent *a, const struct health_link *links, int n)
{
    struct page_links *p = page_links(a->page);
    for (int m = 0; m < a->members; m++) {
        bool ours = false;
        for (int i = 0; i < n; i++)
            ours = ours || (links[i].a == a->self && links[i].b == m) || (links[i].b == a->self && links[i].a == m);
        health_doubt(a, m, PAGE_DOUBT_LINK, ours);
    }
    uint64_t version = atomic_load_explicit(&p->version, memory_order_relaxed);
    n = n < PAGE_LINKS_MAX ? n : PAGE_LINKS_MAX;
    atomic_store_explicit(&p->version, version + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    for (int i = 0; i < n; i++) {
        atomic_store_explicit(&p->link[i].a, links[i].a, memory_order_relaxed);
        atomic_store_explicit(&p->link[i].b, links[i].b, memory_order_relaxed);
        atomic_store_explicit(&p->link[i].since_ns, links[i].since_ns, memory_order_relaxed);
    }
    atomic_store_explicit(&p->n, (uint32_t)n, memory_order_relaxed);
    atomic_store_explicit(&p->version, version + 2, memory_order_release);
}

void health_show_rank(struct page_rank *k, const struct view_rank *r)
{
    atomic_store_explicit(&k->done, r->state == RANK_DONE, memory_order_relaxed);
    atomic_store_explicit(&k->deaths, (uint32_t)r->death.times, memory_order_relaxed);
    atomic_store_explicit(&k->died_on, r->death.node, memory_order_relaxed);
    atomic_store_explicit(&k->signal, r->death.signal, memory_order_relaxed);
    atomic_store_explicit(&k->died, r->death.epoch, memory_order_release);
}

void health_committed(struct agent *a)
{
    uint64_t nodes = 0, ranks = 0;
    for (int m = 0; m < a->members; m++)
        nodes += a->view.node_death[m].epoch == a->view.epoch;
    for (int r = 0; r < a->view.ranks; r++)
        ranks += a->view.rank[r].death.epoch == a->view.epoch;
    counter_add(&a->counts, COUNTER_views, 1);
    counter_add(&a->counts, COUNTER_node_deaths, nodes);
    counter_add(&a->counts, COUNTER_rank_deaths, ranks);
    if (nodes + ranks)
        a->ops.failed(a->ops.user);
}

void health_stakes(struct agent *a)
{
    unsigned used = 0;
    for (const struct store_segment *g = a->store.first; g; g = g->next)
        if (g->seg != SYSTEM_SEGMENT && g->bytes_per_rank > 0)
            used |= 1u << g->redundancy;
    struct stakes *s = &a->stakes;
    if (!a->ops.stake || (used == s->used && a->view.epoch == s->epoch))
        return;
    s->used = used;
    s->epoch = a->view.epoch;
    for (int m = 0; m < a->members; m++) {
        enum view_stake stake = view_stake(&a->view, m, used);
        if (m != a->self && stake != s->told[m])
            a->ops.stake(a->ops.user, m, stake);
        s->told[m] = (uint8_t)stake;
    }
}

void health_cut_off(struct agent *a, bool cut)
{
    uint32_t times = atomic_load_explicit(&a->page->cut_off, memory_order_relaxed);
    if (times % 2 == cut)
        return;
    atomic_store_explicit(&a->page->cut_off, times + 1, memory_order_release);
    if (cut)
        a->ops.failed(a->ops.user);
}
