#include "tests/unit/scf/keel_model.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <keel/keel.h>

#include "runtime/base/rng.h"

enum { PROCS = MODEL_RANKS * (1 + MODEL_DEATHS), SEGMENTS = 16, POOLS = 4, NAPS_MAX = 200000, REDUCE_MAX = 64 };

struct keel_segment {
    size_t bytes; /* per rank */
    char *memory; /* all parts */
};

struct keel_taskpool {
    int64_t count, next;
    struct task {
        int runner; /* process number, -1: not drawn */
        bool committed;
        int applied;       /* accumulates that counted */
        uint64_t hash[16]; /* of each accumulate, to see that a second run makes the same ones */
    } * tasks;
};

struct proc {
    int number, rank, incarnation;
    pthread_t thread;
    pthread_cond_t turn;
    bool dead, ended, restarted;
    bool taking_part; /* in collectives */
    bool entered;     /* the collective in progress */
    uint64_t calls, collectives;
    int segments, pools;        /* allocated so far */
    struct keel_taskpool *pool; /* of the task in hand */
    int64_t task;
    int accumulates;
    int returned;
};

static struct model {
    const struct model_config *config;
    struct model_outcome *out;
    pthread_mutex_t lock;
    struct rng rng;
    struct proc procs[PROCS];
    int nprocs, running;       /* running: whose turn it is; -1: nobody's */
    int pending[MODEL_DEATHS]; /* turns until the successor of death d starts; 0: none */
    bool happened[MODEL_DEATHS];
    struct keel_segment segments[SEGMENTS];
    struct keel_taskpool pools[POOLS];
    int nsegments, npools;
    const char *collective; /* kind of the one in progress, NULL if nobody entered yet */
    uint64_t collectives;
    double sum[REDUCE_MAX], result[REDUCE_MAX];
    int naps; /* turns taken since anything happened */
    bool over;
    const char *broken;
} model;

static __thread struct proc *self;

static void *proc_main(void *argument);

static void break_contract(const char *what)
{
    if (model.broken == NULL)
        model.broken = what;
    model.over = true;
}

static void start_process(int rank, int incarnation)
{
    struct proc *proc = &model.procs[model.nprocs];
    *proc = (struct proc){.number = model.nprocs++,
                          .rank = rank,
                          .incarnation = incarnation,
                          .restarted = incarnation > 0,
                          .taking_part = incarnation == 0,
                          .returned = -1,
                          .task = -1};
    pthread_cond_init(&proc->turn, NULL);
    if (pthread_create(&proc->thread, NULL, proc_main, proc) != 0)
        abort();
}

static bool is_live(const struct proc *proc)
{
    return !proc->dead && !proc->ended;
}

/* The live process of a rank, or NULL. */
static struct proc *proc_of(int rank)
{
    for (int i = model.nprocs - 1; i >= 0; i--)
        if (model.procs[i].rank == rank)
            return model.procs[i].dead ? NULL : &model.procs[i];
    return NULL;
}

static void start_successors(void)
{
    for (int d = 0; d < model.config->ndeaths; d++)
        if (model.pending[d] > 0 && --model.pending[d] == 0) {
            start_process(model.config->deaths[d].rank, model.config->deaths[d].incarnation + 1);
        }
}

/* Give the turn to a live process; to nobody if there is none. */
static void pass_turn(void)
{
    int live[PROCS], n = 0;
    do {
        start_successors();
        n = 0;
        for (int i = 0; i < model.nprocs; i++)
            if (is_live(&model.procs[i]))
                live[n++] = i;
        bool wait = false;
        for (int d = 0; d < model.config->ndeaths; d++)
            wait = wait || model.pending[d] > 0;
        if (n == 0 && !wait)
            break;
    } while (n == 0);
    model.running = n > 0 ? live[rng_below(&model.rng, (uint64_t)n)] : -1;
    if (model.running >= 0)
        pthread_cond_signal(&model.procs[model.running].turn);
}

static void wait_for_turn(void)
{
    while (model.running != self->number)
        pthread_cond_wait(&self->turn, &model.lock);
}

static void take_turns(void)
{
    pass_turn();
    wait_for_turn();
}

static void finish_collective_if_all_entered(void);

static void die(void)
{
    self->dead = true;
    self->entered = false;
    model.out->deaths++;
    model.naps = 0;
    finish_collective_if_all_entered();
    pass_turn();
}

/* Every call starts here, with the lock. Returns false if the process is dead or the job over. *half: this is the call
 * in which it dies, and it takes effect. */
