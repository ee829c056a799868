/* The addresses of a node, one a rail: a rail is one of the networks that connect the nodes of a job. As bytes they are
 * as many struct tp_addr as there are: of one address, those of that struct. Pure. */
#ifndef KEEL_NET_ADDRS_H
#define KEEL_NET_ADDRS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "runtime/net/transport.h"

/* What nobody can have said: none, too many, one without a length or of too much, rails that do not rise. */
static inline bool addrs_good(const struct tp_addrs *a)
{
    if (a->n == 0 || a->n > TP_RAILS_MAX)
        return false;
    for (uint32_t i = 0; i < a->n; i++)
        if (a->of[i].len == 0 || a->of[i].len > sizeof a->of[i].bytes || a->of[i].rail >= TP_RAILS_MAX ||
            (i > 0 && a->of[i].rail <= a->of[i - 1].rail))
            return false;
    return true;
}

static inline struct tp_addrs addrs_one(const struct tp_addr *addr)
{
    return (struct tp_addrs){.n = 1, .of = {*addr}};
}

/* Listen wherever the transport can. */
static inline keel_status addrs_listen(struct tp *tp, struct tp_addrs *a)
{
    keel_status status = KEEL_OK;
    *a = (struct tp_addrs){0};
    while (a->n < TP_RAILS_MAX && (status = tp->table->listen(tp, &a->of[a->n])) == KEEL_OK)
        a->n++;
    return a->n && status == KEEL_ERR_STATE ? KEEL_OK : status;
}

/* NULL: it is not on that rail. */
static inline const struct tp_addr *addrs_on(const struct tp_addrs *a, int rail)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (a->of[i].rail == rail)
            return &a->of[i];
    return NULL;
}

/* Into TP_RAILS_MAX * sizeof(struct tp_addr) bytes; returns how many they are. */
static inline size_t addrs_write(const struct tp_addrs *a, void *bytes)
{
    memcpy(bytes, a->of, a->n * sizeof a->of[0]);
    return a->n * sizeof a->of[0];
}

/* Just so many bytes, from anybody. False: they are no addresses. */
static inline bool addrs_read(const void *bytes, size_t len, struct tp_addrs *a)
{
    *a = (struct tp_addrs){0};
    if (len % sizeof a->of[0] || len > sizeof a->of)
        return false;
    a->n = (uint32_t)(len / sizeof a->of[0]);
    memcpy(a->of, bytes, len);
    return addrs_good(a);
}
#endif
