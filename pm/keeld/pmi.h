/* PMI of the node's processes: the barrier through the node that is the root. */
#ifndef KEEL_PM_KEELD_PMI_H
#define KEEL_PM_KEELD_PMI_H

#include "pm/pmi/pmi.h"
#include "pm/pmi/pmi_root.h"
#include "pm/wire/conn.h"

struct keeld;
struct keeld_guest;

struct keeld_pmi {
    struct pmi_server *server;
    struct pmi_root *root; /* in use at one node only */
    struct pm_conn *root_conn;
    int root_at;
    long long root_released;           /* highest round that we, as the root, have declared complete */
    long long fence_round, fence_done; /* the round our ranks are in; the last one that was released */
    uv_timer_t root_timer;
};

void keeld_pmi_open(struct keeld *a);
void keeld_pmi_fence(struct keeld *a);
void keeld_pmi_view(struct keeld *a);
void keeld_pmi_report(struct keeld *a, struct keeld_guest *guest, const json_t *m);
#endif
