#include "runtime/world/pace.h"

bool pace_is_due(struct pace *p)
{
    if (p->left == 0)
        return true;
    p->left--;
    return false;
}

void pace_agreed(struct pace *p, uint64_t now_ns)
{
    bool close = p->stride && now_ns - p->last_ns < PACE_CLOSE_NS;
    p->stride = !close ? 1 : p->stride < PACE_STRIDE_MAX ? p->stride * 2 : PACE_STRIDE_MAX;
    p->left = p->stride - 1;
    p->last_ns = now_ns;
}

void pace_begin(struct pace *p)
{
    p->left = 0;
}
