/* Further threads of a rank: in each stage they do beside its own one what it does, on the same client. A task is the process's, and all its accumulates
 * are the task's: tasks are run, and collectives called, by the first; collectives also while the others go on. */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/data/program_int.h"

static void thread_main(void *arg)
{
    struct program *p = arg;
    for (int i = 0; i < p->actions && !p->over && !p->w->failed; i++)
        program_action(p);
    while (program_give_back(p))
        ;
    program_wait_all(p);
}

void program_threads_start(struct program *p, int actions)
{
    struct sched *s = program_random(p);
    for (int i = 1; i <= p->w->setup.threads; i++) {
        struct program *t = sim_alloc(sizeof *t);
        *t = (struct program){.r = p->r,
                              .w = p->w,
                              .next = p->next,
                              .process = sim_alloc(sizeof *t->process),
                              .thread = i,
                              .actions = (int)sched_below(s, 2 * (uint64_t)actions / (uint64_t)p->w->setup.threads + 2),
                              .mutexes = p->mutexes,
                              .mutexes_at = p->mutexes_at,
                              .outstanding_max = p->outstanding_max};
        memcpy(t->seg, p->seg, sizeof t->seg);
        p->next = t;
        process_thread(t->process, thread_main, t, sched_below(s, 20 * US));
    }
}

void program_threads_join(struct program *p)
{
    if (!p->next)
        return;
    process_join(p->process);
    for (struct program *t = p->next, *next; t; t = next) {
        next = t->next;
        p->over = p->over || t->over;
        free(t); /* its process stays: events that are to come name it */
    }
    p->next = NULL;
}
