/* Between the rooms of joining without keelrun:
 *   bootstrap.c        the two exchanges
 *   bootstrap_card.c   what a process says in the first one
 *   bootstrap_agent.c  the agent that the first process of a node starts
 *   bootstrap_hold.c   a rank's connection to it, and how it learns of its end
 *   bootstrap_come.c, bootstrap_place.c, bootstrap_pmi.c, bootstrap_racks.c   (bootstrap.h) */
#ifndef KEEL_CLIENT_JOB_JOIN_INT_H
#define KEEL_CLIENT_JOB_JOIN_INT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/bootstrap.h"
#include "runtime/client/job/bootstrap.h"

/* First exchange. Of what is for the job as a whole (job, secret, nodes_wanted, degrade, copies_at) rank 0's counts. */
struct bootstrap_card {
    char version[16];
    char machine[96];  /* which has one kernel and one network: unix sockets reach each other */
    char host[64];     /* its name for others, or its address */
    char listener[16]; /* without the zero at its begin */
    uint64_t job;
    uint8_t secret[32];
    int32_t nodes_wanted, degrade;
    int32_t by_interface; /* host is the address of the interface that the user named */
    int32_t watched;      /* by valgrind: one such process decides for all */
    int32_t copies_at;    /* enum copies_at */
    struct rack_names racks;
    char racks_wrong[128]; /* what makes no sense of what the environment says of racks; empty: nothing */
    struct address_range range;
    struct rail_list rails;
    char rails_wrong[128]; /* what makes no sense in what the environment says of them; empty: nothing */
};

/* bootstrap_card.c */
void bootstrap_card_fill(struct bootstrap_card *c, int rank);
/* The kernel gives a free name. -1: there is none. */
int bootstrap_open_listener(char *name, size_t size);
/* Of this node, as the others reach it: j->host. False: wrong says why. */
bool bootstrap_find_address(const struct bootstrap_card *cards, struct bootstrap_job *j, int rank, char *wrong,
                            size_t size);

/* bootstrap_agent.c. Its channel to us; -1: not started. It leaves us at once, so nothing of it is a child of the
 * program. */
int bootstrap_agent_start(int listener, char *wrong, size_t size);
/* The job is described to it: rank_node [ranks], domain [levels * nodes]. */
bool bootstrap_agent_describe(int channel, const struct bootstrap_job *j, const int *rank_node, const int *domain);

/* bootstrap_hold.c. Our connection to the agent, -1: there is none. */
int bootstrap_come_to(const char *listener, int rank);
#endif
