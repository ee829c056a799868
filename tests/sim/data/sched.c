#include "tests/sim/data/sched.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/data/state.h"

static struct process *current;
static struct heap simulator;

/* Who waits for a condition, or for a mutex: woken by a broadcast, or when it is given back, and by nothing else. */
struct sleeper {
    struct sleeper *next;
    const void *what;
    struct process *process;
    uint64_t token;
};
static struct sleeper *sleepers;

void *sim_alloc(size_t bytes)
{
    struct heap *outer = heap_enter(&simulator);
    void *p = calloc(1, bytes ? bytes : 1);
    heap_enter(outer);
    if (!p) {
        fprintf(stderr, "data-sim: out of memory\n");
        exit(2);
    }
    return p;
}

void sim_free_all(void)
{
    heap_drop(&simulator);
}

/* ---- events ---- */

void sched_init(struct sched *s, uint64_t seed)
{
    *s = (struct sched){.capacity = 256, .turn_capacity = 64};
    sleepers = NULL; /* those of the run before have gone with its memory */
    s->heap = sim_alloc(s->capacity * sizeof *s->heap);
    s->turn = sim_alloc(s->turn_capacity * sizeof *s->turn);
    rng_seed(&s->rng, seed);
}

void sched_fini(struct sched *s)
{
    free(s->heap);
    free(s->turn);
}

