/* Errors of implicit operations since the last fence, in the order of their coming, the first one of each rank. */
#ifndef KEEL_CLIENT_OP_ERRORS_H
#define KEEL_CLIENT_OP_ERRORS_H

#include <stdbool.h>

#include <keel/status.h>

struct errors {
    struct error_of *first;
    keel_status of_any; /* one for which there was no memory: any fence tells it */
};

/* For the next fence of the rank, or of all. */
void errors_keep(struct errors *e, int rank, keel_status status);
/* The first one of the rank (-1: of any); they are forgotten. */
keel_status errors_take(struct errors *e, int rank);
/* Is there one that no fence has told yet? */
static inline bool errors_any(const struct errors *e)
{
    return e->first || e->of_any != KEEL_OK;
}
void errors_free(struct errors *e);
#endif
