/* The grid of a job: which node has which place of it, and what is done when nodes die.
 *
 * The grid is that of all nodes, computing ones and spares, as in Spare-nodes. Its places are numbered as grid.h
 * numbers nodes; the spare layout says which of them are spare. Nodes are numbered otherwise, the computing ones first:
 *   - slot s has the s-th place that is not spare, in the order of the places, and its node is number s,
 *   - all other places have the numbers behind, in their order, too.
 * Places whose node is not there at the start ("worm-eaten") have no number: their slots have gone by the method before
 * anything runs, and the numbers are those of after that. So rule, number of slots and list of such places say all:
 * whoever has them, keelrun and each agent, comes to the same numbers and to the same plans.
 *
 * threads   a struct grid_state belongs to one caller at a time. blocks never. Only grid_open allocates. */
#ifndef KEEL_TOPO_RULE_H
#define KEEL_TOPO_RULE_H
#include "runtime/base/job_settings.h"
#include "runtime/topo/auto.h"
#include "runtime/topo/balance.h"
#include "runtime/topo/remap.h"
#include "runtime/topo/transit.h"

struct grid_rule {
    struct grid grid;
    struct spare_layout layout;
    /* Of steps, whose own ones (PLACE_OWN) have arguments that outlive the state; or of none, and grid_open makes them
     * by the name: see rule_method. */
    struct place_method method;
    struct grid_plans {
        const int *word; /* [count] as in grid_choice */
        int count;
    } plans;         /* of the method user */
    const int *dead; /* [ndead] places whose node is not there at the start, in the order in which they are told */
    int ndead;
};

/* Read the name of a method: what place_method_parse reads, and
 *   balance, repair, repair(N)   balance.h, remap.h
 *   auto    auto.h, with as many moves for each failure, unless their bound is given, as the longest side of the grid
 *           has nodes: a line may move by one, a plane may not
 *   user    the plan that is given for a failure of this place, if its moves are possible by then; else 0D
 *   none    no slot gets another node
 * returns   NULL, or a constant text that says what is wrong. */
const char *rule_method(struct place_method *m, const char *text, int ndims);
/* The bound of "repair" or "repair(8)"; 0 for anything else. */
int32_t rule_repair_moves(const char *text);
/* What the user has said, which outlives the rule. returns   NULL, or a constant text that says what is wrong. */
const char *rule_read(struct grid_rule *r, const struct grid_choice *said);

/* A job on its grid: where slots stand and where they are to be. */
struct grid_state {
    struct place place;
    struct transit transit;
    struct place_method method;
    struct grid_plans plans;
    /* of methods that look at the load of links */
    struct pattern pattern;
    struct load load;
    struct balance balance;
    struct remap remap;
    struct auto_method chooser; /* of auto */
    bool chooses;               /* it is auto */
};

/* The job at its start, with so many slots; place.homeless of them have no node, because there are not enough. What
 * rule points to outlives the state. returns   false when out of memory, or the rule does not fit the grid; nothing is
 * to be closed then. */
bool grid_open(struct grid_state *s, const struct grid_rule *rule, int32_t slots);
void grid_close(struct grid_state *s);
/* The numbers of the nodes, right after grid_open: node_at[place], -1 for one whose node is not there. returns   how
 * many there are. */
int32_t grid_numbers(const struct grid_state *s, int *node_at);
#endif
