/* Is the program one of Keel's? Programs that do not use Keel cannot survive the loss of a node. */
#ifndef KEEL_PM_KEELD_KIND_H
#define KEEL_PM_KEELD_KIND_H

#include "runtime/base/life.h"

#include <stdbool.h>
#include <uv.h>

struct keeld;

struct keeld_kind {
    bool here;                /* a process of this node has called keel_init, and keelrun was told */
    bool is_keels;            /* here, or somewhere else: the program uses Keel */
    int lost_rank, lost_node; /* before that was known: a rank that died with its node; -1 */
    uv_timer_t timer;         /* how long the program has then, to show that it is one of Keel's */
    struct life *held;        /* ranks' lives that wait for that */
    int held_count;
};

void keeld_kind_init(struct keeld *a);
/* A process of the job has called keel_init. */
void keeld_kind_is_keels(struct keeld *a);
/* Before the view is taken over: what is lost by it? */
void keeld_kind_view(struct keeld *a, const int *rank_node, const bool *node_alive);
/* The exit code of a job that would end with this one. */
int keeld_kind_judge(struct keeld *a, int code);
/* A rank is to go on here: true if it waits until the program has shown what it is. */
bool keeld_kind_holds(struct keeld *a, struct life life);
#endif
