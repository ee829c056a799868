/* Views for tests: made with copies on the next nodes, and events applied one by one. */
#ifndef KEEL_TEST_VIEW_BED_H
#define KEEL_TEST_VIEW_BED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/view/view.h"

enum { NONE, SHADOW, TRIPLE };

/* Copies on the next nodes: test_policy.c has the other rule. */
static inline void open_view(struct view *v, enum view_policy policy, int nodes, int spares, int ranks)
{
    const struct copy_rule next = {.at = COPIES_AT_NEXT};
    int rank_node[64];
    for (int r = 0; r < ranks; r++)
        rank_node[r] = r * nodes / ranks;
    assert_true(view_init(v, policy, nodes, spares, 0, ranks, rank_node, &next));
}

static inline void apply(struct view *v, uint32_t type, uint32_t a, uint32_t b, uint32_t c, uint64_t d)
{
    struct view_event e = {type, a, b, c, d};
    view_apply(v, v->epoch + 1, &e, 1);
}

static inline void kill_node(struct view *v, int node)
{
    apply(v, VIEW_NODE_DEAD, (uint32_t)node, 0, 0, 0);
}

static inline void kill_nodes(struct view *v, int a, int b)
{
    struct view_event e[2] = {{VIEW_NODE_DEAD, (uint32_t)a, 0, 0, 0}, {VIEW_NODE_DEAD, (uint32_t)b, 0, 0, 0}};
    view_apply(v, v->epoch + 1, e, 2);
}

static inline void restore(struct view *v, int copyset)
{
    apply(v, VIEW_RESTORED, (uint32_t)copyset, 0, 0, v->copyset[copyset].generation);
}

static inline void restore_all(struct view *v)
{
    for (int g = 0; g < v->nodes * CLASSES; g++)
        restore(v, g);
}

/* Its copies are on these nodes, in this order (-1: no more). */
static inline void assert_copies(const struct view_copyset *g, int a, int b, int c)
{
    const int node[COPIES_MAX] = {a, b, c, -1};
    for (int i = 0; i < COPIES_MAX; i++)
        assert_int_equal(i < g->copies ? g->copy[i].node : -1, node[i]);
}
#endif
