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

int meet_plan(enum meet_shape shape, const struct roster *r, int self, struct meet_step *steps)
{
    return shape == MEET_TREE ? plan_tree(r, self, steps) : plan_cube(r, self, steps);
}
