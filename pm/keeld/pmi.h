/* PMI of the node's processes: the barrier through the node that is the root. */
#ifndef KEEL_PM_KEELD_PMI_H
#define KEEL_PM_KEELD_PMI_H

#include "pm/pmi/pmi.h"
#include "pm/pmi/pmi_root.h"
#include "pm/wire/conn.h"
#include "runtime/base/replica.h"

struct keeld;
struct keeld_guest;

/* Each set of a program with replicas is a world of its own; without there is one. */
struct keeld_world {
    struct pmi_server *server;
    struct pmi_root *root;             /* in use at one node only */
    bool *takes_part;                  /* [nodes] ranks of it began there */
    long long root_released;           /* highest round that we, as the root, have declared complete */
    long long fence_round, fence_done; /* the round our ranks are in; the last one that was released */
};

struct keeld_pmi {
    struct keeld_world world[REPLICAS_MAX];
    int worlds; /* 0: another launcher's processes, or not begun */
    struct pm_conn *root_conn;
    int root_at;
    uv_timer_t root_timer;
};

/* Before the first process is started. */
void keeld_pmi_open(struct keeld *a);
void keeld_pmi_close(struct keeld *a);
/* For the processes of a native rank. */
struct pmi_client *keeld_pmi_client(struct keeld *a, int rank, bool late);
/* All of this node that are in that world have come to the barrier. */
void keeld_pmi_fence(struct keeld *a, int world);
int keeld_pmi_world(const struct keeld *a, int rank);
void keeld_pmi_view(struct keeld *a);
void keeld_pmi_report(struct keeld *a, struct keeld_guest *guest, const json_t *m);
#endif