static bool before(const struct sched_event *a, const struct sched_event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void sched_at(struct sched *s, uint64_t at, sched_run *run, void *arg, uint64_t n)
{
    if (s->events == s->capacity) {
        struct sched_event *wider = sim_alloc(2 * s->capacity * sizeof *wider);
        memcpy(wider, s->heap, s->events * sizeof *wider);
        free(s->heap);
        s->heap = wider;
        s->capacity *= 2;
    }
    struct sched_event e = {.at = at < s->now ? s->now : at, .order = ++s->order, .run = run, .arg = arg, .n = n};
    size_t i = s->events++;
    for (; i > 0 && before(&e, &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
        s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = e;
}

static struct sched_event pop(struct sched *s)
{
    struct sched_event first = s->heap[0], last = s->heap[--s->events];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < s->events; i = child) {
        if (child + 1 < s->events && before(&s->heap[child + 1], &s->heap[child]))
            child++;
        if (!before(&s->heap[child], &last))
            break;
        s->heap[i] = s->heap[child];
    }
    s->heap[i] = last;
    return first;
}

/* ---- turns ---- */

static bool comes_first(const struct sched_turn *a, const struct sched_turn *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void put_turn(struct sched *s, size_t i, const struct sched_turn *t)
{
    s->turn[i] = *t;
    t->process->turn = i + 1;
}

/* From place i, which is free, upwards or downwards. */
static void settle_turn(struct sched *s, size_t i, const struct sched_turn *t)
{
    for (; i > 0 && comes_first(t, &s->turn[(i - 1) / 2]); i = (i - 1) / 2)
        put_turn(s, i, &s->turn[(i - 1) / 2]);
    for (size_t child; (child = 2 * i + 1) < s->turns; i = child) {
        if (child + 1 < s->turns && comes_first(&s->turn[child + 1], &s->turn[child]))
            child++;
        if (!comes_first(&s->turn[child], t))
            break;
        put_turn(s, i, &s->turn[child]);
    }
    put_turn(s, i, t);
}

static void no_turn(struct process *p)
{
    struct sched *s = p->sched;
    if (!p->turn)
        return;
    size_t i = p->turn - 1;
    struct sched_turn last = s->turn[--s->turns];
    p->turn = 0;
    if (i < s->turns)
        settle_turn(s, i, &last);
}

/* The process goes on then, if it does not before. */
static void turn_at(struct process *p, uint64_t at)
{
    struct sched *s = p->sched;
    struct sched_turn t = {at < s->now ? s->now : at, ++s->order, p};
    if (p->turn && !comes_first(&t, &s->turn[p->turn - 1]))
        return;
    if (p->turn) {
        settle_turn(s, p->turn - 1, &t);
        return;
    }
    if (s->turns == s->turn_capacity) {
        struct sched_turn *wider = sim_alloc(2 * s->turn_capacity * sizeof *wider);
        memcpy(wider, s->turn, s->turns * sizeof *wider);
        free(s->turn);
        s->turn = wider;
        s->turn_capacity *= 2;
    }
    settle_turn(s, s->turns++, &t);
}

static void resume(struct process *p);

bool sched_step(struct sched *s)
{
    if (s->turns && (!s->events || s->turn[0].at < s->heap[0].at ||
                     (s->turn[0].at == s->heap[0].at && s->turn[0].order < s->heap[0].order))) {
        struct process *p = s->turn[0].process;
        s->now = s->turn[0].at;
        s->steps++;
        no_turn(p);
        resume(p);
        return true;
    }
    if (s->events == 0)
        return false;
    struct sched_event e = pop(s);
    s->now = e.at;
    s->steps++;
    e.run(e.arg, e.n);
    return true;
}

uint64_t sched_below(struct sched *s, uint64_t n)
{
    return n ? rng_below(&s->rng, n) : 0;
}

uint64_t sched_between(struct sched *s, uint64_t low, uint64_t high)
{
    return high > low ? low + rng_below(&s->rng, high - low + 1) : low;
}

bool sched_chance(struct sched *s, double p)
{
    return p > 0 && rng_double(&s->rng) < p;
}

/* ---- processes ---- */

struct process *process_current(void)
{
    return current;
}

static void resume(struct process *p)
{
    if (p->frozen) {
        p->due = true;
        return;
    }
    p->token++;
    p->state = PROCESS_RUNNING;
    current = p;
    struct heap *outer = heap_enter(p->of ? &p->of->heap : &p->heap);
    if (p->variables)
        state_enter(p->variables - 1);
    fiber_resume(p->fiber);
    heap_enter(outer);
    current = NULL;
    if (fiber_is_done(p->fiber)) {
        p->state = PROCESS_DEAD;
        if (p->of && p->of->joins)
            turn_at(p->of, p->sched->now + sched_between(p->sched, 100, 10 * US));
    }
}

void process_start(struct process *p, struct sched *s, int node, int rank, uint32_t incarnation,
                   void (*main)(void *user), void *user, uint64_t delay)
{
    *p = (struct process){
        .sched = s, .user = user, .node = node, .rank = rank, .incarnation = incarnation, .deaf = true};
    struct heap *outer = heap_enter(NULL);
    p->fiber = fiber_create(main, user);
    heap_enter(outer);
    turn_at(p, s->now + delay);
}

static void suspend(struct process *p, uint64_t until, bool deaf)
{
    p->state = PROCESS_WAITING;
    p->deaf = deaf;
    if (until != NEVER)
        turn_at(p, until);
    fiber_suspend();
}

void process_sleep(struct process *p, uint64_t until)
{
    if (p->handed) { /* it came before we slept */
        p->handed = false;
        until = p->sched->now;
    }
    suspend(p, until, false);
    p->handed = false;
}

void process_spend(struct process *p, uint64_t ns)
{
    suspend(p, p->sched->now + ns, true);
}

static void signal_one(struct process *p)
{
    if (p->state == PROCESS_DEAD)
        return;
    if (p->state == PROCESS_RUNNING || p->deaf) {
        p->handed = true;
        return;
    }
    /* Waking takes a while, sometimes a long one. */
    uint64_t delay =
        sched_chance(p->sched, 0.02) ? sched_below(p->sched, 300 * US) : sched_between(p->sched, 100, 3 * US);
    p->deaf = true;
    turn_at(p, p->sched->now + delay);
}

void process_signal(struct process *p)
{
    signal_one(p);
    for (struct process *t = p->threads; t; t = t->next_thread)
        signal_one(t);
}

bool process_is_current(const struct process *p)
{
    return current && (current == p || current->of == p);
}

static void kill_one(struct process *p)
{
    p->state = PROCESS_DEAD;
    no_turn(p);
}

void process_kill(struct process *p)
{
    if (p->state == PROCESS_DEAD)
        return;
    kill_one(p);
    for (struct process *t = p->threads; t; t = t->next_thread)
        kill_one(t);
    if (process_is_current(p))
        fiber_suspend(); /* never resumed */
}

static void freeze_one(struct process *p)
{
    if (p->state == PROCESS_DEAD)
        return;
    p->frozen = true;
    p->frozen_at = p->sched->now;
}

void process_freeze(struct process *p)
{
    if (p->frozen || p->state == PROCESS_DEAD)
        return;
    freeze_one(p);
    for (struct process *t = p->threads; t; t = t->next_thread)
        freeze_one(t);
    if (process_is_current(p)) {
        current->due = true;
        suspend(current, NEVER, true);
    }
}

static void thaw_one(struct process *p)
{
    if (!p->frozen || p->state == PROCESS_DEAD)
        return;
    p->frozen = false;
    p->frozen_ns += p->sched->now - p->frozen_at;
    if (p->due)
        turn_at(p, p->sched->now);
    p->due = false;
}

void process_thaw(struct process *p)
{
    thaw_one(p);
    for (struct process *t = p->threads; t; t = t->next_thread)
        thaw_one(t);
}

/* ---- threads ---- */

void process_thread(struct process *t, void (*main)(void *arg), void *arg, uint64_t delay)
{
    struct process *of = current;
    process_start(t, of->sched, of->node, of->rank, of->incarnation, main, arg, delay);
    t->of = of;
    t->user = of->user;
    t->next_thread = of->threads;
    of->threads = t;
}

static bool threads_run(const struct process *p)
{
    for (const struct process *t = p->threads; t; t = t->next_thread)
        if (process_lives(t))
            return true;
    return false;
}

static void free_threads(struct process *p)
{
    struct heap *outer = heap_enter(NULL);
    for (struct process *t = p->threads; t; t = t->next_thread)
        fiber_destroy(t->fiber);
    heap_enter(outer);
    p->threads = NULL;
}

void process_join(struct process *p)
{
    p->joins = true;
    while (threads_run(p))
        suspend(p, NEVER, true);
    p->joins = false;
    free_threads(p);
}

// NOLINTBEGIN(bugprone-reserved-identifier): the name is the linker's
int __wrap_pthread_mutex_lock(pthread_mutex_t *m);
int __real_pthread_mutex_unlock(pthread_mutex_t *m);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *m);
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *m);
int __wrap_pthread_cond_broadcast(pthread_cond_t *condition);

static void wait_for(const void *what)
{
    struct sleeper *s = sim_alloc(sizeof *s);
    *s = (struct sleeper){sleepers, what, current, current->token};
    sleepers = s;
}

static bool still_waits(const struct sleeper *s)
{
    return s->process->state == PROCESS_WAITING && s->process->token == s->token;
}

/* Who has it sleeps on another fiber of the same thread of the system. */
int __wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
    int error;
    while ((error = pthread_mutex_trylock(m)) == EBUSY && current) {
        wait_for(m);
        suspend(current, NEVER, true);
    }
    return error;
}

