/* What ranks of this node wait for, to keelrun, or from here to who has started them. */
#ifndef KEEL_PM_KEELD_WAITS_H
#define KEEL_PM_KEELD_WAITS_H

#include "pm/wire/waits.h"

#include <uv.h>

struct keeld;

struct keeld_waits {
    char *text;             /* of the plane: what this node's ranks wait for, NULL: for nothing */
    struct waits *gathered; /* where no keelrun does it; NULL: one does */
    uv_timer_t gathering;
};

void keeld_waits_init(struct keeld *a);
void keeld_waits_changed(struct keeld *a, const char *members);
/* For keelctl, as in pm/wire/waits.h. */
json_t *keeld_waits_json(const struct keeld *a);
void keeld_waits_free(struct keeld *a);
#endif