static bool call_begin(bool *last)
{
    pthread_mutex_lock(&model.lock);
    *last = false;
    if (self->dead || model.over)
        return false;
    take_turns();
    if (model.over)
        return false;
    self->calls++;
    model.naps = 0;
    for (int d = 0; d < model.config->ndeaths; d++) {
        const struct model_death *death = &model.config->deaths[d];
        if (model.happened[d] || death->rank != self->rank || death->incarnation != self->incarnation ||
            death->call != self->calls)
            continue;
        model.happened[d] = true;
        model.pending[d] = death->substitute ? 1 + death->delay : 0;
        if (!death->after) {
            die();
            return false;
        }
        *last = true;
    }
    return true;
}

static keel_status call_end(bool last, keel_status status)
{
    if (last) {
        die();
        status = KEEL_ERR_AGENT_GONE;
    }
    pthread_mutex_unlock(&model.lock);
    return status;
}

static keel_status call_refuse(void)
{
    pthread_mutex_unlock(&model.lock);
    return KEEL_ERR_AGENT_GONE;
}

/* Wait for something another process does. False if the job is over. */
static bool nap(void)
{
    if (++model.naps > NAPS_MAX)
        break_contract("all ranks wait for each other");
    if (!model.over)
        take_turns();
    return !model.over;
}

/* the job */

int keel_rank(void)
{
    return self->rank;
}

int keel_size(void)
{
    return model.config->ranks;
}

bool keel_rank_alive(int rank)
{
    pthread_mutex_lock(&model.lock);
    bool alive = proc_of(rank) != NULL;
    pthread_mutex_unlock(&model.lock);
    return alive;
}

bool keel_restarted(void)
{
    return self->restarted;
}

keel_status keel_resume(uint64_t *collectives)
{
    bool last;
    if (!call_begin(&last))
        return call_refuse();
    if (!self->taking_part) {
        self->taking_part = true;
        self->collectives = model.collectives;
    }
    *collectives = self->collectives;
    return call_end(last, KEEL_OK);
}

void keel_timestep(uint64_t step)
{
    (void)step;
}

keel_status keel_event(const char *name, int64_t number, const char *text)
{
    (void)number;
    (void)text;
    bool last;
    if (!call_begin(&last))
        return call_refuse();
    if (model.out->nevents < 64)
        snprintf(model.out->events[model.out->nevents++], sizeof model.out->events[0], "%s", name);
    return call_end(last, KEEL_OK);
}

_Noreturn void keel_abort(int code, const char *message)
{
    bool last;
    if (call_begin(&last)) {
        model.over = true;
        model.out->abort_code = code;
        snprintf(model.out->abort_message, sizeof model.out->abort_message, "%s", message);
    }
    self->ended = true;
    if (model.running == self->number)
        pass_turn();
    pthread_mutex_unlock(&model.lock);
    pthread_exit(NULL);
}

/* collectives */

static void finish_collective_if_all_entered(void)
{
    int entered = 0;
    for (int i = 0; i < model.nprocs; i++) {
        struct proc *proc = &model.procs[i];
        if (!is_live(proc) || !proc->taking_part)
            continue;
        if (!proc->entered)
            return;
        entered++;
    }
    if (entered == 0)
        return;
    for (int i = 0; i < model.nprocs; i++)
        model.procs[i].entered = false;
    memcpy(model.result, model.sum, sizeof model.result);
    memset(model.sum, 0, sizeof model.sum);
    model.collectives++;
    model.collective = NULL;
    model.naps = 0;
}

/* Enter the collective and wait for its end. */
static bool collective(const char *kind)
{
    uint64_t mine = ++self->collectives;
    if (!self->taking_part)
        break_contract("a restarted rank called a collective before keel_resume");
    if (mine != model.collectives + 1)
        break_contract("ranks disagree about how many collectives there were");
    if (model.collective == NULL)
        model.collective = kind;
    if (strcmp(model.collective, kind) != 0)
        break_contract("ranks called different collectives");
    self->entered = true;
    finish_collective_if_all_entered();
    while (model.collectives < mine)
        if (!nap())
            return false;
    return true;
}

keel_status keel_barrier(void)
{
    bool last;
    if (!call_begin(&last))
        return call_refuse();
    return call_end(last, collective("barrier") ? KEEL_OK : KEEL_ERR_AGENT_GONE);
}

keel_status keel_allreduce_sum(const double *in, double *out, size_t n)
{
    bool last;
    if (!call_begin(&last))
        return call_refuse();
    if (n > REDUCE_MAX)
        break_contract("a reduction is too long for the model");
    for (size_t i = 0; i < n; i++)
        model.sum[i] += in[i];
    bool good = collective("reduction");
    for (size_t i = 0; i < n && good; i++)
        out[i] = model.result[i];
    return call_end(last, good ? KEEL_OK : KEEL_ERR_AGENT_GONE);
}

/* segments */