/* One of the n that wait for it. */
static void wake_one(const void *what, uint64_t n)
{
    uint64_t skip = sched_below(sleepers->process->sched, n);
    for (struct sleeper **link = &sleepers, *s; (s = *link); link = &s->next) {
        if (s->what != what || skip-- > 0)
            continue;
        struct sched *of = s->process->sched;
        *link = s->next;
        turn_at(s->process, of->now + sched_between(of, 20, 300));
        free(s);
        return;
    }
}

/* One of those that wait for it may try; another one may be faster. */
int __wrap_pthread_mutex_unlock(pthread_mutex_t *m)
{
    int error = __real_pthread_mutex_unlock(m);
    uint64_t n = 0;
    for (struct sleeper **link = &sleepers, *s; (s = *link);) {
        if (s->what == m && !still_waits(s)) {
            *link = s->next;
            free(s);
            continue;
        }
        n += s->what == m;
        link = &s->next;
    }
    if (n == 0)
        return error;
    wake_one(m, n);
    return error;
}

int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *m)
{
    wait_for(condition);
    __wrap_pthread_mutex_unlock(m);
    suspend(current, NEVER, true);
    return __wrap_pthread_mutex_lock(m);
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *condition)
{
    for (struct sleeper **link = &sleepers, *s; (s = *link);) {
        if (s->what != condition) {
            link = &s->next;
            continue;
        }
        *link = s->next;
        struct sched *of = s->process->sched;
        uint64_t at = of->now + sched_between(of, 100, 3 * US);
        if (still_waits(s))
            turn_at(s->process, at);
        free(s);
    }
    return 0;
}
// NOLINTEND(bugprone-reserved-identifier)

void process_free(struct process *p)
{
    free_threads(p);
    struct heap *outer = heap_enter(NULL);
    if (p->fiber)
        fiber_destroy(p->fiber);
    heap_drop(&p->heap);
    heap_enter(outer);
    p->fiber = NULL;
}
