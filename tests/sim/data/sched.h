/* Virtual time and processes: a queue of events, and processes that run on fibers, die, freeze and go on. Everything
 * that happens, happens in the order of the queue; every choice comes from one stream of random numbers. */
#ifndef KEEL_TESTS_SIM_DATA_SCHED_H
#define KEEL_TESTS_SIM_DATA_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/rng.h"
#include "tests/sim/data/fiber.h"
#include "tests/sim/data/heap.h"

#define US 1000ull
#define MS 1000000ull
#define SEC 1000000000ull
#define NEVER UINT64_MAX

typedef void sched_run(void *arg, uint64_t n);

struct sched_event {
    uint64_t at, order;
    sched_run *run;
    void *arg;
    uint64_t n;
};

/* A process's next turn. There is one at most: what a process that has had its turn would have been woken for does
 * not fill the queue. */
struct sched_turn {
    uint64_t at, order;
    struct process *process;
};

struct sched {
    uint64_t now, order, steps;
    struct sched_event *heap;
    size_t events, capacity;
    struct sched_turn *turn; /* a heap, too */
    size_t turns, turn_capacity;
    struct rng rng;
};

enum process_state {
    PROCESS_WAITING, /* suspended, until its time or until it is signalled */
    PROCESS_RUNNING,
    PROCESS_DEAD,
};

struct process {
    struct sched *sched;
    struct process *of;      /* a thread: of that process, whose memory and fate it shares; NULL: the process itself */
    struct process *threads; /* of this process, those that were started since the last process_join */
    struct process *next_thread;
    void *user;
    int node, rank; /* rank -1: the agent */
    int variables;  /* 1 + their number, of those of its own (state.h); 0: it has none */
    uint32_t incarnation;
    enum process_state state;
    bool frozen;
    bool due;    /* something to run came while it was frozen */
    bool deaf;   /* waits for its time only */
    bool handed; /* signalled before it slept */
    bool joins;  /* waits for the end of its threads */
    uint64_t token;
    size_t turn; /* 1 + its place among the turns, 0: it has none */
    struct fiber *fiber;
    struct heap heap;
    uint64_t frozen_ns; /* in all */
    uint64_t frozen_at;
};

void sched_init(struct sched *s, uint64_t seed);
void sched_fini(struct sched *s);
void sched_at(struct sched *s, uint64_t at, sched_run *run, void *arg, uint64_t n);
/* Runs the next event; false when none is left. */
bool sched_step(struct sched *s);

/* Random numbers. */
uint64_t sched_below(struct sched *s, uint64_t n); /* 0 for n = 0 */
uint64_t sched_between(struct sched *s, uint64_t low, uint64_t high);
bool sched_chance(struct sched *s, double p);

/* Memory of the simulator, zeroed, whoever runs. Freed by free(), or all at once at the end of a run. */
void *sim_alloc(size_t bytes);
void sim_free_all(void);

/* Starts to run main(user) after delay. */
void process_start(struct process *p, struct sched *s, int node, int rank, uint32_t incarnation,
                   void (*main)(void *user), void *user, uint64_t delay);
/* One more thread of the process that runs: it runs main(arg), and its end is its own. */
void process_thread(struct process *t, void (*main)(void *arg), void *arg, uint64_t delay);
/* From inside: when all threads have ended. */
void process_join(struct process *p);
/* From inside: sleep until that time, or until it is signalled. */
void process_sleep(struct process *p, uint64_t until);
/* From inside: spend time, whatever comes. */
void process_spend(struct process *p, uint64_t ns);
/* Something is there for it, and its threads. */
void process_signal(struct process *p);
/* It never runs again, nor do its threads. May be itself: then this does not return. */
void process_kill(struct process *p);
void process_freeze(struct process *p);
void process_thaw(struct process *p);
/* Does it, or a thread of it, run? */
bool process_is_current(const struct process *p);
static inline bool process_lives(const struct process *p)
{
    return p->state != PROCESS_DEAD;
}
/* The process, or thread, whose fiber runs, or NULL. */
struct process *process_current(void);
/* Its fiber and its memory. */
void process_free(struct process *p);
#endif
