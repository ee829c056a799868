/* Further threads of a rank: in each stage they do beside its own one what it does, on the same client. A task is the
 * process's, and all its accumulates are the task's: where tasks are drawn all threads do nothing else. Collectives
 * are called by the first, also while the others go on. */
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

static void draw_main(void *arg)
{
    (void)program_tasks(arg);
}

static struct program *start(struct program *p, int number, void (*main)(void *arg))
{
    struct program *t = sim_alloc(sizeof *t);
    *t = (struct program){.r = p->r,
                          .w = p->w,
                          .next = p->next,
                          .process = sim_alloc(sizeof *t->process),
                          .thread = number,
                          .tasks_of = p->tasks_of,
                          .round = p->round,
                          .mutexes = p->mutexes,
                          .mutexes_at = p->mutexes_at,
                          .outstanding_max = p->outstanding_max};
    memcpy(t->seg, p->seg, sizeof t->seg);
    memcpy(t->pool, p->pool, sizeof t->pool);
    p->next = t;
    process_thread(t->process, main, t, sched_below(program_random(p), 20 * US));
    return t;
}

void program_threads_start(struct program *p, int actions)
{
    for (int i = 1; i <= p->w->setup.threads; i++) {
        uint64_t most = 2 * (uint64_t)actions / (uint64_t)p->w->setup.threads + 2;
        start(p, i, thread_main)->actions = (int)sched_below(program_random(p), most);
    }
}

void program_threads_draw(struct program *p)
{
    for (int i = 1; i <= p->w->setup.threads && i < 6; i++)
        (void)start(p, i, draw_main);
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
