/* Which sets are retired: bit s, as a view has it. */
#ifndef KEEL_TESTS_DATA_RETIRED_H
#define KEEL_TESTS_DATA_RETIRED_H

#include "runtime/view/view.h"

static inline unsigned sets_retired(const struct view *v)
{
    unsigned bits = 0;
    for (int s = 0; s < v->replicas->replicas; s++)
        bits |= (unsigned)!view_set_is_whole(v, s) << s;
    return bits;
}
#endif
