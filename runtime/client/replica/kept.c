#include "runtime/client/replica/kept.h"

#include <stdlib.h>
#include <string.h>

struct kept_block {
    struct kept_block *next;
    struct kept_write write;
    uint8_t bytes[];
};

bool kept_add(struct kept *k, const struct kept_write *write)
{
    struct kept_block *b = malloc(sizeof *b + write->len);
    if (!b)
        return false;
    *b = (struct kept_block){.next = NULL, .write = *write};
    if (write->len)
        memcpy(b->bytes, write->bytes, write->len);
    b->write.bytes = b->write.once.src = b->bytes;
    *(k->last ? &k->last->next : &k->first) = b;
    k->last = b;
    return true;
}

const struct kept_write *kept_next(const struct kept *k, enum kept_pass pass, const struct kept_block **at)
{
    const struct kept_block *b = *at ? (*at)->next : k->first;
    while (b && b->write.pass != pass)
        b = b->next;
    if (!b)
        return NULL;
    *at = b;
    return &b->write;
}

void kept_forget(struct kept *k)
{
    for (struct kept_block *b = k->first, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    *k = (struct kept){.first = NULL};
}
