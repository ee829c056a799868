/* Between plan.c, where slots go on a grid, and plan_auto.c, what the method auto knows and is asked. */
#ifndef KEEL_VIEW_PLAN_INT_H
#define KEEL_VIEW_PLAN_INT_H

#include "runtime/view/plan.h"

/* A job on a grid. */
struct sliding {
    struct grid_state grid;
    int *node_at;        /* [grid nodes] who has that place, -1: nobody ever had; */
    int32_t *at;         /* [ids] and who has which; -1: none */
    int32_t *dead;       /* [grid nodes] scratch: places, */
    int32_t *back;       /* and of those that are back */
    uint8_t *kept;       /* [slots] scratch: its move is given up, */
    uint64_t *stays;     /* and since when; 0: it is not */
    uint64_t decided_at; /* epoch of the decisions that auto has made */
    struct {
        uint64_t at; /* epoch */
        enum plan_rebalanced what;
    } rebalanced;
};

/* plan.c. The moves that are to be made are those of v->plan from now on, behind what is there. */
void plan_list(struct view *v);
/* plan_auto.c. Decisions of older views are forgotten, and it is known who has copies. */
void plan_begin_to_weigh(struct view *v);
#endif
