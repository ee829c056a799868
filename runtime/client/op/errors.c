#include "runtime/client/op/errors.h"

#include <stdlib.h>

struct error_of {
    struct error_of *next;
    int rank;
    keel_status status;
};

void errors_keep(struct errors *e, int rank, keel_status status)
{
    struct error_of **link = &e->first;
    while (*link && (*link)->rank != rank)
        link = &(*link)->next;
    if (*link)
        return;
    *link = malloc(sizeof **link);
    if (*link)
        **link = (struct error_of){.rank = rank, .status = status};
    else
        e->of_any = status;
}

keel_status errors_take(struct errors *e, int rank)
{
    keel_status first = e->of_any;
    e->of_any = KEEL_OK;
    for (struct error_of **link = &e->first; *link;) {
        struct error_of *of = *link;
        if (rank >= 0 && of->rank != rank) {
            link = &of->next;
            continue;
        }
        *link = of->next;
        first = first == KEEL_OK ? of->status : first;
        free(of);
    }
    return first;
}

void errors_free(struct errors *e)
{
    (void)errors_take(e, -1);
}