keel_status keel_segment_alloc(size_t bytes_per_rank, keel_redundancy redundancy, keel_segment **out)
{
    bool last;
    if (!call_begin(&last))
        return call_refuse();
    if (redundancy != KEEL_REDUNDANCY_SHADOW)
        break_contract("a segment has no shadow");
    int number = self->segments++;
    struct keel_segment *segment = &model.segments[number];
    if (number == model.nsegments) {
        model.nsegments++;
        *segment = (struct keel_segment){bytes_per_rank, calloc((size_t)model.config->ranks, bytes_per_rank + 1)};
    }
    *out = segment;
    return call_end(last, segment->bytes == bytes_per_rank ? KEEL_OK : KEEL_ERR_MISMATCH);
}

static char *address(keel_segment *segment, int rank, size_t offset, size_t len)
{
    if (rank < 0 || rank >= model.config->ranks || offset + len > segment->bytes) {
        break_contract("an address is outside its segment");
        return NULL;
    }
    return segment->memory + (size_t)rank * segment->bytes + offset;
}

keel_status keel_put(keel_segment *segment, int rank, size_t offset, const void *src, size_t len)
{
    bool last;
    if (!call_begin(&last))
        return call_refuse();
    if (self->task >= 0)
        break_contract("a put inside a task");
    char *to = address(segment, rank, offset, len);
    if (to != NULL && last && rng_below(&model.rng, 2) == 0)
        len = rng_below(&model.rng, len / 8 + 1) * 8; /* dies half-way: whole elements only */
    if (to != NULL)
        memcpy(to, src, len);
    return call_end(last, to != NULL ? KEEL_OK : KEEL_ERR_ARG);
}

keel_status keel_get(keel_segment *segment, int rank, size_t offset, void *dst, size_t len)
{
    bool last;
    if (!call_begin(&last))
        return call_refuse();
    char *from = address(segment, rank, offset, len);
    if (from != NULL)
        memcpy(dst, from, len);
    return call_end(last, from != NULL ? KEEL_OK : KEEL_ERR_ARG);
}

keel_status keel_compare_swap(keel_segment *segment, int rank, size_t offset, int64_t expected, int64_t desired,
                              int64_t *old)
{
    bool last;
    if (!call_begin(&last))
        return call_refuse();
    char *at = address(segment, rank, offset, sizeof *old);
    if (at != NULL) {
        memcpy(old, at, sizeof *old);
        if (*old == expected)
            memcpy(at, &desired, sizeof desired);
    }
    return call_end(last, at != NULL ? KEEL_OK : KEEL_ERR_ARG);
}

static uint64_t hash_of(const void *data, size_t len, uint64_t hash)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ bytes[i]) * 1099511628211u;
    return hash;
}

/* Is this accumulate of the task in hand the first of its number? */
static bool counts(size_t offset, double scale, const double *src, size_t n)
{
    struct task *task = &self->pool->tasks[self->task];
    int number = self->accumulates++;
    uint64_t hash = hash_of(&offset, sizeof offset, 14695981039346656037u);
    hash = hash_of(&scale, sizeof scale, hash_of(src, n * sizeof *src, hash));
    if (number >= 16)
        break_contract("a task has too many accumulates for the model");
    else if (number < task->applied && task->hash[number] != hash)
        break_contract("a task run again made other accumulates");
    else if (number < task->applied)
        return false;
    else
        task->hash[task->applied++] = hash;
    return number < 16;
}

keel_status keel_acc_double(keel_segment *segment, int rank, size_t offset, double scale, const double *src, size_t n)
{
    bool last;
    if (!call_begin(&last))
        return call_refuse();
    double *to = (double *)(void *)address(segment, rank, offset, n * sizeof *src);
    if (self->task < 0)
        break_contract("an accumulate outside a task");
    else if (to != NULL && counts(offset, scale, src, n))
        for (size_t i = 0; i < n; i++)
            to[i] += scale * src[i];
    return call_end(last, to != NULL ? KEEL_OK : KEEL_ERR_ARG);
}

/* Non-blocking ones are complete at once. */
keel_status keel_acc_nb(keel_segment *segment, int rank, size_t offset, keel_type type, const void *scale,
                        const void *src, size_t n, keel_handle *handle)
{
    if (type != KEEL_DOUBLE || scale != NULL || handle == NULL)
        break_contract("an accumulate that the model does not know");
    return keel_acc_double(segment, rank, offset, 1, src, n);
}

keel_status keel_handle_aggregate(keel_handle *handle)
{
    *handle = (keel_handle){{0}};
    return KEEL_OK;
}

keel_status keel_wait(keel_handle *handle)
{
    (void)handle;
    return KEEL_OK;
}

/* task pools */

static void open_tasks(struct keel_taskpool *pool)
{
    pool->next = 0;
    for (int64_t t = 0; t < pool->count; t++)
        pool->tasks[t] = (struct task){.runner = -1};
}

