#include "runtime/client/op/lane.h"

int lanes_take(struct lanes *l, uint64_t *number)
{
    for (int i = 0; i < LANES_MAX; i++)
        if (!l->lane[i].busy) {
            l->lane[i].busy = true;
            *number = ++l->lane[i].number;
            return i;
        }
    return -1;
}

void lanes_give_back(struct lanes *l, int lane)
{
    l->lane[lane].busy = false;
}
