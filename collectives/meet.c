#include "collectives/meet.h"

static int plan_cube(const struct roster *r, int self, struct meet_step *steps)
{
    int n = roster_live(r), place = roster_place(r, self), count = 0;
    uint8_t tag = 0;
    for (int64_t by = 1; by < n; by *= 2, tag++) {
        int to = (int)((place + by) % n), from = (int)((place - by + n) % n);
        steps[count++] = (struct meet_step){roster_member(r, to), false, tag};
        steps[count++] = (struct meet_step){roster_member(r, from), true, tag};
    }
    return count;
}

/* Who speaks for the block of 2^level members that starts at first: its first live one, or -1. */
static int speaker(const struct roster *r, int64_t first, int level)
{
    if (first >= roster_size(r))
        return -1;
    int member = roster_next(r, (int)first);
    return member >= 0 && member < first + (1ll << level) ? member : -1;
}

enum { TAG_UP = 0, TAG_DOWN = 64 };

static int plan_tree(const struct roster *r, int self, struct meet_step *steps)
{
    int level = 0, count = 0, below[32], belows = 0;
    for (; 1ll << level < roster_size(r); level++) {
        int64_t block = (int64_t)self >> (level + 1) << (level + 1), half = block + (1ll << level);
        if (self >= half) { /* we speak for the upper half */
            int up = speaker(r, block, level);
            if (up < 0)
                continue; /* and for the lower, where nobody lives */
            steps[count++] = (struct meet_step){up, false, (uint8_t)(TAG_UP + level)};
            steps[count++] = (struct meet_step){up, true, (uint8_t)(TAG_DOWN + level)};
            break;
        }
        int other = speaker(r, half, level);
        if (other < 0)
            continue;
        steps[count++] = (struct meet_step){other, true, (uint8_t)(TAG_UP + level)};
        below[belows++] = level;
    }
    while (belows--) {
        level = below[belows];
        int64_t half = ((int64_t)self >> (level + 1) << (level + 1)) + (1ll << level);
        steps[count++] = (struct meet_step){speaker(r, half, level), false, (uint8_t)(TAG_DOWN + level)};
    }
    return count;
}

bool meet_has_nodes(const struct roster *r, const int *node)
{
    int first = roster_next(r, 0), last = first;
    bool several = false, together = false;
    if (roster_size(r) > MEET_NODES_MAX)
        return false;
    for (int m = roster_next(r, first + 1); m >= 0; last = m, m = roster_next(r, m + 1)) {
        several |= node[m] != node[first];
        together |= node[m] == node[last];
    }
    return several && together;
}

enum { TAG_NODE_UP = 128, TAG_NODE_DOWN = 192 };

/* Up to the first of the n: whom self tells, or whom it hears from; it is number `at` of them. Returns the steps;
 * *levels: how many levels are below it. Going down is the same backwards. */
static int plan_node(const uint16_t *local, int n, int at, struct meet_step *steps, int *levels)
{
    int count = 0;
    for (*levels = 0; 1 << *levels < n; (*levels)++) {
        int by = 1 << *levels;
        if (at & by) {
            steps[count++] = (struct meet_step){local[at - by], false, (uint8_t)(TAG_NODE_UP + *levels)};
            steps[count++] = (struct meet_step){local[at - by], true, (uint8_t)(TAG_NODE_DOWN + *levels)};
            break;
        }
        if (at + by < n)
            steps[count++] = (struct meet_step){local[at + by], true, (uint8_t)(TAG_NODE_UP + *levels)};
    }
    return count;
}

int meet_plan_nodes(const struct roster *r, const int *node, int self, struct meet_step *steps)
{
    uint16_t local[MEET_NODES_MAX], leader[MEET_NODES_MAX];
    int locals = 0, leaders = 0, at = 0, place = -1, levels;
    for (int m = roster_next(r, 0); m >= 0; m = roster_next(r, m + 1)) {
        int known = 0;
        while (known < leaders && node[leader[known]] != node[m])
            known++;
        if (known == leaders)
            leader[leaders++] = (uint16_t)m;
        if (node[m] != node[self])
            continue;
        at = m == self ? locals : at;
        place = locals == 0 && m == self ? known : place;
        local[locals++] = (uint16_t)m;
    }
    int count = plan_node(local, locals, at, steps, &levels);
    for (int64_t by = 1, tag = 0; place >= 0 && by < leaders; by *= 2, tag++) {
        steps[count++] = (struct meet_step){leader[(place + by) % leaders], false, (uint8_t)tag};
        steps[count++] = (struct meet_step){leader[(place - by + leaders) % leaders], true, (uint8_t)tag};
    }
    while (levels--)
        if (at + (1 << levels) < locals)
            steps[count++] = (struct meet_step){local[at + (1 << levels)], false, (uint8_t)(TAG_NODE_DOWN + levels)};
    return count;
}

int meet_plan(enum meet_shape shape, const struct roster *r, int self, struct meet_step *steps)
{
    return shape == MEET_TREE ? plan_tree(r, self, steps) : plan_cube(r, self, steps);
}