keel_status keel_taskpool_create(int64_t count, keel_taskpool **out)
{
    bool last;
    if (!call_begin(&last))
        return call_refuse();
    struct keel_taskpool *pool = &model.pools[self->pools++];
    if (pool->tasks == NULL) {
        *pool = (struct keel_taskpool){.count = count, .tasks = calloc((size_t)count, sizeof *pool->tasks)};
        open_tasks(pool);
        model.npools++;
    }
    *out = pool;
    return call_end(last, pool->count == count ? KEEL_OK : KEEL_ERR_MISMATCH);
}

keel_status keel_taskpool_reset(keel_taskpool *pool)
{
    bool last;
    if (!call_begin(&last))
        return call_refuse();
    for (int64_t t = 0; t < pool->count; t++)
        if (!pool->tasks[t].committed && self->collectives == model.collectives && model.collective == NULL)
            break_contract("a pool is reopened before its tasks are committed");
    /* the first to enter opens the tasks: nobody can draw one before all have entered and left */
    if (model.collective == NULL)
        open_tasks(pool);
    return call_end(last, collective("reset") ? KEEL_OK : KEEL_ERR_AGENT_GONE);
}

/* A task to run: a fresh one, or one whose runner died; -1 if all are committed, -2 if one must wait. */
static int64_t find_task(struct keel_taskpool *pool)
{
    if (pool->next < pool->count)
        return pool->next++;
    int64_t answer = -1;
    for (int64_t t = 0; t < pool->count; t++) {
        if (pool->tasks[t].committed)
            continue;
        if (model.procs[pool->tasks[t].runner].dead)
            return t;
        answer = -2;
    }
    return answer;
}

keel_status keel_task_next(keel_taskpool *pool, int64_t *task)
{
    bool last, good = true;
    if (!call_begin(&last))
        return call_refuse();
    while ((*task = find_task(pool)) == -2 && (good = nap()))
        ;
    if (good && *task >= 0) {
        pool->tasks[*task].runner = self->number;
        self->pool = pool;
        self->task = *task;
        self->accumulates = 0;
    }
    return call_end(last, good ? KEEL_OK : KEEL_ERR_AGENT_GONE);
}

keel_status keel_task_commit(keel_taskpool *pool, int64_t task)
{
    bool last;
    if (!call_begin(&last))
        return call_refuse();
    if (self->task != task || self->accumulates != pool->tasks[task].applied)
        break_contract("a commit of another task, or one with fewer accumulates than its first run");
    pool->tasks[task].committed = true;
    self->task = -1;
    return call_end(last, KEEL_OK);
}

/* running it */

static void *proc_main(void *argument)
{
    self = argument;
    pthread_mutex_lock(&model.lock);
    wait_for_turn();
    pthread_mutex_unlock(&model.lock);
    int returned = model.config->program(model.config->user, self->rank, self->incarnation);
    pthread_mutex_lock(&model.lock);
    if (!self->dead) {
        self->returned = returned;
        self->ended = true;
        finish_collective_if_all_entered();
        if (model.running == self->number)
            pass_turn();
    }
    pthread_mutex_unlock(&model.lock);
    return NULL;
}

static void collect(void)
{
    for (int r = 0; r < MODEL_RANKS; r++)
        model.out->returned[r] = -1;
    for (int i = 0; i < model.nprocs; i++) {
        struct proc *proc = &model.procs[i];
        if (proc->incarnation == 0)
            model.out->calls[proc->rank] = proc->calls;
        if (!proc->dead)
            model.out->returned[proc->rank] = proc->returned;
        pthread_cond_destroy(&proc->turn);
    }
    model.out->collectives = model.collectives;
    for (int s = 0; s < model.nsegments; s++)
        free(model.segments[s].memory);
    for (int p = 0; p < model.npools; p++)
        free(model.pools[p].tasks);
    pthread_mutex_destroy(&model.lock);
}

const char *model_run(const struct model_config *config, struct model_outcome *out)
{
    memset(&model, 0, sizeof model);
    memset(out, 0, sizeof *out);
    model.config = config;
    model.out = out;
    pthread_mutex_init(&model.lock, NULL);
    rng_seed(&model.rng, config->seed);
    pthread_mutex_lock(&model.lock);
    for (int r = 0; r < config->ranks; r++)
        start_process(r, 0);
    pass_turn();
    pthread_mutex_unlock(&model.lock);
    for (int i = 0;; i++) {
        pthread_mutex_lock(&model.lock);
        bool exists = i < model.nprocs;
        pthread_mutex_unlock(&model.lock);
        if (!exists)
            break;
        pthread_join(model.procs[i].thread, NULL);
    }
    collect();
    return model.broken;
}
