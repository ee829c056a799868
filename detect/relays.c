#include "detect/relays.h"

void relays_init(struct relays *r)
{
    for (int i = 0; i < RELAYS; i++)
        r->of[i] = (struct relay){.node = -1, .via = -1};
    r->next = 0;
}

void relays_set(struct relays *r, int node, int via)
{
    int index = -1;
    for (int i = 0; i < RELAYS; i++)
        if (r->of[i].node == node)
            index = i;
    if (index < 0)
        index = r->next++ % RELAYS;
    r->of[index] = (struct relay){.node = node, .via = via};
}

void relays_clear(struct relays *r, int node)
{
    for (int i = 0; i < RELAYS; i++)
        if (r->of[i].node == node)
            r->of[i].node = -1;
}

void relays_forget(struct relays *r, int node)
{
    for (int i = 0; i < RELAYS; i++)
        if (r->of[i].node == node || r->of[i].via == node)
            r->of[i].node = -1;
}

int relays_via(const struct relays *r, int node)
{
    for (int i = 0; i < RELAYS; i++)
        if (r->of[i].node == node)
            return r->of[i].via;
    return node;
}
